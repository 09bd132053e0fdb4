"""Disjuncts: several ways to be unsafe, of which none, or exactly one, is reachable.

Scale: a network that is affine on the box, but passes through units as small as 2^-k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dokimos.constructions.base import Construction, by_slopes, dyadic
from dokimos.constructions.draft import (
    BOUND_BITS,
    Draft,
    at_least,
    ball,
    dot,
    inward,
    knob,
    random_point,
    siblings,
    split_evenly,
    towards,
    unsafe_where,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.vnnlib.model import Box, Case, Property

WEIGHT_BITS = 10
#: With these the largest outputs have more digits than float32 can hold, for most radii.
FINE_WEIGHT_BITS = 16
LEVEL_BITS = 4
#: Where the witness lies, from the centre (0) to the corner (1).
REACH = Fraction(15, 16)


@dataclass(frozen=True)
class Knobs:
    """The knobs of disjuncts."""

    disjuncts: int = knob(5, "how many ways to be unsafe there are", least=2, most=9)
    position: int = knob(2, "which output can be unsafe in the twin, counted from 0", least=0, most=8)
    rotation: int = knob(
        0, "which disjunct is listed first; the others follow, wrapping around", least=0, most=8
    )
    boxes: int = knob(0, "1: every disjunct has its own box of inputs; 0: one box for all", least=0, most=1)
    touching: int = knob(
        0, "1: the twin reaches its threshold in one pair of corners and never passes it", least=0, most=1
    )
    inputs: int = knob(20, "how many inputs", least=2, most=1000)
    epsilon: float = knob(0.25, "radius of the box", least=0.01, most=1.0)
    margin: float = knob(
        0.2, "how far each output stays from its threshold, as a share of its range", least=0.01, most=0.4
    )


class Disjuncts(Construction[Knobs]):
    """Y_i = |w_i·(x − c)| + b_i, ‖w_i‖₁ = 1; unsafe: Y_i >= t_i for some i, t_i = b_i + (1 + margin)·ε.

    |·| is two hinges, so each disjunct needs only a little more than interval arithmetic: what is tested
    here is whether a tool looks at all of them, whatever their order. One output's bias is larger than b_i:
    by margin·ε/2, which brings it nearer to its threshold than the others, and in the twin by 2·margin·ε,
    so that this disjunct, and no other, is reachable, near two corners. With `touching` it is margin·ε: in
    these corners Y_i = t_i, which is unsafe, and would not be if it had to be more than t_i. The weights
    have too many digits for float32 to decide this, so that label is proven for the reals only.

    With `boxes` every disjunct has a box of its own: the common one, cut by a step in one coordinate.
    Rotation changes nothing but the order: the same seed gives the same network and thresholds.

    The twin is hidden from samples, which lie near the centre; gradient search finds it at once (10 of 10
    draws).
    """

    family: ClassVar[str] = "disjuncts"
    summary: ClassVar[str] = "several ways to be unsafe, one of them reachable; a proof must look at all"
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the directions; only one output's bias differs between the two drafts."""
        count = knobs.disjuncts
        if knobs.position >= count:
            raise ConstructionFailed(
                f"{self.family}: position = {knobs.position} is not one of the {count} disjuncts; "
                "count from 0."
            )
        epsilon, away = inward(knobs.epsilon), dyadic(knobs.margin * knobs.epsilon, BOUND_BITS)
        centre = random_point(knobs.inputs, rng)
        directions = [_direction(knobs, rng) for _ in range(count)]
        levels = [Fraction(int(k), 2**LEVEL_BITS) for k in rng.integers(-32, 33, size=count)]
        norms = [sum(map(abs, w), Fraction(0)) for w in directions]
        thresholds = [level + norm * epsilon + away for level, norm in zip(levels, norms, strict=True)]
        property_ = _property(knobs, ball(centre, epsilon), thresholds)
        reach = epsilon if knobs.touching else dyadic(REACH * epsilon, BOUND_BITS)
        witness = towards(centre, directions[knobs.position], reach)

        def build(raise_by: Fraction) -> bytes:
            biases = [b + (raise_by if i == knobs.position else 0) for i, b in enumerate(levels)]
            return _network(centre, directions, biases)

        proof = by_slopes(property_, [1] * (2 * count))
        files = build(away / 2), build(away * (2 - knobs.touching))
        return siblings(property_, proof, *files, witness)


def _direction(knobs: Knobs, rng: np.random.Generator) -> list[Fraction]:
    """Weights whose absolute values sum to 1, or, in many digits, to a little less."""
    bits = FINE_WEIGHT_BITS if knobs.touching else WEIGHT_BITS
    less = 2 * int(rng.integers(1, 1000)) + 1 if knobs.touching else 0
    shares = split_evenly(2**bits - less, rng.standard_normal(knobs.inputs))
    return [Fraction(k, 2**bits) for k in shares]


def _network(centre: list[Fraction], directions: list[list[Fraction]], levels: list[Fraction]) -> bytes:
    """The hinges z⁺ and (−z)⁺ of every direction, and their sums."""
    rows, biases = [], []
    head = np.zeros((len(directions), 2 * len(directions)), dtype=np.int64)
    for i, w in enumerate(directions):
        middle = dot(w, centre)
        rows += [w, [-a for a in w]]
        biases += [-middle, middle]
        head[i, 2 * i] = head[i, 2 * i + 1] = 1
    return ModelBuilder([len(centre)]).affine(rows, biases).relu().affine(head, levels).build(len(levels))


def _property(knobs: Knobs, box: Box, thresholds: list[Fraction]) -> Property:
    """Some Y_i >= t_i, listed from the one that `rotation` names."""
    count = len(thresholds)
    order = [(knobs.rotation + i) % count for i in range(count)]
    ways = [at_least(thresholds[i], i) for i in order]
    question = unsafe_where(ways, box, outputs=count)
    if not knobs.boxes:
        return question
    cases = (Case(_cut(box, i), (way,)) for i, way in zip(order, ways, strict=True))
    return replace(question, cases=tuple(cases))


def _cut(box: Box, number: int) -> Box:
    """The box, cut at its lower or upper end in one coordinate: another one for each number."""
    coordinate, step = number // 2 % box.size, Fraction(1 + number, 2**BOUND_BITS)
    lower, upper = list(box.lower), list(box.upper)
    if number % 2:
        upper[coordinate] -= step
    else:
        lower[coordinate] += step
    return replace(box, lower=tuple(lower), upper=tuple(upper))


#: What keeps every unit active on the box: |w·x| <= 2 for ‖w‖₁ = 1 and x in [−1, 2].
OFFSET = 3
MOST_CASES = 20_000
DENSE, CONVOLUTIONAL, MIXED = 0, 1, 2


@dataclass(frozen=True)
class ScaleKnobs:
    """The knobs of scale."""

    exponent: int = knob(24, "k: the hidden units are of size 2^-k", least=0, most=60)
    form: int = knob(DENSE, "0: dense; 1: convolutional; 2: convolutional, then dense", least=0, most=2)
    depth: int = knob(2, "how many layers of ReLUs of that size", least=1, most=4)
    grid: int = knob(2, "the image is grid by grid patches, one unit for each", least=1, most=4)
    patch: int = knob(3, "height and width of a patch", least=1, most=8)
    epsilon: float = knob(0.5, "radius of the box", least=0.01, most=1.0)
    margin: float = knob(
        0.2, "how far the output stays from its threshold, as a share of its range", least=0.01, most=0.4
    )


class Scale(Construction[ScaleKnobs]):
    """Y = Σ over patches p of relu(s·(w_p·x_p + 3))/s − const = 2 + Σ w_p·(x_p − c_p) on the box, s = 2^-k.

    ‖w_p‖₁ = 1, so every unit is active on the whole box, the network is affine there, and its range is
    2 ± Pε for P patches. Unsafe is Y >= 2 + (1 + margin)·Pε. In the twin the first bias is larger, by s
    times what Y needs to exceed that near one corner, by as much as it stayed below before.

    Only the size of the numbers is hard here: a tool that uses absolute tolerances, and takes s for 0,
    calls the twin `unsat`. It is hidden from samples, which lie near the centre; gradient search finds it
    at once (10 of 10 draws).
    """

    family: ClassVar[str] = "scale"
    summary: ClassVar[str] = "affine on the box, but through units so small that tolerances swallow them"
    mixes: ClassVar[bool] = False
    knobs_class = ScaleKnobs

    def construct(self, knobs: ScaleKnobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw centre and weights; only the first bias differs between the two drafts."""
        units = knobs.grid**2
        if (knobs.depth + 1) ** units > MOST_CASES:
            raise ConstructionFailed(
                f"{self.family}: depth = {knobs.depth} with grid = {knobs.grid} needs a proof with too "
                "many cases; lower one of them."
            )
        epsilon, away = inward(knobs.epsilon), dyadic(knobs.margin * knobs.epsilon, BOUND_BITS)
        side = knobs.grid * knobs.patch
        centre = random_point(side**2, rng)
        shared = _weights(knobs.patch**2, rng)
        drawn = [shared if knobs.form != DENSE else _weights(knobs.patch**2, rng) for _ in range(units)]
        rows = _rows(drawn, knobs.grid, knobs.patch)
        total = [sum((row[i] for row in rows), Fraction(0)) for i in range(side**2)]
        constant = 2 - OFFSET * units - dot(total, centre)
        property_ = unsafe_where([at_least(2 + units * (epsilon + away))], ball(centre, epsilon))
        witness = towards(centre, total, dyadic(REACH * epsilon, BOUND_BITS))

        def build(shift: Fraction) -> bytes:
            # A filter has one bias for all patches: it moves each of them.
            first = OFFSET + (shift * units if knobs.form == DENSE else shift)
            biases = [first, *[Fraction(OFFSET)] * (units - 1)]
            return _scale_network(knobs, shared, rows, biases, constant)

        proof = by_slopes(property_, [1] * (units * knobs.depth))
        return siblings(property_, proof, build(Fraction(0)), build(2 * away), witness)


def _weights(count: int, rng: np.random.Generator) -> list[Fraction]:
    """Weights on the grid whose absolute values sum to 1."""
    return [Fraction(k, 2**WEIGHT_BITS) for k in split_evenly(2**WEIGHT_BITS, rng.standard_normal(count))]


def _rows(weights: list[list[Fraction]], grid: int, patch: int) -> list[list[Fraction]]:
    """For each patch, row-major, its weights as a row over the whole image."""
    side = grid * patch
    rows = []
    for p, own in enumerate(weights):
        image = [[Fraction(0)] * side for _ in range(side)]
        for k, weight in enumerate(own):
            image[p // grid * patch + k // patch][p % grid * patch + k % patch] = weight
        rows.append([x for line in image for x in line])
    return rows


def _scale_network(
    knobs: ScaleKnobs,
    shared: list[Fraction],
    rows: list[list[Fraction]],
    biases: list[Fraction],
    constant: Fraction,
) -> bytes:
    """The chosen form; `biases` are the units' before scaling, of which a filter takes the first."""
    scale = Fraction(1, 2**knobs.exponent)
    units, patch = len(rows), knobs.patch
    side = knobs.grid * patch
    identity, zeros = np.eye(units, dtype=np.int64), np.zeros(units, dtype=np.int64)
    if knobs.form == DENSE:
        builder = ModelBuilder([side**2])
        builder.affine([[scale * w for w in row] for row in rows], [scale * b for b in biases]).relu()
    else:
        builder = ModelBuilder([1, side, side])
        kernel = np.array([scale * w for w in shared], dtype=object).reshape(1, 1, patch, patch)
        builder.conv(kernel, [scale * biases[0]], stride=patch).relu()
    if knobs.form == CONVOLUTIONAL:
        for _ in range(knobs.depth - 1):
            builder.conv(np.ones((1, 1, 1, 1), dtype=np.int64), [0]).relu()
    if knobs.form != DENSE:
        builder.flatten()
    if knobs.form != CONVOLUTIONAL:
        for _ in range(knobs.depth - 1):
            builder.affine(identity, zeros).relu()
    return builder.affine([[1 / scale] * units], [constant]).build(1)
