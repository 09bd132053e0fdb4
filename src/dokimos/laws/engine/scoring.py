"""`score(x, class)` and `proba(x, class)` in laws: the model's numbers for a class, case by case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError
from dokimos.laws.domain.user_code import explain
from dokimos.laws.engine.calls import AllFailed, Failures
from dokimos.laws.engine.frame import Column, Frame
from dokimos.laws.models.model import Model

#: Gives the score or the probability ("score", "proba") of a class for each record.
ScoreFunction = Callable[[str, NDArray[Any], Column], Column]


def scoring(model: Model, names: tuple[str, ...]) -> ScoreFunction:
    """The scores of a model whose domain calls the classes by these names."""

    def score(kind: str, records: NDArray[Any], wanted: Column) -> Column:
        return model.classes.of(records, wanted, names, kind=kind)

    return score


def score_cases(
    score: ScoreFunction, kind: str, records: NDArray[Any], wanted: Column, frame: Frame, failures: Failures
) -> Column:
    """The scores of all cases at once; if that fails, one by one, so that a failure affects only one case.

    Raises AllFailed if every case fails, InputError if the model has no such class or score.
    """
    try:
        return score(kind, records, wanted)
    except DokimosError:
        raise
    except Exception as problem:
        if frame.size == 1:
            failures.add(int(frame.ids[0]), explain(problem, "the model"))
            raise AllFailed from None
    found = np.zeros(frame.size)
    good = 0
    for row in range(frame.size):
        try:
            found[row] = score(kind, records[row : row + 1], wanted[row : row + 1])[0]
            good += 1
        except DokimosError:
            raise
        except Exception as problem:
            failures.add(int(frame.ids[row]), explain(problem, "the model"))
        failures.expect_another(frame.ids[: row + 1])
    if not good:
        raise AllFailed
    return found
