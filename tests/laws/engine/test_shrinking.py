"""Violations are made as small as they can be, and run again as they were."""

from __future__ import annotations

from typing import Any

import numpy as np

from dokimos.laws.engine.confirmation import _amount, run_cases
from dokimos.laws.engine.law_case import case_of
from dokimos.laws.engine.law_plan import make_plan
from dokimos.laws.engine.runner import Runner
from dokimos.laws.models.lookup import as_model
from tests.laws.toy import MORE_FELONIES, domain, law, risk, run


def test_violations_are_the_smallest_changes() -> None:
    for shrink in (True, False):
        found = run(MORE_FELONIES, exhaustive=False, shrink=shrink, seed=1)
        for each in found.violations:
            record, more = each.case.inputs["x1"], each.case.draws[0]
            smaller = [step for step in range(1, int(more)) if _violates(record, step)]
            assert _violates(record, int(more))
            if shrink:
                assert smaller == []


def _violates(record: Any, more: int) -> bool:
    changed = record.copy()
    changed[1] += more
    return bool(changed[1] <= 20 and risk(record[None])[0] > risk(changed[None])[0])


def test_shrinking_large_integers_and_reals() -> None:
    def step(records: Any) -> Any:
        return (records[:, 2] < 300).astype(int)

    step.batched = True  # type: ignore[attr-defined]
    found = run(
        "input x1; var x2 := x1[income := randInt(1, 1000000)];", model=step, budget=300, exhaustive=False
    )
    assert {each.case.draws for each in found.violations} == {(300,)}
    found = run("input x1; var x2 := x1[income := randReal(0, 1000)];", model=step, budget=300)
    assert max(each.case.draws[0] for each in found.violations) < 330
    assert not found.is_exhaustive
    found = run(
        "input x1; var x2 := x1[income := -randInt(-1000, -1)];", model=step, budget=300, exhaustive=False
    )
    assert {each.case.draws for each in found.violations} == {(-300,)}


def test_a_case_runs_again_as_it_was() -> None:
    plan = make_plan(law(MORE_FELONIES), domain())
    found = run(MORE_FELONIES)

    runner = Runner(plan, as_model(risk, domain(), name="risk"), lambda: np.zeros(0))
    frame = run_cases([each.case for each in found.violations], runner)
    again = [case_of(frame, row, plan.law) for row in range(frame.size)]
    assert [each.values["d2"] for each in again] == [each.case.values["d2"] for each in found.violations]


def test_how_much_records_differ() -> None:
    a = np.array([["ab", 1, None]], dtype=object)
    b = np.array([["abcd", 3, "x"]], dtype=object)
    assert _amount(a, b, np.array([[True, True, True]])).tolist() == [5.0]


def test_two_draws_that_only_shrink_together() -> None:
    """Neither draw can be smaller by itself: their sum has to be divisible by 7."""

    def model(record: Any) -> int:
        return int(record[0] > 0 and record[1] > 0 and (record[0] + record[1]) % 7 == 0)

    of = domain(inputs=lambda: np.zeros((3, 6)))
    text = (
        "input x1; var a := randInt(1, 60); var b := randInt(1, 60); var x2 := x1[age := a, felonies := b];"
    )
    found = run(f"{text} ENSURES d2 <= d1", model=model, of=of, budget=400, exhaustive=False)
    assert {sum(each.case.draws) for each in found.violations} == {7}


def test_reals_are_bisected() -> None:
    text = "input x1; var x2 := x1[income := randReal(0, 1000)]; ENSURES d2 <= d1"
    found = run(text, model=lambda record: int(record[2] > 300.25), budget=200)
    assert all(300.25 < each.case.draws[0] < 300.26 for each in found.violations)


def test_the_largest_violations_come_first_and_are_kept() -> None:
    of = domain(inputs=lambda: np.column_stack([np.arange(40.0), np.zeros((40, 5))]))
    text = "input x1; var x2 := x1[felonies := 1]; ENSURES d1 <= d2"
    found = run(text, model=lambda record: float(record[0] * (1 - record[1])), of=of, keep=4)
    assert [each.case.rows["x1"] for each in found.violations] == [39, 38, 37, 36]
    assert found.inputs == 39
    equal = run(
        text.replace("<=", "=="), model=lambda record: -abs(record[0] - 9) * record[1], of=of, keep=2
    )
    assert [each.case.rows["x1"] for each in equal.violations] == [39, 38]
