"""Ops: each operator that verifiers know, in its own network, plain and hidden from attacks.

Relaxations: an operator less a line, behind a gate: is a tool's bound on it right?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction, Unusable, by_search, dyadic
from dokimos.constructions.draft import (
    BOUND_BITS,
    Draft,
    at_least,
    ball,
    choice,
    knob,
    siblings,
    unsafe_where,
)
from dokimos.constructions.operators import QUANTISED, VARIANTS, Variant
from dokimos.constructions.operators.extremes import EXTREMES, Extreme
from dokimos.constructions.operators.sketch import Gate, Sketch, behind_gate, draw_gate
from dokimos.engine.direct import by_intervals, cut_in_halves
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.model import Box, Linear, Point, Property

Floats = NDArray[np.float64]

CENTRE_BITS = 6
WEIGHT_BITS = 8
#: Where the witness lies, from the centre (0) to the corner (1).
REACH = Fraction(15, 16)
MOST_CORNERS = 4096
SAMPLES = 2000
MOST_PIECES = 2000
#: The share of the distance to the threshold that the proof must show.
CERTAINLY = Fraction(1, 2)
#: What is misread must miss a label by half as much again as it holds by.
CLEARLY = 1.5


@dataclass(frozen=True)
class Knobs:
    """The knobs of ops."""

    variant: str = choice("conv-dilated", "which operator, in which form", options=tuple(VARIANTS))
    margin: float = knob(
        0.125, "how far the output stays from its threshold, as a share of its range", least=0.05, most=0.25
    )


class Ops(Construction[Knobs]):
    """Y = ±(p·max(0, z − c) − q·max(0, c − z)) + b with z = a·op(X), a > 0; unsafe is Y >= t.

    Y grows with z (or falls, with the other sign), so its range on the box is that of z. In one draft its
    upper end lies below t, by `margin` times its length. In the twin the upper end lies above t by as much:
    the same range is moved up, or is reversed by the other sign. Sign and twin are chosen so that every
    misreading of the operator gets at least one of the two labels wrong, and as many as possible get both;
    draws for which this is impossible are discarded.

    Nothing is hidden and nothing is hard: what is tested is whether a tool reads the operator, and reads it
    correctly.
    """

    family: ClassVar[str] = "ops"
    summary: ClassVar[str] = "one operator in one form: does a tool read it, and correctly"
    hidden: ClassVar[bool] = False
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw centre and weights; only the last layer differs between the two drafts."""
        variant = VARIANTS[knobs.variant]
        plan = draw_plan(variant, knobs.margin, rng)
        question = question_of(plan)
        robust, violated = (plan.network(sign, Fraction(b)) for sign, b in plan.outputs)
        proof = by_intervals(cuts(robust, question, plan.drawn.away * CERTAINLY))
        return siblings(question, proof, robust, violated, plan.witness)


@dataclass(frozen=True, eq=False)
class DrawnRange:
    """What was drawn before the last layer is chosen.

    `values` are those of the hinged sum at some points of the box, `seen` the same in each misreading.
    """

    variant: Variant
    seed: int
    box: Box
    points: NDArray[np.float32]
    weights: Floats
    middle: float
    slopes: tuple[float, ...]
    values: Floats
    seen: tuple[Floats, ...]
    away: Fraction

    def plan(self, threshold: Fraction, sign: int, *, turned: bool) -> OperatorPlan:
        """The plan with this sign of the robust draft, and the other one in the twin if `turned`."""
        signed = sign * self.values
        ends = (dyadic(float(end), BOUND_BITS) for end in (signed.min(), signed.max()))
        lower, upper = (threshold - end for end in ends)
        twin = (-sign, 2 * threshold - lower + self.away) if turned else (sign, upper + self.away)
        best = self.points[int(np.argmin(signed) if turned else np.argmax(signed))]
        return OperatorPlan(self, threshold, ((sign, upper - self.away), twin), _inward(best, self.box))


@dataclass(frozen=True)
class OperatorPlan:
    """What was drawn, with the last layer of both drafts: sign and bias.

    With a `gate`, the first output counts only near the gate's hidden point.
    """

    drawn: DrawnRange
    threshold: Fraction
    outputs: tuple[tuple[int, Fraction], tuple[int, Fraction]]
    witness: Point
    gate: Gate | None = None

    def network(self, sign: int, bias: Fraction, *, misread: int = 0) -> bytes:
        """The network with this sign and bias at its end, as it is (0) or in a misreading (1, 2, …)."""
        drawn, variant = self.drawn, self.drawn.variant
        sketch = variant.sketch(drawn.seed)
        if self.gate is not None:
            sketch = self.gate.sketch(variant.shape, seed=drawn.seed, opset=variant.opset)
        features = variant.wire(sketch, misread)
        both = sketch.weight(np.vstack([drawn.weights, -drawn.weights]))
        hinges = sketch("Gemm", features, both, sketch.weight([-drawn.middle, drawn.middle]), transB=1)
        rows = np.array([[sign * drawn.slopes[0], -sign * drawn.slopes[1]]])
        biases = np.array([float(bias)])
        if variant.classes:
            rows = np.vstack([rows / 2, -rows / 2, 0 * rows])
            biases = np.array([float(bias), float(self.threshold), float(self.threshold) - 64.0])
        last = sketch("Gemm", sketch("Relu", hinges), sketch.weight(rows), sketch.weight(biases), transB=1)
        if self.gate is not None:
            last = self.gate.attached(sketch, last, len(biases))
        return sketch.build(last, len(biases))


def draw_plan(variant: Variant, margin: float, rng: np.random.Generator) -> OperatorPlan:
    """Draw everything; raises Unusable if some misreading of the operator would change no label."""
    drawn = draw_range(variant, margin, rng)
    sign, turned = _telling_arrangement(drawn.values, drawn.seen, CLEARLY * float(drawn.away))
    return drawn.plan(draw_threshold(rng), sign, turned=turned)


def draw_threshold(rng: np.random.Generator) -> Fraction:
    """What the output is compared with."""
    return Fraction(int(rng.integers(-64, 65)), 2**CENTRE_BITS)


def draw_range(variant: Variant, margin: float, rng: np.random.Generator) -> DrawnRange:
    """Draw everything but threshold and sign; raises Unusable if the operator is constant."""
    seed = int(rng.integers(2**31))
    box = _box(variant, rng)
    points = corners(box, rng)
    features = _features(variant, seed, points)
    weights = np.asarray(rng.integers(64, 385, size=features.shape[1]) / 2**WEIGHT_BITS)
    if variant.counted is not None:
        weights[np.setdiff1d(np.arange(len(weights)), variant.counted)] = 0.0
    slopes = tuple(float(s) for s in rng.integers(2, 9, size=2) / 4)
    z = features @ weights
    middle = float(dyadic((z.min() + z.max()) / 2, WEIGHT_BITS))
    values = _hinged(z, middle, slopes)
    length = float(values.max() - values.min())
    away = dyadic(margin * length, BOUND_BITS)
    if away <= 0:
        raise Unusable("the operator is constant on the whole box")
    seen = [
        _hinged(_features(variant, seed, points, misread=number) @ weights, middle, slopes)
        for number in range(1, len(variant.misreadings) + 1)
    ]
    return DrawnRange(variant, seed, box, points, weights, middle, slopes, values, tuple(seen), away)


def _telling_arrangement(values: Floats, seen: Sequence[Floats], clearly: float) -> tuple[int, bool]:
    """The sign of the robust draft, and whether the twin has the other one.

    With sign s a misreading that moves the upper end of s·values up by `clearly` gets the robust draft
    wrong. It gets the twin with the other sign wrong if it moves the lower end up, and the one with the
    same sign if it moves the upper end down. Raises Unusable if every choice has a misreading that gets
    neither wrong.
    """
    best, most = None, -1
    for turned, sign in product((True, False), (1, -1)):
        ends = sorted([sign * values.min(), sign * values.max()])
        wrong = []
        for other in seen:
            least, highest = sorted([sign * other.min(), sign * other.max()])
            twin = least - ends[0] if turned else ends[1] - highest
            wrong.append(int(highest - ends[1] >= clearly) + int(twin >= clearly))
        if all(wrong) and sum(wrong) > most:
            best, most = (sign, turned), sum(wrong)
    if best is None:
        raise Unusable("some misreading of the operator would not change a label")
    return best


def _box(variant: Variant, rng: np.random.Generator) -> Box:
    size = int(np.prod(variant.shape))
    low, high = (round(end * 2**CENTRE_BITS) for end in variant.centres)
    centre = [Fraction(int(k), 2**CENTRE_BITS) for k in rng.integers(low, high + 1, size=size)]
    return ball(centre, dyadic(variant.radius, BOUND_BITS))


def corners(box: Box, rng: np.random.Generator) -> NDArray[np.float32]:
    """Corners of the box (all of them if they are few), followed by points inside."""
    lower, upper = (np.array([float(x) for x in end]) for end in (box.lower, box.upper))
    if 2**box.size <= MOST_CORNERS:
        sides = np.array(list(product((False, True), repeat=box.size)))
    else:
        sides = rng.random((MOST_CORNERS, box.size)) < 0.5
    inside = rng.uniform(lower, upper, size=(SAMPLES, box.size))
    grid = np.round(inside * 2**BOUND_BITS) / 2**BOUND_BITS
    points: NDArray[np.float32] = np.vstack([np.where(sides, upper, lower), grid]).astype(np.float32)
    return points


def _features(variant: Variant, seed: int, points: NDArray[np.float32], *, misread: int = 0) -> Floats:
    sketch = variant.sketch(seed)
    return replay(sketch.build(variant.wire(sketch, misread)), points).astype(np.float64)


def _hinged(z: Floats, middle: float, slopes: tuple[float, ...]) -> Floats:
    return np.where(z >= middle, slopes[0], slopes[1]) * (z - middle)


def _inward(point: NDArray[np.float32], box: Box) -> Point:
    """The point moved a little to the centre, on the grid."""
    return tuple(
        dyadic(middle + REACH * (Fraction(float(x)) - middle), BOUND_BITS)
        for x, middle in zip(point, box.centre, strict=True)
    )


def question_of(plan: OperatorPlan) -> Property:
    """Unsafe: Y_0 >= t; with classes, Y_0 is the largest of three."""
    if not plan.drawn.variant.classes:
        return unsafe_where([at_least(plan.threshold)], plan.drawn.box)
    largest = tuple(Linear((), ((0, Fraction(-1)), (k, Fraction(1))), Fraction(0)) for k in (2, 1))
    return unsafe_where([largest], plan.drawn.box, outputs=3)


def cuts(network: bytes, question: Property, margin: Fraction) -> list[int]:
    """A tree of halvings with which intervals prove the question `unsat` with that margin."""
    (case,) = question.cases
    (conjunction,) = case.any_of
    tree = cut_in_halves(read_onnx(network), case.box, conjunction, margin, most=MOST_PIECES)
    if tree is None:
        raise Unusable("intervals need too many pieces")
    return tree


# Wrapped ops: the same behind a gate, so that a tool's attack does not hide its bounds


#: Of so many draws the one is taken in which most misreadings would change the twin's label.
DRAWS = 6


@dataclass(frozen=True)
class WrappedKnobs:
    """The knobs of wrapped ops."""

    variant: str = choice("conv-dilated", "which operator, in which form", options=tuple(VARIANTS))
    end: str = choice(
        "upper", "which end of the operator's range is asked about", options=("upper", "lower")
    )
    margin: float = knob(
        0.125, "how far the output stays from its threshold, as a share of its range", least=0.05, most=0.25
    )


class WrappedOps(Construction[WrappedKnobs]):
    """Y' = Y − h·q(x) with Y as in `ops` and q as in `Gate`; unsafe is Y' >= t.

    The upper end of the range of Y lies below t by the margin in one draft, and above t by as much in the
    twin, which has another last bias. Since Y' <= Y, what proves Y < t proves Y' < t. The twin's only
    unsafe inputs have x near the gate's hidden point, where the tool's attack does not come by itself: so
    the answer is what its bounds on the operator say. A misreading that lowers the upper end of Y by more
    than the margin is wrong there. Each end of the range is the upper one with one of the two signs
    (`end`).
    """

    family: ClassVar[str] = "wrapped-ops"
    summary: ClassVar[str] = (
        "one operator in one form, hidden from attacks: are a tool's bounds on it right"
    )
    mixes: ClassVar[bool] = False
    knobs_class = WrappedKnobs
    variants: ClassVar[Mapping[str, Variant]] = VARIANTS

    def construct(self, knobs: WrappedKnobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw centre and weights; only the last bias differs between the two drafts."""
        variant, sign = self.variants[knobs.variant], 1 if knobs.end == "upper" else -1
        draws = [draw_range(variant, knobs.margin, rng) for _ in range(DRAWS if variant.misreadings else 1)]
        plain = max(draws, key=lambda each: caught(each, sign)).plan(
            draw_threshold(rng), sign, turned=False
        )
        gate = draw_gate(rng, plain.drawn.away)
        (_, low), (_, high) = plain.outputs
        asked = question_of(plain)
        tree = cuts(plain.network(sign, low), asked, plain.drawn.away * CERTAINLY)
        gated = replace(plain, gate=gate)
        ways, outputs = asked.cases[0].any_of, asked.output_size
        question = unsafe_where(ways, gate.box(plain.drawn.box), outputs=outputs)
        robust, violated = (gated.network(sign, bias) for bias in (low, high))
        proof = by_intervals(behind_gate(tree))
        return siblings(question, proof, robust, violated, gate.witness(plain.witness))


@dataclass(frozen=True)
class QuantisedKnobs(WrappedKnobs):
    """The knobs of quantised operators."""

    variant: str = choice("qlinear-matmul", "which operator, in which form", options=tuple(QUANTISED))


class Quantised(WrappedOps):
    """As `wrapped-ops`, with operators on integers: they round halves to the even number and saturate.

    A tool that takes QuantizeLinear for a product, a zero point for 0, or a pair of QuantizeLinear and
    DequantizeLinear for nothing has another range, and answers wrongly at one of its ends.
    """

    family: ClassVar[str] = "quantised"
    summary: ClassVar[str] = (
        "one quantised operator, hidden: is its rounding, saturation, zero point read right"
    )
    knobs_class = QuantisedKnobs
    variants = QUANTISED


def caught(drawn: DrawnRange, sign: int) -> int:
    """How many misreadings lower the upper end of ±values clearly."""
    highest = (sign * drawn.values).max()
    return sum(bool(highest - (sign * each).max() >= CLEARLY * float(drawn.away)) for each in drawn.seen)


#: The ends of the box are moved by up to this many sixty-fourths, so that no two draws are the same.
JITTER = 8
#: Points around the best one so far, in each of several rounds, each in a quarter of the space of the last.
NEARBY, ROUNDS = 400, 4
MOST_STEPS = 20_000


@dataclass(frozen=True)
class RelaxationKnobs:
    """The knobs of relaxations."""

    variant: str = choice("tanh-tilted", "which function", options=tuple(EXTREMES))
    end: str = choice("upper", "which end of its range is asked about", options=("upper", "lower"))
    margin: float = knob(
        0.05, "how far the output stays from its threshold, as a share of its range", least=0.01, most=0.2
    )


class Relaxations(Construction[RelaxationKnobs]):
    """Y = ±g(z) − h·q(x) + b with q as in `Gate`; unsafe is Y >= t, where t is the largest ±g known.

    b is −m in one draft and +m in the twin: with h = 4m the twin is unsafe only near the gate's hidden
    point and the place of the extreme, which gradient search does not find. q is never below 0, by
    intervals alone, so that the verdict rests on the bound on g. The `unsat` draft is proven by the
    engine's search.
    """

    family: ClassVar[str] = "relaxations"
    summary: ClassVar[str] = "an operator less a line, hidden from attacks: is a tool's bound on it right"
    mixes: ClassVar[bool] = False
    knobs_class = RelaxationKnobs

    def construct(self, knobs: RelaxationKnobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw box and gate; only one bias differs between the two drafts."""
        extreme, sign = EXTREMES[knobs.variant], 1 if knobs.end == "upper" else -1
        inner = _extreme_box(extreme, rng)
        best, (least, most) = _highest(extreme, sign, inner, rng)
        margin = dyadic(knobs.margin * (most - least), BOUND_BITS)
        if margin <= 0:
            raise Unusable("the function is constant on the box")
        gate, threshold = draw_gate(rng, margin), dyadic(most, BOUND_BITS)
        question = unsafe_where([at_least(threshold)], gate.box(inner))
        robust, violated = (_network(extreme, sign, gate, bias) for bias in (-margin, margin))
        proof = by_search(robust, question, most_steps=MOST_STEPS)
        return siblings(question, proof, robust, violated, gate.witness(best))


def _extreme_box(extreme: Extreme, rng: np.random.Generator) -> Box:
    """The box of the function, each end moved inward a little."""
    size = int(np.prod(extreme.shape))
    moved = rng.integers(0, JITTER + 1, size=(2, size))
    lower = tuple(Fraction(extreme.lower) + Fraction(int(k), 64) for k in moved[0])
    return Box(lower, tuple(Fraction(extreme.upper) - Fraction(int(k), 64) for k in moved[1]))


def _signed(extreme: Extreme, sign: int, sketch: Sketch) -> str:
    found = extreme.wire(sketch)
    return found if sign > 0 else sketch("Neg", found)


def _network(extreme: Extreme, sign: int, gate: Gate, bias: Fraction) -> bytes:
    sketch = gate.sketch(extreme.shape, seed=0, opset=extreme.opset)
    return sketch.build(gate.attached(sketch, _signed(extreme, sign, sketch), 1, bias), 1)


def _highest(
    extreme: Extreme, sign: int, box: Box, rng: np.random.Generator
) -> tuple[Point, tuple[float, float]]:
    """The highest point that sampling finds, and the least and the largest value."""
    sketch = Sketch(extreme.shape, seed=0, opset=extreme.opset)
    network = sketch.build(_signed(extreme, sign, sketch), 1)
    ends = [np.array([float(x) for x in end]) for end in (box.lower, box.upper)]

    def values(points: NDArray[np.float32]) -> NDArray[np.float64]:
        return replay(network, points)[:, 0].astype(np.float64)

    points = corners(box, rng)
    seen = values(points)
    best, highest = points[int(seen.argmax())], float(seen.max())
    reach = (ends[1] - ends[0]) / 4
    for _ in range(ROUNDS):
        moved = best + rng.uniform(-reach, reach, size=(NEARBY, len(reach)))
        grid = np.round(np.clip(moved, *ends) * 2**BOUND_BITS) / 2**BOUND_BITS
        points = grid.astype(np.float32)
        found = values(points)
        if found.max() > highest:
            best, highest = points[int(found.argmax())], float(found.max())
        reach = reach / 4
    return tuple(Fraction(float(x)) for x in best), (float(seen.min()), highest)
