"""What cannot be written is found before the work, not after it."""

from __future__ import annotations

from pathlib import Path


def expect_place(path: Path, what: str, example: str) -> None:
    """See to it that a file can be written at `path`, its folder made. Raises InputError."""
    from tempfile import TemporaryFile

    from dokimos.core.errors import InputError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as problem:
        raise InputError(f"{path}: the {what} cannot be written ({problem.strerror}).") from None
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the {what} a name, such as {path / example}.")
