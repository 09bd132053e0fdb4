"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean …?)`, or an empty text if no known name is close."""
    names = sorted(set(known))
    folded = {each.lower().replace("_", ""): each for each in names}
    near = [folded[key] for key in [name.lower().replace("_", "")] if key in folded]
    near = near or difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""
