"""What laws say of all tests together: shares of them, and means over groups."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.laws.engine.law_results import LawResult, LawVerdict, headline, verdict_of
from dokimos.laws.engine.means import MeansTally, SetOutcome
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.law_layout import format_law
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.set_conditions import set_conditions
from dokimos.laws.language.validation import check_law
from dokimos.laws.reporting.terminal import summary
from dokimos.laws.reporting.violation_files import read_violations, save_result
from tests.laws.toy import domain, inputs, risk, run

ONE = "input x1; output d1; { d1 = predict(x1) } "
PARITY = (
    'ensures abs(mean(d1 == 2, x1.sex == "Male") - mean(d1 == 2, x1.sex == "Female")) <= '  # and a bound
)


def outcomes(found: LawResult) -> list[SetOutcome]:
    return [each.outcome for each in found.over_all]


def test_group_metrics_are_those_of_the_data() -> None:
    data = inputs()
    male, decisions = data[:, 5] == 1, risk(data)
    gap = abs((decisions[male] == 2).mean() - (decisions[~male] == 2).mean())
    assert 0 < gap < 1
    fine, wrong = (run(f"{ONE}{PARITY}{bound};") for bound in (gap + 1e-9, gap - 1e-9))
    assert fine.is_exhaustive and verdict_of(fine) is LawVerdict.HOLDS and not fine.is_violated
    assert verdict_of(wrong) is LawVerdict.VIOLATED and wrong.violated == 0
    (verdict,) = wrong.over_all
    assert [each.tests for each in verdict.means] == [int(male.sum()), int((~male).sum())]
    assert verdict.means[0].text == 'mean(d1 == 2, x1.sex == "Male")'
    said = summary(wrong)
    assert "VIOLATED" in said and '"Female")) <=' in said and "over " in said and "violated: 0" not in said


def test_means_of_numbers() -> None:
    mean = inputs()[:, 0].mean()
    holds = f"{ONE} ensures mean(d1) >= 0 && mean(x1.age) == {mean} || mean(d1) > 9;"
    assert outcomes(run(holds)) == [SetOutcome.HOLDS]
    assert outcomes(run(f"{ONE} ensures mean(x1.age + d1 * 0) > {mean};")) == [SetOutcome.VIOLATED]
    sampled = run(f"{ONE} ensures mean(x1.age + d1 * 0) > 0;", exhaustive=False, budget=400)
    (one,) = sampled.over_all[0].means
    assert one.low < mean < one.high and one.high - one.low < 10 and one.tests == 400


@pytest.mark.parametrize(
    ("percent", "verdict"),
    [("20", LawVerdict.TOLERATED), ("99.5", LawVerdict.VIOLATED), ("PASSED", LawVerdict.UNDECIDED)],
)
def test_what_holds_in_a_share_of_the_tests(percent: str, verdict: LawVerdict) -> None:
    share = (risk(inputs()) == 1).mean()
    assert 0.3 < share < 0.9
    text = f"{ONE} ensures d1 == 1 in {percent.replace('PASSED', str(round(100 * share)))} %;"
    found = run(text, exhaustive=False, budget=300)
    assert verdict_of(found) is verdict
    assert found.is_violated == (verdict is LawVerdict.VIOLATED)
    assert found.is_inconclusive == (verdict is LawVerdict.UNDECIDED)
    assert found.violations and all(each.is_tolerated for each in found.violations)
    assert "raise --budget" in summary(found) or verdict is not LawVerdict.UNDECIDED
    assert headline([found], ["share"])


def test_a_share_of_all_draws_is_exact() -> None:
    passed = int((risk(inputs()) == 1).sum())
    fine, wrong = (100 * each / 40 for each in (passed, passed + 1))
    assert verdict_of(run(f"{ONE} ensures d1 == 1 in {fine} %;")) is LawVerdict.TOLERATED
    assert verdict_of(run(f"{ONE} ensures d1 == 1 in {wrong} %;")) is LawVerdict.VIOLATED


def test_what_is_not_tolerated_comes_first() -> None:
    text = f"{ONE} ensures d1 <= 1 in 10 %; ensures d1 != 2 || x1.sex != 1;"
    found = run(text, keep=3)
    strict = int(((risk(inputs()) == 2) & (inputs()[:, 5] == 1)).sum())
    assert found.is_violated and found.violated - found.tolerated == strict > 0
    assert [each.is_tolerated for each in found.violations] == sorted(
        each.is_tolerated for each in found.violations
    )
    assert not found.violations[0].is_tolerated


def test_a_rate_that_is_tolerated() -> None:
    text = f"{ONE} ensures d1 != 2;"
    rate = run(text).rate.value
    assert 0 < rate < 0.5
    found = run(text, max_rate=rate)
    assert not found.is_violated and verdict_of(found) is LawVerdict.TOLERATED and found.violations
    assert run(text, max_rate=rate - 1e-9).is_violated


def test_groups_without_tests_and_values_that_are_none() -> None:
    empty = run(f"{ONE} ensures mean(d1, x1.age > 1000) > 0;")
    assert outcomes(empty) == [SetOutcome.UNDECIDED] and "no test satisfies its condition" in summary(empty)
    failing = run(f"{ONE} ensures mean(d1 / (x1.felonies - 7)) > 0 || mean(d1) >= 0;")
    assert failing.failed == int((inputs()[:, 1] == 7).sum()) and "division by zero" in summary(failing)
    missing = run(f"{ONE} ensures mean(x1[age := null].age) > d1;".replace("> d1", "> mean(d1)"))
    assert missing.is_given_up and missing.failed == 20 and "this is nan" in summary(missing)


@pytest.mark.parametrize(
    ("ensures", "message"),
    [
        ("mean(d1) > d1", "d1 is outside mean"),
        ("mean(d1) > label(x1)", "label is outside mean"),
        ("forall i in 0..1: mean(d1) > 0", "mean cannot be used under `forall`"),
        ("mean(mean(d1)) > 0", "mean cannot be used in another mean"),
        ("mean(d1, 3) > 0", "the condition of a mean must be a truth value"),
        ("mean(x1) > 0 && mean(d1) > 0", "mean needs a number or a truth value"),
        ("mean(d1) > 0 in 99 %", "cannot hold in a share of them"),
        ("d1 == 1 in 100 %", "below 100 %"),
        ("d1 == 1 in 0 %", "above 0 %"),
        ("mean(d1, true, true) > 0", "mean takes a value and a condition"),
    ],
)
def test_what_cannot_be_said_of_all_tests(ensures: str, message: str) -> None:
    law = parse_law(f"{ONE} ensures {ensures};")
    assert message in " ".join(each.message for each in check_law(law, domain(labels=list)))
    assert parse_law(format_law(law)) == law


def test_a_mean_stands_in_ensures_only_and_a_domains_own_comes_first() -> None:
    text = "input x1; var v := mean(x1); var x2 := x1; ENSURES d1 == d2 && v > 0"
    with pytest.raises(Exception, match="a mean is over all tests, so only an `ensures` can use it"):
        run(text)
    assert run(text, of=domain(mean=lambda x: float(x.mean()))).violated == 0


def test_saved_and_replayed(tmp_path: Path) -> None:
    save_result(run(f"{ONE}{PARITY}0;"), tmp_path / "parity.json")
    saved = read_violations(tmp_path / "parity.json")
    assert saved.cases == () and saved.over_all == (PARITY.removeprefix("ensures ") + "0",)


@given(batches=st.lists(st.lists(st.floats(-1e6, 1e6), max_size=8), min_size=1, max_size=5))
@settings(deadline=None, max_examples=40)
def test_batches_add_up(batches: list[list[float]]) -> None:
    law = parse_law(f"{ONE} ensures mean(d1) > 0;")
    tally = MeansTally(set_conditions(law, None))
    for each in batches:
        tally.add(((np.array(each), np.ones(len(each), dtype=np.bool_)),))
    everything = np.array([value for each in batches for value in each])
    (mean,) = tally.verdicts(False)[0].means
    assert mean.tests == len(everything)
    if len(everything) > 1:
        half = 1.959963984540054 * everything.std(ddof=1) / math.sqrt(len(everything))
        assert math.isclose(mean.value, everything.mean(), abs_tol=1e-6)
        assert math.isclose(mean.high - mean.value, half, rel_tol=1e-6, abs_tol=1e-6)


_NUMBERS = st.recursive(
    st.one_of(st.integers(-3, 3).map(laws.Literal), st.just(laws.Call("mean", (laws.Name("d1"),)))),
    lambda inner: st.one_of(
        st.builds(laws.Binary, st.sampled_from("+-*/"), inner, inner),
        st.builds(laws.Call, st.sampled_from(["min", "max"]), st.tuples(inner, inner)),
        st.builds(laws.Call, st.just("abs"), st.tuples(inner)),
        st.builds(laws.Unary, st.just("-"), inner),
    ),
    max_leaves=4,
)
_COMPARED = st.builds(laws.Binary, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), _NUMBERS, _NUMBERS)
_CONDITIONS = st.recursive(
    _COMPARED,
    lambda inner: st.one_of(
        st.builds(laws.Binary, st.sampled_from(["&&", "||", "==>"]), inner, inner),
        st.builds(laws.Unary, st.just("!"), inner),
    ),
    max_leaves=3,
)


def valued(expression: laws.Expression, mean: float) -> Any:
    """The value of a condition where every mean is `mean`, as Python computes it."""
    match expression:
        case laws.Literal(value=value):
            return value
        case laws.Call(function="mean"):
            return mean
        case laws.Call(function=function, arguments=arguments):
            known: dict[str, Any] = {"min": min, "max": max, "abs": abs}
            return known[function](*(valued(each, mean) for each in arguments))
        case laws.Unary(operator=operator, operand=operand):
            inner = valued(operand, mean)
            return not inner if operator == "!" else -inner
        case laws.Binary(operator=operator, left=left, right=right):
            a, b = valued(left, mean), valued(right, mean)
            python = {"&&": "a and b", "||": "a or b", "==>": "not a or b"}.get(operator, f"a {operator} b")
            return eval(python, {"a": a, "b": b})
    raise AssertionError(expression)


@given(condition=_CONDITIONS, shares=st.lists(st.booleans(), min_size=1, max_size=30))
@settings(deadline=None, max_examples=50)
def test_what_is_decided_is_so_wherever_the_means_are(
    condition: laws.Expression, shares: list[bool]
) -> None:
    law = parse_law(f"{ONE} ensures mean(d1) > 0;")
    (one,) = set_conditions(law, None)
    means = tuple(
        each for each in condition.walk() if isinstance(each, laws.Call) and each.function == "mean"
    )
    if not means:
        return
    made = type(one)("", condition, means, ("",) * len(means))
    tally = MeansTally((made,))
    values = np.array(shares)
    tally.add(tuple((values, np.ones(len(values), dtype=np.bool_)) for _ in means))
    for exact in (True, False):
        (verdict,) = tally.verdicts(exact)
        for share in {verdict.means[0].low, verdict.means[0].high, verdict.means[0].value}:
            try:
                truth = valued(condition, share)
            except ZeroDivisionError:
                continue
            assert verdict.outcome in (
                SetOutcome.UNDECIDED,
                SetOutcome.HOLDS if truth else SetOutcome.VIOLATED,
            )


def test_a_share_that_is_not_1_is_not_shown_as_1() -> None:
    rows = np.arange(300_000.0).reshape(-1, 1)
    of = domain(FEATURES=["a"], inputs=lambda: rows)

    def rarely(records: Any) -> Any:
        return (records[:, 0] == 7).astype(np.int64)

    rarely.batched = True  # type: ignore[attr-defined]
    found = run(f"{ONE}ensures d1 == 0 in 99 %;", of=of, model=rarely, exhaustive=True)
    assert found.violated == 1 and "mean(d1 == 0): 0.999997 over 300,000 tests" in summary(found)
