"""Files that others wrote: regular ones, and inside the folder they should be in."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dokimos.core.errors import FileElsewhere, InputError, LargeFile, UnreadableFile
from dokimos.core.inputs import ALLOWED

# Reads files that must be regular: a pipe could make us wait, and a device may never end


@contextmanager
def reading_at_most(most_bytes: int) -> Iterator[None]:
    """Files may be so large meanwhile, here and in processes that `parallel.each` starts."""
    before = ALLOWED.set(most_bytes)
    try:
        yield
    finally:
        ALLOWED.reset(before)


def read_regular(path: Path, *, most_bytes: int | None = None) -> bytes:
    """The content of a regular file. Never blocks, and never opens anything else.

    Raises UnreadableFile if it is not a regular file, LargeFile if it is too large, OSError if it cannot be
    opened.
    """
    most_bytes = ALLOWED.get() if most_bytes is None else most_bytes
    _expect_regular(path, path.stat())
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        _expect_regular(path, os.fstat(file.fileno()))
        # In pieces: Python allocates as much memory as it is asked to read.
        pieces, left = [], most_bytes + 1
        while piece := file.read(min(left, 1 << 24)):
            pieces.append(piece)
            left -= len(piece)
    if left <= 0:
        raise LargeFile(path, f"the file holds more than {most_bytes} bytes.")
    return b"".join(pieces)


def _expect_regular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise UnreadableFile(path, "is a device, a pipe or a socket, not a regular file.")


# Paths that stay inside a folder: every name in an untrusted file becomes a path here


def contained(folder: Path, name: str | Path) -> Path:
    """The path `folder / name`, whether or not it exists.

    Raises UnreadableFile if it leads outside the folder, by its name or by a link, or to a device, a pipe
    or a socket. Nothing is opened.
    """
    path = folder / name
    if _is_own(path, folder, name):
        return path
    try:
        leaves = not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except ValueError:  # no file can have this name
        leaves = not _is_below(path, folder)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # it does not exist, or we may not look at it
        mode = stat.S_IFREG
    if leaves:
        how = "a link there leads" if _is_below(path, folder) else "its name leads"
        raise FileElsewhere(path, f"{how} out of the folder {folder}; put the file itself into the folder.")
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise UnreadableFile(path, "is a device, a pipe or a socket, not a regular file.")
    return path


def _is_own(path: Path, folder: Path, name: str | Path) -> bool:
    """Whether a path is an entry of the folder itself, and a file, a folder, or nothing yet: no link."""
    if name in ("", ".", "..") or path.name != str(name):
        return False
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return folder.is_dir()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _is_below(path: Path, folder: Path) -> bool:
    """Whether a path stays in a folder by its text alone, without following links."""
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(folder))


def as_paths(given: str | Path | Sequence[str | Path], *, none: str) -> list[Path]:
    """One path or several, as a list. Raises InputError, with the message `none`, if there are none."""
    paths = [Path(each) for each in ([given] if isinstance(given, str | Path) else given)]
    if not paths:
        raise InputError(none)
    return paths
