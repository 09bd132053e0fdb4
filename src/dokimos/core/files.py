"""Files that are written completely or not at all: all files that Dokimos writes are written here.

And files that others wrote: they must be regular, and inside the folder they should be in.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from dokimos import __version__
from dokimos.core.errors import FileElsewhere, InputError, LargeFile, UnreadableFile
from dokimos.core.inputs import ALLOWED, MOST_BYTES

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


def write_whole(
    path: Path,
    content: bytes | str,
    *,
    what: str = "the file",
    durable: bool = False,
    make_folder: bool = True,
) -> None:
    """Write `content` (text as UTF-8) to `path` by way of a temporary file: a reader never sees half of it.

    A link is followed: it stays, and its target is replaced. A path that is not a regular file (/dev/null,
    a pipe, /dev/stdout) is written to directly. A missing folder is created; if `make_folder` is false, it
    is an error instead. Once a `durable` file is written, it survives a power loss. Raises InputError,
    which says that `what` cannot be written, and why.
    """
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        else:
            _expect_folder(path, what)
        _write(path, content.encode() if isinstance(content, str) else content, durable=durable)
    except OSError as error:
        raise cannot_write(path, error, what=what) from error


def cannot_write(path: Path, error: OSError, *, what: str = "the file") -> InputError:
    """The error for a file that cannot be written: which file, why, and what to do."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "make room and run the same command again" if full else "choose another path"
    return InputError(f"{path}: {what} cannot be written ({error.strerror or error}); {remedy}.")


def expect_new_or_empty(folder: Path) -> None:
    """Raise InputError if `folder` is a file, holds anything, or is the working folder.

    What is complete takes the place of `folder`; the working folder cannot be replaced.
    """
    if folder.absolute() == Path.cwd() or folder.resolve() == Path.cwd():
        raise InputError(f"{folder} is the folder that you are in; name a new one as `out`.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} already holds something else; choose another `out`, or remove it first."
        )


def expect_room(folder: Path) -> None:
    """Raise InputError, before the work starts, unless a new folder can be made at `folder`."""
    expect_new_or_empty(folder)
    there = next(parent for parent in folder.absolute().parents if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "you may not write there" if there.is_dir() else "it is a file"
        raise InputError(f"{folder} cannot be made in {there}: {why}; choose another `out`.")


def append_line(path: Path, line: str, *, what: str = "the file") -> None:
    """Append a line to one of Dokimos' own files. Raises InputError if `what` cannot be written."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as error:
        raise cannot_write(path, error, what=what) from error


def _write(path: Path, content: bytes, *, durable: bool) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        _replace(Path(os.path.realpath(path)), content, mode=None, durable=durable)
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if (ours := _our_output(found)) is not None:
        _put(ours, content)
    elif stat.S_ISREG(found.st_mode):
        mode = stat.S_IMODE(found.st_mode)
        _replace(Path(os.path.realpath(path)), content, mode=mode, durable=durable)
    else:
        with os.fdopen(os.open(path, os.O_WRONLY), "wb", buffering=0) as file:
            _put(file.fileno(), content)


def _our_output(found: os.stat_result) -> int | None:
    """The descriptor of our standard output or error, if that is the file (as /dev/stdout is)."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None


def _replace(path: Path, content: bytes, *, mode: int | None, durable: bool) -> None:
    """Write to a temporary file next to `path` and rename it; `mode` None means the usual permissions."""
    temporary = path.with_name(f".{path.name[:40]}.{uuid.uuid4().hex[:12]}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            _put(file.fileno(), content)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names that were written to a folder survive a power loss. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot, and need not
            raise
    finally:
        os.close(descriptor)


def _put(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def read_whole(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a file of at most `most_bytes`. Raises UnreadableFile, which says what is wrong."""
    try:
        return read_regular(path, most_bytes=most_bytes)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UnreadableFile(path, f"cannot be read: {reason}.") from None


def expect_writable(path: Path, *, what: str, example: str, made: Path | None = None) -> None:
    """Raise InputError, before the work starts, if a file cannot be written at `path`.

    `made` is a folder that the work itself creates if it is missing.
    """
    if made is not None and not made.exists() and Path(os.path.realpath(path)).parent == made.resolve():
        return
    _expect_folder(path, f"the {what}")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the {what} a name, such as {path / example}.")
    if path.exists() and not path.is_file():
        return
    try:
        with tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent):
            pass
    except OSError as problem:
        raise InputError(f"{path}: the {what} cannot be written ({problem.strerror}).") from None


def _expect_folder(path: Path, what: str) -> None:
    """Raise InputError if the folder of a file that the user named does not exist; it is not created."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.exists():
        raise InputError(f"{path}: {what} cannot be written: there is no folder {folder}; create it first.")
    if not folder.is_dir():
        raise InputError(f"{path}: {what} cannot be written: {folder} is not a folder.")


# The folder where Dokimos keeps what it installs and caches


def home() -> Path:
    """$DOKIMOS_HOME, or the user's cache folder."""
    if given := os.environ.get("DOKIMOS_HOME"):
        return Path(given).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "dokimos"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "dokimos"


@cache
def code_key() -> str:
    """The version of Dokimos and a hash of its sources: the key of everything cached that they determine.

    The version alone would not do: a checkout changes without it, and so does what is installed from one.
    Tables and templates beside the modules count as sources.
    """
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(__version__.encode())
    for source in sorted(path for path in root.rglob("*.*") if path.parent.name != "__pycache__"):
        content = source.read_bytes()
        digest.update(f"\0{source.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


# Locks between processes


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
