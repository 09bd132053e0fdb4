from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.difficulty.explain.rows import EXPLAINING, Observation, Separation, Status
from dokimos.difficulty.explain.separation import ENOUGH, ENOUGH_FAMILIES, Ranking, separations
from dokimos.difficulty.explain.strata import Resampling
from tests.difficulty.explain.sample import measured, seen

QUICK = Resampling(resamples=300)
ranked = st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 3)), min_size=1, max_size=12)


def separation(
    rows: list[Observation], resampling: Resampling = QUICK, component: str = "unstable"
) -> Separation:
    (found,) = (row for row in separations("v", rows, resampling) if row.component == component)
    return found


def drawn(seed: int, count: int, *, families: int = 3, twins: bool = False) -> list[Observation]:
    """Values and outcomes that have nothing to do with one another; twins share both."""
    rng = np.random.default_rng(seed)
    rows = []
    for family in range(families):
        for k in range(count):
            value, late = float(rng.normal()), rng.random() < 0.5
            rows += [
                seen(
                    f"i{k}-{copy}",
                    Status.TIMEOUT if late else Status.SOLVED,
                    family=f"f{family}",
                    network=f"n{k}",
                    unstable=value,
                )
                for copy in range(1 + twins)
            ]
    return rows


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
    up = separation(measured(values, [v >= 8 for v in values]))
    down = separation(measured(values, [v < 8 for v in values]))
    assert (up.auc, down.auc) == (1.0, 0.0)
    assert up.separates and down.separates
    assert (up.timeouts, up.solved, up.families) == (36, 24, 3)
    assert up.note.startswith("complete separation")


def test_a_component_that_says_nothing_is_at_chance() -> None:
    found = separation(measured([1.0] * 12, [True, False] * 6))
    assert (found.auc, found.p_value) == (0.5, 1.0)
    assert not found.separates


@pytest.mark.parametrize(("timeouts", "solved"), [(ENOUGH - 1, 9), (9, ENOUGH - 1), (0, 30)])
def test_too_few_of_either_is_not_enough_data(timeouts: int, solved: int) -> None:
    late = [True] * timeouts + [False] * solved
    found = separation(measured(list(range(len(late))), late, families=1))
    assert (found.auc, found.low, found.high, found.p_value, found.pooled_auc) == (None,) * 5
    assert f"{timeouts} timed out and {solved} solved" in found.note


def test_fewer_than_three_families_with_both_outcomes_are_not_enough_data() -> None:
    late = [k >= 6 for k in range(12)]
    two = measured(list(range(12)), late, families=ENOUGH_FAMILIES - 1)
    silent = [replace(o, family=f"{o.family}, solved", status=Status.SOLVED) for o in two]
    found = separation(two + silent)
    assert (found.auc, found.low, found.high, found.p_value) == (None,) * 4
    assert found.note.startswith("not enough data: 2 families have both")
    assert found.families == 2
    assert found.pooled_auc == pytest.approx(5 / 6), "described all the same"
    assert separation(measured(list(range(12)), late)).separates


def test_a_hard_family_with_high_values_separates_nothing() -> None:
    """Within families outcomes have nothing to do with values; across families they go together."""
    rng = np.random.default_rng(2)
    rows = [
        seen(
            f"{k}",
            Status.TIMEOUT if rng.random() < (k % 3 + 0.5) / 3.5 else Status.SOLVED,
            family=f"f{k % 3}",
            unstable=10.0 * (k % 3) + rng.random(),
        )
        for k in range(120)
    ]
    found = separation(rows)
    assert found.pooled_auc is not None and found.pooled_auc > 0.7
    assert found.auc is not None and abs(found.auc - 0.5) < 0.15
    assert not found.separates


def test_only_timeouts_and_solved_count() -> None:
    rows = measured(list(range(12)), [k >= 6 for k in range(12)])
    others = [
        seen(f"x{status.value}", status, family="f0", unstable=-5.0)
        for status in Status
        if status not in (Status.SOLVED, Status.TIMEOUT)
    ]
    assert separation(rows + others) == separation(rows)


def test_what_has_no_value_is_left_out_and_counted() -> None:
    rows = measured(list(range(12)), [k >= 6 for k in range(12)])
    rows += [seen("none", Status.SOLVED, unstable=None), seen("missing", Status.TIMEOUT)]
    found = separation(rows)
    assert (found.timeouts, found.solved, found.left_out) == (18, 18, 2)
    assert [s.note for s in separations("v", [seen("a", Status.SOLVED)], QUICK)] == [
        "not enough data: no profiles"
    ] * len(EXPLAINING)


def test_an_infinite_gap_is_the_largest_rank() -> None:
    late = [k >= 6 for k in range(12)]
    values = [float(k) for k in range(12)]
    hardest = [math.inf if v >= 8 else v for v in values]
    found = separation(measured(hardest, late, "ibp_gap"), component="ibp_gap")
    assert (found.auc, found.timeouts, found.left_out) == (1.0, 18, 0)


def test_a_component_that_never_applies_is_said_so() -> None:
    rows = [seen(f"{k}", Status.SOLVED, unstable=None, margin=1.0) for k in range(9)]
    assert separation(rows).note == "not applicable to any instance"


def test_each_family_has_its_own_auc_and_may_be_left_out() -> None:
    late = [k >= 6 for k in range(12)]
    values = list(range(12))
    rows = measured(values, late)
    turned = [
        replace(o, family="other", components={"unstable": -(o.components["unstable"] or 0.0)})
        for o in rows[:12]
    ]
    found = separation(rows + turned)
    assert {one.family: one.auc for one in found.by_family} == {"f0": 1, "f1": 1, "f2": 1, "other": 0}
    assert found.auc == pytest.approx(0.75)
    assert (found.without_low, found.without_high) == (pytest.approx(2 / 3), 1.0)
    assert {one.networks for one in found.by_family} == {12}


def test_strata_are_weighted_after_van_elteren() -> None:
    """m k / (m + k + 1) for m timeouts and k solved ones."""
    rows = measured(list(range(8)), [k >= 4 for k in range(8)], families=2)
    large = [
        replace(o, family="large", components={"unstable": 1.0})
        for o in measured(list(range(20)), [k >= 5 for k in range(20)], families=1)
    ]
    found = separation(rows + large)
    small_weight, large_weight = 4 * 4 / 9, 15 * 5 / 21
    assert found.auc == pytest.approx(
        (2 * small_weight + large_weight / 2) / (2 * small_weight + large_weight)
    )


def test_the_interval_repeats_and_depends_on_the_seed() -> None:
    rows = drawn(5, 14)
    first = separation(rows)
    assert first == separation(rows)
    assert first.auc is not None and first.low is not None and first.high is not None
    assert first.low < first.auc < first.high
    assert first.low != separation(rows, replace(QUICK, seed=1)).low


def test_seeing_every_instance_twice_makes_nothing_surer() -> None:
    once = drawn(6, 12)
    twice = once + [replace(o, verifier="other") for o in once]
    a, b = (separation(rows) for rows in (once, twice))
    assert (a.auc, a.low, a.high) == pytest.approx((b.auc, b.low, b.high))
    assert a.p_value == b.p_value


@pytest.mark.parametrize("shared", ["network", "seed"])
def test_twins_are_one_network(shared: str) -> None:
    """Twelve networks with five properties each say no more than twelve networks."""
    once = drawn(9, 12)
    many = [
        replace(
            o,
            instance=f"{o.instance}/{copy}",
            network_sha256="" if shared == "seed" else o.network_sha256,
            seed=int(o.network_sha256[1:]) if shared == "seed" else None,
        )
        for o in once
        for copy in range(5)
    ]
    a, b = separation(once), separation(many)
    assert a.p_value == b.p_value
    assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=0.02)
    apart = [replace(o, network_sha256="", seed=None) for o in many]
    assert separation(apart).p_value != b.p_value


def test_the_test_holds_what_it_promises() -> None:
    """Under chance alone about one component in twenty is found."""
    found = sum(separation(drawn(seed, 20), Resampling(200, seed)).separates for seed in range(200))
    assert 1 <= found <= 22


def test_many_observations_are_resampled_in_parts() -> None:
    found = separation(drawn(8, 1000), Resampling(resamples=1000))
    assert found.low is not None and found.high is not None
    assert found.high - found.low < 0.1
