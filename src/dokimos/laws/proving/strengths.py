"""Laws that compare a record with what a linear function makes of it: a picture, and the picture blurred.

Decided is not what the function rounds its result to, but what it gives before: of any strength from 0 to 1
on a row as it is, or of full strength on all records near a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.relu_layers import ReluLayer
from dokimos.checker.lemmas.zones import FALSE, TRUE, Cover, Every, Grid, Span, Zone, simplified
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Feature, Kind
from dokimos.laws.domain.functions import explain
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.language import syntax as laws
from dokimos.laws.models.model import Model
from dokimos.laws.proving.expressions import ExpressionReader, Meaning, Refusal, meaning_of
from dokimos.laws.proving.network_closing import read_layers, rounded_down
from dokimos.laws.proving.picture_zones import possible_decisions
from dokimos.laws.proving.question import check_covers
from dokimos.laws.proving.row_zones import Tolerance
from dokimos.laws.proving.translation import expect_translatable
from dokimos.networks.semantics.outward import (
    Floats,
    Interval,
    add,
    matrix_product,
    multiply,
    subtract,
)

#: Every strength from none to full: the one variable of such a question.
ANY_STRENGTH = Zone((Span(0, 1, Grid.REAL),))
FULL_STRENGTH = Zone((Span(1, 1, Grid.REAL),))
Pair = tuple[int, int]


@dataclass(frozen=True)
class StrengthLaw:
    """A law on a record x, on f(x) for a linear function f of the domain, and on the label of x.

    The network decides on both. A case is a row x and a strength s: the two records are x and
    x + s·(f(x) − x); or, with a tolerance, all x' near the row, and f(x').
    """

    plan: LawPlan
    model: Model
    function: str
    layers: tuple[ReluLayer, ...]

    @property
    def domain(self) -> Domain:
        """The domain of the law."""
        return self.plan.domain

    @property
    def classes(self) -> int:
        """How many decisions there are."""
        return len(self.layers[-1].biases)

    def over(self, tolerance: Tolerance | None) -> str:
        """The set of cases, in words."""
        if tolerance is None:
            return f"any strength of {self.function} from 0 to 1"
        return f"± {tolerance.words}, {self.function} of full strength"

    def forbidden(self, label: Any) -> frozenset[Pair]:
        """The pairs of decisions, on x and on what f makes of it, that violate the law with this label."""
        if label not in self._forbidden:
            pairs = product(range(self.classes), range(self.classes))
            self._forbidden[label] = frozenset(each for each in pairs if not self._holds(each, label))
        return self._forbidden[label]

    @cached_property
    def _forbidden(self) -> dict[Any, frozenset[Pair]]:
        """What was found for each label so far."""
        return {}

    def _holds(self, pair: Pair, label: Any) -> bool:
        reader = ExpressionReader(self.plan, _labels(self.plan, label), {})
        (source,) = self.plan.law.inputs
        given = {
            each.output: pair[0] if each.record == source.name else pair[1]
            for each in self.plan.predictions or ()
        }
        inner = reader.with_outputs(given)
        found = simplified(Every(tuple(inner.condition(each.condition) for each in self.plan.law.ensures)))
        if found not in (TRUE, FALSE):
            raise Refusal("what is ensured is about more than decisions and the label")
        return found == TRUE

    def moved(self, row: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """f(row), exactly. Raises Refusal where the domain's function gives something else."""
        given = np.array([int(x) if x.denominator == 1 else float(x) for x in row])
        try:
            found = tuple(Fraction(each) for each in self.domain.linear[self.function](given))
        except Exception as problem:
            raise Refusal(f"Domain {self.domain.name}: {explain(problem, 'LINEAR')}") from None
        if len(found) != len(row):
            raise Refusal(f"{self.function} gives {len(found)} numbers for a record of {len(row)}")
        return found

    @cached_property
    def _matrix(self) -> Interval:
        """f as a matrix: its columns are what f gives for records of one 1 and zeros."""
        width = self.layers[0].weights.shape[1]
        zero = self.moved([Fraction(0)] * width)
        if any(zero):
            raise Refusal(f"{self.function} is not linear: it gives something for a record of zeros")
        columns = []
        for k in range(width):
            columns.append(self.moved([Fraction(k == each) for each in range(width)]))
        ends = [
            np.array([[sign * rounded_down(sign * each) for each in column] for column in columns]).T
            for sign in (1, -1)
        ]
        return Interval(ends[0], ends[1])

    def near(self, row: Sequence[Fraction], tolerance: Tolerance) -> Interval:
        """All records near a row, column by column. Raises Refusal if the row is not one."""
        column = self.domain.column
        if column is None:
            raise Refusal(
                f"the domain {self.domain.name} declares no COLUMN, so no tolerance has a meaning"
            )
        low, high = _range(column)
        reach = tolerance.reach(column, Span(low, high))
        if not all(low <= each <= high for each in row):
            raise Refusal(f"a row has numbers outside of {low} to {high}")
        least = [max(Fraction(low), each - reach) for each in row]
        most = [min(Fraction(high), each + reach) for each in row]
        return Interval(_enclosed(least).lower, _enclosed(most).upper)

    def closed(
        self, row: Sequence[Fraction], label: Any, zones: Sequence[Zone], tolerance: Tolerance | None
    ) -> list[bool]:
        """For which zones of strengths no case at (or near) a row violates the law; false says nothing.

        Theorem. A pair of decisions is possible only if the first is on some x of the box around the row
        and the second on some record of the box around what f makes of these (`possible_decisions`). With
        no tolerance the latter is x + s·(f(x) − x) for all s of the zone, enclosed in interval arithmetic;
        with one, f(x') is a matrix times x', enclosed in interval arithmetic too.
        """
        sharp = _enclosed(row) if tolerance is None else self.near(row, tolerance)
        first = possible_decisions(self.layers, sharp.lower[None], sharp.upper[None])[0]
        bad = {second for one, second in self.forbidden(label) if first[one]}
        if not bad:
            return [True] * len(zones)
        soft = self._mixtures(row, zones) if tolerance is None else self._moved_box(row, sharp)
        second = possible_decisions(self.layers, soft.lower, soft.upper)
        found = [not any(each[one] for one in bad) for each in second]
        return found if tolerance is None else found * len(zones)

    def _mixtures(self, row: Sequence[Fraction], zones: Sequence[Zone]) -> Interval:
        """For each zone of strengths s, what x + s·(f(x) − x) may be, column by column."""
        here, there = (_enclosed(each) for each in (row, self.moved(row)))
        lower = np.array([[rounded_down(zone.values[0].low)] for zone in zones])
        upper = np.array([[-rounded_down(-zone.values[0].high)] for zone in zones])
        change = subtract(there, here).map(lambda end: end[None])
        return add(here.map(lambda end: end[None]), multiply(Interval(lower, upper), change))

    def _moved_box(self, row: Sequence[Fraction], near: Interval) -> Interval:
        """What f may make of the records near a row, as one row of columns."""
        found = matrix_product(self._matrix, near.map(lambda end: end[:, None]))
        _require_inside(self.moved(row), found, self.function)
        return found.map(lambda end: end[:, 0][None])

    def check(self, row: Sequence[Fraction], label: Any, cover: Cover, tolerance: Tolerance | None) -> bool:
        """Whether a cover shows that no case at (or near) a row violates the law. Raises InvalidProof."""
        start = ANY_STRENGTH if tolerance is None else FULL_STRENGTH
        return check_covers([(start, cover)], _RowCloser(self, row, label, tolerance))[0]


@dataclass(frozen=True)
class _RowCloser:
    law: StrengthLaw
    row: Sequence[Fraction]
    label: Any
    tolerance: Tolerance | None

    def closed(self, zones: Sequence[Zone]) -> list[bool]:
        """See ZoneCloser."""
        return self.law.closed(self.row, self.label, zones, self.tolerance)


def state_strengths(plan: LawPlan, model: Model) -> StrengthLaw:
    """A law as one that is decided for any strength. Raises Refusal, with the reason, for any other."""
    expect_translatable(plan)
    if len(plan.law.inputs) != 1 or plan.law.requires or plan.random:
        raise Refusal("strengths are decided of laws with one input, no `requires`, and nothing drawn")
    (source,) = plan.law.inputs
    moved = {}
    for variable in plan.law.variables:
        match variable.value:
            case laws.Call(function=function, arguments=(laws.Name(name=name),)) if (
                function in plan.domain.linear and name == source.name
            ):
                moved[variable.name] = function
            case laws.Call(function="label", arguments=(laws.Name(name=name),)) if name == source.name:
                pass
            case value:
                raise Refusal("is neither the label nor a linear function of the input", value.at)
    records = list(dict.fromkeys(each.record for each in plan.predictions or ()))
    if len(moved) != 1 or sorted(records) != sorted([source.name, *moved]):
        raise Refusal("strengths are decided of laws on a record and one linear function of it")
    if not isinstance(model.made_of, bytes):
        raise Refusal(f"{model.name} is not a network whose inside can be looked into")
    _, layers = read_layers(model.made_of, name=model.name)
    if any(layer.noise.any() for layer in layers):
        raise Refusal(f"the layers of {model.name} are not known exactly")
    ((_, function),) = moved.items()
    return StrengthLaw(plan, model, function, layers)


def _labels(plan: LawPlan, label: Any) -> dict[str, Meaning]:
    calls = {each.name: each.value for each in plan.law.variables}
    return {
        name: meaning_of(label)
        for name, call in calls.items()
        if isinstance(call, laws.Call) and call.function == "label"
    }


def row_fractions(row: NDArray[Any]) -> tuple[Fraction, ...]:
    """A row of a data set as exact numbers. Raises Refusal if it is not a list of finite numbers."""
    flat = np.asarray(row).reshape(-1)
    if flat.dtype.kind not in "biuf" or not np.isfinite(flat).all():
        raise Refusal("a row is not a list of finite numbers")
    return tuple(Fraction(each) for each in flat.tolist())


def _range(column: Feature) -> tuple[int, int]:
    assert column.low is not None and column.high is not None  # so the domain was read
    if column.kind is not Kind.INTEGER:
        raise Refusal(f"the column {column.name} is not a whole number, so no tolerance has a meaning")
    return int(column.low), int(column.high)


def _enclosed(row: Sequence[Fraction]) -> Interval:
    lower: Floats = np.array([rounded_down(each) for each in row])
    return Interval(lower, np.array([-rounded_down(-each) for each in row]))


def _require_inside(found: Sequence[Fraction], box: Interval, function: str) -> None:
    """That f at the row is where the matrix says: else f is not linear."""
    ends = zip(found, box.lower[:, 0].tolist(), box.upper[:, 0].tolist(), strict=True)
    if not all(Fraction(low) <= each <= Fraction(high) for each, low, high in ends):
        raise Refusal(f"{function} is not linear: at a row it gives something else than its matrix")
