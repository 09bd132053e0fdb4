"""Splits: instances that must be split many times, with the counterexample where a search looks last."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dokimos.constructions.base import Construction, Unusable, by_search
from dokimos.constructions.draft import Draft, at_least, choice, knob, siblings, unsafe_where
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.vnnlib.model import Box, Point

#: The output at the hidden point lies above or below the threshold by 1/8; the spike there is 1 high.
MARGIN = Fraction(1, 8)
MOST_STEPS = 4_000
VARIANTS = {
    "deep": "behind many splits of both inputs",
    "face": "at the face of an early split: aimed at splits at the middle",
    "gap": "at the face of the first split, too narrow for a gap of 1e-6: aimed at splits at the middle",
    "late": "behind units that become stable only after the units that they read",
    "disjunct": "in the last and smallest of many boxes",
    "rounding": "where it violates by equality alone, which float32 rounds away unless it rounds outward",
}
#: Boxes of `disjunct`.
BOXES = 10
#: `rounding` adds so much in each of so many layers: together one unit in the last place of numbers from 4
#: to 8, one by one too little for float32 to tell. Half precision cannot tell `FINE` there.
TINY, LAYERS, FINE = Fraction(1, 2**23), 4, Fraction(1, 2**10)
#: How far the first input of `gap` reaches: float32 would blur so steep a spike in a wider box.
NARROW = Fraction(1, 64)


@dataclass(frozen=True)
class Knobs:
    """The knobs of splits."""

    variant: str = choice("deep", "where the counterexample lies", options=tuple(VARIANTS))
    depth: int = knob(10, "how often each input must be halved around it", least=6, most=14)


class Splits(Construction[Knobs]):
    """Y = s(x) + C·Σⱼ (relu(uⱼ) − relu(uⱼ)) + b on [−1, 1]ⁿ, unsafe where Y >= t.

    s(x) = relu(1 − K·Σᵢ|xᵢ − pᵢ|) is a spike at p. The difference is 0, but its two units are two nodes,
    which no relaxation links: on an interval around their kink it is bounded by about as much as the
    interval is wide, so that whoever does not split there proves nothing. All kinks meet at p, the only
    point that matters: every box that contains it must be split `depth` times in each input, or at all its
    units. b is such that Y(p) lies above t by the margin in the twin, below it by as much in the other.
    (With `rounding`, Y(p) = t in the twin, and who sums up in float32 from the output back gets less.)
    Uniform samples and gradients see nothing of the spike.
    """

    family: ClassVar[str] = "splits"
    summary: ClassVar[str] = "proofs that need many splits: is anything lost where a search looks last"
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the point and the threshold; only one bias differs between the two drafts."""
        point = _point(knobs, rng)
        threshold = Fraction(int(rng.integers(-32, 33)), 64)
        above = MARGIN
        if knobs.variant == "rounding":
            threshold, above = threshold + 6 + FINE + LAYERS * TINY, Fraction(0)
        question = unsafe_where([at_least(threshold)], *_boxes(knobs, point, rng))
        robust, violated = (_network(knobs, point, threshold - 1 + away) for away in (-MARGIN, above))
        proof = by_search(robust, question, most_steps=MOST_STEPS)
        return siblings(question, proof, robust, violated, point)


def _point(knobs: Knobs, rng: np.random.Generator) -> Point:
    """Coordinates that a halving meets at that depth and not before, as far as the variant lets it."""
    size, depth = 2, knobs.depth
    odd = 2 * rng.integers(2 ** (depth - 4), 2 ** (depth - 1) - 2 ** (depth - 4), size=size) + 1
    point = [
        Fraction(int(k * s), 2**depth) for k, s in zip(odd, rng.choice([-1, 1], size=size), strict=True)
    ]
    if knobs.variant in ("face", "rounding"):  # never the middle of a box that halving makes
        point[0] = Fraction(int(rng.choice([-3, -1, 1, 3])), 8)
    if knobs.variant == "gap":
        point[0] = Fraction(0)
    return tuple(point)


def _boxes(knobs: Knobs, point: Point, rng: np.random.Generator) -> list[Box]:
    """The whole box; for `disjunct` smaller and smaller ones, of which only the last contains the point."""
    size = len(point)
    if knobs.variant != "disjunct":
        ends = [NARROW if knobs.variant == "gap" and k == 0 else Fraction(1) for k in range(size)]
        return [Box(tuple(-end for end in ends), tuple(ends))]
    boxes = []
    for number in range(BOXES):
        half = Fraction(1, 2 ** (number + 1))
        is_last = number == BOXES - 1
        centre = [
            x + half * Fraction(int(rng.integers(1, 4)), 8)
            if is_last
            else Fraction(int(rng.integers(-32, 33)), 64)
            for x in point
        ]
        box = Box(
            tuple(max(x - half, Fraction(-1)) for x in centre),
            tuple(min(x + half, Fraction(1)) for x in centre),
        )
        if not is_last and all(a <= x <= b for a, x, b in zip(box.lower, point, box.upper, strict=True)):
            raise Unusable("a larger box contains the point, too")
        boxes.append(box)
    return boxes


def _network(knobs: Knobs, point: Point, bias: Fraction) -> bytes:
    """Spike and differences as layers of affine functions and ReLUs."""
    size = len(point)
    sharper = 2 if knobs.variant == "late" else 0
    steep = [Fraction(2 ** _bits(knobs, i)) for i in range(size)]
    identity = np.eye(size)
    rows = np.concatenate([identity, -identity, identity, identity])
    ends = [-sum(Fraction(float(w)) * x for w, x in zip(row, point, strict=True)) for row in rows]
    count = size
    kept = np.concatenate([np.zeros((2 * count, 2 * size)), np.eye(2 * count)], axis=1)
    spike = [-float(k) / 2**sharper for k in (*steep, *steep)] + [0.0] * (2 * count)
    model = ModelBuilder([size]).affine(rows, ends).relu()
    model = model.affine(np.vstack([spike, kept]), [Fraction(1), *[Fraction(0)] * (2 * count)]).relu()
    for _ in range(sharper):  # relu(2r − 1): the same at p, and 0 nearer to it
        twice = np.diag([2.0, *[1.0] * (2 * count)])
        model = model.affine(twice, [Fraction(-1), *[Fraction(0)] * (2 * count)]).relu()
    if knobs.variant == "rounding":
        for _ in range(LAYERS):
            model = model.affine(np.eye(1 + 2 * count), [TINY, *[Fraction(0)] * (2 * count)]).relu()
        bias -= LAYERS * TINY
    scale = float(MARGIN) * 2 ** (knobs.depth - 1)
    last = [1.0, *[scale] * count, *[-scale] * count]
    return model.affine([last], [bias]).build(1)


def _bits(knobs: Knobs, coordinate: int) -> int:
    """The binary logarithm of how steep the spike is in a coordinate."""
    if knobs.variant == "gap" and coordinate == 0:
        return 19
    return knobs.depth + (6 if knobs.variant == "disjunct" else -2)
