"""The linear relaxation of a region, solved in floats: a guide, whose word counts for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from dokimos.checker.proofs.split_tree import Leaf, Region, upper_slope
from dokimos.networks.semantics.expressions import ZERO, AffineExpression
from dokimos.networks.semantics.piecewise_linear import PiecewiseLinear

#: Smaller multipliers are left out: the ranges of the variables make up for them.
_NEGLIGIBLE = 1e-11
_MULTIPLIER_BITS = 40


@dataclass(frozen=True, eq=False)
class Relaxed:
    """What the solver found: multipliers that may refute the region, or a point of the relaxation.

    `excess` is the least value of the largest objective: the smaller, the more unsafe. `values` has
    one value for each variable. Where the region seems empty, they are infinite and None.
    """

    leaf: Leaf
    excess: float
    values: NDArray[np.float64] | None


class SolverFailed(Exception):
    """The linear program was neither solved nor shown to be infeasible."""


@dataclass(frozen=True, eq=False)
class _Row:
    """constant + Σ values·columns <= 0 (or <= t)."""

    constant: float
    columns: NDArray[np.int32]
    values: NDArray[np.float64]


class Relaxation:
    """The linear programs of one conjunction on one network: rows that stay are made once."""

    def __init__(self, form: PiecewiseLinear, objectives: Sequence[AffineExpression], columns: int) -> None:
        self._columns = columns
        self._objectives = [_row(objective) for objective in objectives]
        self._relus = [(number, _row(inside)) for number, inside in form.relus.items()]

    def solve(self, where: Region, *, seconds: float) -> Relaxed:
        """Minimise t such that every objective is <= t, over the region's linear relaxation.

        Columns are the network's variables and t; rows are the objectives and the inequalities of
        `split_tree.inequalities`. Their duals, negated, are the multipliers of a leaf. Raises SolverFailed.
        """
        rows, owners = list(self._objectives), list[tuple[int, bool]]()
        for k, (number, inside) in enumerate(self._relus):
            low, high = where.arguments[k]
            if high > 0 or k in where.phases:
                rows.append(_combined(1.0, inside, number, -1.0, 0.0))
                owners.append((k, True))
            if high > 0:
                slope = 1.0 if low >= 0 else _float(upper_slope(low, high))
                shift = 0.0 if low >= 0 else slope * _float(low)
                rows.append(_combined(-slope, inside, number, 1.0, shift))
                owners.append((k, False))
        solver = self._solver(rows, where, seconds)
        solver.run()
        status = solver.getModelStatus()
        count = len(self._objectives)
        if status == highspy.HighsModelStatus.kOptimal:
            solution = solver.getSolution()
            values = np.asarray(solution.col_value)
            leaf = _leaf(-np.asarray(solution.row_dual), count, owners)
            return Relaxed(leaf, float(values[-1]), values[:-1])
        if status == highspy.HighsModelStatus.kInfeasible:
            _, exists, ray = solver.getDualRay()
            duals = -np.asarray(ray) if exists else np.zeros(len(rows))
            return Relaxed(_leaf(duals, count, owners), np.inf, None)
        raise SolverFailed(f"the linear program ended with {solver.modelStatusToString(status)}")

    def arguments(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The arguments of all ReLUs at these values of the variables."""
        return np.array([row.constant + float(row.values @ values[row.columns]) for _, row in self._relus])

    def _solver(self, rows: Sequence[_Row], where: Region, seconds: float) -> Any:
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, setting in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("time_limit", max(seconds, 0.01)),
        ):
            solver.setOptionValue(option, setting)
        program = highspy.HighsLp()
        columns, count = self._columns, len(self._objectives)
        program.num_col_, program.num_row_ = columns + 1, len(rows)
        lower, upper = np.full(columns + 1, -np.inf), np.full(columns + 1, np.inf)
        for v, value in where.lower.items():
            lower[v], upper[v] = _float(value), _float(where.upper[v])
        cost = np.zeros(columns + 1)
        cost[-1] = 1.0
        program.col_cost_, program.col_lower_, program.col_upper_ = cost, lower, upper
        index = [np.append(r.columns, columns) if n < count else r.columns for n, r in enumerate(rows)]
        value_of = [np.append(r.values, -1.0) if n < count else r.values for n, r in enumerate(rows)]
        program.row_lower_ = np.full(len(rows), -np.inf)
        program.row_upper_ = np.array([-row.constant for row in rows])
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.cumsum([0, *(len(part) for part in index)])
        program.a_matrix_.index_ = np.concatenate(index).astype(np.int32)
        program.a_matrix_.value_ = np.concatenate(value_of)
        solver.passModel(program)
        return solver


def _row(expression: AffineExpression) -> _Row:
    columns = np.fromiter(expression.terms, dtype=np.int32, count=len(expression.terms))
    return _Row(
        _float(expression.constant), columns, np.array([_float(c) for c in expression.terms.values()])
    )


def _combined(factor: float, row: _Row, column: int, value: float, constant: float) -> _Row:
    """factor·row + value·column + constant; the row has no entry in that column."""
    return _Row(
        factor * row.constant + constant,
        np.append(row.columns, np.int32(column)),
        np.append(factor * row.values, value),
    )


def _leaf(duals: NDArray[np.float64], objectives: int, owners: Sequence[tuple[int, bool]]) -> Leaf:
    """The duals as short rationals, none of them negative."""
    largest = float(np.max(np.abs(duals), initial=0.0))
    scale = 2.0 ** -np.floor(np.log2(largest)) if largest > 0 and np.isfinite(largest) else 0.0
    multipliers = [
        Fraction(round(max(m, 0.0) * 2**_MULTIPLIER_BITS), 2**_MULTIPLIER_BITS) if m > _NEGLIGIBLE else ZERO
        for m in (duals * scale).tolist()
    ]
    below = {k: m for (k, is_below), m in zip(owners, multipliers[objectives:], strict=True) if is_below}
    above = {
        k: m for (k, is_below), m in zip(owners, multipliers[objectives:], strict=True) if not is_below
    }
    return Leaf(
        tuple(multipliers[:objectives]),
        {k: m for k, m in below.items() if m},
        {k: m for k, m in above.items() if m},
    )


def _float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        raise SolverFailed("a number is too large for the linear program") from None
