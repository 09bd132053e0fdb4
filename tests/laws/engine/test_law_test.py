"""Tests of laws find what is wrong, count it, and tell it apart."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.cases import case_of
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.plan import make_plan
from dokimos.laws.engine.rates import Rate
from dokimos.laws.engine.replay import _no_labels
from dokimos.laws.engine.results import LawResult, LawSettings
from dokimos.laws.engine.runner import Runner
from dokimos.laws.engine.shrinking import run_cases
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.problems import LawError
from dokimos.laws.reporting.terminal import summary
from tests.laws.toy import MORE_FELONIES, domain, inputs, law, risk


def run(text: str, *, model: Any = risk, of: Any = None, **settings: Any) -> LawResult:
    parsed = law(text) if "{" not in text else parse_law(text)
    return run_law(parsed, model=model, domain=of or domain(), settings=LawSettings(**settings))


def brute_force() -> tuple[int, int, set[int]]:
    """Draws, violations and rows of the law on felonies, by loops."""
    draws, violations, rows = 0, 0, set()
    for row, record in enumerate(inputs()):
        for more in range(1, 11):
            draws += 1
            changed = record.copy()
            changed[1] += more
            if changed[1] <= 20 and risk(record[None])[0] > risk(changed[None])[0]:
                violations += 1
                rows.add(row)
    return draws, violations, rows


def test_going_through_all_draws_agrees_with_loops() -> None:
    draws, violations, rows = brute_force()
    found = run(MORE_FELONIES, exhaustive=True)
    assert violations > 0
    assert (found.draws, found.violated, found.unique) == (draws, violations, violations)
    assert {each.case.rows["x1"] for each in found.violations} == rows
    assert found.inputs == len(rows) and found.is_exhaustive and found.is_violated
    assert found.held == found.tested == found.passed + found.violated
    automatic = run(MORE_FELONIES)
    assert automatic.is_exhaustive and automatic.violated == violations
    assert not run(MORE_FELONIES, budget=100).is_exhaustive
    assert not run(MORE_FELONIES, exhaustive=False).is_exhaustive


def test_sampling_agrees_with_loops() -> None:
    _, violations, rows = brute_force()
    found = run(MORE_FELONIES, exhaustive=False, budget=20_000, seed=3)
    assert (found.tested, found.unique, found.inputs) == (20_000, violations, len(rows))
    assert found.held <= found.draws
    share = violations / run(MORE_FELONIES, exhaustive=True).tested
    assert abs(found.rate.value - share) < 4 * (share / found.tested) ** 0.5
    assert run(MORE_FELONIES, exhaustive=False, seed=3, budget=500).violated != 0
    again = [run(MORE_FELONIES, exhaustive=False, seed=3, budget=500) for _ in range(2)]
    assert again[0].violated == again[1].violated
    assert [each.words for each in again[0].violations] == [each.words for each in again[1].violations]


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


def test_words_classes_and_groups() -> None:
    found = run(MORE_FELONIES, by=("sex", "recid"))
    assert "more felonies the risk falls from medium to low (x1 is row " in found.violations[0].words
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


def test_an_interruption_keeps_all_but_the_last_moment() -> None:
    calls = 0

    def interrupted(record: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == 900:
            raise KeyboardInterrupt
        return int(record[1] == 13)

    found = run(MORE_FELONIES, model=interrupted, exhaustive=False, budget=5000)
    assert found.is_interrupted and 0 < found.tested < 450 and found.is_violated
    every = "input x1; input y1; var x2 := x1[age := y1.age];"
    calls = 0
    assert 0 < run(every, model=interrupted, exhaustive=True).tested < 450


def test_parts_change_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = (
        MORE_FELONIES,
        "input x1; var x2 := noisy(x1); ENSURES d1 <= d2",
        "input x1; var x2 := x1; ENSURES d1 + randInt(0, 2) > d2",
    )
    own = domain(noisy=lambda x, rng: x + rng.integers(0, 3, x.shape))

    def counts() -> list[tuple[int, int, int]]:
        settings = {"exhaustive": False, "budget": 700, "of": own}
        found = [run(text, **settings) for text in laws]  # type: ignore[arg-type]
        return [(each.violated, each.unique, each.draws) for each in found]

    at_once = counts()
    monkeypatch.setattr("dokimos.laws.engine.law_test._MOMENT", 0.0)
    monkeypatch.setattr("dokimos.laws.engine.law_test._FIRST_PART", 3)
    assert counts() == at_once


def test_too_many_values_to_tell_rates_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.laws.engine.grouping._MOST_COUNTED", 5)
    found = run(MORE_FELONIES, by=("age",), exhaustive=False, budget=5000)
    assert found.groups[0].rates == ()
    assert "age has too many values to tell rates by" in summary(found)
    words = run(
        "input x1; var x2 := x1; ENSURES d1 == 'none'",
        model=lambda record: f"age {record[0]}",
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


def test_a_law_that_holds_for_all_draws() -> None:
    found = run("input x1; var x2 := x1[age := randInt(18, 40)]; ENSURES d1 == d2")
    assert (found.violated, found.is_exhaustive, found.is_violated) == (0, True, False)
    assert "holds for every draw from the source test" in summary(found)
    sampled = run("input x1; var x2 := x1[age := randInt(18, 40)]; ENSURES d1 == d2", exhaustive=False)
    assert "no violation found" in summary(sampled) and "0.00 %" in summary(sampled)


def test_all_pairs_of_inputs() -> None:
    text = "input x1; input x2; requires x1.felonies < x2.felonies;"
    found = run(text, exhaustive=True)
    data = inputs()
    pairs = [(a, b) for a in range(40) for b in range(40) if data[a, 1] < data[b, 1]]
    assert (found.draws, found.held) == (1600, len(pairs))
    assert found.violated == sum(risk(data[[a]])[0] > risk(data[[b]])[0] for a, b in pairs) > 0
    assert "with x2 instead of x1 the risk falls" in found.violations[0].words


def test_preconditions_that_never_hold_are_not_looped_on() -> None:
    found = run("input x1; var x2 := x1; requires x1.age > 1000;", exhaustive=False, budget=10)
    assert (found.tested, found.held, found.is_starved) == (0, 0, True)
    assert found.draws >= 20_000
    assert "the precondition never held" in summary(found) and "in 0 of" in summary(found)
    rare = run(
        "input x1; var v := randInt(0, 9999); requires v == 0; var x2 := x1;", exhaustive=False, budget=100
    )
    assert rare.is_starved and 0 < rare.held < 100
    all_rejected = run("input x1; var x2 := x1; requires x1.age > 1000;", exhaustive=True)
    assert (all_rejected.draws, all_rejected.tested) == (40, 0)


def test_an_empty_range_rules_a_case_out() -> None:
    text = "input x1; var v := randInt(0, x1.felonies - 1); var x2 := x1[felonies := v]; ENSURES d2 <= d1"
    found = run(text, exhaustive=True)
    data = inputs()[:, 1]
    assert found.held == data.sum() and found.draws == data.sum() + (data == 0).sum()
    assert found.rejected == (data == 0).sum()
    sampled = run(text, exhaustive=False)
    assert sampled.tested == 5000 and all(each.case.draws[0] >= 0 for each in sampled.violations)


def test_what_cannot_be_gone_through() -> None:
    with pytest.raises(InputError, match="randReal draws from no end of numbers"):
        run("input x1; var x2 := x1[income := randReal(0, 1)];", exhaustive=True)
    with pytest.raises(InputError, match="shake draws at random itself"):
        run("input x1; var x2 := shake(x1);", of=domain(shake=lambda x, rng: x), exhaustive=True)
    with pytest.raises(InputError, match="range has no end"):
        run(MORE_FELONIES, exhaustive=True, source="range")
    with pytest.raises(InputError, match="more than 20,000,000 draws"):
        run("input x1; var x2 := x1[income := randInt(0, 90000000)];", exhaustive=True)
    five = "input a; input b; input c; input x1; input x2; requires a != b; requires b != c;"
    with pytest.raises(InputError, match="more than 20,000,000 draws"):
        run(five, exhaustive=True)
    with pytest.raises(InputError, match="at least 1"):
        run(MORE_FELONIES, budget=0)


def test_large_expansions_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.laws.engine.law_test._LARGEST_BATCH", 64)
    draws, violations, _ = brute_force()
    found = run(MORE_FELONIES, exhaustive=True)
    assert (found.draws, found.violated) == (draws, violations)


def test_code_runs_case_by_case() -> None:
    text = """import toy; input x1; output o1; output o2; {
    o1, o2 = 0, 0
    for _ in range(3):
        more = randInt(1, 5)
        y = setFeat(x1, "felonies", getFeat(x1, "felonies") + more)
        o1 += toy.predict(x1)
        o2 += predict(y)
        assert strConcat("a", "b") == "ab" and MAX_INT > 0 and 0 <= randReal(0, 1) <= 1 and label(x1) == 1
    } ensures o1 <= o2;"""
    labelled = domain(labels=lambda: np.ones(40, dtype=int))
    found = run(text, of=labelled, budget=200)
    assert (found.tested, found.failed) == (200, 0) and found.is_violated
    assert "o1 is" in found.violations[0].words
    again = run(text, of=labelled, budget=200)
    assert again.violated == found.violated
    with pytest.raises(InputError, match="--no-code"):
        run(text, allow_code=False)
    with pytest.raises(InputError, match="the block is more than predictions"):
        run(text, of=labelled, exhaustive=True)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("d1 = 1\nif x1[0] > 1000: d2 = 1", "ended without a value for d2"),
        ("d1 = d2 = {}[x1[0] > 50]", "the block raised KeyError: "),
        ("d1 = d2 = x1[0] and 1 / 0", "the block raised ZeroDivisionError: division by zero at law:2"),
        ("d1 = d2 = nearly(x1)", "the block raised ValueError: no"),
        ("d1 = d2 = setFeat(x1, 'sex', 7)", "the block raised ValueError: sex has no such value"),
    ],
)
def test_exceptions_in_the_block_are_shown_with_the_case(block: str, reason: str) -> None:
    def nearly(x: Any) -> Any:
        raise ValueError("no")

    found = run(
        f"input x1; output d1; output d2; {{\n{block}\n}} ensures d1 == d2;",
        of=domain(nearly=nearly),
        budget=50,
    )
    assert (found.tested, found.failed) == (0, 50)
    assert reason in found.errors[0][0]
    assert "row" in summary(found) and "its code failed" in summary(found)


def test_functions_in_the_block() -> None:
    def doubled_batch(xs: Any) -> Any:
        return xs * 2

    def noise(rng: np.random.Generator) -> Any:
        return int(rng.integers(0, 2**40))

    text = """input x1; output d; output e; {
        d = doubled(3) + (doubled(x1) == 2 * x1).all()
        e = noise() == noise()
    } ensures d == 7 && !e;"""
    found = run(text, of=domain(doubled_batch=doubled_batch, noise=noise), budget=50)
    assert (found.tested, found.violated, found.failed) == (50, 0, 0)
    with pytest.raises(InputError, match=r"law:1:31: there is no feature sexx"):
        run("input x1; output d; output e; { d = e = getFeat(x1, 'sexx') } ensures d == e;")


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
        ("input x1; var x2 := x1[age := randReal(0, g(x1))];", "needs numbers as its ends"),
        ("input x1; var x2 := x1[age := randInt(g(x1), 3)];", "needs numbers as its ends"),
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
    assert "nan, which is no decision" in found.errors[0][0]


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


def test_outputs_in_the_bounds_of_a_draw() -> None:
    text = "input x1; var x2 := x1; ENSURES randInt(0, d1) <= d2"
    assert not run(text).is_violated
    found = run("input x1; var x2 := x1; ENSURES randInt(d2 + 1, d1 + 2) <= d2", budget=100)
    assert found.violated == 100
    with pytest.raises(InputError, match="an `ensures` draws at random"):
        run(text, exhaustive=True)


def test_many_draws_that_are_ruled_out_do_not_stop_a_test() -> None:
    drawn = "input x1; input y; var v := randInt(1, 50); requires v == 50 && x1 == y;"
    text = f"{drawn} var x2 := x1[income := v];"
    found = run(text, budget=2000)
    assert not found.is_exhaustive and found.is_starved
    found = run(text, budget=100_000)
    assert found.is_exhaustive and found.draws == 80_000 and found.tested >= 40


def test_ctrl_c_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.laws.engine.law_test._LARGEST_BATCH", 64)
    calls = 0

    def slow(records: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return risk(records)

    slow.batched = True  # type: ignore[attr-defined]
    found = run(MORE_FELONIES, model=slow, exhaustive=False)
    assert found.is_interrupted and 0 < found.tested < 5000 and found.is_violated
    assert "interrupted" in summary(found)
    calls = 0
    found = run(MORE_FELONIES, model=slow, exhaustive=True)
    assert found.is_interrupted and not found.is_exhaustive and found.is_in_order
    assert found.draws == found.held + found.rejected >= found.tested > 0
    said = summary(found)  # the first draws in order are no random sample: no interval
    assert "gone through in order" in said and "95 %" not in said


def test_a_warning_of_the_block_is_shown_once() -> None:
    text = (
        "input x1; output d1; { import warnings; warnings.warn('odd'); d1 = predict(x1) } ensures d1 >= 0;"
    )
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        run(text, budget=50)
    assert len(shown) == 1


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


def test_a_function_for_batches_gets_a_generator_for_each_case() -> None:
    def shake_batch(records: Any, rngs: Any) -> Any:
        records[:, 1] += [rng.integers(0, 9) for rng in rngs]
        return records

    def shake(record: Any, rng: Any) -> Any:
        record[1] += rng.integers(0, 9)
        return record

    text = "input x1; var x2 := shake(x1); ENSURES d1 <= d2"
    batched, alone = (run(text, of=domain(**{f.__name__: f})) for f in (shake_batch, shake))
    assert batched.is_violated and (batched.violated, batched.unique) == (alone.violated, alone.unique)
    assert [each.words for each in batched.violations] == [each.words for each in alone.violations]
    block = (
        "input x1; output d1; output d2; { d1 = predict(x1)\n  d2 = predict(shake(x1)) } ensures d1 <= d2;"
    )
    in_block = [run(block, of=domain(**{f.__name__: f}), budget=200).violated for f in (shake_batch, shake)]
    assert in_block[0] == in_block[1] > 0


def test_violations_that_are_rounding_only_are_told_apart() -> None:
    def wavering(records: Any) -> Any:
        return np.arange(len(records)) % 2

    wavering.batched = True  # type: ignore[attr-defined]
    found = run("input x1; var x2 := x1; ENSURES d1 == d2 && d1 == 0", model=wavering)
    assert found.violated > 0 and not found.is_violated
    assert found.unconfirmed == found.inputs
    assert "rounding" in summary(found) and "holds" not in summary(found)
    assert "no violation confirmed" in summary(found)


def test_ranges_and_pools(tmp_path: Any) -> None:
    found = run(MORE_FELONIES, source="range", budget=2000)
    assert found.source == "range" and found.is_violated and found.tested == 2000
    assert "row" not in found.violations[0].words
    np.save(tmp_path / "a.npy", inputs()[:5])
    rows = [",".join(map(str, row)) for row in inputs()[:5]]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    names = "age,felonies,income,recid,sex_Female,sex_Male"
    (tmp_path / "b.csv").write_text("\n".join([names, *rows]))
    (tmp_path / "a.json").write_text(str(inputs()[:5].tolist()))
    pools = [
        run(MORE_FELONIES, source=f"pool:{tmp_path / name}")
        for name in ("a.npy", "a.csv", "b.csv", "a.json")
    ]
    assert len({(each.draws, each.violated) for each in pools}) == 1
    assert pools[0].draws == 50


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"no array", "is no array"),
        ("a.json", b"{", "not valid JSON"),
        ("a.json", b"{}", "not a list of records"),
        ("a.json", b"[]", "there are no records"),
        ("a.json", b"[[1, 2]]", "FEATURES has 6 columns"),
        ("a.json", b'[[1, 2, 3, 4, 5, "a"]]', "no number"),
        ("a.csv", b"1,2\n3", "different numbers of columns"),
        ("b.csv", None, "cannot be read"),
    ],
)
def test_unusable_pools(tmp_path: Any, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        run(MORE_FELONIES, source=f"pool:{tmp_path / name}")


def test_unusable_sources_and_models() -> None:
    with pytest.raises(InputError, match="test, range or pool:FILE"):
        run(MORE_FELONIES, source="nowhere")
    with pytest.raises(InputError, match="has none of its own"):
        run(MORE_FELONIES, model=None)
    with pytest.raises(InputError, match="imports no domain"):
        run_law(law("input x1; var x2 := x1;"), model=risk)
    with pytest.raises(InputError, match="domain toy has no test set"):
        run_law(law("input x1; var x2 := x1;"), model=risk, domain=Domain("toy", place="toy.py"))
    with pytest.raises(InputError, match="no ranges"):
        run_law(law("input x1; var x2 := x1;"), model=risk, settings=LawSettings(source="range"))
    for low, high, message in ((None, 1, "has no range"), (2, 1, "is empty")):
        from dokimos.laws import real

        with pytest.raises(InputError, match=message):
            run("input x1; var x2 := x1;", of=domain(FEATURES=[real("a", low, high)]), source="range")
    with pytest.raises(InputError, match="inputs raised RuntimeError"):
        run("input x1; var x2 := x1;", of=domain(inputs=_raise))
    with pytest.raises(InputError, match="3 labels for 40 inputs"):
        run("input x1; var x2 := x1; requires label(x1) == 0;", of=domain(labels=lambda: [0, 1, 2]))
    with pytest.raises(InputError, match="have no label"):
        run(
            "input x1; var x2 := x1; requires label(x1) == 0;",
            of=domain(labels=lambda: [0]),
            source="range",
        )
    with pytest.raises(InputError, match="no record"):
        run("input x1; var x2 := x1.age;")
    with pytest.raises(InputError, match="no test set with labels"):
        _no_labels()


def _raise() -> Any:
    raise RuntimeError("no data")


def test_the_domains_own_model_and_labels() -> None:
    labels = risk(inputs())
    found = run(
        "input x1; var x2 := x1; ENSURES d1 == label(x1) && d2 == label(x2)",
        model=None,
        of=domain(model=lambda: risk, labels=lambda: labels),
    )
    assert (found.tested, found.violated) == (40, 0)


def test_texts() -> None:
    from dokimos.laws import text

    reviews = [["good room", "bad food"], ["nice", "noisy"], ["", "awful"]]

    def length(record: Any) -> int:
        return int(len(record[0]) < len(record[1]))

    of = domain(FEATURES=[text("pos"), text("neg")], inputs=lambda: reviews)
    found = run(
        "input x1; input y; var x2 := x1[pos := strConcat(x1.pos, y.pos)]; ENSURES d1 <= d2",
        model=length,
        of=of,
    )
    assert found.is_exhaustive and found.tested == 9 and found.is_violated
    assert "pos 'nicegood room' instead of 'nice'" in "".join(each.words for each in found.violations)


def test_texts_beside_numbers(tmp_path: Any) -> None:
    from dokimos.laws import integer, text

    (tmp_path / "a.csv").write_text("note,age\nshort,30\nlonger note,40\n")
    of = domain(FEATURES=[text("note"), integer("age")])
    found = run(
        "input x1; var x2 := x1[age := x1.age + 10]; ENSURES d2 == d1 + 10 && x1.note == x2.note",
        model=lambda record: record[1],
        of=of,
        source=f"pool:{tmp_path / 'a.csv'}",
    )
    assert (found.tested, found.violated) == (2, 0)


def test_objects_as_records() -> None:
    class State:
        def __init__(self, height: int) -> None:
            self.height = height

    def lower(state: Any) -> Any:
        return State(state.height - 1)

    of = domain(FEATURES=None, inputs=lambda: [State(3), State(4)], lower=lower)
    found = run("input x1; var x2 := lower(x1);", model=lambda state: state.height, of=of)
    assert found.violated == 2 and "here the risk falls from 3 to high" in found.violations[0].words


def test_a_case_runs_again_as_it_was() -> None:
    plan = make_plan(law(MORE_FELONIES), domain())
    found = run(MORE_FELONIES)
    from dokimos.laws.models.lookup import as_model

    runner = Runner(plan, as_model(risk, domain(), name="risk"), lambda: np.zeros(0))
    frame = run_cases([each.case for each in found.violations], runner)
    again = [case_of(frame, row, plan.law) for row in range(frame.size)]
    assert [each.values["d2"] for each in again] == [each.case.values["d2"] for each in found.violations]


def test_rates_of_many_kinds_of_decisions() -> None:
    found = run(
        "input x1; var x2 := x1; ENSURES d1 == d2 && d1 == 'a'",
        model=lambda record: "a" if record[1] < 9 else "b",
    )
    assert [name for name, _ in found.classes] == ["a", "b"]
    assert sum(rate.count for _, rate in found.classes) == found.violated
    text = "input x1; output d; { d = [1] if x1[1] < 9 else None } ensures d != null;"
    found = run(text, budget=100)
    assert {name for name, _ in found.classes} == {"[1]", "None"}
    several = run("input x1; var x2 := x1; ENSURES d1 == d2 + 1", model=lambda record: record[0])
    assert several.violated == 40


def test_wilson_intervals() -> None:
    low, high = Rate(10, 100).interval
    assert (round(low, 4), round(high, 4)) == (0.0552, 0.1744)
    assert Rate(0, 0).interval == (0.0, 1.0) and Rate(0, 0).value == 0
    assert Rate(0, 50).interval[0] == 0 and Rate(50, 50).interval[1] == 1
    assert all(0 <= Rate(k, 7).interval[0] <= k / 7 <= Rate(k, 7).interval[1] <= 1 for k in range(8))


@pytest.mark.parametrize("given", [7, None, np.array(3.0)])
def test_inputs_and_labels_that_are_no_lists(given: Any) -> None:
    with pytest.raises(InputError, match="gives no list of records"):
        run(MORE_FELONIES, of=domain(inputs=lambda: given))
    with pytest.raises(InputError, match="gives no list of labels"):
        run("input x1; var x2 := x1; requires label(x1) == 0;", of=domain(labels=lambda: given))


class Table:
    """As tables of other packages are: not made of rows, but to be had as an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return inputs()

    def __iter__(self) -> Any:
        return iter(["age", "felonies"])


def test_tables_are_inputs() -> None:
    found, wanted = (run(MORE_FELONIES, of=domain(inputs=given)) for given in (Table, inputs))
    assert (found.violated, found.draws) == (wanted.violated, wanted.draws)


def test_labels_that_are_words() -> None:
    words = ["low", "high"] * 20
    text = "input x1; requires label(x1) == 'low'; var x2 := x1;"
    for labels in (words, np.array(words)):
        assert run(text, of=domain(labels=lambda labels=labels: labels)).tested == 20
    mixed = ["low", 1] * 20
    assert (
        run("input x1; requires label(x1) == 1; var x2 := x1;", of=domain(labels=lambda: mixed)).tested
        == 20
    )
    with pytest.raises(LawError, match="never equal to a string"):
        run(
            "input x1; output d1; { d1 = predict(x1) } ensures d1 == label(x1);",
            of=domain(labels=lambda: words),
        )
