"""The smallest proof that the provers find for an instance: a measure of hardness that no verifier enters.

Interval bounds and linear bounds on the whole box need one leaf for each conjunction. Where they do not
prove it, two searches for trees are given a few seconds each: over the signs of ReLUs by linear bounds, or
by the reference engine, and over pieces of the box. The theorems that families are proven by are left out:
they know how an instance was made, and count one step for what took an idea.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.networks.graph import Network
from dokimos.properties.model import Property
from dokimos.provers.linear_halving import prove_by_linear_halving
from dokimos.provers.outward_trees import prove_by_linear_bounds
from dokimos.provers.reference import decide
from dokimos.suites.answers import Answer

#: How long each search may take.
SECONDS = 4.0


@dataclass(frozen=True)
class SmallestProof:
    """Leaves over all conjunctions, by what, and the best lower bound of the margin that was proven.

    `leaves` is None where no proof was found; `note` says what was tried.
    """

    leaves: int | None
    by: str
    bound: float
    note: str = ""


def smallest_proof(
    network: Network, asked: Property, interval_bound: float, *, seconds: float = SECONDS
) -> SmallestProof:
    """The proof with the fewest leaves; the first without splits that works."""
    conjunctions = len(asked.questions())
    if interval_bound > 0:
        return SmallestProof(conjunctions, "interval bounds", interval_bound)
    bound = interval_bound
    try:
        from dokimos.provers.slope_search import likely_seconds, prove_by_slopes

        if likely_seconds(network) <= 2 * seconds:
            slopes = prove_by_slopes(network, asked)
            bound = max(bound, slopes.bound)
            if slopes.data is not None:
                return SmallestProof(conjunctions, "linear bounds", bound)
    except (InvalidProof, UnsupportedOp):
        pass
    found = [each for each in (_tree(network, asked, seconds), _pieces(network, asked, seconds)) if each]
    if not found:
        return SmallestProof(None, "", bound, f"no proof was found in {2 * seconds:g} s")
    leaves, by, margin = min(found)
    return SmallestProof(leaves, by, max(bound, margin))


def _tree(network: Network, asked: Property, seconds: float) -> tuple[int, str, float] | None:
    """A tree over the signs of ReLUs."""
    try:
        found = prove_by_linear_bounds(network, asked, seconds=seconds)
        return None if found.data is None else (_leaves(found.data), "linear bounds with splits", 0.0)
    except (InvalidProof, UnsupportedOp):
        pass
    try:
        decision = decide(network, asked, seconds=seconds)
    except UnsupportedOp:
        return None
    if decision.answer is not Answer.UNSAT or decision.certificate is None:
        return None
    margin = 0.0 if decision.proven is None else float(decision.proven.real)
    return _leaves(dict(decision.certificate.data)), "the reference engine", margin


def _pieces(network: Network, asked: Property, seconds: float) -> tuple[int, str, float] | None:
    """Linear bounds on pieces of the box."""
    try:
        found = prove_by_linear_halving(network, asked, seconds=seconds)
    except (InvalidProof, UnsupportedOp):
        return None
    if found.data is None:
        return None
    return _leaves(found.data), "linear bounds on pieces of the box", 0.0


def _leaves(data: dict[str, Any]) -> int:
    """How many leaves the trees of a certificate have."""
    return sum(len(t["leaves"]) if isinstance(t, dict) else (len(t) + 1) // 2 for t in data["trees"])
