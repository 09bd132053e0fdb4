"""What the measurements of a profile are called for people."""

from __future__ import annotations

SYMBOLS = {
    "margin": "M̂",
    "ibp_gap": "G",
    "unstable": "U",
    "regions": "A",
    "gradient_dimension": "d",
}
"""Short enough for the heading of a column."""

_NAMES = {
    "margin": "sampled minimum margin M̂_min",
    "ibp_gap": "relative IBP gap G_IBP",
    "unstable": "unstable fraction U",
    "regions": "local-region complexity A_τ",
    "gradient_dimension": "effective gradient dimension d_eff",
}


def describe(name: str) -> str:
    """A measurement in words; one that is not of the canonical five by its own name."""
    return _NAMES.get(name, name.replace("_", " "))
