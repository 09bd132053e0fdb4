"""Files that say what they are: a "format" and a "version" at the top of a JSON object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dokimos.core.errors import UnreadableFile


def expect_format(document: Any, name: str, version: int, *, file: str | Path, otherwise: str) -> None:
    """See to it that a document says to be of this format and version, or raise UnreadableFile.

    `otherwise` says what a document of another format is not.
    """
    if not isinstance(document, dict) or document.get("format") != name:
        raise UnreadableFile(file, f'{otherwise} (its "format" is not "{name}").')
    if document.get("version") != version:
        found = str(document.get("version"))[:40]
        raise UnreadableFile(file, f"has version {found}; this Dokimos reads {version}.")
