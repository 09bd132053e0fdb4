from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dokimos.difficulty.explain.rows import Observation, Status
from dokimos.difficulty.explain.strata import Strata, in_parts, mean_ranks, number_units
from tests.difficulty.explain.sample import seen


def one(name: str, late: bool = False, **rest: object) -> Observation:
    return seen(name, Status.TIMEOUT if late else Status.SOLVED, **{"unstable": 1.0, **rest})  # type: ignore[arg-type]


def test_a_network_or_a_draw_makes_one_unit_within_its_family() -> None:
    rows = [
        one("a", network="n"),
        one("b", network="n", seed=1),
        one("c", network="m", seed=1),
        one("d", network="k", seed=2),
        one("e", network="k", family="other"),
        one("f", verifier="other", network="n"),
        one("g"),
        one("h"),
    ]
    assert number_units(rows) == [0, 0, 0, 1, 2, 0, 3, 4]


@given(st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=15))
def test_equal_values_share_their_rank(values: list[float]) -> None:
    found = mean_ranks(np.array(values))
    for value, rank in zip(values, found, strict=True):
        below = sum(v < value for v in values)
        assert rank == below + (values.count(value) + 1) / 2


def test_ranks_are_centred_within_families_and_infinity_is_the_largest() -> None:
    rows = [one(f"{k}", family=f"f{k % 2}", unstable=float(k)) for k in range(6)]
    rows += [one("x", family="f0", unstable=float("inf")), one("y", family="f1", unstable=None, margin=1.0)]
    strata = Strata.of(rows, ("unstable", "margin"))
    ranks = strata.centred_ranks[:, 0]
    first = strata.family == strata.families.index("f0")
    np.testing.assert_allclose(np.sort(ranks[first]), np.array([1, 2, 3, 4]) / 5 - 0.5)
    np.testing.assert_allclose(np.sort(ranks[~first]), [-0.25, 0, 0, 0.25])
    assert ranks[strata.values[:, 0] == np.inf] == 4 / 5 - 0.5


def test_outcomes_move_within_families_only_and_a_unit_moves_as_one() -> None:
    rng = np.random.default_rng(3)
    rows = [
        one(f"{family}{k}{label}", bool(rng.random() < 0.5), family=family, network=f"{k}", label=label)
        for family in "ab"
        for k in range(6)
        for label in ("sat", "unsat")
    ]
    strata = Strata.of(rows, ("unstable",))
    (found,) = strata.permuted_outcomes(200, rng)
    pairs = found.reshape(200, 2, 6, 2)
    seen_pairs = strata.late.reshape(2, 6, 2)
    for family in range(2):
        expected = sorted(map(tuple, seen_pairs[family]))
        assert all(sorted(map(tuple, row)) == expected for row in pairs[:, family])
    assert len(np.unique(found, axis=0)) > 20


def test_outcomes_do_not_move_to_where_a_component_has_no_value() -> None:
    rows = [one(f"{k}", k % 2 == 0, unstable=1.0 if k < 6 else None, margin=1.0) for k in range(12)]
    strata = Strata.of(rows, ("unstable", "margin"))
    (found,) = strata.permuted_outcomes(100, np.random.default_rng(0))
    known = strata.known[:, 0]
    assert set(found[:, known].sum(axis=1)) == {3.0}


def test_resampling_draws_as_many_networks_of_each_family() -> None:
    rows = [one(f"{family}{k}", family=family, network=f"{k // 2}") for family in "ab" for k in range(10)]
    strata = Strata.of(rows, ("unstable",))
    (weights,) = strata.resampled_weights(50, np.random.default_rng(0))
    assert (weights.reshape(50, 2, 10).sum(axis=2) == 10).all()
    twins = weights.reshape(50, 10, 2)
    assert (twins[:, :, 0] == twins[:, :, 1]).all()


def test_a_family_carries_information_with_both_outcomes_in_several_networks() -> None:
    rows = [one(f"a{k}", k == 0, family="both") for k in range(3)]
    rows += [one(f"b{k}", family="solved") for k in range(3)]
    rows += [one(f"c{k}", k == 0, family="one network", network="n") for k in range(3)]
    strata = Strata.of(rows, ("unstable",))
    found = strata.informative(strata.known[:, 0])
    assert {strata.families[k] for k in strata.family[found]} == {"both"}


def test_families_of_several_suites_are_kept_apart() -> None:
    strata = Strata.of([one("a", suite="s"), one("b", suite="t")], ("unstable",))
    assert strata.families == ("s/f", "t/f")


def test_parts_make_up_the_whole() -> None:
    assert sum(in_parts(1000, 100_000)) == 1000
    assert max(in_parts(1000, 100_000)) == 20
    assert list(in_parts(0, 5)) == []
