from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.difficulty.explain.bootstrap import Resampling
from dokimos.difficulty.explain.rows import Status
from dokimos.difficulty.explain.separation import ENOUGH, Ranking, separation, separations
from dokimos.suites.profile_file import COMPONENTS
from tests.difficulty.explain.sample import measured, seen

QUICK = Resampling(resamples=300)
ranked = st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 3)), min_size=1, max_size=12)


@given(ranked)
def test_the_auc_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool, int]]) -> None:
    values, late, weights = (np.array(column) for column in zip(*rows, strict=True))
    pairs = [
        (v, u, a * b)
        for v, is_late, a in rows
        for u, other_is_late, b in rows
        if is_late and not other_is_late
    ]
    total = sum(weight for *_, weight in pairs)
    found = Ranking(values.astype(float), late.astype(bool)).auc(weights[None].astype(float))[0]
    if not total:
        assert np.isnan(found)
    else:
        won = sum(w * (1.0 if v > u else 0.5 if v == u else 0.0) for v, u, w in pairs)
        assert found == pytest.approx(won / total)


def test_higher_and_lower_values_are_told_apart() -> None:
    values = list(range(20))
    up = separation("v", "unstable", measured(values, [v >= 8 for v in values]), QUICK)
    down = separation("v", "unstable", measured(values, [v < 8 for v in values]), QUICK)
    assert (up.auc, down.auc) == (1.0, 0.0)
    assert up.separates and down.separates
    assert (up.timeouts, up.solved) == (12, 8)
    assert up.note.startswith("complete separation")


def test_a_component_that_says_nothing_is_at_chance() -> None:
    found = separation("v", "unstable", measured([1.0] * 12, [True, False] * 6), QUICK)
    assert found.auc == 0.5
    assert not found.separates


@pytest.mark.parametrize(("timeouts", "solved"), [(ENOUGH - 1, 9), (9, ENOUGH - 1), (0, 30)])
def test_too_few_of_either_is_not_enough_data(timeouts: int, solved: int) -> None:
    late = [True] * timeouts + [False] * solved
    found = separation("v", "unstable", measured(list(range(len(late))), late), QUICK)
    assert (found.auc, found.low, found.high) == (None, None, None)
    assert f"{timeouts} timed out and {solved} solved" in found.note


def test_only_timeouts_and_solved_count() -> None:
    rows = measured(list(range(12)), [k >= 6 for k in range(12)])
    others = [
        seen(f"x{status.value}", status, unstable=-5.0)
        for status in Status
        if status not in (Status.SOLVED, Status.TIMEOUT)
    ]
    assert separation("v", "unstable", rows + others, QUICK) == separation("v", "unstable", rows, QUICK)


def test_what_has_no_value_is_left_out_and_counted() -> None:
    rows = measured(list(range(12)), [k >= 6 for k in range(12)])
    rows += [seen("none", Status.SOLVED, unstable=None), seen("missing", Status.TIMEOUT)]
    found = separation("v", "unstable", rows, QUICK)
    assert (found.timeouts, found.solved, found.left_out) == (6, 6, 2)
    assert [s.note for s in separations("v", [seen("a", Status.SOLVED)], QUICK)] == [
        "not enough data: no profiles"
    ] * len(COMPONENTS)


def test_a_component_that_never_applies_is_said_so() -> None:
    rows = [seen(f"{k}", Status.SOLVED, unstable=None, margin=1.0) for k in range(9)]
    assert separation("v", "unstable", rows, QUICK).note == "not applicable to any instance"


def test_the_interval_repeats_and_depends_on_the_seed() -> None:
    rng = np.random.default_rng(5)
    rows = measured(list(rng.normal(size=40)), [bool(b) for b in rng.random(40) < 0.5])
    first = separation("v", "unstable", rows, QUICK)
    assert first == separation("v", "unstable", rows, QUICK)
    assert first.auc is not None and first.low is not None and first.high is not None
    assert first.low < first.auc < first.high
    assert first.low != separation("v", "unstable", rows, replace(QUICK, seed=1)).low


def test_seeing_every_instance_twice_makes_nothing_surer() -> None:
    rng = np.random.default_rng(6)
    once = measured(list(rng.normal(size=30)), [k % 2 == 0 for k in range(30)])
    twice = once + [replace(o, verifier="other") for o in once]
    a, b = (separation("v", "unstable", rows, QUICK) for rows in (once, twice))
    assert (a.low, a.high) == pytest.approx((b.low, b.high))


def test_the_interval_holds_what_it_promises() -> None:
    """Under chance alone about one interval in twenty misses 0.5."""
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(200):
        rows = measured(list(rng.normal(size=60)), [k % 3 == 0 for k in range(60)])
        missed += separation("v", "unstable", rows, Resampling(resamples=200)).separates
    assert 1 <= missed <= 24


def test_many_observations_are_resampled_in_parts() -> None:
    rng = np.random.default_rng(8)
    rows = measured(list(rng.normal(size=3000)), [k % 2 == 0 for k in range(3000)])
    found = separation("v", "unstable", rows, Resampling(resamples=1000))
    assert found.low is not None and found.high is not None
    assert found.high - found.low < 0.1
