"""`monotone`: two lines prove that a model rises with a feature, or give a small counterexample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import dokimos
from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.proving.monotone import constraints_of


def frame_of(rows: int = 500) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": np.round(rng.uniform(0, 100, rows), 1),
            "age": rng.integers(18, 90, rows),
            "sex": rng.choice(["f", "m"], rows),
        }
    )
    frame.loc[::17, "income"] = np.nan
    target = frame.income.fillna(50) / 30 + np.sin(frame.age / 6) + rng.standard_t(2, size=rows)
    return frame, target


def fitted(loss: str, **options: Any) -> Any:
    frame, target = frame_of()
    made = HistGradientBoostingRegressor(loss=loss, monotonic_cst=[1, 0], max_iter=40, **options)
    return made.fit(frame[["income", "age"]], target)


def test_a_constraint_that_holds_is_proven_with_missing_values_and_one_that_does_not_is_refuted() -> None:
    frame, _ = frame_of()
    kept = dokimos.monotone(fitted("squared_error"), frame)
    assert kept.is_proven and not kept.is_violated
    assert repr(kept).startswith("prediction rises with income: proven for every record in the ranges")
    broken_model = fitted("quantile", quantile=0.9)
    broken = dokimos.monotone(broken_model, frame, {"income": 1})
    assert broken.is_violated and not broken.is_proven
    [found] = broken.features
    smallest = found.counterexample
    assert smallest is not None and smallest.at[0] < smallest.at[1] and smallest.before > smallest.after
    rows = pd.DataFrame([{"income": at, "age": smallest.record["age"]} for at in smallest.at])
    assert broken_model.predict(rows).tolist() == [smallest.before, smallest.after]
    assert "NOT TRUE" in repr(broken) and len(repr(broken).splitlines()) == 2
    assert "violated" in broken._repr_html_()
    assert dokimos.monotone(broken_model, frame, {"age": -1}).is_violated


def test_of_a_classifier_the_score_of_the_second_class_is_asked_about() -> None:
    frame, target = frame_of()
    model = HistGradientBoostingClassifier(monotonic_cst={"income": -1}, max_iter=30)
    model.fit(frame[["income", "age"]], np.where(target > 2, "no", "yes"))
    found = dokimos.monotone(model, frame)
    assert [(each.feature, each.sign, each.about) for each in found.features] == [
        ("income", -1, "score of yes")
    ]
    assert found.is_proven
    assert dokimos.monotone(model, frame, {"income": 1}).is_violated


def test_an_array_has_columns_by_number_and_any_function_can_be_refuted() -> None:
    rows = np.random.default_rng(0).uniform(0, 9, (50, 2))

    class Wave:
        def predict(self, records: Any) -> Any:
            return np.sin(np.asarray(records)[:, 0]) + records[:, 1]

    found = dokimos.monotone(Wave(), rows, {"f0": 1, "f1": 1})
    assert [each.decision.answer.value for each in found.features] == ["violated", "refused"]
    assert "tests found no violation" in found.features[1].words


def test_what_cannot_be_asked_is_said() -> None:
    frame, _ = frame_of()
    model = fitted("squared_error")
    for data, asked, said in (
        (frame, {"incme": 1}, r"There is no feature incme \(did you mean income"),
        (frame, {"income": 2}, r"1 \(rises\) or -1 \(falls\)"),
        (np.zeros(3), {"f0": 1}, "two dimensions"),
    ):
        with pytest.raises(InputError, match=said):
            dokimos.monotone(model, data, asked)
    plain = HistGradientBoostingRegressor(max_iter=2).fit(frame[["income"]], frame.age)
    with pytest.raises(InputError, match="no monotone constraints are known; say in `constraints`"):
        dokimos.monotone(plain, frame)


def test_constraints_are_read_as_each_library_writes_them() -> None:
    class Given:
        monotone_constraints: Any = None

    given, names = Given(), ["a", "b", "c"]
    for written in ("(1,0,-1)", (1, 0, -1), {"a": 1, "c": -1}, {0: 1, 2: -1}, np.array([1, 0, -1])):
        given.monotone_constraints = written
        assert constraints_of(given, names) == {"a": 1, "c": -1}
    assert constraints_of(object(), names) == {}


def test_a_domain_of_a_frame_has_choices_ranges_and_what_may_be_missing() -> None:
    frame, _ = frame_of()
    domain = Domain.from_frame(frame, target="age")
    assert domain.layout is not None
    income, sex = domain.layout.features
    assert income.may_miss and (income.low, income.high) == (frame.income.min(), frame.income.max())
    assert sex.values == ("f", "m") and domain.layout.width == 3
    with pytest.raises(InputError, match=r"There is no column agee \(did you mean age"):
        Domain.from_frame(frame, target="agee")
