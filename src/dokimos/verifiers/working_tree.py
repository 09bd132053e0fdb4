"""The current content of a tool in a folder: its files as they are now, edited or not."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Larger files are identified by their size, their beginning and their end: data sets, weights.
_LARGE_BYTES = 4 << 20
_ENDS_BYTES = 1 << 16
_GIT_SECONDS = 20
#: What a tool leaves behind when it runs: not part of the tool.
_LEFT_BEHIND = frozenset({".git", "__pycache__", ".venv", "venv", "env", "node_modules"})
_LEFT_BEHIND_SUFFIXES = (".pyc", ".log")


def repository_of(folder: Path) -> Path:
    """The repository that `folder` or its parent is; `folder` if neither is one.

    Tools keep their VNN-COMP scripts in a folder of their repository.
    """
    whole = folder.absolute()
    return next((place for place in (whole, whole.parent) if (place / ".git").exists()), whole)


def tree_digest(folder: Path) -> bytes:
    """A digest of all files of the tool in `folder`, by path and content, and of the commit it is at.

    It changes with every edit of a file that git tracks or does not ignore, committed or not. Outside a
    repository it covers every file except caches, logs and environments.
    """
    root = repository_of(folder)
    digest = hashlib.sha256()
    for path in sorted((*_commit(root), *(_known_to_git(root) or _walk(root)))):
        digest.update(f"{path.relative_to(root)}\0".encode(errors="surrogateescape"))
        digest.update(_content(path))
    return digest.digest()


def environment_names(python: Path) -> Iterator[str]:
    """The packages and versions installed with a Python interpreter, as far as their folders show."""
    for packages in sorted(python.parent.parent.glob("lib/python3*/site-packages")):
        yield from sorted(path.name for path in packages.glob("*.dist-info"))


def _content(path: Path) -> bytes:
    try:
        if path.is_symlink():
            return os.fsencode(path.readlink())
        size = path.stat().st_size
        with path.open("rb") as file:
            if size <= _LARGE_BYTES:
                return hashlib.sha256(file.read()).digest()
            begin = file.read(_ENDS_BYTES)
            file.seek(size - _ENDS_BYTES)
            return hashlib.sha256(b"%d\0" % size + begin + file.read()).digest()
    except OSError:
        return b""


def _commit(root: Path) -> Iterable[Path]:
    git = root / ".git"
    head = git / "HEAD"
    if not head.is_file():
        return ()
    branch = git / head.read_text(errors="replace").strip().removeprefix("ref: ")
    return (head, branch if branch.is_file() else git / "packed-refs")


def _known_to_git(root: Path) -> list[Path] | None:
    """The files that git tracks or does not ignore; None if git is missing or this is not a repository."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_GIT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return [root / os.fsdecode(name) for name in set(done.stdout.split(b"\0")) if name]


def _walk(root: Path) -> list[Path]:
    found = []
    for here, below, names in os.walk(root):
        below[:] = [name for name in below if name not in _LEFT_BEHIND]
        found += [Path(here, name) for name in names if not name.endswith(_LEFT_BEHIND_SUFFIXES)]
    return [path for path in found if path.is_symlink() or path.is_file()]
