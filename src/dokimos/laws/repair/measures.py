"""The costs and benefits of a repair, measured on rows that it has not seen, and on random draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.verifying import verify_law
from dokimos.networks.semantics.outward import Floats

#: Cases of each law that are drawn, from rows and from the ranges.
_DRAWN = 5000


@dataclass(frozen=True)
class ModelMeasures:
    """How a model performs on rows that no repair has seen.

    `accuracy` is the share of rows on which it predicts the label, None without labels, or where the old
    network may have been trained on these rows; `agreement` is the share on which it decides as the old
    model does; for predictions that are no whole numbers, both are the share of the variance that is
    explained. `violations` of `cases` drawn from these rows, and of as many from the ranges, violate a
    law. `effect` is the share of rows on which the decision changes when a feature that the laws are about
    goes from one end of its range to the other, the mean over these features. `answers` has the answer of
    `law verify` for each law.
    """

    accuracy: float | None
    agreement: float
    violations: int
    range_violations: int
    cases: int
    effect: float
    answers: tuple[LawAnswer, ...]

    @property
    def proven(self) -> int:
        """How many laws are proven."""
        return self.count(LawAnswer.PROVEN)

    def count(self, answer: LawAnswer) -> int:
        """How many laws have this answer."""
        return self.answers.count(answer)


@dataclass(frozen=True)
class HeldOut:
    """Rows, their labels if no network was trained on them, and the columns that the laws are about."""

    rows: Floats
    labels: NDArray[Any] | None
    columns: tuple[tuple[int, float, float], ...]


def measure(
    model: Model,
    old: Model,
    laws: Sequence[Law],
    domain: Domain,
    held: HeldOut,
    settings: VerifySettings,
    *,
    answers: tuple[LawAnswer, ...] | None = None,
) -> ModelMeasures:
    """Measure a model. `answers` is what `law verify` says of it, where that is known already."""
    decisions = model.predict(held.rows)
    seen = replace(domain, inputs=lambda: held.rows, labels=None)
    counts = {"test": 0, "range": 0}
    cases = 0
    for law in laws:
        for source in counts:
            drawn = LawSettings(
                budget=_DRAWN, seed=settings.seed, source=source, in_range=True, shrink=False, keep=1
            )
            result = test_law(law, model=model, domain=seen, settings=drawn)
            if result.is_interrupted:  # a test ends with what it has; these counts have to be complete
                raise KeyboardInterrupt
            counts[source] += result.violated
            cases += result.tested if source == "test" else 0
    if answers is None:
        decided = (verify_law(law, model=model, domain=domain, settings=settings) for law in laws)
        answers = tuple(each.answer for each in decided)
    labels = held.labels
    return ModelMeasures(
        accuracy=None if labels is None else _alike(decisions, labels),
        agreement=_alike(decisions, old.predict(held.rows)),
        violations=counts["test"],
        range_violations=counts["range"],
        cases=cases,
        effect=_effect(model, held),
        answers=answers,
    )


def _alike(decisions: NDArray[Any], wanted: NDArray[Any]) -> float:
    if np.asarray(wanted).dtype.kind != "f" or (np.floor(wanted) == wanted).all():
        return float(np.mean(decisions == wanted))
    return float(1 - ((decisions - wanted) ** 2).sum() / ((wanted - wanted.mean()) ** 2).sum())


def _effect(model: Model, held: HeldOut) -> float:
    changed = []
    for column, low, high in held.columns:
        ends = []
        for value in (low, high):
            rows = held.rows.copy()
            rows[:, column] = value
            ends.append(model.predict(rows))
        changed.append(np.mean(ends[0] != ends[1]))
    return float(np.mean(changed))
