"""The exact number of linear regions of a small ReLU network in a box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import highspy
import numpy as np

from dokimos.checker.lemmas.piecewise_linear import (
    AffineExpression,
    PiecewiseLinear,
    combine,
    piecewise_linear,
)
from dokimos.core.errors import UnsupportedOp
from dokimos.difficulty.components.measurements import Component
from dokimos.engine.relu_relaxation import INFINITE, quiet_solver
from dokimos.networks.semantics.outward import Floats
from dokimos.suites.facts import Measurement
from dokimos.suites.vnnlib.model import Box, Point

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection

# Counting the linear regions of a ReLU network in a box, exactly


#: The search ends with this many regions, or linear programs.
MOST_REGIONS = 500
MOST_PROGRAMS = 200
#: Multipliers are rounded to this many bits, points to that many.
_MULTIPLIER_BITS, _POINT_BITS = 40, 60


@dataclass(frozen=True)
class RegionCount:
    """How many regions have an inside, and how many sides could not be decided.

    Without `is_complete` the search has ended early: there are more.
    """

    regions: int
    undecided: int
    programs: int
    is_complete: bool

    @property
    def is_exact(self) -> bool:
        """Whether there are exactly so many."""
        return self.is_complete and not self.undecided


@dataclass(frozen=True, eq=False)
class _Region:
    """Decided so far: what each ReLU is as a function of the inputs, what is > 0, and a point inside."""

    values: Mapping[int, AffineExpression]
    positive: tuple[AffineExpression, ...]
    inside: Point
    decided: int


def count_regions(
    form: PiecewiseLinear, box: Box, *, most_regions: int = MOST_REGIONS, most_programs: int = MOST_PROGRAMS
) -> RegionCount:
    """The number of linear regions in the inside of a box; inputs that it fixes do not count as a side."""
    search = _RegionSearch(form, box)
    pending = [_Region({}, (), box.centre, 0)]
    found = 0
    while pending:
        region = pending.pop()
        if region.decided == len(search.relus):
            found += 1
        else:
            pending += search.split(region)
        if found + len(pending) > most_regions or search.programs > most_programs:
            return RegionCount(found + len(pending), search.undecided, search.programs, False)
    return RegionCount(found, search.undecided, search.programs, True)


class _RegionSearch:
    def __init__(self, form: PiecewiseLinear, box: Box) -> None:
        self.relus = list(form.relus.items())
        self.lower, self.upper = dict(enumerate(box.lower)), dict(enumerate(box.upper))
        self.moving = [i for i in self.lower if self.lower[i] < self.upper[i]]
        self.programs = self.undecided = 0

    def split(self, region: _Region) -> list[_Region]:
        """The parts of a region by the sign of its next ReLU's argument that have an inside."""
        variable, argument = self.relus[region.decided]
        exact = _substituted(argument, region.values)
        off = AffineExpression()
        if self._least(exact) >= 0:
            return [self._with(region, variable, exact)]
        if self._least(_negative(exact)) >= 0:
            return [self._with(region, variable, off)]
        parts = []
        here = _value(exact, region.inside)
        for sign, value in ((1, exact), (-1, off)):
            side = exact if sign > 0 else _negative(exact)
            if here * sign > 0:
                parts.append(self._with(region, variable, value, side, region.inside))
            elif (point := self._inside((*region.positive, side))) is not None:
                parts.append(self._with(region, variable, value, side, point))
        return parts

    def _with(
        self,
        region: _Region,
        variable: int,
        value: AffineExpression,
        side: AffineExpression | None = None,
        inside: Point | None = None,
    ) -> _Region:
        positive = region.positive if side is None else (*region.positive, side)
        return _Region(
            {**region.values, variable: value}, positive, inside or region.inside, region.decided + 1
        )

    def _least(self, expression: AffineExpression) -> Fraction:
        return expression.minimum(self.lower, self.upper)

    def _inside(self, positive: tuple[AffineExpression, ...]) -> Point | None:
        """A point of the inside of the box where all are > 0; None where it is proven, or not known."""
        self.programs += 1
        rows, constants = self._rows(positive)
        point, multipliers = _largest_slack(rows, constants, *self._ends())
        if point is not None and self._is_inside(point, positive):
            return point
        if not self._is_refuted(positive, multipliers):
            self.undecided += 1
        return None

    def _ends(self) -> tuple[Floats, Floats]:
        return (
            np.array([float(self.lower[i]) for i in self.moving]),
            np.array([float(self.upper[i]) for i in self.moving]),
        )

    def _rows(self, positive: tuple[AffineExpression, ...]) -> tuple[Floats, Floats]:
        """Each as row·x + constant over the inputs that move, divided by its largest number."""
        place = {i: k for k, i in enumerate(self.moving)}
        rows, constants = np.zeros((len(positive), len(self.moving))), np.zeros(len(positive))
        for number, expression in enumerate(positive):
            constants[number] = float(expression.constant)
            for i, weight in expression.terms.items():
                if i in place:
                    rows[number, place[i]] = float(weight)
                else:
                    constants[number] += float(weight * self.lower[i])
            scale = max(np.abs(rows[number]).max(initial=0.0), 1e-300)
            rows[number] /= scale
            constants[number] /= scale
        return rows, constants

    def _is_inside(self, found: Point, positive: tuple[AffineExpression, ...]) -> bool:
        point = [self.lower[i] for i in range(len(self.lower))]
        for i, x in zip(self.moving, found, strict=True):
            point[i] = x
        inside = all(self.lower[i] < point[i] < self.upper[i] for i in self.moving)
        return inside and all(_value(each, tuple(point)) > 0 for each in positive)

    def _is_refuted(self, positive: tuple[AffineExpression, ...], multipliers: Floats | None) -> bool:
        """Whether Σ λ·constraint <= 0 on the whole box, for rational λ >= 0 that are not all 0."""
        if multipliers is None:
            return False
        steps = 2**_MULTIPLIER_BITS
        weights = [Fraction(round(max(float(m), 0.0) * steps), steps) for m in multipliers]
        if not any(weights):
            return False
        scaled = [(w / _size(each), each) for w, each in zip(weights, positive, strict=True)]
        return self._least(_negative(combine(scaled))) >= 0


def _size(expression: AffineExpression) -> Fraction:
    """About the largest coefficient, as a power of two; what rows are divided by, exactly enough."""
    largest = max((abs(c) for c in expression.terms.values()), default=Fraction(1))
    return Fraction(float(largest)) if float(largest) else Fraction(1)


def _substituted(expression: AffineExpression, values: Mapping[int, AffineExpression]) -> AffineExpression:
    """The expression in the inputs alone: ReLUs that it reads are known by now."""
    known = [(c, values[v]) for v, c in expression.terms.items() if v in values]
    rest = {v: c for v, c in expression.terms.items() if v not in values}
    return combine([*known, (Fraction(1), AffineExpression(Fraction(0), rest))], expression.constant)


def _negative(expression: AffineExpression) -> AffineExpression:
    return combine([(Fraction(-1), expression)])


def _value(expression: AffineExpression, point: Point) -> Fraction:
    return expression.constant + sum((c * point[v] for v, c in expression.terms.items()), Fraction(0))


def _largest_slack(
    rows: Floats, constants: Floats, lower: Floats, upper: Floats
) -> tuple[Point | None, Floats | None]:
    """max t: row·x + constant >= t for each row, x inside the box by t of its radius; and the duals."""
    count, size = rows.shape
    radius = (upper - lower) / 2
    solver = quiet_solver(10.0)
    none = np.zeros(0)
    empty = none.astype(np.int32)
    low = np.append(lower, -INFINITE)
    high = np.append(upper, 1.0)
    cost = np.append(np.zeros(size), -1.0)
    solver.addCols(size + 1, cost, low, high, 0, empty, empty, none)
    columns = np.arange(size + 1, dtype=np.int32)
    for row, constant in zip(rows, constants, strict=True):
        solver.addRow(-constant, INFINITE, size + 1, columns, np.append(row, -1.0))
    for k in range(size):
        pair = np.array([k, size], dtype=np.int32)
        solver.addRow(lower[k], INFINITE, 2, pair, np.array([1.0, -radius[k]]))
        solver.addRow(-INFINITE, upper[k], 2, pair, np.array([1.0, radius[k]]))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None, None
    solution = solver.getSolution()
    steps = 2**_POINT_BITS
    values = np.array(solution.col_value)
    point = tuple(Fraction(round(float(x) * steps), steps) for x in values[:size])
    duals = np.abs(np.array(solution.row_dual)[:count])
    return (point if values[size] > 0 else None), duals


# The exact number of linear regions of a small ReLU network in its box


#: With more multiplications than this, exact expressions take minutes.
MOST_MULTIPLICATIONS = 200_000


class LinearRegions(Component):
    """How many patterns of signs the arguments of all ReLUs have on sets with an inside, within the box.

    On each of them the network is affine. Exact where it has no note: every region that is counted holds
    a rational point at which no argument is 0, and every one that is not is shown to be empty by exact
    multipliers (`region_count`). `>=` where there are more, or where floats could not decide one.
    """

    name = "linear_regions"
    symbol = "regions"
    meaning = "exact number of linear regions"
    of_margin = False
    on_request = True
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The count, over one box."""
        if len(seen.boxes) != 1:
            return Measurement.not_applicable("the property has not exactly one box")
        if seen.network.multiplications > MOST_MULTIPLICATIONS:
            return Measurement.not_applicable(
                f"the network has more than {MOST_MULTIPLICATIONS} multiplications"
            )
        try:
            form = piecewise_linear(seen.network)
        except UnsupportedOp as error:
            return Measurement.not_applicable(str(error))
        found = count_regions(form, seen.boxes[0])
        if found.is_exact:
            return Measurement(float(found.regions))
        why = (
            f"{found.undecided} are too thin to call"
            if found.is_complete
            else f"the search ends at {MOST_REGIONS} regions or {MOST_PROGRAMS} linear programs"
        )
        return Measurement(float(found.regions), f">= {found.regions}: {why}")
