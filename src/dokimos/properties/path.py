"""Reading a property from a file on disk."""

from __future__ import annotations

from pathlib import Path

from dokimos.core.errors import UnreadableFile
from dokimos.core.regular_files import read_regular
from dokimos.properties.model import Property
from dokimos.properties.reading import read_vnnlib


def read_vnnlib_file(path: Path) -> Property:
    """The property in a file, `.vnnlib` or `.vnnlib.gz`."""
    try:
        content = read_regular(path)
    except OSError as problem:
        raise UnreadableFile(path, f"the file cannot be read: {problem.strerror}.") from None
    return read_vnnlib(content, file=str(path))
