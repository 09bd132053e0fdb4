"""Specs: one small network, and every legal way to write a property about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dokimos.constructions.base import Construction, Unusable, by_search
from dokimos.constructions.draft import Draft, choice
from dokimos.constructions.property_shapes import FAR, LOWER, SHAPES, UPPER, PropertyShape
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Point
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import exact_decimal

#: Weights are multiples of 1/8, the grid has multiples of 1/16: float32 computes these outputs exactly.
WEIGHT_STEPS = 8
GRID_STEPS = 16
#: How far the siblings' numbers lie from the largest level on the grid.
AWAY = Fraction(1, 8)
#: How far a witness moves from the edge to the middle, where that leaves it a witness.
INWARD = Fraction(1, 64)
MOST_STEPS = 20_000


@dataclass(frozen=True)
class Knobs:
    """The knobs of specs."""

    shape: str = choice("two-ors", "how the property is written", options=tuple(SHAPES))


class Specs(Construction[Knobs]):
    """Two inputs, six hinges, three outputs: Y_0 grows with both inputs, Y_2 falls with both.

    The siblings are one network and one text with another number t in it: 1/8 below and above the largest
    t for which a point of a grid is unsafe. What the text means is stated beside it, without the reader;
    the `unsat` sibling is proven by the engine's search. Nothing is hidden and nothing is hard: what is
    tested is whether a tool reads the property, and reads it correctly. A tool that refuses a shape is not
    wrong.
    """

    family: ClassVar[str] = "specs"
    summary: ClassVar[str] = (
        "one property in each legal way to write it: does a tool read it, and correctly"
    )
    hidden: ClassVar[bool] = False
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the network; only one number of the property differs between the two drafts."""
        shape = SHAPES[knobs.shape]
        network = _network(rng)
        highest, witness = _highest(shape, network)
        below = Fraction(0) if shape.touches else Fraction(FAR) if shape.is_wide else AWAY
        witness = _inside(shape, network, witness, highest - below)
        above = Fraction(FAR) if shape.is_wide else AWAY
        texts = [_written(shape, highest + above), _written(shape, highest - below)]
        robust, violated = (read_vnnlib(text.encode(), file=f"{shape.name}.vnnlib") for text in texts)
        proof = Certificate("no-inputs", {})
        if not shape.empties:
            proof = by_search(network, robust, most_steps=MOST_STEPS)
        return (
            Draft(network, robust, proof, text=texts[0]),
            Draft(network, violated, Certificate("witness"), witness, text=texts[1]),
        )


def _network(rng: np.random.Generator) -> bytes:
    """Hinges of both inputs, of their sum and of their difference, and three sums of them."""
    rows = [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [1, -1]]
    biases = [Fraction(0)] * 4 + [Fraction(-1, 4), Fraction(1, 8)]
    signs = np.array([[1, -1, 1, -1, 1, 0], [1, 1, -1, 1, 0, 1], [-1, 1, -1, 1, 0, 1]])
    drawn = rng.integers(WEIGHT_STEPS, 2 * WEIGHT_STEPS + 1, size=signs.shape) / WEIGHT_STEPS
    last = rng.integers(-4, 5, size=3) / WEIGHT_STEPS
    return ModelBuilder([2]).affine(rows, biases).relu().affine(signs * drawn, last).build(3)


def _highest(shape: PropertyShape, network: bytes) -> tuple[Fraction, Point]:
    """The largest level on the grid, and a point that has it."""
    sides = [
        [Fraction(k, GRID_STEPS) for k in range(int(low * GRID_STEPS), int(high * GRID_STEPS) + 1)]
        for low, high in zip(LOWER, UPPER, strict=True)
    ]
    points = [(a, b) for a in sides[0] for b in sides[1]]
    levels = _levels(shape, network, points)
    best = [(level, point) for level, point in zip(levels, points, strict=True) if level is not None]
    if not best:
        raise Unusable("no point of the grid is unsafe, whatever the number")
    return max(best, key=lambda each: each[0])


def _levels(shape: PropertyShape, network: bytes, points: Sequence[Point]) -> list[Fraction | None]:
    outputs = replay(network, np.array(points, dtype=np.float32)).tolist()
    return [
        shape.level(point, tuple(map(Fraction, row))) for point, row in zip(points, outputs, strict=True)
    ]


def _inside(shape: PropertyShape, network: bytes, point: Point, least: Fraction) -> Point:
    """The point a little nearer to the middle of the box, if its level is still above `least`."""
    nearer = tuple(x + INWARD * ((a + b) / 2 - x) for x, a, b in zip(point, LOWER, UPPER, strict=True))
    (level,) = _levels(shape, network, [nearer])
    return nearer if level is not None and level > least else point


def _written(shape: PropertyShape, t: Fraction) -> str:
    return "\n".join(shape.text(exact_decimal(-t if shape.turned else t))) + "\n"
