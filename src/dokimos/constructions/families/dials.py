"""Dials: one knob for each component of the difficulty profile, which does not change the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dokimos.constructions.base import Construction
from dokimos.constructions.draft import (
    Draft,
    ball,
    dot,
    float32_above,
    float32_below,
    inward,
    knob,
    random_point,
    rewritten,
    siblings,
    split_evenly,
    towards,
    unsafe_where,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.chain import CancelPair, Permute, Rewriting
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Linear

WEIGHT_STEPS = 2**10
#: How many inputs a cancelling pair reads.
READ = 4
#: Keeps a unit active on every box: |u| <= epsilon <= 1.
LIFT = 2
#: What the twin's lowest value is below 0, and how far its witness stays inside the box, as shares.
VIOLATION, INSET = Fraction(1, 32), Fraction(1, 256)
#: From so many directions on, samples do not find the corner where the twin is violated.
HIDDEN_DIRECTIONS = 3
#: How many bits the weights of the last layer have, so that their sums are exact in float32.
SHORT = 12


@dataclass(frozen=True)
class Knobs:
    """The knobs of dials."""

    inputs: int = knob(64, "how many inputs", least=2, most=1000)
    margin: float = knob(0.01, "M: the least margin; everything scales with it", least=1e-7, most=1e4)
    directions: int = knob(3, "how many directions the margin depends on", least=1, most=32)
    kinks: int = knob(3, "A: in how many of them it bends; 2^kinks regions", least=0, most=32)
    spread: int = knob(8, "d_eff: how many inputs each direction reads", least=1, most=1000)
    swing: float = knob(1.0, "how far a direction moves the output, in margins", least=0.01, most=1000.0)
    pairs: int = knob(16, "how many pairs of units cancel each other", least=0, most=1000)
    unstable: float = knob(0.5, "U: the share of these pairs that are unstable", least=0.0, most=1.0)
    looseness: float = knob(4.0, "G: what intervals lose by these pairs, in margins", least=0.0, most=1e6)
    epsilon: float = knob(0.25, "radius of the box", least=0.001, most=1.0)


class Dials(Construction[Knobs]):
    """Y = b + a·Σ over directions j of g_j(x), g_j = u_j − 2·max(0, u_j) = −|u_j|, or u_j without a kink.

    u_j = w_j·(x − x₀) with ‖w_j‖₁ = 1, over inputs that no other direction reads, so |u_j| <= ε, and the
    least value of Y is b − a·n·ε for n directions, which b makes the margin. Linear bounds prove it: the
    chord of max(0, u) over [−ε, ε] is (u + ε)/2, so −|u| >= −ε. Then pairs of units are added that change
    nothing but what bounds lose, v·max(0, z) − v·max(0, z) = 0: z ranges over [−2ε, 2ε] if the pair is
    unstable, else over LIFT ± ε, and either way intervals lose 2vε. There are `pairs` of them, and a stable
    one for each direction without a kink, by which intervals lose what they lose by a kink. Unsafe
    is Y <= 0; the twin's b is lower.

    So M̂_min = margin, G_IBP = looseness + 2·swing·directions, U = (kinks + unstable·pairs) /
    (1.5·directions + pairs), A_τ = kinks·log 2 as far as 1000 samples see it, and d_eff is about
    directions·spread.
    """

    family: ClassVar[str] = "dials"
    summary: ClassVar[str] = "one knob for each component of the profile; each changes only its own"
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def hides(self, knobs: Knobs) -> bool:
        """With few directions, samples come near every corner."""
        return knobs.directions >= HIDDEN_DIRECTIONS

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw directions and pairs; only the last bias differs between the two drafts."""
        if knobs.directions * knobs.spread > knobs.inputs or knobs.kinks > knobs.directions:
            raise ConstructionFailed(
                f"{self.family}: directions = {knobs.directions} of spread = {knobs.spread} do not fit "
                f"inputs = {knobs.inputs}, or kinks = {knobs.kinks} exceeds the directions."
            )
        epsilon, margin = inward(knobs.epsilon), short(knobs.margin)
        centre = random_point(knobs.inputs, rng)
        rows = _directions(knobs, rng)
        slope = short(float(knobs.swing * margin / epsilon))
        at_most_zero = (Linear((), ((0, Fraction(1)),), Fraction(0)),)
        reach = slope * epsilon * knobs.directions
        lifted = slope * LIFT * knobs.directions
        biases = (
            float32_above(margin + reach - lifted),
            float32_below(reach - lifted - margin * VIOLATION),
        )
        total = [sum((row[i] for row in rows), Fraction(0)) for i in range(knobs.inputs)]
        witness = towards(centre, total, -epsilon * (1 - INSET))
        steps: list[Rewriting] = [
            _cancelling(row, centre, Fraction(LIFT), slope) for row in rows[knobs.kinks :]
        ]
        steps += _pairs(knobs, centre, epsilon, margin, rng)
        units = 3 * knobs.kinks + (knobs.directions - knobs.kinks) + 2 * len(steps)
        steps.append(Permute(0, tuple(int(i) for i in rng.permutation(units))))
        base, twin = (_base(knobs, rows, centre, slope, bias) for bias in biases)
        question = unsafe_where([at_most_zero], ball(centre, epsilon))
        pair = siblings(question, Certificate("linear", {"questions": [{}]}), base, twin, witness)
        return rewritten(pair[0], steps), rewritten(pair[1], steps)


def short(value: float | Fraction) -> Fraction:
    """The nearest number of SHORT bits."""
    exponent = int(np.frexp(float(value))[1]) - SHORT
    return round(Fraction(value) / Fraction(2) ** exponent) * Fraction(2) ** exponent


def _directions(knobs: Knobs, rng: np.random.Generator) -> list[list[Fraction]]:
    """Rows over disjoint inputs whose absolute values sum to 1, all about as large."""
    order = rng.permutation(knobs.inputs)
    rows = []
    for j in range(knobs.directions):
        row = [Fraction(0)] * knobs.inputs
        sizes = rng.uniform(0.8, 1.2, size=knobs.spread) * rng.choice([-1.0, 1.0], size=knobs.spread)
        own = order[j * knobs.spread : (j + 1) * knobs.spread]
        for i, weight in zip(own, split_evenly(WEIGHT_STEPS, sizes), strict=True):
            row[i] = Fraction(weight, WEIGHT_STEPS)
        rows.append(row)
    return rows


def _pairs(
    knobs: Knobs, centre: Sequence[Fraction], epsilon: Fraction, margin: Fraction, rng: np.random.Generator
) -> list[CancelPair]:
    """The pairs that cancel: together intervals lose `looseness` margins by them."""
    unstable = round(knobs.unstable * knobs.pairs)
    reading = short(float(Fraction(knobs.looseness) * margin / (2 * epsilon * max(knobs.pairs, 1))))
    made = []
    for number in range(knobs.pairs):
        count = min(READ, knobs.inputs)
        own = rng.choice(knobs.inputs, size=count, replace=False)
        weights = split_evenly(WEIGHT_STEPS, rng.standard_normal(count))
        is_unstable = number < unstable
        row = [Fraction(0)] * knobs.inputs
        for i, weight in zip(own, weights, strict=True):
            row[i] = Fraction(weight, WEIGHT_STEPS) * (2 if is_unstable else 1)
        made.append(_cancelling(row, centre, Fraction(0 if is_unstable else LIFT), reading))
    return made


def _cancelling(
    row: Sequence[Fraction], centre: Sequence[Fraction], level: Fraction, reading: Fraction
) -> CancelPair:
    """Two units level + row·(x − centre) that cancel."""
    weights = tuple((i, w) for i, w in enumerate(row) if w)
    return CancelPair(0, weights, level - dot(row, centre), (reading,))


def _base(
    knobs: Knobs,
    rows: Sequence[Sequence[Fraction]],
    centre: Sequence[Fraction],
    slope: Fraction,
    bias: Fraction,
) -> bytes:
    """The network without anything that cancels: u_j + LIFT, and twice max(0, u_j) at a kink."""
    weights: list[Sequence[Fraction]] = []
    biases, head = [], []
    for number, row in enumerate(rows):
        middle = dot(row, centre)
        bent = number < knobs.kinks
        weights += [row] * (3 if bent else 1)
        biases += [LIFT - middle, *[-middle] * (2 if bent else 0)]
        head += [slope, *[-slope] * (2 if bent else 0)]
    return ModelBuilder([knobs.inputs]).affine(weights, biases).relu().affine([head], [bias]).build(1)
