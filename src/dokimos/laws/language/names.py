"""What messages, pages and proofs call the law in a file."""

from __future__ import annotations

from pathlib import Path

#: A folder for each shipped domain, with the files of its laws.
LIBRARY = Path(__file__).parents[1] / "studies" / "library"


def name_of(path: Path) -> str:
    """DOMAIN/LAW for a law that comes with Dokimos, as commands take it; for any other, its path."""
    if not path.is_relative_to(LIBRARY):
        return str(path)
    return f"{path.relative_to(LIBRARY).parts[0]}/{path.stem}"
