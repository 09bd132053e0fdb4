from __future__ import annotations

from collections.abc import Sequence

import pytest

from dokimos.difficulty.explain.breaking_points import breaking_curves
from dokimos.difficulty.explain.rows import BreakingCurve, Observation, Status
from tests.difficulty.explain.sample import seen

S, T, W, F = Status.SOLVED, Status.TIMEOUT, Status.WRONG, Status.FAILED


def sweep(statuses: Sequence[Status], **rest: float) -> list[Observation]:
    """`pairs` = 1, 2, 4, ... with these statuses."""
    return [
        seen(f"{rest}{k}", status, seconds=k + 1.0, knobs={"pairs": 2.0**k, "gamma": 0.1, **rest})
        for k, status in enumerate(statuses)
    ]


def curve(statuses: Sequence[Status]) -> BreakingCurve:
    (found,) = breaking_curves("v", sweep(statuses))
    return found


@pytest.mark.parametrize(
    ("statuses", "breaks_at", "broken_by", "last_solved", "rising"),
    [
        ((S, S, T, T), 4.0, T, 2.0, True),
        ((S, T, S, W), 8.0, W, 4.0, True),
        ((T, T, S, S), 2.0, T, 4.0, False),
        ((S, S, S, S), None, None, 8.0, True),
        ((T, T, W, T), None, None, None, True),
        ((S, S, S, F), 8.0, F, 4.0, True),
        ((T, S, S, T), None, None, 4.0, True),
        ((S, T, T, S), None, None, 8.0, True),
    ],
)
def test_the_breaking_point(
    statuses: Sequence[Status],
    breaks_at: float | None,
    broken_by: Status | None,
    last_solved: float | None,
    rising: bool,
) -> None:
    found = curve(statuses)
    assert (found.knob, found.family, dict(found.fixed)) == ("pairs", "f", {"gamma": 0.1})
    assert (found.breaks_at, found.broken_by, found.last_solved, found.rising) == (
        breaks_at,
        broken_by,
        last_solved,
        rising,
    )
    assert [point.value for point in found.points] == [1.0, 2.0, 4.0, 8.0]


def test_what_there_is_to_say_beside_the_point() -> None:
    assert curve((S, S)).note == "it solves every step"
    assert curve((T, W)).note == "it solves none of them"
    assert curve((F, F)).note == "it fails on all of them, whatever the knob's value"
    assert curve((S, T, S, T)).note == "not solved in between: 2"
    assert curve((T, S, S, T)).note == "no clear breaking point: solved only at 2, 4"


def test_instances_that_differ_in_two_knobs_make_no_curve() -> None:
    rows = [
        seen("a", S, knobs={"pairs": 1.0, "gamma": 0.1}),
        seen("b", T, knobs={"pairs": 2.0, "gamma": 0.2}),
    ]
    assert breaking_curves("v", rows) == ()


def test_sweeps_apart_stay_apart() -> None:
    rows = sweep((S, T), gamma=0.1) + sweep((S, S), gamma=0.5)
    found = {(c.knob, tuple(c.fixed.values())): c.breaks_at for c in breaking_curves("v", rows)}
    assert found == {
        ("pairs", (0.1,)): 2.0,
        ("pairs", (0.5,)): None,
        ("gamma", (1.0,)): None,
        ("gamma", (2.0,)): 0.1,
    }
    assert not [c for c in breaking_curves("v", rows) if c.knob == "gamma" and c.breaks_at and c.rising]


def test_labels_and_variants_are_sweeps_of_their_own() -> None:
    rows = [
        seen(f"{label}{variant}{k}", S, knobs={"pairs": float(k)}, label=label, variant=variant)
        for label in ("sat", "unsat")
        for variant in ("", "disguise: ['noop']")
        for k in range(2)
    ]
    assert len(breaking_curves("v", rows)) == 4


def test_several_instances_at_one_value_share_a_rung() -> None:
    rows = [
        seen("a", S, seconds=1.0, knobs={"pairs": 1.0}),
        seen("b", T, seconds=9.0, knobs={"pairs": 1.0}),
        seen("c", T, seconds=9.0, knobs={"pairs": 2.0}),
    ]
    (found,) = breaking_curves("v", rows)
    first = found.points[0]
    assert (first.status, first.solved, first.total, first.seconds, first.instances) == (
        T,
        1,
        2,
        5.0,
        ("a", "b"),
    )
    assert found.breaks_at == 2.0
