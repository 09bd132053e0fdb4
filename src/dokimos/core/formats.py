"""Files that state their format: a "format" and a "version" at the top of a JSON object."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from dokimos.core.errors import UnreadableFile

#: A count that fits in 64 bits.
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


def expect_format(document: Any, name: str, version: int, *, file: str | Path, otherwise: str) -> None:
    """Raise UnreadableFile if a document does not state this format and version.

    `otherwise` is the message for a document of another format.
    """
    if not isinstance(document, dict) or document.get("format") != name:
        raise UnreadableFile(file, f'{otherwise} (its "format" is not "{name}").')
    if document.get("version") != version:
        found = str(document.get("version"))[:40]
        raise UnreadableFile(file, f"has version {found}, but this version of Dokimos reads {version}.")
