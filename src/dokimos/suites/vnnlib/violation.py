"""What exactly happens at one input: does it show a property to be `sat`, and by how much?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dokimos.networks.graph import Network
from dokimos.networks.semantics.exact import Enclosure, enclosures
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, require_fit


@dataclass(frozen=True)
class Violation:
    """One input, replayed exactly.

    `margin_lower` is a lower bound on the largest, over the unsafe conjunctions of the cases whose box
    holds the input (of all cases, if none does), of the smallest slack of their constraints; None if no
    conjunction has a constraint. `violates` is None if the enclosures of the outputs do not decide it;
    otherwise it is a theorem about the exact outputs, as is every number here.
    """

    in_box: bool
    outside_by: Fraction
    violates: bool | None
    margin_lower: Fraction | None
    outputs: Enclosure


def violation_at(network: Network, property: Property, point: Sequence[Fraction]) -> Violation:
    """Replay `point`: `violates` is exact, but computed in float64 if that decides it.

    Raises InputError if sizes do not fit, Undecided if the network's value cannot be determined.
    """
    for found in violations(network, property, point):
        if found.violates is not None:
            break
    return found


def violations(
    network: Network, property: Property, point: Sequence[Fraction], *, floats_first: bool = True
) -> Iterator[Violation]:
    """What is known about `point` from ever narrower enclosures of the outputs (see `enclosures`)."""
    require_fit(network, property)
    for outputs in enclosures(network, point, floats_first=floats_first):
        yield violation_of(property, point, outputs)


def outside_by(box: Box, point: Sequence[Fraction]) -> Fraction:
    """The largest distance by which a coordinate leaves the box; 0 inside."""
    return max(
        (max(a - x, x - b, Fraction(0)) for a, x, b in zip(box.lower, point, box.upper, strict=True)),
        default=Fraction(0),
    )


def violation_of(property: Property, point: Sequence[Fraction], outputs: Enclosure) -> Violation:
    """What follows about `point` from an enclosure of the outputs there."""
    holding = [case for case in property.cases if tuple(point) in case.box]
    surely, possibly = False, False
    lowest: list[Fraction] = []
    for case in holding or property.cases:
        for conjunction in case.any_of:
            slacks = [slack_range(constraint, point, outputs) for constraint in conjunction]
            strict = [constraint.strict for constraint in conjunction]
            surely |= all(_met(low, s) for (low, _), s in zip(slacks, strict, strict=True))
            possibly |= all(_met(high, s) for (_, high), s in zip(slacks, strict, strict=True))
            if slacks:
                lowest.append(min(low for low, _ in slacks))
    decided = surely if surely == possibly else None
    return Violation(
        in_box=bool(holding),
        outside_by=Fraction(0) if holding else _distance(property.cases, point),
        violates=decided if holding else False,
        margin_lower=max(lowest, default=None),
        outputs=outputs,
    )


def _distance(cases: Sequence[Case], point: Sequence[Fraction]) -> Fraction:
    return min((outside_by(case.box, point) for case in cases), default=Fraction(0))


def _met(slack: Fraction, strict: bool) -> bool:
    return slack > 0 if strict else slack >= 0


def slack_range(
    constraint: Linear, point: Sequence[Fraction], outputs: Enclosure
) -> tuple[Fraction, Fraction]:
    """The smallest and the largest slack that the enclosed outputs allow."""
    worst, best = list(outputs.lower), list(outputs.lower)
    for j, d in constraint.outputs:
        ends = (outputs.lower[j], outputs.upper[j])
        best[j], worst[j] = ends if d > 0 else ends[::-1]
    return constraint.slack(point, worst), constraint.slack(point, best)
