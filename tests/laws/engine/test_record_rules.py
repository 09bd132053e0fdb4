"""Records that were changed to what their domain does not declare: counted, shown, refused if asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws import category, real
from dokimos.laws.engine.draws import find_source
from dokimos.laws.engine.law_results import headline
from dokimos.laws.engine.record_rules import RecordRules
from dokimos.laws.reporting.terminal import summary
from tests.laws.toy import domain, inputs, run

_MANY = "input x1; var x2 := x1[felonies := x1.felonies + 10000]; ENSURES d2 <= d1"
_HALF = "input x1; var x2 := x1[age := x1.age + 0.5]; ENSURES d2 <= d1"


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("text", "outside"),
    [
        (_MANY, 40),
        (_HALF, 40),
        ("input x1; var x2 := x1[income := -0.1]; ENSURES d1 == d2", 40),
        ("input x1; var x2 := x1[sex_Male := 1, sex_Female := 1]; ENSURES d1 == d2", 40),
        ("input x1; var x2 := x1[sex_Male := 0, sex_Female := 0]; ENSURES d1 == d2", 40),
        ("input x1; var x2 := x1[age := null]; ENSURES d1 == d2", 40),
        ("input x1; var x2 := x1[felonies := 20, income := 10, sex := 1]; ENSURES d1 <= d2", 0),
        ("input x1; var x2 := x1; ENSURES d1 == d2", 0),
        ("input x1; input x2; ENSURES d1 == d2 || d1 != d2", 0),
        ("input x1; var y := x1[age := 0]; var x2 := x1; ENSURES d1 == d2 && y.age == 0", 0),
        ("input x1; var x2 := older(x1); ENSURES d1 == d2", int((inputs()[:, 0] + 50 > 90).sum())),
        ("input x1; var i := randInt(0, 0); var x2 := setFeat(x1, i, 18.5); ENSURES d1 == d2", 40),
    ],
)
def test_how_many_leave_what_is_declared(text: str, outside: int) -> None:
    def older(record: Any) -> Any:
        record[0] += 50
        return record

    of = domain(older=older)
    found = run(text, of=of)
    assert (found.outside, found.refused) == (outside, 0)
    refusing = run(text, of=of, in_range=True)
    assert (refusing.outside, refusing.refused) == (0, outside)
    assert refusing.tested == found.tested - outside
    assert ("outside what the domain declares" in summary(found)) == (outside > 0)
    assert (f"{outside} refused as out of range" in summary(refusing)) == (outside > 0)


def test_where_all_cases_are_refused_the_precondition_is_not_blamed_alone() -> None:
    found = run("input x1; var x2 := x1[age := 18.5]; ENSURES d1 == d2", in_range=True)
    assert found.tested == 0 and found.refused == 40
    assert "the precondition never held, or only out of range" in summary(found)
    assert "never held, or only out of range" in headline([found], ["law"])


def test_each_violation_says_so() -> None:
    assert "felonies is 10000, declared an integer from 0 to 20" in str(run(_MANY).violations)
    found = run("input x1; var x2 := x1[age := x1.age + 0.5]; ENSURES d1 != d2")
    assert ".5, declared an integer from 18 to 90" in found.violations[0].words
    assert "outside" not in str(run("input x1; var x2 := x1[age := 30]; ENSURES d1 != d2").violations)


def test_a_record_of_the_data_is_not_blamed_on_the_law() -> None:
    data = inputs()
    data[:, 1] = 99
    of = domain(inputs=lambda: data, same=lambda x: x)
    assert run("input x1; var x2 := same(x1)[age := 30]; ENSURES d1 == d2", of=of).outside == 0
    assert run("input x1; var x2 := x1[age := 30]; ENSURES d1 == d2", of=of).outside == 0


def test_small_changes_stay_in_range_where_that_is_asked_for() -> None:
    text = "input x1; var v := randInt(0, 100); var x2 := x1[felonies := v]; ENSURES d2 <= d1"
    found = run(text, in_range=True, budget=500, exhaustive=False)
    assert found.tested == 500 and found.refused > 0
    assert found.is_violated and all(each.case.draws[0] <= 20 for each in found.violations)
    everything = run(text, in_range=True, exhaustive=True)
    assert (everything.draws, everything.tested, everything.refused) == (40 * 101, 40 * 21, 40 * 80)
    with pytest.raises(InputError, match="declares no FEATURES"):
        run("input x1; var x2 := x1;", of=domain(FEATURES=None), in_range=True)


def constrained(*constraints: str) -> Any:
    data = inputs()
    kept = data[(data[:, 3] == 0) | (data[:, 1] > 2)]
    return replace(domain(inputs=lambda: kept), constraints=constraints)


def test_constraints_where_records_are_changed() -> None:
    of = constrained("recid == 1 ==> felonies > 2")
    text = (
        "input x1; requires x1.recid == 0 && x1.felonies <= 2; var x2 := x1[recid := 1]; ENSURES d1 != d2"
    )
    found = run(text, of=of)
    assert found.outside == found.tested > 0
    assert "it breaks the constraint recid == 1 ==> felonies > 2" in found.violations[0].words
    assert run(text, of=of, in_range=True).tested == 0
    assert run("input x1; var x2 := x1[age := 30]; ENSURES d1 == d2", of=of).outside == 0


def test_constraints_where_records_are_drawn() -> None:
    of = constrained("recid == 1 ==> felonies > 2", 'sex == "Male" || age > 50', "10 / felonies < 9")
    source = find_source("range", of)
    data = source.sample(np.random.default_rng(1), 700).data
    assert len(data) == 700 and RecordRules(of).satisfied(data).all()
    assert ((data[:, 3] == 0) | (data[:, 1] > 2)).all() and ((data[:, 5] == 1) | (data[:, 0] > 50)).all()
    assert (data[:, 1] > 1).all()  # where a constraint cannot be evaluated it is not satisfied
    again = source.sample(np.random.default_rng(1), 700).data
    assert np.array_equal(data, again)
    never = find_source("range", constrained("income < 0"))
    with pytest.raises(InputError, match=r"rule out almost every record.*0 of 2"):
        never.sample(np.random.default_rng(1), 5)


def test_strings_that_are_not_listed() -> None:
    data = [["Bern", 1.0], ["Athens", 2.0]]
    of = domain(FEATURES=[category("city", "Athens", "Bern"), real("income", 0, 5)], inputs=lambda: data)

    def outside(change: str) -> int:
        return run(f"input x1; var x2 := x1[{change}]; ENSURES d1 == d2", of=of, model=lambda x: 0).outside

    assert outside('city := "Rome"') == outside("income := 7") == 2
    assert outside('city := "Bern"') == 0
    assert outside("city := null") == 2  # the domain does not declare that it may be missing
