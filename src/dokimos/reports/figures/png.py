"""Pictures for the page: arrays as PNG files, embedded in the page."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: PNG's codes for grey and for red, green, blue.
_COLOURS = {1: 0, 3: 2}


def png(pixels: NDArray[Any]) -> bytes:
    """The PNG file of an array of bytes: [height, width] grey, or [height, width, 3] colours.

    Raises ValueError for anything else.
    """
    grid = np.asarray(pixels)
    if grid.ndim == 2:
        grid = grid[:, :, None]
    if grid.ndim != 3 or grid.shape[2] not in _COLOURS or 0 in grid.shape:
        raise ValueError(f"a picture has the shape [height, width] or [height, width, 3], not {grid.shape}")
    if grid.dtype != np.uint8:
        raise ValueError(f"a picture is made of bytes (uint8), not of {grid.dtype}")
    height, width, depth = grid.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), grid.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[depth], 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def data_address(content: bytes) -> str:
    """A PNG file as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"
