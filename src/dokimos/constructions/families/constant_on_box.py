"""Constant on a box: hinges that stay off map the whole box to one point before a deep network sees it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction, Unusable, dyadic
from dokimos.constructions.draft import (
    Draft,
    ball,
    ceil_div,
    dot,
    first_class_loses,
    float32_below,
    inward,
    knob,
    random_point,
    siblings,
    split_evenly,
    towards,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate

HINGE_BITS = 12
THRESHOLD_BITS = 20
MIXING_BITS = 16
LEVEL_BITS = 10
#: The tensor that is constant: what the second affine layer writes.
LATENT = "gemm_2"
#: Margins below this are for the edge: then the twin violates by about the margin, however small.
EDGE = 2.0**-16
#: Otherwise by at least this share of the outputs' size.
VIOLATION_SHARE = 2.0**-8
GAINS = range(-30, 31)
#: More weights than this take minutes to draw, write and evaluate exactly.
MOST_WEIGHTS = 45_000_000
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Knobs:
    """The knobs of constant-on-box."""

    inputs: int = knob(20, "how many inputs", least=1, most=2000)
    reach: int = knob(
        16, "how many inputs a hinge reads (all of them if there are fewer)", least=1, most=2000
    )
    latent: int = knob(8, "size of the constant tensor; each entry has two hinges", least=1, most=256)
    depth: int = knob(4, "how many layers of ReLUs follow it", least=1, most=100)
    width: int = knob(32, "how many ReLUs each of these layers has; at least latent", least=1, most=2000)
    mixing: float = knob(
        2.0,
        "how much all layers together mix into a carried value: its logarithmic growth",
        least=0.0,
        most=50.0,
    )
    active: float = knob(0.5, "share of active ReLUs among those that carry no entry", least=0.0, most=1.0)
    margin: float = knob(0.01, "by how much class 0 stays above the others", least=1e-7, most=10.0)
    slack: float = knob(
        0.001, "how far outside their range on the box the hinges' thresholds lie", least=0.0, most=1.0
    )
    cut: float = knob(
        0.25,
        "how far inside the range the twin's threshold lies, as a share of epsilon",
        least=1e-4,
        most=0.9,
    )
    epsilon: float = knob(0.1, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)


class ConstantOnBox(Construction[Knobs]):
    """f = ψ(Π(x)), Π_j = t_j + g·((α_j − u_j)⁺ + (u_j − β_j)⁺) with u_j = w_j·x, ‖w_j‖₁ = 1, any ψ.

    On the box u_j takes [w_j·x₀ − ε, w_j·x₀ + ε]; α_j and β_j lie `slack` outside that range and are exact
    in float32, so no hinge fires, Π = t, and the output is ψ(t), by which class 0 wins by the margin. With
    reach = 1 the hinges are those of single coordinates. ψ has `depth` layers of `width` ReLUs; in every
    layer one active ReLU per entry of t carries it on, mixed with a little of all others, so that t matters
    at any depth while rounding does not grow.

    In the twin one β_j lies inside, at w_j·x₀ + (1 − cut)·ε: near one corner of the inputs that u_j reads
    class 0 loses. Everywhere else the network is constant, so gradients of the outputs are 0: what follows
    them is not led there, but what raises the arguments of single units is (docs/families.md).

    Edge: a margin of 1e-7 is proven for the reals only, for both siblings.
    """

    family: ClassVar[str] = "constant-on-box"
    summary: ClassVar[str] = "hinges that stay off map the box to one point in front of a deep network"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw hinges and ψ; only one threshold differs between the two drafts."""
        if knobs.width < knobs.latent:
            raise ConstructionFailed(
                f"{self.family}: width = {knobs.width} is below latent = {knobs.latent}; every layer needs "
                "one ReLU for each entry of the constant tensor; raise width or lower latent."
            )
        if knobs.depth * knobs.width**2 > MOST_WEIGHTS:
            raise ConstructionFailed(
                f"{self.family}: depth = {knobs.depth} layers of width = {knobs.width} make more than "
                f"{MOST_WEIGHTS} weights; lower one of the two."
            )
        epsilon = inward(knobs.epsilon)
        centre = random_point(knobs.inputs, rng)
        hinges = _Hinges.draw(centre, epsilon, knobs, rng)
        psi = _Downstream.draw(knobs, rng)
        chosen, gain = _exposed(psi, float(hinges.depth_at_witness), knobs)
        property_ = first_class_loses(ball(centre, epsilon), knobs.classes)

        def build(offsets: list[Fraction], *, cut: int | None) -> bytes:
            builder = ModelBuilder([knobs.inputs])
            hinges.append_to(builder, cut=cut)
            psi.append_to(builder, gain=gain, offsets=offsets)
            return builder.build(knobs.classes)

        plain = read_onnx(build([Fraction(0)] * knobs.classes, cut=None), name=self.family)
        scores = evaluate(plain, centre).lower
        offsets = [float32_below(scores[0] - Fraction(knobs.margin) - score) for score in scores]
        offsets[0] = Fraction(0)
        proof = Certificate("constant-on-box", {"tensor": LATENT})
        files = build(offsets, cut=None), build(offsets, cut=chosen)
        return siblings(property_, proof, *files, hinges.witness(chosen))


def _exposed(psi: _Downstream, depth: float, knobs: Knobs) -> tuple[int, Fraction]:
    """The entry of t, and the smallest gain, whose hinge changes the winner when it fires by `depth`."""
    still = psi(psi.constant[None])
    target = knobs.margin
    if knobs.margin >= EDGE:
        target = max(target, VIOLATION_SHARE * float(abs(still[0, 0])))
    for exponent in GAINS:
        gain = 2.0**exponent
        moved = psi(psi.constant + gain * depth * np.eye(len(psi.constant))) - still
        losses = (moved[:, :1] - moved[:, 1:]).min(axis=1)
        if losses.min() <= -(knobs.margin + target):
            return int(losses.argmin()), Fraction(gain)
    raise Unusable("no entry of the constant tensor changes the winning class")


@dataclass(frozen=True)
class _Hinges:
    """The directions w_j, and thresholds just outside the values that w_j·x takes on the box."""

    centre: list[Fraction]
    epsilon: Fraction
    slack: Fraction
    cut: Fraction
    directions: list[list[Fraction]]

    @classmethod
    def draw(
        cls, centre: list[Fraction], epsilon: Fraction, knobs: Knobs, rng: np.random.Generator
    ) -> _Hinges:
        directions = []
        for _ in range(knobs.latent):
            read = rng.permutation(len(centre))[: knobs.reach]
            row = [Fraction(0)] * len(centre)
            for i, k in zip(read, split_evenly(2**HINGE_BITS, rng.standard_normal(len(read))), strict=True):
                row[i] = Fraction(k, 2**HINGE_BITS)
            directions.append(row)
        unit = Fraction(1, 2**THRESHOLD_BITS)
        cut = max(dyadic(knobs.cut * float(epsilon), THRESHOLD_BITS), 2 * unit)
        return cls(centre, epsilon, ceil_div(Fraction(knobs.slack), unit), cut, directions)

    @property
    def _inset(self) -> Fraction:
        """How far inside the box the twin's counterexample lies."""
        return ceil_div(self.cut / 4, Fraction(1, 2**THRESHOLD_BITS))

    @property
    def depth_at_witness(self) -> Fraction:
        """The value of the twin's hinge at the witness."""
        return self.cut - self._inset

    def witness(self, chosen: int) -> tuple[Fraction, ...]:
        """Near the corner where w·x is largest; the inputs that it does not read stay at the centre."""
        return towards(self.centre, self.directions[chosen], self.epsilon - self._inset)

    def append_to(self, builder: ModelBuilder, *, cut: int | None) -> None:
        rows, biases = [], []
        for number, w in enumerate(self.directions):
            middle = dot(w, self.centre)
            reach = self.epsilon + self.slack
            above = self.epsilon - self.cut if number == cut else reach
            rows += [[-a for a in w], w]
            biases += [middle - reach, -middle - above]
        builder.affine(rows, biases).relu()


@dataclass(frozen=True)
class _Downstream:
    """ψ and t. In every layer of ψ the first ReLUs carry the entries of t; the order is then shuffled."""

    constant: Array
    weights: list[Array]
    biases: list[Array]

    @classmethod
    def draw(cls, knobs: Knobs, rng: np.random.Generator) -> _Downstream:
        constant = rng.integers(-(2**LEVEL_BITS), 2**LEVEL_BITS, size=knobs.latent) / 2**LEVEL_BITS
        weights, biases = [], []
        value, carrier = constant, np.arange(knobs.latent)
        for _ in range(knobs.depth):
            places = rng.permutation(knobs.width)
            weight = _rows(knobs.width, len(value), 1.0, rng)
            weight[places[: knobs.latent]] = _rows(
                knobs.latent, len(value), knobs.mixing / knobs.depth, rng
            )
            weight[places[: knobs.latent], carrier] += 1.0
            levels = rng.uniform(0.125, 1.0, size=knobs.width)
            levels[places[knobs.latent :]] *= np.where(
                rng.uniform(size=knobs.width - knobs.latent) < knobs.active, 1.0, -1.0
            )
            bias = np.round((levels - weight @ value) * 2**LEVEL_BITS) / 2**LEVEL_BITS
            value, carrier = np.maximum(weight @ value + bias, 0.0), places[: knobs.latent]
            weights.append(weight)
            biases.append(bias)
        return cls(constant, [*weights, _rows(knobs.classes, knobs.width, 1.0, rng)], biases)

    def __call__(self, points: Array) -> Array:
        """The scores without offsets, row by row."""
        value = points
        for weight, bias in zip(self.weights, self.biases, strict=False):
            value = np.maximum(value @ weight.T + bias, 0.0)
        scores: Array = value @ self.weights[-1].T
        return scores

    def append_to(self, builder: ModelBuilder, *, gain: Fraction, offsets: list[Fraction]) -> None:
        builder.affine(np.kron(np.eye(len(self.constant)), [[float(gain)] * 2]), self.constant)
        for weight, bias in zip(self.weights, self.biases, strict=False):
            builder.affine(weight, bias).relu()
        builder.affine(self.weights[-1], offsets)


def _rows(count: int, size: int, norm: float, rng: np.random.Generator) -> Array:
    """Random rows on the grid whose absolute values sum to `norm`."""
    units = round(norm * 2**MIXING_BITS)
    drawn = [split_evenly(units, rng.standard_normal(size)) for _ in range(count)]
    rows: Array = np.array(drawn, dtype=np.float64).reshape(count, size) / 2**MIXING_BITS
    return rows
