from __future__ import annotations

import gzip

import pytest

from dokimos.core.errors import LargeFile, UnreadableFile
from dokimos.core.files import reading_at_most
from dokimos.core.inputs import uncompressed


@pytest.mark.parametrize("content", [b"", b"plain", b"x" * 2**22])
def test_content_comes_back(content: bytes) -> None:
    assert uncompressed(content, file="f") == content
    assert uncompressed(gzip.compress(content), file="f.gz") == content


def test_what_unfolds_to_too_much_is_refused() -> None:
    bomb = gzip.compress(b"\0" * 2**20) * 65
    assert len(uncompressed(bomb, file="f.gz")) == 65 * 2**20, "whatever the ratio is"
    said = r"f.gz: the compressed file decompresses to more than 67108864 bytes"
    with reading_at_most(2**26), pytest.raises(LargeFile, match=said):
        uncompressed(bomb, file="f.gz")


def test_what_is_damaged_is_refused() -> None:
    with pytest.raises(UnreadableFile, match="truncated or damaged"):
        uncompressed(gzip.compress(b"abc" * 100)[:-12], file="f.gz")
