from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dokimos.difficulty.explain.explanation import axis_in_words
from dokimos.difficulty.explain.rows import IsolatedAxis, Observation, Status
from dokimos.difficulty.explain.separation import isolated_axes, moving_alone
from tests.difficulty.explain.sample import seen

S, T = Status.SOLVED, Status.TIMEOUT
STILL = {"margin": 0.01, "ibp_gap": 10.0, "unstable": 0.5, "regions": 2.0, "gradient_dimension": 20.0}


def axis(
    statuses: Sequence[Status], component: str = "ibp_gap", *, drift: float = 0.0, step: float = 3.0
) -> list[Observation]:
    """Two networks a step; the component triples from step to step, d_eff drifts by a share in all."""
    found = []
    for k, status in enumerate(statuses):
        moved = {**STILL, component: STILL[component] * step ** (k // 2)}
        if component != "gradient_dimension":
            moved["gradient_dimension"] *= 1 + drift * k / len(statuses)
        one = seen(f"i{k}", status, knobs={"dial": float(k // 2), "other": 1.0})
        found.append(replace(one, components={**one.components, **moved}, network_sha256=f"{k}", extras={}))
    return found


def only(observations: Sequence[Observation]) -> IsolatedAxis:
    (found,) = isolated_axes("v", observations)
    return found


def test_a_component_that_moves_alone_and_breaks_it_is_the_cause() -> None:
    found = only(axis([S] * 6 + [T] * 6))
    assert (found.component, found.knob, found.solved, found.timeouts) == ("ibp_gap", "dial", 6, 6)
    assert found.auc == 1.0
    assert found.p_value == pytest.approx(2 / 924)
    assert found.causes
    assert "causes timeouts" in axis_in_words(found)
    assert "timeouts at higher values" in axis_in_words(found)


def test_chance_is_not_a_cause() -> None:
    found = only(axis([S, T, T, S, S, T, S, T, T, S]))
    assert found.p_value is not None
    assert found.p_value > 0.05
    assert not found.causes
    assert "could be chance" in axis_in_words(found)


def test_without_both_outcomes_nothing_is_caused() -> None:
    for statuses, says in (([S] * 8, "everything is solved"), ([T] * 8, "everything timed out")):
        found = only(axis(statuses))
        assert found.auc is None
        assert not found.causes
        assert says in axis_in_words(found)
        assert ("it causes no timeout" in axis_in_words(found)) is (statuses[0] is S)


def test_what_is_neither_solved_nor_timed_out_is_not_everything() -> None:
    failed, wrong = Status.FAILED, Status.WRONG
    words = axis_in_words(only(axis([S] * 6 + [wrong] * 2)))
    assert "everything" not in words and "6 are solved, and 2 ended in neither" in words
    words = axis_in_words(only(axis([failed] + [T] * 7)))
    assert "everything" not in words and "7 timed out, none is solved, and 1 ended in neither" in words
    assert "(1 ended in neither)" in axis_in_words(only(axis([failed] + [S] * 5 + [T] * 6)))
    assert "nothing is solved and nothing timed out" in axis_in_words(only(axis([failed] * 8)))


def test_what_moves_beside_it_spoils_the_axis() -> None:
    assert len(isolated_axes("v", axis([S] * 6 + [T] * 6, drift=0.05))) == 1
    assert isolated_axes("v", axis([S] * 6 + [T] * 6, drift=0.5)) == ()
    assert isolated_axes("v", axis([S] * 6 + [T] * 6, drift=5.0)) == ()


def test_what_is_not_of_the_five_and_moves_is_named() -> None:
    moved = [
        replace(o, extras={"unstable_units": 10.0 + k, "inputs": 5.0})
        for k, o in enumerate(axis([S] * 6 + [T] * 6))
    ]
    found = only(moved)
    assert "unstable_units" in found.moving
    assert "inputs" not in found.moving
    assert "unstable" in axis_in_words(found)


def test_shared_networks_claim_nothing() -> None:
    shared = [replace(o, network_sha256="same") for o in axis([S] * 6 + [T] * 6)]
    assert not only(shared).causes


def test_several_axes_share_one_level() -> None:
    first = axis([S] * 6 + [T] * 6)
    second = [
        replace(o, family="g", instance=f"g{o.instance}", network_sha256=f"g{o.network_sha256}")
        for o in axis([S] * 6 + [T] * 6, "margin")
    ]
    found = isolated_axes("v", [*first, *second])
    assert [a.p_value for a in found] == [pytest.approx(4 / 924)] * 2


def test_a_logarithm_is_compared_by_what_it_counts() -> None:
    profiles = [{**STILL, "regions": value} for value in (0.7, 2.1)]
    assert moving_alone(profiles) == "regions"
    assert moving_alone([{**STILL, "regions": value} for value in (2.0, 2.5)]) is None
    assert moving_alone([{**STILL, "margin": value} for value in (-1.0, 1.0)]) is None
    assert moving_alone([{**STILL, "margin": None}, STILL]) is None
