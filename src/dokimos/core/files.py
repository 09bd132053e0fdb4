"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dokimos.core.errors import InputError


def write_whole(path: Path, content: bytes, *, what: str) -> None:
    """Write `content` to `path`, beside it first, so that a reader never sees half of it.

    The folder is made if missing. InputError says that `what` cannot be written, and why.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content)
    except OSError as error:
        raise InputError(
            f"{path}: {what} cannot be written ({error.strerror}); choose another place for it."
        ) from error


def _replace(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
