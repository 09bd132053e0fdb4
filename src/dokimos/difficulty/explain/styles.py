"""Which kind of evidence each verifier builds: the table of certificate styles.

The four styles are those of Appendix C of the paper, and so is what it says of the tools that it names; the
rest follows from how the tools describe themselves. A verifier may combine several.
"""

from __future__ import annotations

from dokimos.difficulty.explain.rows import Style
from dokimos.verifiers.base import NO_ATTACK

STYLES: dict[str, tuple[Style, ...]] = {
    # A dual relaxation at each node of a partition search.
    "alpha-beta-crown": (Style.DUAL, Style.PARTITION),
    # One worker: its DPLL(T) engine. (Its divide-and-conquer mode, which we do not call, partitions.)
    "marabou": (Style.SAT,),
    "neuralsat": (Style.SAT,),
    # Star sets, refined by splitting.
    "never2": (Style.PARTITION, Style.REACHABILITY),
    # Zonotopes, refined by splitting.
    "nnenum": (Style.PARTITION, Style.REACHABILITY),
    # Abstract domains pushed forward, refined by splitting.
    "pyrat": (Style.PARTITION, Style.REACHABILITY),
    # Branch and bound over phases; each case closed by multipliers of a linear relaxation.
    "reference": (Style.DUAL, Style.PARTITION),
    # Bounds pushed backward at each node of a branch and bound.
    "vibecheck": (Style.DUAL, Style.PARTITION),
}


def styles_of(verifier: str) -> tuple[Style, ...]:
    """The styles of a verifier by its name in records, whatever its place; `OTHER` where unknown."""
    return STYLES.get(verifier.removesuffix(NO_ATTACK).partition("=")[0], (Style.OTHER,))
