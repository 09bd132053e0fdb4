"""Locks between processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from dokimos.core.errors import InputError


@contextlib.contextmanager
def only_one(
    path: Path, *, doing: str, waiting: Callable[[str], None] | None = None, keep: bool = False
) -> Iterator[int]:
    """Hold the lock at `path`, whose folder must exist; yields its descriptor.

    The system releases the lock when its holder ends, however it ends. If another process holds it, raises
    InputError with what that process is `doing`; or, if `waiting` is given, calls it with this message and
    waits. The file is removed afterwards unless `keep` is true.
    """
    file = _locked(path, doing, waiting)
    with file:
        try:
            yield file.fileno()
        finally:
            if not keep:
                with contextlib.suppress(OSError):
                    path.unlink()


def _locked(path: Path, doing: str, waiting: Callable[[str], None] | None) -> IO[str]:
    while True:
        file = path.open("a+")
        try:
            _lock(file, path, doing, waiting)
            if _is_at(file, path):
                file.truncate(0)
                file.write(f"process {os.getpid()}\n")
                file.flush()
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # its holder has removed the file: try the new one


def _lock(file: IO[str], path: Path, doing: str, waiting: Callable[[str], None] | None) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read(80).strip()
        said = f"Another process{f' ({holder})' if holder else ''} {doing}"
        if waiting is None:
            raise InputError(f"{said}; wait for it, or choose another folder.") from None
        waiting(f"{said}; waiting for it")
        fcntl.flock(file, fcntl.LOCK_EX)


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
