"""The least margin bracketed from both sides by proof, and the size of the smallest proof that is found.

The size is a measure of hardness that no verifier enters. `dokimos profile SUITE --more` measures these.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.difficulty.components.measurements import Component, attack
from dokimos.difficulty.inspection import Inspection
from dokimos.engine.outcome import ReachedLimit, SearchEffort
from dokimos.networks.graph import Network
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.outward import Interval
from dokimos.suites.facts import Measurement
from dokimos.suites.vnnlib.margins import margin_cases
from dokimos.suites.vnnlib.model import Linear, Point, Property


@dataclass(frozen=True)
class ProofSearchLimits:
    """The nodes after which a search ends, and the CPU time after which it does in any case."""

    nodes: int = 5000
    cpu_seconds: float = 30.0


@dataclass(frozen=True)
class SmallestProof:
    """Leaves over all conjunctions, by what, and the best lower bound of the margin that was proven.

    `leaves` is None where no proof was found; `note` says how the search ended then.
    """

    leaves: int | None
    by: str
    bound: float
    note: str = ""


@lru_cache(maxsize=4)
def proof_of(seen: Inspection) -> SmallestProof:
    """The smallest proof that limited searches find."""
    return smallest_proof(seen.network, seen.property, seen.ibp_bound)


def smallest_proof(
    network: Network, asked: Property, interval_bound: float, *, limits: ProofSearchLimits | None = None
) -> SmallestProof:
    """The proof that the engine finds: by intervals, by linear bounds, or by branch and bound."""
    from dokimos.engine.linear import LinearSearch

    limits = limits or ProofSearchLimits()
    conjunctions = len(asked.questions())
    if interval_bound > 0:
        return SmallestProof(conjunctions, "interval bounds", interval_bound)
    effort = SearchEffort(limits.cpu_seconds, limits.nodes)
    try:
        found = LinearSearch(network, asked, effort).run()
    except (InvalidProof, UnsupportedOp) as error:
        return SmallestProof(None, "", interval_bound, f"no proof was found ({error})")
    bound = max(interval_bound, found.bound)
    if found.data is None:
        after = f"{limits.nodes:,} nodes"
        if effort.end is ReachedLimit.TIME:
            after = f"{limits.cpu_seconds:g} s of CPU time"
        ended = found.reason if effort.end is None else f"branch and bound ended after {after}"
        return SmallestProof(None, "", bound, f"no proof was found ({ended})")
    leaves = sum((len(each["tree"]) + 1) // 2 if "tree" in each else 1 for each in found.data["questions"])
    return SmallestProof(leaves, "linear bounds" if leaves == conjunctions else "branch and bound", bound)


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
