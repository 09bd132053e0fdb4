"""Converts to VNN-LIB 1.0, for verifiers that read nothing else."""

from __future__ import annotations

import re

from dokimos.core.errors import UnreadableFile
from dokimos.properties.reading import read_vnnlib
from dokimos.properties.writing import write_vnnlib1

_VERSION_2 = re.compile(rb"(?:\s++|;[^\n]*+\n)*+\(\s*vnnlib-version")


def in_vnnlib1(content: bytes, *, file: str) -> bytes:
    """The property in VNN-LIB 1.0, with the same decimals; the content itself if it is already 1.0.

    An unreadable property stays as it is, so that the verifier reports the problem. Raises InputError if
    1.0 cannot express it, as with strict comparisons.
    """
    if _VERSION_2.match(content) is None:
        return content
    try:
        asked = read_vnnlib(content, file=file)
    except UnreadableFile:
        return content
    return write_vnnlib1(asked).encode()
