"""Converts to VNN-LIB 1.0, for verifiers that read nothing else."""

from __future__ import annotations

from dokimos.core.errors import UnreadableFile
from dokimos.properties.reading import is_version_2, read_vnnlib
from dokimos.properties.writing import write_vnnlib1


def in_vnnlib1(content: bytes, *, file: str) -> bytes:
    """The property in VNN-LIB 1.0, with the same decimals; the content itself if it is already 1.0.

    An unreadable property stays as it is, so that the verifier reports the problem. Raises InputError if
    1.0 cannot express it, as with strict comparisons.
    """
    if not is_version_2(content.decode("utf-8-sig", "replace")):
        return content
    try:
        asked = read_vnnlib(content, file=file)
    except UnreadableFile:
        return content
    return write_vnnlib1(asked).encode()
