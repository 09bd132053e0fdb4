"""A network around one operator, in any form that ONNX allows, and a gate beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.linear.cover import LEAF
from dokimos.networks.writing.builder import OPSET, GraphBuilder, as_float32
from dokimos.suites.vnnlib.model import Box, Point

Floats = NDArray[np.float64]

#: Drawn weights are different multiples of 1/8.
_STEPS = 8


class Sketch:
    """The nodes and weights of an ONNX file under construction; the input is `X`.

    Numbers are drawn from `seed` alone: two sketches that draw the same shapes in the same order get the
    same numbers.
    """

    #: The input of the file.
    source = "X"

    def __init__(self, shape: Sequence[int], *, seed: int, opset: int = OPSET) -> None:
        self.shape = tuple(shape)
        #: How many numbers the input has.
        self.size = int(np.prod(self.shape))
        self._graph = GraphBuilder(opset=opset)
        self._rng = np.random.default_rng(seed)
        self.lists_weights_as_inputs = False

    def draw(self, *shape: int) -> Floats:
        """Distinct positive numbers, exact in float32."""
        count = int(np.prod(shape))
        steps = self._rng.choice(np.arange(2, 2 * _STEPS + count), size=count, replace=False)
        return np.asarray(steps / _STEPS, dtype=np.float64).reshape(shape)

    def weight(self, values: Any) -> str:
        """The name of a constant of float32 numbers."""
        return self.constant(as_float32(np.asarray(values, dtype=np.float64)), np.float32)

    def integers(self, *values: int) -> str:
        """The name of a constant list of integers."""
        return self.constant(values, np.int64)

    def constant(self, values: Any, kind: type) -> str:
        """The name of a constant of numbers of this type."""
        return self._graph.constant(values, kind, name=f"weight_{self._graph.constant_count}")

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; returns its name."""
        return self.several(op, 1, *inputs, **attributes)[0]

    def several(self, op: str, count: int, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """Add a node with `count` outputs; returns their names."""
        outputs = tuple(f"{op.lower()}_{self._graph.node_count}_{k}" for k in range(count))
        self._graph.add(op, inputs, outputs, **attributes)
        return outputs

    def flat(self, tensor: str) -> str:
        """The tensor as one row."""
        return self("Flatten", tensor)

    def build(self, output: str, width: int | str = "n") -> bytes:
        """The ONNX file whose output `Y` is the tensor `output`, a row of this width (a name: open)."""
        return self._graph.build(
            {self.source: ("float", self.shape if self.source == "X" else (1, self.size))},
            output,
            [1, width],
            output_name="Y",
            lists_constants_as_inputs=self.lists_weights_as_inputs,
            infer_shapes=True,
        )


#: Adds the nodes of a variant, as they are (0) or misread in one of its ways (1, 2, …); returns a row of
#: features.
Wiring = Callable[[Sketch, int], str]


@dataclass(frozen=True)
class Variant:
    """One way to use an operator.

    `about` says what is unusual, `misreadings` how a tool may get it wrong (empty if failing is the only
    likely mistake). The inputs lie within `radius` of centres drawn from `centres`. `counted` are the
    features that the output depends on (None: all). With `classes` there are three outputs, of which the
    first must not be the largest.
    """

    name: str
    op: str
    about: str
    misreadings: tuple[str, ...]
    shape: tuple[int, ...]
    wire: Wiring
    centres: tuple[float, float] = (-2.0, 2.0)
    radius: float = 0.25
    opset: int = OPSET
    counted: tuple[int, ...] | None = None
    classes: bool = False

    def sketch(self, seed: int) -> Sketch:
        """An empty sketch with the variant's input shape and opset."""
        return Sketch(self.shape, seed=seed, opset=self.opset)


class Catalogue:
    """Collects the variants that a module defines; each decorates the function that wires it."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []

    def __call__(
        self,
        name: str,
        op: str,
        about: str,
        misreadings: tuple[str, ...],
        shape: tuple[int, ...],
        **options: Any,
    ) -> Callable[[Wiring], Wiring]:
        """A decorator that registers a wiring as this variant."""

        def register(wire: Wiring) -> Wiring:
            self.variants.append(Variant(name, op, about, misreadings, shape, wire, **options))
            return wire

        return register


# A gate on inputs of its own: whatever else a network computes counts only near one hidden point


#: How many inputs hide, all in [−1, 1], and how narrow the gate is.
HIDING = 3
STEEPNESS = 32
#: The hidden point has odd multiples of 1/64: no centre, no corner, and no middle of halves for some time.
POINT_STEPS = 64
#: How high the gate is, in margins of the instance.
MARGINS = 4


@dataclass(frozen=True)
class Gate:
    """The hidden point p and the height h.

    q(x) = max(0, 1 − r(x)) with r(x) = max(0, 1 − K·Σ|x_i − p_i|) is 0 at p, 1 farther than 1/K from it,
    and never below 0. Y' = Y − h·q(x) is therefore at most Y everywhere, which intervals see at once, and
    equals Y at p alone: a bound on Y' is right or wrong with the bound on Y, while gradients, which vanish
    in x, do not lead to p.
    """

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
