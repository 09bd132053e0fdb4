"""The least margin bracketed from both sides, by proof."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dokimos.difficulty.components.attacked_margin import attack
from dokimos.difficulty.components.base import Component
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.outward import Interval
from dokimos.properties.margins import margin_cases
from dokimos.properties.model import Linear, Point
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection


class MarginLow(Component):
    """M_low <= min μ: the best of interval bounds, linear bounds and the smallest proof, all rigorous."""

    name = "margin_low"
    symbol = "M_low"
    meaning = "proven lower bound of the margin"
    on_request = True
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The largest of the bounds."""
        found = [seen.ibp_bound, seen.proof.bound]
        best = max(found)
        if best == -float("inf"):
            return Measurement.infinite("no bound of the margin is known")
        return Measurement(best, seen.proof.by if best == found[1] and best > found[0] else None)


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
