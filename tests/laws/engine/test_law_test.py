"""Tests of laws find what is wrong, count it, and tell it apart."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import _Pace, test_law
from dokimos.laws.reporting.terminal import summary
from tests.laws.toy import MORE_FELONIES, brute_force, domain, inputs, law, risk, run


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


@pytest.mark.no_cover
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
    assert "tested in order" in said and "95 %" not in said


@pytest.mark.no_cover
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
        scores = np.full((len(records), 2), 0.5)
        scores[:, 1] += 1e-9 * np.where(np.arange(len(records)) % 2, 1, -1)
        return scores

    wavering.batched = True  # type: ignore[attr-defined]
    found = run("input x1; var x2 := x1; ENSURES d1 == d2 && d1 == 0", model=wavering)
    assert found.violated > 0 and not found.is_violated
    assert found.unconfirmed == found.inputs and found.unrepeatable == 0
    assert "rounding" in summary(found) and "holds" not in summary(found)
    assert "no violation confirmed" in summary(found)


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


def test_objects_as_records() -> None:
    class State:
        def __init__(self, height: int) -> None:
            self.height = height

    def lower(state: Any) -> Any:
        return State(state.height - 1)

    of = domain(FEATURES=None, inputs=lambda: [State(3), State(4)], lower=lower)
    found = run("input x1; var x2 := lower(x1);", model=lambda state: state.height, of=of)
    assert found.violated == 2 and "here the risk falls from 3 to high" in found.violations[0].words


@pytest.mark.parametrize(("call", "each"), [(0.5, 1e-5), (0.0, 0.5), (0.05, 1e-3), (0.0, 1e-7)])
def test_parts_grow_while_a_call_costs_more_than_its_cases(call: float, each: float) -> None:
    """The default test of 5,000 cases takes little longer than one call with all of them."""
    pace, size, done, seconds, calls = _Pace(), 64, 0, 0.0, 0
    while done < 5000:
        size = min(size, 5000 - done)
        took = call + each * size
        done, seconds, calls = done + size, seconds + took, calls + 1
        size = pace.after(size, took)
    assert seconds <= 3 * (call + 5000 * each) + 0.05
    assert each < 0.1 or calls > 2000  # an interruption of what is slow by itself loses one case


def test_what_calls_take_by_themselves_makes_the_second_part_large() -> None:
    assert _Pace().after(64, 1.1, 1.05) >= 5000
    assert _Pace().after(64, 1.1) == 128 and _Pace().after(64, 6.4, 0.1) < 64


def test_a_time_ends_the_tests_with_what_there_is() -> None:
    def slow(records: Any) -> Any:
        time.sleep(0.01)
        return risk(records)

    slow.batched = True  # type: ignore[attr-defined]
    begun = time.perf_counter()
    found = run(MORE_FELONIES, model=slow, budget=10**7, seconds=0.3, exhaustive=False)
    assert found.is_out_of_time and 0 < found.tested < 10**7 and not found.is_interrupted
    assert time.perf_counter() - begun < 30
    assert "stopped when the time was up, after" in summary(found)
    all_of_them = run(MORE_FELONIES, model=slow, seconds=1e-9)
    assert all_of_them.is_out_of_time and not all_of_them.is_exhaustive


@pytest.mark.parametrize("asked", ["d1 <= d2 + 1000", "d1 > d2"])
def test_a_limited_time_is_kept_where_each_prediction_is_slow(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first part of 64 cases, and 48 smaller values of each of 100 violations, took minutes of 2 s."""
    now = [0.0]

    def slow(record: Any) -> float:
        now[0] += 0.05
        return float(record[0])

    monkeypatch.setattr("dokimos.laws.engine.law_test.time.perf_counter", lambda: now[0])
    text = f"input x1; var x2 := x1[f0 := x1.f0 + randReal(0, 5)]; ENSURES {asked}"
    table = Domain.from_frame(np.arange(200.0).reshape(50, 4))
    limited = LawSettings(seconds=2.0, budget=10**9)
    found = test_law(law(text), model=slow, domain=table, settings=limited)
    assert found.is_out_of_time and found.tested >= 4
    assert bool(found.violations) is found.is_violated is (asked == "d1 > d2")
    assert now[0] < 4
