"""Files that may be compressed by gzip, told by their first two bytes."""

from __future__ import annotations

import gzip
import io
import zlib

from dokimos.core.errors import UnreadableFile

#: Larger contents are refused: a small compressed file can unfold to anything.
MAX_BYTES = 2**31


def uncompressed(content: bytes, *, file: str) -> bytes:
    """The content of a file, unfolded where it is compressed.

    Raises UnreadableFile, naming `file`, where it is truncated, damaged or too large.
    """
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
                content = stream.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error):
            raise UnreadableFile(file, "the compressed file is truncated or damaged.") from None
    if len(content) > MAX_BYTES:
        raise UnreadableFile(file, f"the file holds more than {MAX_BYTES} bytes.")
    return content
