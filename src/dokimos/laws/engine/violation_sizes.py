"""By how much cases violate a law, to show the largest violations first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.engine.calls import AllFailed, Failures
from dokimos.laws.engine.evaluation import Evaluator
from dokimos.laws.engine.frame import Frame, full
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.problems import LawError
from dokimos.laws.language.syntax import Expression

Sizes = NDArray[np.float64]
#: Makes an evaluator of expressions on a frame.
Evaluation = Callable[[Frame, Failures], Evaluator]


def violation_sizes(conditions: list[Expression], frame: Frame, evaluation: Evaluation) -> Sizes:
    """The largest amount by which each case of `frame` violates a condition.

    It is 0 if that is not a number. `a <= b` is violated by a − b, `a == b` by |a − b|; `&&` takes the
    larger amount, `||` the smaller, `==>` that of the right side.
    """
    sizes = np.zeros(frame.size)
    if frame.size == 0:
        return sizes
    evaluator = evaluation(frame, Failures())
    for condition in conditions:
        sizes = np.maximum(sizes, _size(condition, evaluator, frame.size))
    return sizes


def _size(condition: Expression, evaluator: Evaluator, count: int) -> Sizes:
    match condition:
        case laws.Binary(operator="&&" | "||" as operator, left=left, right=right):
            choose = np.maximum if operator == "&&" else np.minimum
            return np.asarray(choose(_size(left, evaluator, count), _size(right, evaluator, count)))
        case laws.Binary(operator="==>", right=right):
            return _size(right, evaluator, count)
        case laws.Binary(operator="<" | "<=" | ">" | ">=" | "==" as operator, left=left, right=right):
            return _gap(operator, left, right, evaluator, count)
    return np.zeros(count)


def _gap(operator: str, left: Expression, right: Expression, evaluator: Evaluator, count: int) -> Sizes:
    with suppress(AllFailed, LawError):  # what has no size, strings say, is not measured
        a, b = (full(evaluator.numbers(side), count).astype(np.float64) for side in (left, right))
        gap = b - a if operator in (">", ">=") else a - b
        gap = np.abs(gap) if operator == "==" else np.maximum(gap, 0)
        return np.asarray(np.where(np.isfinite(gap), gap, 0.0))
    return np.zeros(count)
