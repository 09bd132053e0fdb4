"""Nothing is called a fact, or rounding, that is another when it is run again."""

from __future__ import annotations

from typing import Any

import numpy as np

from dokimos.laws.engine.law_results import LawVerdict, headline, verdict_of
from dokimos.laws.reporting.terminal import summary
from tests.laws.toy import domain, run

_SAME = "input x1; var x2 := x1; ENSURES d1 >= 0 && d2 >= 0"


def batched(function: Any) -> Any:
    function.batched = True
    return function


def test_a_function_that_draws_by_itself() -> None:
    rng = np.random.default_rng(3)

    def shaken(record: Any) -> Any:
        record[2] += rng.random()
        return record

    of = domain(shaken=shaken)
    for exhaustive in (None, True):
        found = run(
            "input x1; var x2 := shaken(x1); ENSURES d1 == d2", of=of, exhaustive=exhaustive, budget=60
        )
        assert not found.is_exhaustive and found.tested == 60
        assert "x2 changes when computed again" in found.not_deterministic
        assert "not deterministic" in summary(found) and "every draw" not in summary(found)


def test_a_violation_that_a_function_drew_by_itself_is_no_rounding() -> None:
    rng = np.random.default_rng(3)

    def shaken(record: Any) -> Any:
        record[1] += rng.integers(-30, 31)
        return record

    found = run("input x1; var x2 := shaken(x1); ENSURES d1 == d2", of=domain(shaken=shaken), budget=60)
    assert found.violated > 0 and found.unrepeatable == found.unconfirmed > 0
    assert "rounding, not counted" not in summary(found) and "not because of rounding" in summary(found)


def test_a_model_that_draws_by_itself() -> None:
    rng = np.random.default_rng(3)
    model = batched(lambda records: rng.random((len(records), 2)))
    found = run(_SAME, model=model)
    assert not found.is_exhaustive and "the model gives different results" in found.not_deterministic
    assert verdict_of(found) is LawVerdict.PASSED
    assert run(_SAME, model=batched(lambda records: records[:, :2])).is_exhaustive


def test_a_record_that_is_predicted_twice_is_run_twice() -> None:
    rng = np.random.default_rng(3)
    twice = "input x1; output d1; output d2; { d1 = predict(x1)\n  d2 = predict(x1) } ensures d1 == d2;"
    found = run(twice, model=batched(lambda records: rng.integers(0, 2, len(records))), budget=200)
    assert 50 < found.violated < 150 and found.not_deterministic
    assert run(twice, model=batched(lambda records: records[:, 1])).is_exhaustive


def test_what_is_no_rounding_is_not_called_so() -> None:
    model = batched(lambda records: np.arange(len(records)) % 2)
    found = run("input x1; var x2 := x1; ENSURES d1 == d2 && d1 == 0", model=model)
    assert found.violated > 0 and not found.is_violated
    assert found.unrepeatable == found.unconfirmed > 0 and found.is_inconclusive
    assert verdict_of(found) is LawVerdict.UNREPEATABLE and "rounding, not counted" not in summary(found)
    assert "not deterministic" in summary(found)
    assert "gives different answers when run again" in headline([found], ["law"])
    rng = np.random.default_rng(3)
    block = "input x1; output d1; { d1 = predict(x1) + 0 } ensures d1 == 0;"
    rare = run(block, model=lambda record: int(rng.random() < 0.02), budget=300)
    assert rare.violated > 0 and rare.unrepeatable > 0 and "rounding, not counted" not in summary(rare)
