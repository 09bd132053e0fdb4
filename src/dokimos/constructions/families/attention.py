"""Softmax attention whose tokens attend to the same tokens in the whole box; linear with one key ahead.

A smooth network near its bound has no hidden counterexample of its own, so siblings carry hinges
g·(w·(x − x₀) − t)⁺ with ‖w‖₁ = 1, which vanish except near the corner x₀ + ε·sign(w). In the robust sibling
every hinge uses up at most a part of the spare margin; in the twin the bias of one hinge is higher, and it
outweighs the margin at a point just inside its corner. The siblings differ only in that bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.base import LowerBound
from dokimos.checker.proofs.attention import linear_bound, softmax_bound
from dokimos.constructions.base import Construction, dyadic
from dokimos.constructions.draft import (
    Draft,
    ball,
    dot,
    first_class_loses,
    float32_above,
    float32_below,
    inward,
    knob,
    random_point,
    siblings,
    split_evenly,
    towards,
    uniform_points,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Property

KEY_STEPS = 2**10
#: How far inside the box the twin's counterexample lies, as a share of the radius.
INSET = Fraction(1, 64)
#: Below this spare share of the bound, the twin's violation is as small as the margin: both are edge cases.
EDGE = Fraction(1, 10_000)
#: Elsewhere the violation is at least this share of the largest output seen.
VIOLATION = Fraction(1, 256)
OUTPUT_SAMPLES = 1000


def slack_knob() -> Any:
    """How far the margin at the centre lies above what the proof needs."""
    return knob(
        1.05,
        "margin at the centre, relative to the proven bound on its drift; below 1.0001 is the edge case",
        least=1.0000001,
        most=100.0,
    )


def hinges_knob() -> Any:
    """How many hinges there are; the twin raises one."""
    return knob(
        4, "how many hinges are added to the attention, each active near one corner", least=1, most=64
    )


def offset_knob() -> Any:
    """Where the needle begins."""
    return knob(
        0.8, "where the twin's needle begins, from the centre (0) to its corner (1)", least=0.05, most=0.95
    )


@dataclass(frozen=True)
class Hinges:
    """Hinge h is max(0, rows_h·x + biases_h) and enters class k with the factor head[k][h]."""

    rows: list[list[Fraction]]
    biases: list[Fraction]
    head: list[list[Fraction]]

    def append_to(self, builder: ModelBuilder) -> str | None:
        """The tensor with their values; None if there are none."""
        if not self.rows:
            return None
        return builder.resume("X").flatten().affine(self.rows, self.biases).relu().last


@dataclass(frozen=True)
class NeedleMaker:
    """Turns a network with an affine head into siblings.

    `build` makes the network from the biases of the classes (class 0 first) and the hinges; `bound` is
    the checker's lower bound for such a network, which proofs of the kind `proof` rest on. `knobs` has
    epsilon, classes, slack, hinges and offset.
    """

    build: Callable[[list[Fraction], Hinges], bytes]
    bound: Callable[[Network], LowerBound]
    proof: str
    centre: list[Fraction]
    knobs: Any

    @property
    def question(self) -> Property:
        """Class 0 loses somewhere in the box."""
        return first_class_loses(ball(self.centre, inward(self.knobs.epsilon)), self.knobs.classes)

    @property
    def slack(self) -> Fraction:
        """The margin at the centre, in drifts."""
        return Fraction(self.knobs.slack)

    def alone(self) -> Draft:
        """The network without hinges, where no twin is asked for."""
        none = Hinges([], [], [[] for _ in range(self.knobs.classes)])
        file = self.build(self._biases(self.question, none)[1], none)
        return Draft(file, self.question, Certificate(self.proof))

    def make(self, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Set the classes' biases for the slack, draw the hinges, and raise the first one in the twin."""
        question, epsilon, count = self.question, inward(self.knobs.epsilon), self.knobs.hinges
        offset = Fraction(self.knobs.offset)
        rows = [self._direction(rng) for _ in range(count)]
        none = self._hinges(rows, [epsilon] * count, [Fraction(0)] * count)
        drifts, biases = self._biases(question, none)
        upward = (1 if w > 0 else -1 for w in rows[0])
        corner = towards(self.centre, upward, epsilon * (1 - INSET))
        plain = self.build(biases, none)
        spare = [(self.slack - 1) * drift for drift in drifts]
        violation = spare[0]
        if self.slack - 1 >= EDGE:
            box = question.cases[0].box
            seen = abs(replay(plain, uniform_points(box, OUTPUT_SAMPLES, rng))).max()
            violation = max(violation, Fraction(float(seen)) * VIOLATION)
        outputs = evaluate(read_onnx(plain), corner)
        height = epsilon * (1 - INSET - offset)
        gain = float32_above((outputs.upper[0] - outputs.lower[1] + violation) / height)
        gains = [gain, *[gain * Fraction(int(rng.integers(8, 17)), 16) for _ in range(count - 1)]]
        gains = [float32_below(g) for g in gains]
        # Half of a class's spare margin is shared by the hinges that feed it.
        feeding = [count // len(spare) + (k < count % len(spare)) for k in range(len(spare))]
        levels = [
            epsilon - spare[h % len(spare)] / (2 * feeding[h % len(spare)] * gains[h]) for h in range(count)
        ]
        robust = self._hinges(rows, levels, gains)
        raised = [float32_above(self._bias(rows[0], offset * epsilon)), *robust.biases[1:]]
        files = self.build(biases, robust), self.build(biases, Hinges(rows, raised, robust.head))
        return siblings(question, Certificate(self.proof), *files, corner)

    def _biases(self, question: Property, none: Hinges) -> tuple[list[Fraction], list[Fraction]]:
        """The proven drift of each competitor's margin, and biases that leave slack·drift at the centre."""
        network = read_onnx(self.build([Fraction(0)] * self.knobs.classes, none))
        bound = self.bound(network)
        box = question.cases[0].box
        outputs = evaluate(network, box.centre)
        drifts, biases = [], [Fraction(0)]
        for other, conjunction in enumerate(question.cases[0].any_of, start=1):
            middle = outputs.lower[0] - outputs.upper[other]
            drifts.append(middle - bound(conjunction[0], box))
            biases.append(float32_below(middle - self.slack * drifts[-1]))
        return drifts, biases

    def _direction(self, rng: np.random.Generator) -> list[Fraction]:
        size = len(self.centre)
        weights = rng.choice([-1.0, 1.0], size=size) * rng.uniform(0.5, 1.0, size=size)
        return [Fraction(k, KEY_STEPS) for k in split_evenly(KEY_STEPS, weights)]

    def _bias(self, row: list[Fraction], level: Fraction) -> Fraction:
        return -level - dot(row, self.centre)

    def _hinges(self, rows: list[list[Fraction]], levels: list[Fraction], gains: list[Fraction]) -> Hinges:
        """Hinges that begin at these levels of w·(x − x₀), or later; they feed the competitors in turn."""
        head = [[Fraction(0)] * len(rows) for _ in range(self.knobs.classes)]
        for h, gain in enumerate(gains):
            head[1 + h % (self.knobs.classes - 1)][h] = gain
        biases = [float32_below(self._bias(row, level)) for row, level in zip(rows, levels, strict=True)]
        return Hinges(rows, biases, head)


WEIGHT_BITS = 6
FACTOR_BITS = 12
#: The projections of queries and keys differ from a signed permutation by at most this many steps.
PROJECTION_NOISE = 2
#: Of this many candidates, the token farthest from those chosen before is taken.
CANDIDATES = 32
Matrix = list[list[Fraction]]


@dataclass(frozen=True)
class SoftmaxKnobs:
    """The knobs of softmax attention."""

    tokens: int = knob(8, "how many tokens", least=2, most=64)
    width: int = knob(8, "how many inputs a token has", least=2, most=64)
    value_width: int = knob(4, "how many values a token has", least=1, most=64)
    alpha: float = knob(5.0, "scale of the scores; they are divided by √width", least=0.01, most=100.0)
    epsilon: float = knob(0.01, "radius of the box", least=0.0005, most=1.0)
    slack: float = slack_knob()
    classes: int = knob(5, "how many classes", least=2, most=100)
    hinges: int = hinges_knob()
    offset: float = offset_knob()


class SoftmaxAttention(Construction[SoftmaxKnobs]):
    """One head of attention, softmax(α/√d·Q·Kᵀ)·V, an affine head, and hinges beside it.

    Tokens have entries ±¼ and ±½, equally many of each, so all are equally long and every token attends
    most to itself; W_Q and W_K are one signed permutation, each with its own small noise. The bias of
    class k puts the margin at the centre at slack times its proven drift over the box. In the twin the
    bias of one hinge is higher. The `edge` setting is slack = 1.000001.
    """

    family: ClassVar[str] = "softmax-attention"
    summary: ClassVar[str] = (
        "softmax attention with a fixed order of scores; a proof must bound how it drifts"
    )
    knobs_class = SoftmaxKnobs

    def construct(self, knobs: SoftmaxKnobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw tokens and weights; only the bias of one hinge differs between the two drafts."""
        return self._drawn(knobs, rng).make(rng)

    def alone(self, knobs: SoftmaxKnobs, rng: np.random.Generator) -> Draft:
        """The attention and its head, without hinges."""
        return self._drawn(knobs, rng).alone()

    def _drawn(self, knobs: SoftmaxKnobs, rng: np.random.Generator) -> NeedleMaker:
        weights = _SoftmaxWeights.draw(knobs, rng)
        centre = [x for token in _tokens(knobs, rng) for x in token]
        return NeedleMaker(weights.build, softmax_bound, "softmax-attention", centre, knobs)


def _tokens(knobs: SoftmaxKnobs, rng: np.random.Generator) -> Matrix:
    """Distinct tokens of equal length, kept apart."""
    half = knobs.width // 2
    if knobs.tokens > 2**knobs.width * comb(knobs.width, half) // 2:
        raise ConstructionFailed(
            f"{SoftmaxAttention.family}: there are too few tokens of width {knobs.width} that attend to "
            f"themselves for tokens = {knobs.tokens}; raise width or lower tokens."
        )
    sizes = np.array([0.25] * half + [0.5] * (knobs.width - half))
    chosen: list[np.ndarray] = []
    for _ in range(knobs.tokens):
        candidates = [
            rng.permutation(sizes) * rng.choice([-1.0, 1.0], size=knobs.width) for _ in range(CANDIDATES)
        ]
        distances = [min((float(((c - t) ** 2).sum()) for t in chosen), default=1.0) for c in candidates]
        chosen.append(candidates[int(np.argmax(distances))])
    return [[Fraction(float(x)) for x in token] for token in chosen]


def _steps(rng: np.random.Generator, shape: tuple[int, int], reach: int) -> Matrix:
    """Random multiples of 2^-WEIGHT_BITS with at most `reach` steps."""
    drawn = rng.integers(-reach, reach + 1, size=shape)
    return [[Fraction(int(k), 2**WEIGHT_BITS) for k in row] for row in drawn]


@dataclass(frozen=True)
class _SoftmaxWeights:
    """The constants of the network but for the biases of the classes and the hinges."""

    tokens: int
    queries: Matrix
    keys: Matrix
    values: Matrix
    factor: Fraction
    head: Matrix

    @classmethod
    def draw(cls, knobs: SoftmaxKnobs, rng: np.random.Generator) -> _SoftmaxWeights:
        width, steps = knobs.width, 2**WEIGHT_BITS
        places, signs = rng.permutation(width), rng.choice([-1, 1], size=width)

        def near_permutation() -> Matrix:
            rows = _steps(rng, (width, width), PROJECTION_NOISE)
            for i, (place, sign) in enumerate(zip(places, signs, strict=True)):
                rows[i][place] += int(sign)
            return rows

        return cls(
            tokens=knobs.tokens,
            queries=near_permutation(),
            keys=near_permutation(),
            values=_steps(rng, (width, knobs.value_width), max(1, round(steps / sqrt(width)))),
            factor=dyadic(knobs.alpha / sqrt(width), FACTOR_BITS),
            head=_steps(rng, (knobs.classes, knobs.tokens * knobs.value_width), steps),
        )

    def build(self, biases: list[Fraction], hinges: Hinges) -> bytes:
        builder = ModelBuilder([self.tokens, len(self.queries)])
        keys = builder.times_matrix(self.keys).transpose().last
        values = builder.resume("X").times_matrix(self.values).last
        hinge_values = hinges.append_to(builder)
        builder.resume("X").times_matrix(self.queries).times(keys).scaled(self.factor).softmax()
        head = [[*row, *extra] for row, extra in zip(self.head, hinges.head, strict=True)]
        builder.times(values).flatten()
        if hinge_values:
            builder.beside(hinge_values)
        return builder.affine(head, biases).build(len(biases))


# Linear attention, normalised by its row sums, in which one key outweighs all others


WEIGHT_STEPS = 2**8
FEATURE_BITS = 12
HEAD_STEPS = 2**6
#: The ℓ1 norm of a feature's weights: how much of the radius it may move by.
FEATURE_NORM = Fraction(1, 8)


@dataclass(frozen=True)
class LinearKnobs:
    """The knobs of linear attention."""

    tokens: int = knob(6, "how many tokens, and gated features", least=2, most=32)
    width: int = knob(6, "how many inputs a token has", least=2, most=64)
    value_width: int = knob(4, "how many values a token has", least=1, most=64)
    unstable: int = knob(4, "further features, whose ReLUs change sign in the box", least=0, most=64)
    gate: float = knob(
        1.0, "the value of the feature by which a query finds its dominant key", least=0.01, most=10.0
    )
    noise: float = knob(
        0.1, "the largest value of the other features; above epsilon/2", least=0.001, most=10.0
    )
    spread: float = knob(1.0, "how far the values of tokens lie apart", least=0.001, most=100.0)
    epsilon: float = knob(0.02, "radius of the box", least=0.0005, most=1.0)
    slack: float = slack_knob()
    classes: int = knob(5, "how many classes", least=2, most=100)
    hinges: int = hinges_knob()
    offset: float = offset_knob()


class LinearAttention(Construction[LinearKnobs]):
    """Weights φ(q_i)·φ(k_j) over their row sums, φ the ReLU, an affine head, and hinges.

    Every feature is an affine function of its token, with weights of ℓ1 norm ⅛ and a bias of its own for
    every position. At the centre, query i and key π(i) have the gate in feature i and all other features
    lie between noise/2 and noise, so the key π(i) dominates and every weight is positive on the whole
    box. The bias of class k puts the margin at the centre at slack times its proven drift over the box.
    In the twin the bias of one hinge is higher. The `edge` setting is slack = 1.000001.
    """

    family: ClassVar[str] = "linear-attention"
    summary: ClassVar[str] = (
        "normalised linear attention with a dominant key; a proof must see that it dominates"
    )
    knobs_class = LinearKnobs

    def construct(self, knobs: LinearKnobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw tokens and weights; only the bias of one hinge differs between the two drafts."""
        return self._drawn(knobs, rng).make(rng)

    def alone(self, knobs: LinearKnobs, rng: np.random.Generator) -> Draft:
        """The attention and its head, without hinges."""
        return self._drawn(knobs, rng).alone()

    def _drawn(self, knobs: LinearKnobs, rng: np.random.Generator) -> NeedleMaker:
        if knobs.noise <= 4 * FEATURE_NORM * knobs.epsilon:
            raise ConstructionFailed(
                f"{self.family}: with noise = {knobs.noise:g} and epsilon = {knobs.epsilon:g} weights may "
                f"vanish in the box; noise must be above {float(4 * FEATURE_NORM):g}·epsilon."
            )
        centre = random_point(knobs.tokens * knobs.width, rng)
        weights = _LinearWeights.draw(knobs, centre, rng)
        return NeedleMaker(weights.build, linear_bound, "linear-attention", centre, knobs)


@dataclass(frozen=True)
class _Affine:
    """x_i ↦ x_i·weight + biases_i."""

    weight: Matrix
    biases: Matrix

    @classmethod
    def through(
        cls, targets: Matrix, centre: list[Fraction], norm: Fraction, rng: np.random.Generator
    ) -> _Affine:
        """Random weights whose columns have this ℓ1 norm, and biases that give `targets` at the centre."""
        width, count = len(centre) // len(targets), len(targets[0])
        columns = [split_evenly(WEIGHT_STEPS, rng.standard_normal(width)) for _ in range(count)]
        weight = [[norm * Fraction(column[d], WEIGHT_STEPS) for column in columns] for d in range(width)]
        biases = [
            [
                target - sum((centre[i * width + d] * weight[d][f] for d in range(width)), Fraction(0))
                for f, target in enumerate(row)
            ]
            for i, row in enumerate(targets)
        ]
        return cls(weight, biases)

    def append_to(self, builder: ModelBuilder) -> ModelBuilder:
        return builder.resume("X").times_matrix(self.weight).plus([self.biases])


@dataclass(frozen=True)
class _LinearWeights:
    """The constants of the network but for the biases of the classes and the hinges."""

    shape: tuple[int, int]
    queries: _Affine
    keys: _Affine
    values: _Affine
    head: Matrix

    @classmethod
    def draw(cls, knobs: LinearKnobs, centre: list[Fraction], rng: np.random.Generator) -> _LinearWeights:
        n = knobs.tokens
        values = knobs.spread * rng.uniform(-1.0, 1.0, size=(n, knobs.value_width))
        head = rng.integers(-HEAD_STEPS, HEAD_STEPS + 1, size=(knobs.classes, n * knobs.value_width))
        return cls(
            shape=(n, knobs.width),
            queries=_Affine.through(_features(knobs, np.arange(n), rng), centre, FEATURE_NORM, rng),
            keys=_Affine.through(_features(knobs, rng.permutation(n), rng), centre, FEATURE_NORM, rng),
            values=_Affine.through(_grid(values), centre, Fraction(1), rng),
            head=[[Fraction(int(k), HEAD_STEPS) for k in row] for row in head],
        )

    def build(self, biases: list[Fraction], hinges: Hinges) -> bytes:
        builder = ModelBuilder(self.shape)
        keys = self.keys.append_to(builder).relu().transpose().last
        values = self.values.append_to(builder).last
        hinge_values = hinges.append_to(builder)
        weights = self.queries.append_to(builder).relu().times(keys).last
        sums = builder.row_sums().last
        head = [[*row, *extra] for row, extra in zip(self.head, hinges.head, strict=True)]
        builder.resume(weights).divided_by(sums).times(values).flatten()
        if hinge_values:
            builder.beside(hinge_values)
        return builder.affine(head, biases).build(len(biases))


def _features(knobs: LinearKnobs, gated: NDArray[np.int64], rng: np.random.Generator) -> Matrix:
    """The features of all tokens at the centre; token i has the gate in feature gated[i]."""
    noisy = knobs.noise * rng.uniform(0.5, 1.0, size=(knobs.tokens, knobs.tokens))
    noisy[np.arange(knobs.tokens), gated] += knobs.gate
    loose = (
        knobs.epsilon * float(FEATURE_NORM) * rng.uniform(-0.5, 0.5, size=(knobs.tokens, knobs.unstable))
    )
    return _grid(np.hstack([noisy, loose]))


def _grid(values: NDArray[np.float64]) -> Matrix:
    return [[dyadic(float(v), FEATURE_BITS) for v in row] for row in values]
