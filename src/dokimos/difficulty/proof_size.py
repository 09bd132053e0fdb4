"""The smallest proof that the provers find for an instance: a measure of hardness that no verifier enters.

Interval bounds and linear bounds on the whole box need one leaf for each conjunction. Where they do not
prove it, two searches for trees follow: over the signs of ReLUs by linear bounds, or by the reference
engine, and over pieces of the box. The theorems that families are proven by are left out: they know how an
instance was made, and count one step for what took an idea.

A search ends after a number of steps, which is the same on every machine, however busy. CPU time is the
safety net for networks whose steps take long; where it has ended a search, that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.networks.graph import Network
from dokimos.properties.model import Property
from dokimos.provers.effort import ReachedLimit
from dokimos.provers.linear_halving import prove_by_linear_halving
from dokimos.provers.outward_trees import prove_by_linear_bounds
from dokimos.provers.reference import decide
from dokimos.suites.answers import Answer

#: Linear bounds on the whole box are tried where they are likely to take no longer than this.
_SLOPE_SECONDS = 8.0


@dataclass(frozen=True)
class ProofSearchLimits:
    """The steps after which searches end, and the CPU time after which each of them does in any case."""

    programs: int = 2500
    cases: int = 500
    pieces: int = 20_000
    cpu_seconds: float = 30.0


@dataclass(frozen=True)
class SmallestProof:
    """Leaves over all conjunctions, by what, and the best lower bound of the margin that was proven.

    `leaves` is None where no proof was found; `note` says how the searches ended, if one found nothing.
    """

    leaves: int | None
    by: str
    bound: float
    note: str = ""


@dataclass(frozen=True)
class _Searched:
    """How one search ended: leaves and proven margin of what it found, or why it found nothing."""

    by: str
    leaves: int | None = None
    margin: float = 0.0
    note: str = ""
    end: ReachedLimit | None = None


def smallest_proof(
    network: Network, asked: Property, interval_bound: float, *, limits: ProofSearchLimits | None = None
) -> SmallestProof:
    """The proof with the fewest leaves; the first without splits that works."""
    limits = limits or ProofSearchLimits()
    conjunctions = len(asked.questions())
    if interval_bound > 0:
        return SmallestProof(conjunctions, "interval bounds", interval_bound)
    bound = interval_bound
    try:
        from dokimos.provers.slope_search import likely_seconds, prove_by_slopes

        if likely_seconds(network) <= _SLOPE_SECONDS:
            slopes = prove_by_slopes(network, asked)
            bound = max(bound, slopes.bound)
            if slopes.data is not None:
                return SmallestProof(conjunctions, "linear bounds", bound)
    except (InvalidProof, UnsupportedOp):
        pass
    searched = (_tree(network, asked, limits), _pieces(network, asked, limits))
    found = [(each.leaves, each.by, each.margin) for each in searched if each.leaves is not None]
    if not found:
        notes = [each.note for each in searched if each.note] or ["no search takes this network"]
        return SmallestProof(None, "", bound, f"no proof was found ({'; '.join(notes)})")
    leaves, by, margin = min(found)
    late = [each.note for each in searched if each.end is ReachedLimit.TIME]
    return SmallestProof(leaves, by, max(bound, margin), "; ".join(late))


def _tree(network: Network, asked: Property, limits: ProofSearchLimits) -> _Searched:
    """A tree over the signs of ReLUs."""
    by = "linear bounds with splits"
    try:
        found = prove_by_linear_bounds(
            network, asked, seconds=limits.cpu_seconds, most_programs=limits.programs
        )
    except (InvalidProof, UnsupportedOp):
        return _by_reference(network, asked, limits)
    if found.data is not None:
        return _Searched(by, _leaves(found.data))
    return _ended(by, found.end, f"{limits.programs:,} linear programs", limits)


def _by_reference(network: Network, asked: Property, limits: ProofSearchLimits) -> _Searched:
    by = "the reference engine"
    try:
        decision = decide(network, asked, seconds=limits.cpu_seconds, most_cases=limits.cases)
    except UnsupportedOp:
        return _Searched(by)
    if decision.answer is Answer.UNSAT and decision.certificate is not None:
        margin = 0.0 if decision.proven is None else float(decision.proven.real)
        return _Searched(by, _leaves(dict(decision.certificate.data)), margin)
    return _ended(by, decision.end, f"{limits.cases:,} cases", limits)


def _pieces(network: Network, asked: Property, limits: ProofSearchLimits) -> _Searched:
    """Linear bounds on pieces of the box."""
    by = "linear bounds on pieces of the box"
    try:
        found = prove_by_linear_halving(
            network, asked, seconds=limits.cpu_seconds, most_pieces=limits.pieces
        )
    except (InvalidProof, UnsupportedOp):
        return _Searched(by)
    if found.data is not None:
        return _Searched(by, _leaves(found.data))
    return _ended(by, found.end, f"{limits.pieces:,} pieces", limits)


def _ended(by: str, end: ReachedLimit | None, steps: str, limits: ProofSearchLimits) -> _Searched:
    if end is None:
        return _Searched(by, note=f"{by}: no decision")
    after = steps if end is ReachedLimit.STEPS else f"{limits.cpu_seconds:g} s of CPU time"
    return _Searched(by, note=f"{by}: ended after {after}", end=end)


def _leaves(data: dict[str, Any]) -> int:
    """How many leaves the trees of a certificate have."""
    return sum(len(t["leaves"]) if isinstance(t, dict) else (len(t) + 1) // 2 for t in data["trees"])
