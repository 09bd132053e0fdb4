"""The linear relaxation of a region, solved in floats: a guide, whose word counts for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from dokimos.certificates.split_tree import Leaf, Region, inequalities
from dokimos.networks.expressions import ZERO, Expression
from dokimos.networks.piecewise_linear import PiecewiseLinear

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


def relax(
    form: PiecewiseLinear, objectives: Sequence[Expression], where: Region, *, seconds: float
) -> Relaxed:
    """Minimise t such that every objective is <= t, over the region's linear relaxation.

    Columns are the network's variables and t; rows are the objectives and the inequalities of each ReLU.
    All rows read: expression <= 0 (or <= t), and their duals, negated, are the multipliers of a leaf.
    """
    rows: list[Expression] = list(objectives)
    owners: list[tuple[int, bool]] = []
    for k, relu in enumerate(form.relus.items()):
        if where.arguments[k][1] <= 0:
            if k in where.phases:  # its value is 0; the argument must not be positive
                rows.append(inequalities(relu, *where.arguments[k])[0])
                owners.append((k, True))
            continue
        for is_below, row in zip((True, False), inequalities(relu, *where.arguments[k]), strict=True):
            if row is not None:
                rows.append(row)
                owners.append((k, is_below))
    columns = 1 + max(where.lower, default=-1)
    solver = _solver(rows, len(objectives), columns, where, seconds)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kOptimal:
        solution = solver.getSolution()
        duals = -np.asarray(solution.row_dual)
        values = np.asarray(solution.col_value)
        return Relaxed(_leaf(duals, len(objectives), owners), float(values[-1]), values[:-1])
    if status == highspy.HighsModelStatus.kInfeasible:
        _, exists, ray = solver.getDualRay()
        duals = -np.asarray(ray) if exists else np.zeros(len(rows))
        return Relaxed(_leaf(duals, len(objectives), owners), np.inf, None)
    raise SolverFailed(f"the linear program ended with {solver.modelStatusToString(status)}")


def _solver(
    rows: Sequence[Expression], objectives: int, columns: int, where: Region, seconds: float
) -> Any:
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, setting in (
        ("output_flag", False),
        ("threads", 1),
        ("presolve", "off"),
        ("time_limit", max(seconds, 0.01)),
    ):
        solver.setOptionValue(option, setting)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = columns + 1, len(rows)
    lower, upper = np.full(columns + 1, -np.inf), np.full(columns + 1, np.inf)
    for v, value in where.lower.items():
        lower[v], upper[v] = _float(value), _float(where.upper[v])
    cost = np.zeros(columns + 1)
    cost[-1] = 1.0
    program.col_cost_, program.col_lower_, program.col_upper_ = cost, lower, upper
    starts, index, value_of = [0], [], []
    for number, row in enumerate(rows):
        index += list(row.terms)
        value_of += [_float(c) for c in row.terms.values()]
        if number < objectives:
            index.append(columns)
            value_of.append(-1.0)
        starts.append(len(index))
    program.row_lower_ = np.full(len(rows), -np.inf)
    program.row_upper_ = np.array([-_float(row.constant) for row in rows])
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.array(starts)
    program.a_matrix_.index_ = np.array(index, dtype=np.int32)
    program.a_matrix_.value_ = np.array(value_of)
    solver.passModel(program)
    return solver


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
