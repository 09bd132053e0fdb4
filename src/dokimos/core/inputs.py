"""What files may hold: how many bytes, compressed with gzip or not."""

from __future__ import annotations

import gzip
import io
import zlib
from contextvars import ContextVar

from dokimos.core.errors import LargeFile, UnreadableFile

#: Files larger than this are refused, unless more is allowed (`paths.reading_at_most`).
MOST_BYTES = 2**30
#: How large a file may be, and what it decompresses to.
ALLOWED: ContextVar[int] = ContextVar("allowed", default=MOST_BYTES)


def uncompressed(content: bytes, *, file: str) -> bytes:
    """The content of a file, decompressed if necessary.

    Raises UnreadableFile, naming `file`, if it is truncated or damaged, LargeFile if it is too large,
    whatever the ratio is.
    """
    if content[:2] != b"\x1f\x8b":
        return content
    most = ALLOWED.get()
    unfolded = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            while (piece := stream.read(2**20)) and unfolded.tell() <= most:
                unfolded.write(piece)
    except (OSError, EOFError, zlib.error):
        raise UnreadableFile(file, "the compressed file is truncated or damaged.") from None
    if unfolded.tell() > most:
        raise LargeFile(file, f"the compressed file decompresses to more than {most} bytes.")
    return unfolded.getvalue()
