"""A network around one operator, in any form that ONNX allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.networks.writing.builder import OPSET, GraphBuilder, as_float32

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
        return self._constant(as_float32(np.asarray(values, dtype=np.float64)), np.float32)

    def integers(self, *values: int) -> str:
        """The name of a constant list of integers."""
        return self._constant(values, np.int64)

    def _constant(self, values: Any, kind: type) -> str:
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
