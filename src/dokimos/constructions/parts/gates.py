"""A gate on inputs of its own: whatever else a network computes counts only near one hidden point.

q(x) = max(0, 1 − r(x)) with r(x) = max(0, 1 − K·Σ|x_i − p_i|) is 0 at p, 1 farther than 1/K from it, and
never below 0. Y' = Y − h·q(x) is therefore at most Y everywhere, which intervals see at once, and equals Y
at p alone: a bound on Y' is right or wrong with the bound on Y, while gradients, which vanish in x, do not
lead to p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dokimos.checker.linear.cover import LEAF
from dokimos.constructions.operators.sketch import Sketch
from dokimos.networks.writing.builder import OPSET
from dokimos.suites.vnnlib.model import Box, Point

#: How many inputs hide, all in [−1, 1], and how narrow the gate is.
HIDING = 3
STEEPNESS = 32
#: The hidden point has odd multiples of 1/64: no centre, no corner, and no middle of halves for some time.
POINT_STEPS = 64
#: How high the gate is, in margins of the instance.
MARGINS = 4


@dataclass(frozen=True)
class Gate:
    """The hidden point p and the height h."""

    point: Point
    height: Fraction

    def sketch(self, shape: Sequence[int], *, seed: int, opset: int = OPSET) -> Sketch:
        """An empty sketch whose X is read from all but the first inputs."""
        return _GatedSketch(shape, seed=seed, opset=opset)

    def attached(self, sketch: Sketch, tensor: str, width: int, bias: Fraction = Fraction(0)) -> str:
        """The row `tensor` of this width, with −h·q(x) + bias added to its first entry."""
        ends = np.array([float(x) for x in self.point])
        both = np.concatenate([np.eye(HIDING), -np.eye(HIDING)])
        chosen = np.hstack([both, np.zeros((2 * HIDING, sketch.size - HIDING))])
        away = sketch(
            "Gemm", sketch.source, sketch.weight(chosen), sketch.weight([*-ends, *ends]), transB=1
        )
        near = sketch(
            "Gemm",
            sketch("Relu", away),
            sketch.weight([[-STEEPNESS] * (2 * HIDING)]),
            sketch.weight([1.0]),
            transB=1,
        )
        shut = sketch("Gemm", sketch("Relu", near), sketch.weight([[-1.0]]), sketch.weight([1.0]), transB=1)
        rows, biases = np.zeros((width, 1)), np.zeros(width)
        rows[0, 0], biases[0] = -float(self.height), float(bias)
        lowered = sketch("Gemm", sketch("Relu", shut), sketch.weight(rows), sketch.weight(biases), transB=1)
        return sketch("Add", tensor, lowered)

    def box(self, inner: Box) -> Box:
        """The box of all inputs."""
        return Box((Fraction(-1),) * HIDING + inner.lower, (Fraction(1),) * HIDING + inner.upper)

    def witness(self, inner: Point) -> Point:
        """The hidden point, with a point of the inner box."""
        return (*self.point, *inner)


class _GatedSketch(Sketch):
    """The sketch of a network whose one row of inputs is x, then X."""

    source = "x"

    def __init__(self, shape: Sequence[int], *, seed: int, opset: int) -> None:
        super().__init__(shape, seed=seed, opset=opset)
        inner = int(np.prod(shape))
        self.size = inner + HIDING
        rest = self("MatMul", self.source, self.weight(np.eye(self.size)[:, HIDING:]))
        self._graph.add("Reshape", [rest, self.integers(*shape)], ["X"])


def draw_gate(rng: np.random.Generator, margin: Fraction) -> Gate:
    """A gate at a point drawn from the inside of the box."""
    odd = 2 * rng.integers(4, 28, size=HIDING) + 1
    signs = rng.choice([-1, 1], size=HIDING)
    point = tuple(Fraction(int(k) * int(s), POINT_STEPS) for k, s in zip(odd, signs, strict=True))
    return Gate(point, MARGINS * margin)


def behind_gate(tree: Sequence[int]) -> list[int]:
    """A tree of halvings of the inner box as one of the whole box."""
    return [cut if cut == LEAF else cut + HIDING for cut in tree]
