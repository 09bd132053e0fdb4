"""Cases in which user code fails are told with what went wrong, and the others go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dokimos.laws.reporting.terminal import summary
from tests.laws.toy import domain, inputs, run


def test_exceptions_in_functions_and_models_are_shown_with_the_case() -> None:
    def picky(x: Any) -> Any:
        if x[1] == 7:
            raise ValueError("seven")
        return x

    found = run("input x1; var x2 := picky(x1); ENSURES d1 == d2", of=domain(picky=picky))
    sevens = int((inputs()[:, 1] == 7).sum())
    assert found.rejected == 0
    assert (found.failed, found.tested) == (sevens, 40 - sevens)
    assert found.errors[0][1].inputs["x1"][1] == 7

    def model(records: Any) -> Any:
        if (records[:, 1] == 7).any():
            raise ValueError("seven")
        return np.zeros(len(records))

    model.batched = True  # type: ignore[attr-defined]
    found = run("input x1; var x2 := x1; ENSURES d1 == d2", model=model)
    assert (found.failed, found.tested, found.violated) == (sevens, 40 - sevens, 0)
    assert "the model raised ValueError: seven" in found.errors[0][0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("input x1; requires 1 / (x1.felonies - 7) < 2; var x2 := x1;", "division by zero"),
        ("input x1; var x2 := x1; ENSURES 1 / (d1 - 1) < d2 + 9", "division by zero"),
        ("input x1; var x2 := x1[age := randInt(0, 10 / 4)];", "randInt needs integers, not 2.5"),
        ("input x1; var x2 := x1[age := randInt(0, f(x1))];", "f raised"),
        ("input x1; requires f(x1) == 1; var x2 := x1;", "f raised"),
        ("input x1; var x2 := f(x1);", "f raised"),
        ("input x1; var x2 := x1; ENSURES f(x1) == d1", "f raised"),
        ("input x1; var x2 := x1[age := randReal(0, g(x1))];", "the ends of a random call must be numbers"),
        ("input x1; var x2 := x1[age := randInt(g(x1), 3)];", "the ends of a random call must be numbers"),
    ],
)
def test_single_cases_that_fail_are_left_out(text: str, reason: str) -> None:
    def f(x: Any) -> Any:
        raise RuntimeError("f")

    for exhaustive in (None, False):
        found = run(text, of=domain(f=f, g=lambda x: "g"), exhaustive=exhaustive, budget=200)
        assert found.failed > 0 and reason in found.errors[0][0]


def test_a_model_that_gives_nan_fails_in_those_cases_only() -> None:
    def model(records: Any) -> Any:
        return np.where(records[:, :1] > 50, np.nan, records[:, :2])

    model.batched = True  # type: ignore[attr-defined]
    found = run("input x1; var x2 := x1; ENSURES d1 == d2", model=model)
    old = int((inputs()[:, 0] > 50).sum())
    assert (found.tested, found.failed, found.violated) == (40 - old, old, 0)
    assert "nan, which is not a decision" in found.errors[0][0]


@pytest.mark.parametrize(
    "text",
    [
        "input x1; var x2 := x1; requires x1.felonies < 5 || f(x1) == 1; ENSURES d1 == d2",
        "input x1; var x2 := x1; ENSURES d1 == d2 && (x1.felonies < 5 || f(x1) == 1)",
        "input x1; var x2 := x1; var b := x1.felonies < 5 || f(x1) == 1; ENSURES d1 == d2 && b",
        "input x1; var x2 := x1; ENSURES d1 == d2 && (forall i in 0..2: x1.felonies < 5 || f(x1) == i)",
    ],
)
def test_cases_that_do_not_reach_what_fails_are_judged(text: str) -> None:
    def f(x: Any) -> Any:
        raise RuntimeError("f")

    found = run(text, of=domain(f=f))
    few = int((inputs()[:, 1] < 5).sum())
    assert (found.tested, found.failed, found.violated) == (few, 40 - few, 0)


def test_exceptions_that_differ_in_their_case_only_are_told_once() -> None:
    def fussy(record: Any) -> Any:
        if record[0] > 50:
            raise ValueError(f"too old:\n{record[0]}")
        return record

    found = run("input x1; var x2 := fussy(x1);", of=domain(fussy=fussy))
    ((reason, _),) = found.errors
    assert found.failed == (inputs()[:, 0] > 50).sum() > 1
    assert "raised ValueError: too old: " in reason and "\n" not in reason
    two = "input x1; output d1; { d1 = 1 / 0 if x1[0] > 50 else [][0] } ensures d1 > 0;"
    assert len(run(two, budget=50).errors) == 2


def test_cases_that_all_fail_alike_are_given_up_on() -> None:
    calls = 0

    def broken(record: Any) -> Any:
        nonlocal calls
        calls += 1
        raise ValueError(f"call {calls}")

    by_function = "input x1; var x2 := broken(x1);"
    by_block = "input x1; output d1; { d1 = broken(x1) } ensures d1 > 0;"
    for text, exhaustive in ((by_function, False), (by_function, None), (by_block, None)):
        calls = 0
        found = run(text, of=domain(broken=broken), exhaustive=exhaustive)
        assert (found.failed, found.tested, found.is_given_up) == (20, 0, True)
        assert calls == (40 if exhaustive is None and text == by_function else 20)
        assert not found.is_exhaustive and "the first 20 cases all failed in the same way" in summary(found)
    calls = 0
    found = run("input x1; var x2 := x1;", model=broken, exhaustive=False)
    assert (found.failed, found.is_given_up) == (20, True) and calls <= 22
    assert run("input x1; var v := 1 / 0; var x2 := x1;", exhaustive=False).is_given_up
    some = "input x1; requires x1.felonies > 4; var x2 := x1;"
    for exhaustive in (None, False):
        found = run(some, model=broken, exhaustive=exhaustive)
        assert (found.failed, found.is_given_up, found.is_exhaustive) == (20, True, False)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "text",
    [
        "input x1; var v := 1 / 0; var x2 := x1;",
        "input x1; requires 1 / 0 < 2; var x2 := x1;",
        "input x1; var x2 := x1[age := randInt(0, 10 / 4)];",
        "input x1; var x2 := x1; ENSURES 1 / 0 < d2",
        "input x1; requires x1.felonies > 2; var x2 := x1; ENSURES 1 / 0 < d2",
        "input x1; requires x1.felonies < 0 || 1 / 0 < 2; var x2 := x1;",
    ],
)
@pytest.mark.parametrize("exhaustive", [None, False])
def test_no_more_than_twenty_count_where_a_batch_fails_as_one(text: str, exhaustive: bool | None) -> None:
    found = run(text, exhaustive=exhaustive, budget=5000)
    assert (found.failed, found.tested, found.is_given_up) == (20, 0, True)
    assert "the first 20 cases all failed in the same way" in summary(found)


def test_cases_that_all_fail_in_a_few_ways_are_given_up_on() -> None:
    def broken(record: Any) -> Any:
        raise (ValueError if record[3] else TypeError)("no")

    found = run("input x1; var x2 := broken(x1);", of=domain(broken=broken), exhaustive=False, budget=5000)
    assert found.is_given_up and found.tested == 0 and 20 < found.failed <= 39
    assert f"stopped early: the first {found.failed} cases all failed\n" in summary(found)


def test_cases_that_fail_alike_beside_others_are_all_tried() -> None:
    def picky(record: Any) -> Any:
        if record[1] > 1:
            raise ValueError("too many")
        return record

    found = run("input x1; var x2 := picky(x1); ENSURES d1 == d2", of=domain(picky=picky), budget=400)
    assert found.failed > 20 and found.tested > 0 and not found.is_given_up
