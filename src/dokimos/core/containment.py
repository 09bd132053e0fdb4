"""Paths that stay inside a folder: every name in an untrusted file becomes a path here.

Suites and campaigns are exchanged, so a name in them, or a link next to them, may point anywhere. A file
named in a folder must be inside that folder, with all links followed, and be a regular file or a folder.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dokimos.core.errors import UnreadableFile


def contained(folder: Path, name: str | Path) -> Path:
    """The path `folder / name`, whether or not it exists.

    Raises UnreadableFile if it leads outside the folder, by its name or by a link, or to a device, a pipe
    or a socket. Nothing is opened.
    """
    path = folder / name
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
        raise UnreadableFile(
            path, f"{how} out of the folder {folder}; put the file itself into the folder."
        )
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise UnreadableFile(path, "is a device, a pipe or a socket, not a regular file.")
    return path


def _is_below(path: Path, folder: Path) -> bool:
    """Whether a path stays in a folder by its text alone, without following links."""
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(folder))
