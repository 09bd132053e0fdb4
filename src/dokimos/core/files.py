"""Files that are there whole or not at all: the one place where Dokimos writes them."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from dokimos.core.errors import InputError, UnreadableFile


def write_whole(path: Path, content: bytes | str, *, what: str = "the file", durable: bool = False) -> None:
    """Write `content` (text as UTF-8) to `path`, beside it first, so that a reader never sees half of it.

    The folder is made if missing. Once a `durable` file is written, it survives a loss of power.
    InputError says that `what` cannot be written, and why.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content.encode() if isinstance(content, str) else content, durable=durable)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "make room and run the same command again" if full else "choose another place for it"
        raise InputError(f"{path}: {what} cannot be written ({error.strerror}); {remedy}.") from error


def _replace(path: Path, content: bytes, *, durable: bool) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_whole(path: Path) -> bytes:
    """The content of a file. Raises UnreadableFile, which says why it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise UnreadableFile(path, f"cannot be read: {problem.strerror or problem}.") from None


def expect_writable(path: Path, *, what: str, example: str) -> None:
    """See to it before the work that a file can be written at `path`, or raise InputError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as problem:
        raise InputError(f"{path}: the {what} cannot be written ({problem.strerror}).") from None
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the {what} a name, such as {path / example}.")
