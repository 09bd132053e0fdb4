"""Precision: answers over the reals, in float32 and in float16, each as it is drawn to be, and proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dokimos.checker.check import RUNS
from dokimos.checker.linear.cover import LEAF
from dokimos.constructions.base import Construction
from dokimos.constructions.draft import Draft, at_least, choice, siblings, unsafe_where
from dokimos.constructions.operators.sketch import Gate, Sketch, draw_gate
from dokimos.engine.direct import by_intervals
from dokimos.suites.instance import Certificate, Label, OwnAnswer, Semantics
from dokimos.suites.vnnlib.model import Box, Point

AGREES, DIFFERS = "agrees", "differs"
#: Signs times one of these are the sums of weights that decide; all are multiples of 1/8.
SIZES = np.arange(8, 17) / 8
#: How far down a number goes before it comes back, in powers of 2: for what float16 loses, and for what
#: float32 loses, too. What is absorbed is added to 1 there; otherwise it goes below the smallest number.
DEPTHS = {"absorbed": ((7, 7), (13, 13)), "underflow": ((2,) * 11 + (4,), (13,) * 12)}
#: Where two large numbers stand among the terms of a sum, and how large they are.
LARGE = 2.0**24


def own_answers(signs: Mapping[Semantics, int], witness: Point) -> dict[Semantics, OwnAnswer]:
    """The answer under each of these semantics: `sat` at the witness where the sign is positive."""
    proof = Certificate(RUNS)
    return {
        semantics: OwnAnswer(Label.SAT, proof, witness) if sign > 0 else OwnAnswer(Label.UNSAT, proof)
        for semantics, sign in signs.items()
    }


def _both(
    gate: Gate, inner: Box, networks: Sequence[bytes], signs: Sequence[Mapping[Semantics, int]]
) -> tuple[Draft, Draft]:
    """The two drafts: Y >= 0 is unsafe, the middle of the inner box, behind the gate, the witness."""
    question = unsafe_where([at_least(Fraction(0))], gate.box(inner))
    witness = gate.witness(inner.centre)
    drafts = siblings(question, by_intervals([LEAF]), networks[0], networks[1], witness)
    robust, twin = (
        replace(draft, also=own_answers(each, witness)) for draft, each in zip(drafts, signs, strict=True)
    )
    return robust, twin


def _drawn_box(rng: np.random.Generator, least: Fraction, inputs: int) -> Box:
    """A narrow box of positive numbers: its ends and its middle are of every type."""
    lower = tuple(least * (1 + Fraction(int(k), 64)) for k in rng.integers(0, 16, size=inputs))
    return Box(lower, tuple(x + least / 32 for x in lower))


def _weighted(sketch: Sketch, gate: Gate, parts: Sequence[str], weights: Sequence[float]) -> bytes:
    row = sketch("Concat", *parts, axis=1)
    total = sketch("Gemm", row, sketch.weight([weights]), sketch.weight([0.0]), transB=1)
    return sketch.build(gate.attached(sketch, total, 1), 1)


@dataclass(frozen=True)
class Knobs:
    """The knobs of precision."""

    float32: str = choice(
        AGREES, "the answer in float32, compared with the reals", options=(AGREES, DIFFERS)
    )
    float16: str = choice(
        DIFFERS, "the answer in float16, compared with the reals", options=(AGREES, DIFFERS)
    )
    way: str = choice("absorbed", "how a number is lost in floats", options=tuple(DEPTHS))


class Precision(Construction[Knobs]):
    """Y = a·x + b·B(x) + c·H(x) − h·q, where B(x) = H(x) = x over the reals; unsafe is Y >= 0.

    In floats B(x) is 0, as x is absorbed by 1 or below the smallest number on the way, and in float16 H(x)
    is 0, too. So Y is (a + b + c)·x over the reals, near (a + c)·x in float32 and a·x in float16, and the
    weights are drawn so that these sums have the signs that the knobs ask for: all networks of one `way`
    are the same but for three weights. q hides the place where Y is not lowered, see `Gate`. In bfloat16,
    which reaches as far down as float32, what is lost depends on the way.
    """

    family: ClassVar[str] = "precision"
    summary: ClassVar[str] = "answers that differ between the reals, float32 and float16, each proven"
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw gate and sums; the twin has the three weights with the other sign."""
        single, half = (1 if each == AGREES else -1 for each in (knobs.float32, knobs.float16))
        sizes = rng.choice(SIZES, size=3, replace=False)
        a = half * sizes[0]
        c = single * sizes[1] - a
        weights = np.array([a, sizes[2] - a - c, c])
        gate = draw_gate(rng, Fraction(1))
        # So narrow that the parts, each at an end of its own, leave the sign of the sum.
        inner = _drawn_box(rng, Fraction(1, 2), 2)
        networks = [self._network(knobs.way, gate, sign * weights) for sign in (-1, 1)]
        signs = {
            Semantics.FLOAT32: single,
            Semantics.FLOAT16: half,
            Semantics.BFLOAT16: half if knobs.way == "absorbed" else single,
        }
        return _both(gate, inner, networks, [{s: k * t for s, t in signs.items()} for k in (-1, 1)])

    def _network(self, way: str, gate: Gate, weights: np.ndarray) -> bytes:
        sketch = gate.sketch((1, 2), seed=0)
        x = sketch("MatMul", "X", sketch.weight([[1.0], [1.0]]))
        half, both = (_there_and_back(sketch, x, steps, way == "absorbed") for steps in DEPTHS[way])
        return _weighted(sketch, gate, [x, both, half], weights.tolist())


def _there_and_back(sketch: Sketch, x: str, steps: Sequence[int], absorbed: bool) -> str:
    for step in steps:
        x = sketch("Mul", x, sketch.weight([[2.0**-step]]))
    if absorbed:
        one = sketch.weight([[1.0]])
        x = sketch("Sub", sketch("Add", x, one), one)
    for step in reversed(steps):
        x = sketch("Mul", x, sketch.weight([[2.0**step]]))
    return x


@dataclass(frozen=True)
class OrdersKnobs:
    """The knobs of orders."""

    order: str = choice("forward", "which order gives what the reals do", options=("forward", "backward"))
    other: str = choice(AGREES, "the answer of the other order", options=(AGREES, DIFFERS))


class Orders(Construction[OrdersKnobs]):
    """Y = a·Σx_i + b·S − h·q with S = Σx_i + C − C as one sum of products; unsafe is Y >= 0.

    Added up from one end, C − C is 0 before the x_i are reached, and S is their sum, as over the reals;
    from the other end, −C absorbs the x_i, and S is 0. a and a + b have the signs that the knobs ask for.
    Where they differ, nothing is claimed of float32 in any order, but an answer for each of the two.
    """

    family: ClassVar[str] = "orders"
    summary: ClassVar[str] = "float32 answers that depend on the order of one sum, both of them proven"
    mixes: ClassVar[bool] = False
    knobs_class = OrdersKnobs
    inputs: ClassVar[int] = 4

    def construct(self, knobs: OrdersKnobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw gate and sums; the twin has the two weights with the other sign."""
        other = 1 if knobs.other == AGREES else -1
        sizes = rng.choice(SIZES, size=2, replace=False)
        weights = np.array([other * sizes[0], sizes[1] - other * sizes[0]])
        gate = draw_gate(rng, Fraction(1))
        inner = _drawn_box(rng, Fraction(1, 16), self.inputs)
        networks = [self._network(knobs.order, gate, sign * weights) for sign in (-1, 1)]
        orders = [Semantics.FORWARD, Semantics.BACKWARD]
        kept, lost = orders if knobs.order == "forward" else orders[::-1]
        signs = {kept: 1, lost: other} | ({Semantics.FLOAT32: 1} if other > 0 else {})
        return _both(gate, inner, networks, [{s: k * t for s, t in signs.items()} for k in (-1, 1)])

    def _network(self, order: str, gate: Gate, weights: np.ndarray) -> bytes:
        count, first = self.inputs, order == "forward"
        sketch = gate.sketch((1, count), seed=0)
        ones = np.array([True] * 2 + [False] * count if first else [False] * count + [True] * 2)
        taken = np.zeros((count, count + 2))
        taken[np.arange(count), np.flatnonzero(~ones)] = 1.0
        terms = sketch("Gemm", "X", sketch.weight(taken), sketch.weight(1.0 * ones))
        direct = np.where(ones, 0.0, 1.0)[:, None]
        whole = direct.copy()
        whole[ones, 0] = LARGE, -LARGE
        plain, absorbing = (sketch("MatMul", terms, sketch.weight(column)) for column in (direct, whole))
        return _weighted(sketch, gate, [plain, absorbing], weights.tolist())
