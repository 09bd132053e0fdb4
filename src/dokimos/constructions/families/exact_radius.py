"""Exact radius: random ReLU networks, and boxes almost as large as the nearest counterexample allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, log2
from typing import Any, ClassVar

import numpy as np

from dokimos.checker.lemmas.relu_layers import ReluLayer, bounded
from dokimos.constructions.base import Construction, Unusable, dyadic
from dokimos.constructions.draft import Draft, ball, first_class_loses, float32_above, float32_below, knob
from dokimos.engine.direct import by_cases
from dokimos.engine.layered_networks import forward, nearest_in_region, prove_positive
from dokimos.engine.outcome import NoProof
from dokimos.engine.relu_relaxation import Tree
from dokimos.networks.semantics.outward import Floats, Interval
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Point

WEIGHT_BITS = 6
POINT_BITS = 10
WITNESS_BITS = 24
#: The proven radius falls short of the witnessed one by this share.
GAP = 1e-8
#: The least violation of the twin, as a share of the largest output over samples.
LEAST_VIOLATION = 2e-3
#: By how much the twin's box is larger than its witness's radius.
OUTSET = Fraction(1, 256)
#: Samples of [0, 1]^n among which two classes are looked for.
SAMPLES = 256
CACHED = 64
#: What the published instances have at least: this share of unstable ReLUs, and so many pieces of the
#: margin, whose slopes differ by more than a share PIECE of the largest.
LEAST_UNSTABLE, LEAST_PIECES, PIECE = 1 / 3, 6, 1e-3


@dataclass(frozen=True)
class Knobs:
    """The knobs of exact radius."""

    inputs: int = knob(50, "how many inputs", least=2, most=200)
    width: int = knob(8, "how many ReLUs in each hidden layer", least=2, most=200)
    last_width: int = knob(
        0, "how many ReLUs in the last hidden layer; 0: as many as in the others", least=0, most=200
    )
    depth: int = knob(2, "how many hidden layers", least=1, most=6)
    classes: int = knob(3, "how many classes", least=2, most=20)
    distance: float = knob(
        0.3,
        "how far the centre lies from a boundary point; the radius is at most this",
        least=1e-3,
        most=1.0,
    )
    slack: float = knob(
        0.9,
        "the radius of the box, relative to the proven radius; 1 - 1e-7 is the edge",
        least=0.5,
        most=0.9999999,
    )
    budget: int = knob(1000, "the most linear programs to solve for one network", least=10, most=100_000)

    @property
    def hidden(self) -> list[int]:
        """How many ReLUs each hidden layer has."""
        return [*[self.width] * (self.depth - 1), self.last_width or self.width]


class ExactRadius(Construction[Knobs]):
    """A random ReLU network whose robustness radius around its centre is bracketed by proof and witness.

    The centre (the origin; the first biases hold it) lies `distance` from a boundary point. Branch and
    bound over unstable ReLUs with linear programs shrinks a counterexample until nothing smaller is
    left: the radius of the last counterexample is the witnessed end, and the tree that excludes all
    radii below (1 − 1e-8) of it the proven one. Both belong to the network, are found once and reused for
    every `slack`. The robust box has radius slack·proven; the twin has the same network and a box just
    large enough for a violation of 2e-3 of the largest output.

    Nearer to the boundary or with fewer inputs the network is almost linear over the box, and gradients
    lead to the counterexample; docs/families.md says which attacks find the default twins.

    The edge: with `slack` = 1 − 1e-7 the label is proven for the reals only.
    """

    family: ClassVar[str] = "exact-radius"
    summary: ClassVar[str] = "random ReLU networks; the box is a share of the proven robustness radius"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw a network and bracket its radius; only the box differs between the two drafts."""
        key = int(rng.integers(2**62))
        solved = _outcome(key, replace(knobs, slack=0.5))
        if isinstance(solved, str):
            raise Unusable(solved)
        radius = _short_below(knobs.slack * solved.proven, 1 - knobs.slack)
        origin = (Fraction(0),) * knobs.inputs
        reach = max(abs(x) for x in solved.witness)
        larger = float32_above(dyadic(reach * (1 + OUTSET), 20) + Fraction(1, 2**20))

        def question(size: Fraction) -> Any:
            return first_class_loses(ball(origin, size), knobs.classes)

        certificate = by_cases(solved.trees, [knobs.inputs, *knobs.hidden])
        return (
            Draft(solved.network, question(radius), certificate),
            Draft(solved.network, question(larger), Certificate("witness"), solved.witness),
        )


@dataclass(frozen=True)
class Solved:
    """A network, its bracketed radius, the trees that prove it and a point that violates clearly."""

    network: bytes
    proven: float
    witnessed: float
    trees: tuple[Tree, ...]
    witness: Point


@lru_cache(maxsize=CACHED)
def _outcome(key: int, knobs: Knobs) -> Solved | str:
    """What solving gives, or why it fails: either is found once for all slacks."""
    try:
        return _solve(key, knobs)
    except (Unusable, NoProof) as error:
        return str(error)


def _solve(key: int, knobs: Knobs) -> Solved:
    rng = np.random.default_rng(key)
    layers = _draw(knobs, rng)
    rows = [_margin_row(other, knobs.classes) for other in range(1, knobs.classes)]
    nearest = _first_counterexample(layers, rows, knobs.distance)
    left = knobs.budget
    while True:
        witnessed = float(np.abs(nearest).max())
        proven = witnessed * (1 - GAP)
        side = np.full(knobs.inputs, proven)
        over = bounded(layers, Interval(-side, side))
        trees = []
        for row in rows:
            found, programs = prove_positive(over, row, most_programs=left)
            left -= programs
            if not isinstance(found, Tree):
                nearest = _pulled_in(layers, row, found)
                break
            trees.append(found)
        else:
            break
    _require_bends(layers, rows, proven)
    witness = _clear_violation(layers, rows, nearest, rng)
    builder = ModelBuilder([knobs.inputs])
    for number, layer in enumerate(layers):
        builder = (builder.relu() if number else builder).affine(layer.weights, layer.biases)
    return Solved(builder.build(knobs.classes), proven, witnessed, tuple(trees), witness)


def _margin_row(other: int, classes: int) -> Floats:
    row = np.zeros(classes)
    row[0], row[other] = 1.0, -1.0
    return row


def _draw(knobs: Knobs, rng: np.random.Generator) -> tuple[ReluLayer, ...]:
    """Layers with weights on a grid, the origin moved to a point of class 0 near a boundary."""
    steps = 2**WEIGHT_BITS
    sizes = [knobs.inputs, *knobs.hidden, knobs.classes]
    layers = []
    for before, after in pairwise(sizes):
        weights = np.round(rng.standard_normal((after, before)) * np.sqrt(2 / before) * steps) / steps
        biases = np.round(rng.standard_normal(after) * 0.1 * steps) / steps
        layers.append(ReluLayer(weights, biases, np.zeros(after)))
    centre = _near_boundary(tuple(layers), knobs, rng)
    first, last = layers[0], layers[-1]
    layers[0] = replace(first, biases=first.biases + first.weights @ centre)
    outputs = forward(tuple(layers), np.zeros(knobs.inputs))[0]
    order = np.argsort(-outputs, kind="stable")
    # The same number is taken off all outputs, so that they are small where they are compared.
    level = np.round(outputs.mean() * steps) / steps
    layers[-1] = ReluLayer(last.weights[order], last.biases[order] - level, last.noise)
    return tuple(layers)


def _near_boundary(layers: tuple[ReluLayer, ...], knobs: Knobs, rng: np.random.Generator) -> Floats:
    """A point on the grid about `distance` away from where two classes are level."""
    samples = rng.uniform(size=(SAMPLES, knobs.inputs))
    classes = [int(np.argmax(forward(layers, x)[0])) for x in samples]
    other = next((i for i, c in enumerate(classes) if c != classes[0]), None)
    if other is None:
        raise Unusable("all samples have the same class")
    inside, outside = samples[0], samples[other]
    for _ in range(40):
        middle = (inside + outside) / 2
        if int(np.argmax(forward(layers, middle)[0])) == classes[0]:
            inside = middle
        else:
            outside = middle
    row = np.zeros(knobs.classes)
    row[classes[0]], row[int(np.argmax(forward(layers, outside)[0]))] = 1.0, -1.0
    away = inside + knobs.distance * np.sign(_slope(layers, row, inside))
    grid = 2**POINT_BITS
    centre: Floats = np.round(away * grid) / grid
    return centre


def _slope(layers: tuple[ReluLayer, ...], row: Floats, x: Floats) -> Floats:
    """The gradient of row·outputs."""
    slope = row @ layers[-1].weights
    for layer, e in zip(layers[-2::-1], forward(layers, x)[1][::-1], strict=True):
        slope = (slope * (e > 0)) @ layer.weights
    found: Floats = slope
    return found


def _first_counterexample(layers: tuple[ReluLayer, ...], rows: list[Floats], distance: float) -> Floats:
    """The best that signed gradient steps from the origin find, at growing radii."""
    for radius in distance * 1.1 ** np.arange(-10, 20):
        for row in rows:
            x = np.zeros(layers[0].weights.shape[1])
            for _ in range(10):
                x = -radius * np.sign(_slope(layers, row, x))
                if float(row @ forward(layers, x)[0]) <= 0:
                    return _pulled_in(layers, row, x)
    raise Unusable("there is no counterexample near the centre")


def _pulled_in(layers: tuple[ReluLayer, ...], row: Floats, x: Floats) -> Floats:
    """A counterexample at least as near as x, found by linear programs in one region after another."""
    best = x
    for _ in range(10):
        found = nearest_in_region(layers, row, best, 0.0)
        if found is None or np.abs(found).max() >= np.abs(best).max() * (1 - 1e-9):
            break
        # The optimum lies on the boundary of its region; a little beyond it may be another.
        step = 1 + 1e-9
        while float(row @ forward(layers, found * step)[0]) > 0 and step < 1 + 1e-4:
            step = 1 + (step - 1) * 10
        if step >= 1 + 1e-4 or np.abs(found * step).max() >= np.abs(best).max():
            break
        best = found * step
    return best


def _clear_violation(
    layers: tuple[ReluLayer, ...], rows: list[Floats], nearest: Floats, rng: np.random.Generator
) -> Point:
    """A point about as near as the nearest counterexample that violates clearly, on a float32 grid."""
    size = float(np.abs(nearest).max())
    samples = rng.uniform(-1.2 * size, 1.2 * size, size=(1000, len(nearest)))
    largest = max(float(np.abs(forward(layers, x)[0]).max()) for x in samples)
    level = -LEAST_VIOLATION * largest
    row = min(rows, key=lambda r: float(r @ forward(layers, nearest)[0]))
    found = nearest_in_region(layers, row, nearest * (1 + 1e-6), level * 1.01)
    candidates = [nearest] if found is None else [found]
    for growth in 1 + 0.02 * 1.3 ** np.arange(12):
        candidates.append(nearest * growth)
        candidates.append(-size * growth * np.sign(_slope(layers, row, nearest * growth)))
    for x in candidates:
        on_grid = np.round(x * 2.0**WITNESS_BITS) / 2.0**WITNESS_BITS
        if float(row @ forward(layers, on_grid)[0]) <= level:
            return tuple(Fraction(float(v)) for v in on_grid)
    raise Unusable("there is no clear violation near the nearest counterexample")


def _require_bends(layers: tuple[ReluLayer, ...], rows: list[Floats], proven: float) -> None:
    """Raises Unusable where the network is almost affine on the box of the proven radius."""
    side = np.full(layers[0].weights.shape[1], proven)
    low, high, crosses = -side, side, []
    for layer in layers[:-1]:
        middle, reach = (
            layer.weights @ (high + low) / 2 + layer.biases,
            abs(layer.weights) @ (high - low) / 2,
        )
        low, high = middle - reach, middle + reach
        crosses.append((low < 0) & (high > 0))
        low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    crossed = np.concatenate(crosses)
    if crossed.mean() < LEAST_UNSTABLE:
        raise Unusable(f"only {int(crossed.sum())} of {crossed.size} ReLUs are unstable")
    # A generator of its own: what is drawn later does not depend on how many samples there are.
    rng = np.random.default_rng(0)
    points = rng.uniform(-side, side, size=(SAMPLES, len(side)))
    points[SAMPLES // 2 :] = side * np.sign(points[SAMPLES // 2 :])
    slopes = np.array([_least_slope(layers, rows, x) for x in points])
    slopes /= np.abs(slopes).sum(axis=1).max()
    pieces = len(np.unique(np.round(slopes / PIECE), axis=0))
    if pieces < min(LEAST_PIECES, 1 + crossed.size // 2):
        raise Unusable(f"the margin has only {pieces} linear pieces that samples see")


def _least_slope(layers: tuple[ReluLayer, ...], rows: list[Floats], x: Floats) -> Floats:
    outputs = forward(layers, x)[0]
    return _slope(layers, min(rows, key=lambda row: float(row @ outputs)), x)


def _short_below(value: float, slack: float) -> Fraction:
    """A float32 number just below `value`, of as few bits as a loss of slack/64 allows."""
    bits = ceil(-log2(value)) + ceil(log2(64 / slack))
    return float32_below(Fraction(floor(Fraction(value) * 2**bits), 2**bits))
