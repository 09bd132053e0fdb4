"""Arrays from untrusted files: of bounded size, and never larger than the data in the file."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnreadableFile

#: The arrays read from one archive may decompress to at most this many bytes in total.
MOST_UNFOLDED = 1 << 31


def array_in(content: bytes, *, file: Path | str) -> NDArray[Any]:
    """Read the array of numbers or texts in the content of a .npy file. Raises UnreadableFile."""
    try:
        return _array(content)
    except Exception as problem:  # numpy parses the header as Python, which may raise anything
        raise UnreadableFile(file, f"is not an array: {_in_a_line(problem)}.") from None


def arrays_in(content: bytes, names: Sequence[Sequence[str]], *, file: Path | str) -> list[NDArray[Any]]:
    """Read arrays from an .npz file: for each of `names`, the first that exists. Raises UnreadableFile."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            there = {name.removesuffix(".npy"): archive.getinfo(name) for name in archive.namelist()}
            chosen = [next((there[name] for name in either if name in there), None) for either in names]
            for either, found in zip(names, chosen, strict=True):
                if found is None:
                    known = ", ".join(sorted(there)[:20]) or "none"
                    raise UnreadableFile(file, f"has no array {either[0]!r} (it has the arrays {known}).")
            members = [found for found in chosen if found is not None]
            if sum(found.file_size for found in members) > MOST_UNFOLDED:
                raise UnreadableFile(file, f"its arrays decompress to more than {MOST_UNFOLDED} bytes.")
            return [array_in(archive.read(found), file=file) for found in members]
    except UnreadableFile:
        raise
    except Exception as problem:  # zipfile may raise anything, including zlib's errors
        raise UnreadableFile(
            file, f"is not an .npz file of plain arrays ({_in_a_line(problem)})."
        ) from None


def _array(content: bytes) -> NDArray[Any]:
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"it has version {version} of the format")
    shape, is_fortran, dtype = readers[version](file)
    if dtype.kind not in "biufSU" or dtype.itemsize == 0:
        raise ValueError(f"its values are {dtype}, neither numbers nor texts")
    stated, there = math.prod(shape) * dtype.itemsize, len(content) - file.tell()
    if stated != there or any(size < 0 for size in shape):
        raise ValueError(f"its header says {stated} bytes, but it holds {there}")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C").copy()


def _in_a_line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200]
