"""A family of instances: one ReLU that wakes up near one corner of the box."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dokimos.constructions import Construction
from dokimos.constructions.draft import Draft, ball, ceil_div, first_class_loses, inward, knob, random_point
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate

#: Weights are multiples of this, so that float32 holds them and their sums exactly.
STEP = Fraction(1, 2**10)
#: How far inside the box the counterexample lies, as a share of the radius.
INSET = Fraction(1, 16)


@dataclass(frozen=True)
class Knobs:
    """The knobs of lone hinges."""

    inputs: int = knob(20, "how many inputs", least=16, most=500)
    epsilon: float = knob(0.125, "radius of the box", least=0.03125, most=0.5)
    reach: float = knob(
        0.25, "how far from its corner the hinge wakes up, as a share", least=0.125, most=0.3
    )
    margin: float = knob(0.125, "by how much class 0 wins, or loses in the twin", least=0.01, most=0.5)


class LoneHinge(Construction[Knobs]):
    """Y_0 = 1 and Y_1 = k·h, with h = ReLU(Σ s_i·(x_i − c_i) − n·ε + d) over the box around c.

    The signs s name a corner, where h takes its maximum d = reach·n·ε; away from it h is 0, and so is its
    gradient. The label follows from the factor k alone: class 0 wins everywhere if k·d <= 1 − margin.
    Interval arithmetic finds the maximum of h exactly, so one piece of the box is proof enough.

    In the twin k is so large that class 1 wins near the corner: at c + (1 − INSET)·ε·s, h is d − INSET·n·ε.
    """

    family: ClassVar[str] = "lone-hinge"
    summary: ClassVar[str] = "one ReLU that wakes up near one corner of many"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw centre and corner; only k differs between the two drafts."""
        radius, margin = inward(knobs.epsilon), Fraction(knobs.margin)
        centre = random_point(knobs.inputs, rng)
        signs = [int(sign) for sign in rng.choice([-1, 1], size=knobs.inputs)]
        highest = ceil_div(Fraction(knobs.reach) * knobs.inputs * radius, STEP)
        at_witness = highest - INSET * knobs.inputs * radius
        bias = highest - knobs.inputs * radius - sum(s * c for s, c in zip(signs, centre, strict=True))
        witness = tuple(c + (1 - INSET) * radius * s for s, c in zip(signs, centre, strict=True))

        def network(factor: Fraction) -> bytes:
            hinge = ModelBuilder([knobs.inputs]).affine([signs], [bias]).relu()
            return hinge.affine([[0], [factor]], [1, 0]).build(2)

        small = ceil_div((1 - margin) / highest, STEP) - STEP
        large = ceil_div((1 + margin) / at_witness, STEP)
        question = first_class_loses(ball(centre, radius), 2)
        one_piece = Certificate("linear", {"questions": [{"own": True}]})
        return (
            Draft(network(small), question, one_piece),
            Draft(network(large), question, Certificate("witness"), witness),
        )
