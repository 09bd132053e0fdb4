"""Rates by decision and by group, and how sure they are."""

from __future__ import annotations

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.engine.means import Rate
from dokimos.laws.engine.tallies import _counted
from dokimos.laws.reporting.terminal import summary
from tests.laws.toy import MORE_FELONIES, domain, run


def test_words_classes_and_groups() -> None:
    found = run(MORE_FELONIES, by=("sex", "recid"))
    words = "more felonies the risk falls from medium to low (x1 is row "
    assert any(words in each.words for each in found.violations)
    assert [name for name, _ in found.classes] == ["low", "medium", "high"]
    assert sum(rate.total for _, rate in found.classes) == found.tested
    assert sum(rate.count for _, rate in found.classes) == found.violated
    sex, recid = found.groups
    assert (sex.feature, [name for name, _ in sex.rates]) == ("sex", ["Female", "Male"])
    assert (recid.feature, [name for name, _ in recid.rates]) == ("recid", ["0", "1"])
    for each in found.groups:
        assert sum(rate.count for _, rate in each.rates) == found.violated
        assert sum(rate.total for _, rate in each.rates) == found.tested
    told = summary(found, shown=1)
    assert "VIOLATED" in told and "… and" in told and "when sex is Male" in told and "all 3" in told
    (by_felonies,) = run(MORE_FELONIES, by=("felonies",)).groups
    ends = [int(end) for name, _ in by_felonies.rates for end in name.split(" to ")]
    assert ends == sorted(ends) and 3 <= len(by_felonies.rates) <= 8
    assert sum(rate.total for _, rate in by_felonies.rates) == found.tested
    with pytest.raises(InputError, match="no feature sexx"):
        run(MORE_FELONIES, by=("sexx",))


def test_too_many_values_to_tell_rates_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.laws.engine.tallies._MOST_COUNTED", 5)
    found = run(MORE_FELONIES, by=("age",), exhaustive=False, budget=5000)
    assert found.groups[0].rates == ()
    assert "age has too many values to report rates by" in summary(found)
    words = run(
        "input x1; var x2 := x1; ENSURES d1 == 'none'",
        model=lambda record: f"age {record[0]}",
        of=domain(CLASSES=None),
    )
    assert words.classes == ()


def test_a_domains_own_groups() -> None:
    found = run(MORE_FELONIES, of=domain(GROUPS=["sex", "recid"]))
    assert [each.feature for each in found.groups] == ["sex", "recid"]
    assert [each.feature for each in run(MORE_FELONIES, of=domain(GROUPS=["sex"]), by=("age",)).groups] == [
        "age"
    ]
    with pytest.raises(InputError, match=r"GROUPS: there is no feature sexx \(did you mean sex\?\)"):
        domain(GROUPS=["sexx"])
    with pytest.raises(InputError, match="there are no FEATURES"):
        domain(GROUPS=["sex"], FEATURES=None)


def test_rates_of_many_kinds_of_decisions() -> None:
    found = run(
        "input x1; var x2 := x1; ENSURES d1 == d2 && d1 == 'a'",
        model=lambda record: "a" if record[1] < 9 else "b",
        of=domain(CLASSES=None),
    )
    assert [name for name, _ in found.classes] == ["a", "b"]
    assert sum(rate.count for _, rate in found.classes) == found.violated
    text = "input x1; output d; { d = 1 if x1[1] < 9 else None } ensures d == 2;"
    found = run(text, budget=100)
    assert {name for name, _ in found.classes} == {"medium", "None"}
    several = run("input x1; var x2 := x1; ENSURES d1 == d2 + 1", model=lambda record: record[0])
    assert several.violated == 40


def test_wilson_intervals() -> None:
    low, high = Rate(10, 100).interval
    assert (round(low, 4), round(high, 4)) == (0.0552, 0.1744)
    assert Rate(0, 0).interval == (0.0, 1.0) and Rate(0, 0).value == 0
    assert Rate(0, 50).interval[0] == 0 and Rate(50, 50).interval[1] == 1
    assert all(0 <= Rate(k, 7).interval[0] <= k / 7 <= Rate(k, 7).interval[1] <= 1 for k in range(8))


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (Rate(0, 5000), "0.00 %"),
        (Rate(2, 300_000), "0.00067 %"),
        (Rate(299_998, 300_000), "99.99933 %"),
        (Rate(1, 10_000), "0.01 %"),
        (Rate(1, 3), "33.33 %"),
        (Rate(7, 7), "100.00 %"),
    ],
)
def test_a_rate_is_not_rounded_to_none_or_all(rate: Rate, said: str) -> None:
    assert str(rate).startswith(said)


def test_integers_are_counted_as_other_values_are() -> None:
    column = np.array([3, -2, 3, 7, -2, 3])
    bad = np.array([True, False, False, True, True, False])
    wanted = [(-2, 2, 1), (3, 3, 1), (7, 1, 1)]
    for each in (column, column.astype(np.float64), column.astype(object), column * 10**6):
        found = sorted(_counted(each, bad))
        assert [count[1:] for count in found] == [count[1:] for count in wanted]
    assert _counted(column, bad) == wanted
    assert _counted(column > 0, bad) == [(False, 2, 1), (True, 4, 2)]
