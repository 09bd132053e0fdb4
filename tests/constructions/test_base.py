"""Nothing leaves a construction unproven, or in plain sight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.base import ATTEMPTS, Construction, Draft, Unusable
from dokimos.constructions.draft import (
    ball,
    ceil_div,
    first_class_loses,
    float32_above,
    float32_below,
    inward,
    knob,
    knobs_of,
    split_evenly,
    uniform_points,
    violations,
)
from dokimos.core.errors import ConstructionFailed, InputError, UnreadableFile
from dokimos.networks.writing.builder import ModelBuilder, as_float32
from dokimos.suites.instance import Certificate, Label, Semantics
from dokimos.suites.vnnlib.model import Linear


@dataclass(frozen=True)
class Knobs:
    level: float = knob(1.0, "by how much class 0 wins", least=-1.0, most=1.0)


class Constant(Construction[Knobs]):
    """Class 0 scores `level`, class 1 scores 0, whatever the input; the twin scores −1 everywhere."""

    family: ClassVar[str] = "constant"
    summary: ClassVar[str] = "for tests"
    knobs_class = Knobs
    calls = 0

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        self.calls += 1
        asked = first_class_loses(ball([Fraction(0)] * 2, Fraction(1)), 2)

        def build(level: float) -> bytes:
            return ModelBuilder([2]).affine(np.zeros((2, 2)), [level, 0.0]).build(2)

        robust = Draft(build(knobs.level), asked, Certificate("linear", {"questions": [{}]}))
        twin = Draft(build(-1.0), asked, Certificate("witness"), (Fraction(0), Fraction(0)))
        return robust, twin


def test_a_draft_that_cannot_be_proven_does_not_leave() -> None:
    constant = Constant()
    with pytest.raises(ConstructionFailed, match="not above 0"):
        constant(seed=0, level=-0.5)
    assert constant.calls == ATTEMPTS


def test_a_twin_in_plain_sight_does_not_leave() -> None:
    constant = Constant()
    with pytest.raises(ConstructionFailed, match="uniform samples"):
        constant(seed=0)
    assert constant.calls == ATTEMPTS


def test_nothing_is_asked_of_a_twin_that_is_not_wanted() -> None:
    constant = Constant()
    drawn = constant.draw(seed=0, timeout_seconds=1.0, disguise=(), with_twin=False, knobs={})
    assert [made.truth.label for made in drawn.instances] == [Label.UNSAT]
    assert (constant.calls, drawn.given_up) == (1, ())


def test_draws_that_were_given_up_are_accounted_for() -> None:
    class Moody(Constant):
        def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
            drafts = super().construct(knobs, rng)
            if self.calls < 3:
                raise Unusable(f"mood {self.calls}")
            return drafts

    drawn = Moody().draw(seed=0, timeout_seconds=1.0, disguise=(), with_twin=False, knobs={})
    assert drawn.given_up == ("mood 1", "mood 2")


def test_an_unreadable_certificate_is_not_tried_again() -> None:
    class Misspelt(Constant):
        def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
            robust, twin = super().construct(knobs, rng)
            return replace(robust, certificate=Certificate("slopes")), twin

    misspelt = Misspelt()
    with pytest.raises(UnreadableFile, match="unknown kind"):
        misspelt(seed=0)
    assert misspelt.calls == 1


def test_unusable_draws_are_tried_again() -> None:
    class Hopeless(Constant):
        def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
            super().construct(knobs, rng)
            raise Unusable("nothing here")

    hopeless = Hopeless()
    with pytest.raises(ConstructionFailed, match="nothing here"):
        hopeless(seed=0)
    assert hopeless.calls == ATTEMPTS


@pytest.mark.parametrize(
    ("family", "knobs"),
    [
        ("exclusive-pairs", {"gamma": 0.2, "epsilon": 0.25}),
        ("exclusive-pairs", {"gamma": 0.1, "epsilon": 0.05}),
        ("convex-corners", {"inputs": 2, "block": 2, "hinges": 1, "epsilon": 1.0}),
    ],
)
def test_knobs_that_admit_no_instance_end_in_a_sentence(family: str, knobs: dict[str, float]) -> None:
    with pytest.raises(ConstructionFailed, match=family):
        CONSTRUCTIONS[family](seed=0, **knobs)


def test_weights_that_need_many_bits_are_rounded_to_float32() -> None:
    robust, _ = CONSTRUCTIONS["paired-bias"](seed=3, margin=10.0)
    assert robust.truth is not None
    assert robust.truth.claims[Semantics.REAL].margin == 10


def test_numbers_that_float32_does_not_hold_end_in_a_sentence() -> None:
    with pytest.raises(ConstructionFailed, match="not a float32 number"):
        Constant()(seed=0, level=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("family", list(CONSTRUCTIONS))
def test_the_ends_of_every_range_give_an_instance_or_a_sentence(family: str) -> None:
    """Extremes that are cheap to build, one at a time."""
    for each in knobs_of(CONSTRUCTIONS[family].knobs_class):
        values = [each.least] if each.is_integer else [each.least, each.most]
        for value in values:
            try:
                CONSTRUCTIONS[family](seed=3, **{each.name: int(value) if each.is_integer else value})
            except InputError as error:
                assert family in str(error)


def test_samples_stay_in_the_box_and_start_at_its_centre() -> None:
    box = ball([Fraction(1, 3), Fraction(5)], Fraction(1, 4))
    points = uniform_points(box, 50, np.random.default_rng(0))
    assert points.shape == (51, 2)
    assert points.dtype == np.float32
    assert points[0] == pytest.approx([1 / 3, 5])
    assert (points[:, 1] >= 4.75).all()
    assert (points[:, 1] <= 5.25).all()


def test_violations_are_told_row_by_row() -> None:
    asked = first_class_loses(ball([Fraction(0)], Fraction(1)), 3)
    outputs = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 2], [np.nan, 0, 0]], dtype=np.float32)
    assert violations(outputs, asked).tolist() == [False, True, True, False]
    (case,) = asked.cases
    strict = tuple(
        tuple(Linear(c.inputs, c.outputs, c.bound, strict=True) for c in conj) for conj in case.any_of
    )
    open_ = replace(asked, cases=(replace(case, any_of=strict),))
    assert violations(outputs, open_).tolist() == [False, False, True, False]


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-1, 3), Fraction(1), Fraction(1, 2**160)])
def test_neighbours_in_float32(value: Fraction) -> None:
    below, above = float32_below(value), float32_above(value)
    assert below <= value <= above
    assert as_float32([below, above]).dtype == np.float32
    assert (below == above) == (value == 1)


def test_small_arithmetic() -> None:
    assert inward(0.3) <= Fraction(0.3) < inward(0.3) + Fraction(1, 2**12)
    assert ceil_div(Fraction(7, 10), Fraction(1, 4)) == Fraction(3, 4)
    shares = split_evenly(100, np.array([1.0, -2.0, 0.5, 0.0]))
    assert sum(map(abs, shares)) == 100
    assert shares[1] < 0 < shares[0]
    with pytest.raises(ValueError, match="float32"):
        as_float32([Fraction(1, 3)])
