"""Reads files that must be regular: a pipe could make us wait, and a device may never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dokimos.core.errors import UnreadableFile

#: Files larger than this are refused.
MOST_BYTES = 2**30


def read_regular(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a regular file. Never blocks, and never opens anything else.

    Raises UnreadableFile if it is not a regular file or is too large, OSError if it cannot be opened.
    """
    _expect_regular(path, path.stat())
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        _expect_regular(path, os.fstat(file.fileno()))
        # In pieces: Python allocates as much memory as it is asked to read.
        pieces, left = [], most_bytes + 1
        while piece := file.read(min(left, 1 << 24)):
            pieces.append(piece)
            left -= len(piece)
    if left <= 0:
        raise UnreadableFile(path, f"the file holds more than {most_bytes} bytes.")
    return b"".join(pieces)


def _expect_regular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise UnreadableFile(path, "is a device, a pipe or a socket, not a regular file.")
