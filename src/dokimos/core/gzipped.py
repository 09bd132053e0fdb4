"""Files that may be compressed with gzip, which their first two bytes show."""

from __future__ import annotations

import gzip
import io
import zlib

from dokimos.core.errors import UnreadableFile
from dokimos.core.regular_files import MOST_BYTES

#: Up to this size, any compression ratio is allowed.
_SMALL = 2**26
#: Above it, a file may decompress to this many times its size: networks reach 10, properties 30, bombs
#: 1000.
_MOST_TIMES = 50


def uncompressed(content: bytes, *, file: str) -> bytes:
    """The content of a file, decompressed if necessary.

    Raises UnreadableFile, naming `file`, if it is truncated, damaged or too large.
    """
    if content[:2] != b"\x1f\x8b":
        return content
    most = min(MOST_BYTES, max(_SMALL, _MOST_TIMES * len(content)))
    unfolded = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            while (piece := stream.read(2**20)) and unfolded.tell() <= most:
                unfolded.write(piece)
    except (OSError, EOFError, zlib.error):
        raise UnreadableFile(file, "the compressed file is truncated or damaged.") from None
    if unfolded.tell() > most:
        raise UnreadableFile(file, f"the compressed file decompresses to more than {most} bytes.")
    return unfolded.getvalue()
