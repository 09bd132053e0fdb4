"""The margin μ(x): how far an input is from being unsafe.

A case of a property calls an input of its box unsafe if all constraints of one of its conjunctions hold.
With constraints g(x) = a·x + d·f(x) − b <= 0, a conjunction holds if the largest of its g is <= 0, so

    μ(x) = min over conjunctions of max over its constraints of g(x)

is positive if the input is safe and negative if it is unsafe. (At μ = 0 the input is unsafe, unless the
deciding constraint is strict.) For "class c wins" this is the smallest lead of c over another class.
Constraints may be on inputs as well as on outputs. The margin of a property of several cases is the least
over them, each on its own box.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dokimos.networks.semantics.interval import round_outward
from dokimos.networks.semantics.outward import Floats, Interval, point
from dokimos.suites.vnnlib.model import Box, Case, Linear, Point, Property, Terms


@dataclass(frozen=True, eq=False)
class Rows:
    """One constraint in each row: g = inputs·x + outputs·y − bounds."""

    inputs: Interval
    outputs: Interval
    bounds: Interval


@dataclass(frozen=True, eq=False)
class MarginForm:
    """The margin of one case.

    `exact` encloses every coefficient; the other arrays hold the nearest float64 numbers. Line c of
    `members` lists the rows of conjunction c, its first one repeated to fill the line.
    """

    inputs: Floats
    outputs: Floats
    bounds: Floats
    members: NDArray[np.int64]
    exact: Rows

    def least(self, rows: Floats) -> float:
        """min over conjunctions of max over their rows: lower bounds of the g give a lower bound of μ."""
        return float(rows[self.members].max(axis=1).min())


def margin_form(case: Case, inputs: int, outputs: int) -> MarginForm:
    """The margin of a case with at least one conjunction, none of them empty."""
    rows = [constraint for conjunction in case.any_of for constraint in conjunction]
    sizes = [len(conjunction) for conjunction in case.any_of]
    starts = np.cumsum([0, *sizes[:-1]])
    steps = np.arange(max(sizes))[None, :]
    members = starts[:, None] + np.where(steps < np.array(sizes)[:, None], steps, 0)
    exact = Rows(
        inputs=_matrix([c.inputs for c in rows], inputs),
        outputs=_matrix([c.outputs for c in rows], outputs),
        bounds=_vector(rows),
    )
    return MarginForm(
        inputs=_nearest_matrix([c.inputs for c in rows], inputs),
        outputs=_nearest_matrix([c.outputs for c in rows], outputs),
        bounds=np.array([float(c.bound) for c in rows]),
        members=members.astype(np.int64),
        exact=exact,
    )


def why_no_margin(property: Property) -> str | None:
    """Why μ is not a number anywhere, or None if it is one."""
    cases = [case for case in property.cases if not case.box.is_empty]
    if not cases:
        return "the property allows no input: every box is empty"
    if not any(case.any_of for case in cases):
        return "the property calls no output unsafe"
    if any(not conjunction for case in cases for conjunction in case.any_of):
        return "the property calls every input of a box unsafe"
    return None


def margin_cases(property: Property) -> tuple[Case, ...]:
    """The cases whose box is not empty and that call some output unsafe."""
    return tuple(case for case in property.cases if case.any_of and not case.box.is_empty)


def float_ends(box: Box) -> tuple[Floats, Floats]:
    """Both ends of the box, each at the nearest float64."""
    return np.array([float(x) for x in box.lower]), np.array([float(x) for x in box.upper])


def _nearest_matrix(terms: Sequence[Terms], width: int) -> Floats:
    matrix = np.zeros((len(terms), width))
    for row, found in enumerate(terms):
        for index, coefficient in found:
            matrix[row, index] = float(coefficient)
    return matrix


def _matrix(terms: Sequence[Terms], width: int) -> Interval:
    lower, upper = np.zeros((len(terms), width)), np.zeros((len(terms), width))
    for row, found in enumerate(terms):
        for index, coefficient in found:
            lower[row, index], upper[row, index] = _ends(coefficient)
    return _interval(lower, upper)


def _vector(rows: Sequence[Linear]) -> Interval:
    ends = [_ends(constraint.bound) for constraint in rows]
    return _interval(np.array([low for low, _ in ends]), np.array([high for _, high in ends]))


def _ends(value: Fraction) -> tuple[float, float]:
    return round_outward(value, -1), round_outward(value, 1)


def _interval(lower: Floats, upper: Floats) -> Interval:
    return point(lower) if np.array_equal(lower, upper) else Interval(lower, upper)


# The point of a box that is nearest to a given point


def nearest_point(values: Iterable[float | Fraction], box: Box) -> Point:
    """The point of the box, which is not empty, that is nearest to these finite numbers, exactly."""
    return tuple(
        min(max(Fraction(x), low), high) for x, low, high in zip(values, box.lower, box.upper, strict=True)
    )
