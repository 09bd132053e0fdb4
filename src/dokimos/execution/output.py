"""The log of one run: all of a short output, the beginning and the end of a long one."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self


class BoundedLog:
    """A file that takes any amount of output and keeps at most `limit_bytes` of it (and one line).

    The first half is written as it arrives, so that it is on disk whatever happens. The last half is kept
    in memory and written at the end, after a line that says how much was left out in between.
    """

    def __init__(self, path: Path, *, limit_bytes: int) -> None:
        # A link to elsewhere, or a pipe, is replaced by the log; a device is kept.
        is_device = path.is_char_device() and not path.is_symlink()
        if not is_device:
            path.unlink(missing_ok=True)
        self._file = path.open("wb" if is_device else "xb", buffering=0)
        self._head_left = limit_bytes - limit_bytes // 2
        self._tail_limit = limit_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._dropped = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, chunk: bytes) -> None:
        """Add a piece of output."""
        head, rest = chunk[: self._head_left], chunk[self._head_left :]
        if head:
            self._put(head)
            self._head_left -= len(head)
        if not rest:
            return
        self._tail.append(rest)
        self._tail_bytes += len(rest)
        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._tail_limit:
            dropped = len(self._tail.popleft())
            self._tail_bytes -= dropped
            self._dropped += dropped

    def close(self) -> None:
        """Write what is still in memory, and close the file."""
        if self._file.closed:
            return
        with self._file:
            tail = b"".join(self._tail)
            cut = max(len(tail) - self._tail_limit, 0)
            if self._dropped + cut:
                self._put(f"\n[dokimos: {self._dropped + cut} bytes of output left out here]\n".encode())
            self._put(tail[cut:])
            self._tail.clear()

    def _put(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            view = view[self._file.write(view) :]
