"""What the measurements of a profile are called for people."""

from __future__ import annotations

from dokimos.difficulty.explain.sentences import MEANINGS, SYMBOLS


def describe(name: str) -> str:
    """A measurement in words and by its symbol; one that is not of the canonical five by its own name."""
    if name not in SYMBOLS:
        return name.replace("_", " ")
    return f"{SYMBOLS[name]}, {MEANINGS[name]}"
