"""The least margin bracketed from both sides by proof, and the size of the smallest proof that is found.

The size is a measure of hardness that no verifier enters. `dokimos profile SUITE --more` measures these.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.difficulty.components.bounds import attack
from dokimos.difficulty.components.five_components import Component
from dokimos.difficulty.inspection import Inspection
from dokimos.engine.halving import prove_by_linear_halving
from dokimos.engine.layered_networks import prove_by_linear_bounds
from dokimos.engine.outcome import ReachedLimit
from dokimos.engine.reference import decide
from dokimos.networks.graph import Network
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.outward import Interval
from dokimos.suites.facts import Measurement
from dokimos.suites.instance import Answer
from dokimos.suites.vnnlib.margins import margin_cases
from dokimos.suites.vnnlib.model import Linear, Point, Property

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


@lru_cache(maxsize=4)
def proof_of(seen: Inspection) -> SmallestProof:
    """The smallest proof that limited searches find."""
    return smallest_proof(seen.network, seen.property, seen.ibp_bound)


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
        from dokimos.engine.slope_search import likely_seconds, prove_by_slopes

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


class MarginLow(Component):
    """M_low <= min μ: the best of interval bounds, linear bounds and the smallest proof, all rigorous."""

    name = "margin_low"
    symbol = "M_low"
    meaning = "proven lower bound of the margin"
    on_request = True
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The largest of the bounds."""
        found = [seen.ibp_bound, proof_of(seen).bound]
        best = max(found)
        if best == -float("inf"):
            return Measurement.infinite("no bound of the margin is known")
        return Measurement(best, proof_of(seen).by if best == found[1] and best > found[0] else None)


class MarginHigh(Component):
    """M_high >= min μ: the margin at the lowest point that sampling and descent find, rounded upward."""

    name = "margin_high"
    symbol = "M_high"
    meaning = "margin at a known input, from above"
    on_request = True
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The least over the cases."""
        found = [_above(seen, number) for number in range(len(seen.forms))]
        least = min(found, default=float("inf"))
        if not np.isfinite(least):
            return Measurement.not_applicable("no input has a margin that can be enclosed")
        return Measurement(least)


def _above(seen: Inspection, number: int) -> float:
    """An upper bound of the margin of one case at its lowest known point."""
    case = margin_cases(seen.property)[number]
    guided, sampled = seen.guided[number], seen.sampled_cases[number]
    target = attack(seen, number)
    margins = np.concatenate([sampled.margins, guided.found.margins])
    points = np.concatenate([seen.points[number], guided.points])
    lowest = points[int(np.argmin(margins))] if margins.min() < target.least_margin else target.point
    point = tuple(
        min(max(Fraction(float(x)), low), high)
        for x, low, high in zip(lowest, case.box.lower, case.box.upper, strict=True)
    )
    ends = enclose(seen.network, point, point)[seen.network.output].map(lambda end: end.reshape(-1))
    if not np.isfinite([ends.lower, ends.upper]).all():
        return float("inf")
    margin = min(max(_largest(one, point, ends) for one in conjunction) for conjunction in case.any_of)
    near = float(margin)
    return near if Fraction(near) >= margin else float(np.nextafter(near, np.inf))


def _largest(constraint: Linear, point: Point, outputs: Interval) -> Fraction:
    """The most that left side − bound can be at the point."""
    high = [
        Fraction(float(outputs.upper[j] if d > 0 else outputs.lower[j])) * d for j, d in constraint.outputs
    ]
    left = sum((c * point[i] for i, c in constraint.inputs), Fraction(0))
    return left + sum(high, Fraction(0)) - constraint.bound


class ProofLeaves(Component):
    """The leaves of the smallest proof by intervals, linear bounds and case distinctions (`proof_of`).

    One for each conjunction is the least. Searches end after a number of steps, so that every machine finds
    the same; where CPU time has ended one, the note says so.
    """

    name = "proof_leaves"
    symbol = "leaves"
    meaning = "leaves of the smallest proof found"
    on_request = True
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The number of leaves; none for an instance with a counterexample."""
        if seen.least_margin is not None and seen.least_margin <= 0:
            return Measurement.not_applicable("a sample is a counterexample")
        found = proof_of(seen)
        if found.leaves is None:
            return Measurement(None, found.note)
        return Measurement(float(found.leaves), "; ".join(filter(None, (found.by, found.note))))
