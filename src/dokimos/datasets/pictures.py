"""Picture files as arrays of pixels."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnreadableFile, packages_missing

#: The suffixes of picture files.
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm")
_MOST_PIXELS = 50_000_000


def read_picture(source: Path | IO[bytes], what: str) -> NDArray[np.uint8]:
    """The pixels: [height, width] for a grey picture, [height, width, 3] for a colour picture.

    Raises InputError if `what` is not a picture or is too large, or if the package Pillow is missing.
    """
    try:
        from PIL import Image
    except ImportError:
        raise packages_missing(f"{what}: reading pictures needs Pillow", "data") from None
    try:
        with Image.open(source) as picture:
            if picture.width * picture.height > _MOST_PIXELS:
                raise UnreadableFile(what, f"has more than {_MOST_PIXELS:,} pixels")
            grey = picture.mode in ("L", "1", "I;16", "I")
            return np.asarray(picture.convert("L" if grey else "RGB"))
    except UnreadableFile:
        raise
    except Exception as error:  # there are many formats, and each reader may raise anything
        raise UnreadableFile(what, f"is not a picture that can be read ({error})") from None
