"""The figures of a benchmark, instance after instance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dokimos.difficulty.explain.rows import Status
from dokimos.reports.figures.frame import WIDE
from dokimos_studies.veristress.trajectory import Trajectory, TrajectoryStep, trajectories, trajectory
from tests.difficulty.explain.sample import seen
from tests.reports.figures.test_drawings import WIDTHS, _inside, _texts, _tips, _tree


def steps(count: int, *, families: int = 2) -> Trajectory:
    """A benchmark of `count` instances, whose first component is unknown now and then."""
    statuses = list(Status)
    return Trajectory(
        "ladder",
        tuple(
            TrajectoryStep(
                position=k,
                instance=f"i{k}",
                family=f"family-{k * families // count}",
                components={
                    "margin": None if k % 3 == 0 else 0.1 * k,
                    "ibp_gap": 10.0**k if k < 9 else 1e9,
                    "unstable": k / count,
                },
                outcomes={"marabou": statuses[k % len(statuses)], "reference": Status.SOLVED},
                seconds={"marabou": 1.0, "reference": 2.0},
            )
            for k in range(count)
        ),
    )


def test_trajectories_are_in_the_order_of_the_benchmark() -> None:
    rows = [
        seen("b", Status.SOLVED, position=0, unstable=0.1),
        seen("a", Status.TIMEOUT, position=1, seconds=9.0, unstable=0.9),
        seen("a", Status.SOLVED, position=1, verifier="reference", unstable=0.9),
    ]
    (found,) = trajectories(rows)
    assert [step.instance for step in found.steps] == ["b", "a"]
    assert found.steps[1].outcomes == {"marabou": Status.TIMEOUT, "reference": Status.SOLVED}
    assert found.steps[1].seconds["marabou"] == 9.0
    assert found.steps[1].components == {"unstable": 0.9}


def test_an_infinite_value_is_not_drawn() -> None:
    (found,) = trajectories([seen("a", Status.SOLVED, unstable=float("inf"))])
    assert found.steps[0].components == {"unstable": None}


@WIDTHS
@pytest.mark.parametrize("count", [1, 2, 38, 225, 3000])
def test_a_trajectory_shows_every_instance(width: int, count: int) -> None:
    figure = trajectory(steps(count), width=width)
    assert figure is not None
    _inside(figure)
    levels = [e for e in _tree(figure).iter() if (e.get("class") or "").startswith("level")]
    known = [n for n in (count - len(range(0, count, 3)), count, count) if n]
    drawn = [level.get("d", "").count("M") for level in levels]
    if count < width - 100:
        assert drawn == known
    else:  # several share a pixel: one stroke for all of them, from the lowest to the highest
        assert len(drawn) == len(known) and all(width / 2 < n <= width for n in drawn)
        assert len(figure.body) < 90 * width
    assert f"reference: {count} solved" in figure.description
    assert "not measured, or not applicable" in _texts(figure)
    assert "family-0" in _texts(figure)
    told = count if width == WIDE and count <= 600 else 0
    assert len(_tips(figure)) == told
    if told > 1:
        assert _tips(figure)[1] == "i1: M̂_min 0.1, G_IBP 10, U " + (
            f"{1 / count:.3g}, marabou timeout, reference solved"
        )


@WIDTHS
@pytest.mark.parametrize("name", ["alpha-beta-crown 2026.1 on two scripts", "a" * 70])
def test_the_name_of_a_verifier_is_never_cut(width: int, name: str) -> None:
    made = steps(38)
    renamed = tuple(
        replace(step, outcomes={name: Status.SOLVED}, seconds={name: 1.0}) for step in made.steps
    )
    figure = trajectory(replace(made, steps=renamed), width=width)
    assert figure is not None
    assert name in _texts(figure)


def test_a_benchmark_without_instances_has_no_trajectory() -> None:
    assert trajectory(Trajectory("empty", ())) is None
