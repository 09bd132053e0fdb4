from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.verifiers.execution.usage import BoundedLog

NOTE = b"bytes of output left out here]\n"


@settings(deadline=None, max_examples=60)
@given(chunks=st.lists(st.binary(max_size=40), max_size=30), limit=st.integers(1, 200))
def test_both_ends_are_kept_and_the_rest_is_counted(chunks: list[bytes], limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        with BoundedLog(path, limit_bytes=limit) as log:
            for chunk in chunks:
                log.write(chunk)
        content, whole = path.read_bytes(), b"".join(chunks)
    if len(whole) <= limit:
        assert content == whole
        return
    left_out = len(whole) - limit
    tail = limit // 2
    note = f"\n[dokimos: {left_out} ".encode() + NOTE
    assert content == whole[: limit - tail] + note + whole[len(whole) - tail :]
