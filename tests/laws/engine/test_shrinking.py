"""Violations are made as small as they can be, and run again as they were."""

from __future__ import annotations

from typing import Any

import numpy as np

from dokimos.laws.engine.cases import case_of
from dokimos.laws.engine.plan import make_plan
from dokimos.laws.engine.runner import Runner
from dokimos.laws.engine.shrinking import _amount, run_cases
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
