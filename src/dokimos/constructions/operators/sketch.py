"""A network around one operator: its nodes as ONNX spells them, whatever the spelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dokimos.networks.writing.builder import IR_VERSION, OPSET, as_float32, model_of

Floats = NDArray[np.float64]

#: Drawn weights are different multiples of 1/8.
_STEPS = 8
#: From this version on, weights need not be inputs of the graph too.
_FIRST_IR_WITH_HIDDEN_WEIGHTS = 4


class Sketch:
    """Nodes and weights on their way into an ONNX file; the input is `X`.

    Numbers are drawn from `seed` alone: two sketches that draw the same shapes in the same order get the
    same numbers.
    """

    def __init__(self, shape: Sequence[int], *, seed: int, opset: int = OPSET) -> None:
        self.shape = tuple(shape)
        self._opset = opset
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self.lists_weights_as_inputs = False

    def draw(self, *shape: int) -> Floats:
        """Positive numbers that differ, exact in float32."""
        count = int(np.prod(shape))
        steps = self._rng.choice(np.arange(2, 2 * _STEPS + count), size=count, replace=False)
        return np.asarray(steps / _STEPS, dtype=np.float64).reshape(shape)

    def weight(self, values: Any) -> str:
        """The name of a constant of float32 numbers."""
        return self._keep(as_float32(np.asarray(values, dtype=np.float64)))

    def integers(self, *values: int) -> str:
        """The name of a constant list of integers."""
        return self._keep(np.array(values, dtype=np.int64))

    def _keep(self, array: NDArray[Any]) -> str:
        name = f"weight_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(array, name))
        return name

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; returns its name."""
        return self.several(op, 1, *inputs, **attributes)[0]

    def several(self, op: str, count: int, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """Add a node with `count` outputs; returns their names."""
        outputs = tuple(f"{op.lower()}_{len(self._nodes)}_{k}" for k in range(count))
        self._nodes.append(helper.make_node(op, inputs, outputs, **attributes))
        return outputs

    def flat(self, tensor: str) -> str:
        """The tensor as one row."""
        return self("Flatten", tensor)

    def build(self, output: str, width: int | str = "n") -> bytes:
        """The ONNX file whose output `Y` is the tensor `output`, a row of this width (open, if a name)."""
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = ["Y" if name == output else name for name in names]
        inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, self.shape)]
        if self.lists_weights_as_inputs:
            inputs += [helper.make_tensor_value_info(w.name, w.data_type, w.dims) for w in self._weights]
        graph = helper.make_graph(
            self._nodes,
            "dokimos",
            inputs,
            [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, width])],
            self._weights,
        )
        version = _FIRST_IR_WITH_HIDDEN_WEIGHTS - 1 if self.lists_weights_as_inputs else IR_VERSION
        model = model_of(graph, opset=self._opset, ir_version=version)
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString(deterministic=True))


#: Adds the nodes of a variant, as they are or as they are easily misread; returns a row of features.
Wiring = Callable[[Sketch, bool], str]


@dataclass(frozen=True)
class Variant:
    """One way to use an operator.

    `about` says what is unusual, `misread` how a tool easily gets it wrong (None where nothing but failing
    comes to mind). The inputs lie within `radius` of centres drawn from `centres`. `counted` are the
    features that the output depends on (None: all). With `classes` there are three outputs, of which the
    first shall not be the largest.
    """

    name: str
    op: str
    about: str
    misread: str | None
    shape: tuple[int, ...]
    wire: Wiring
    centres: tuple[float, float] = (-2.0, 2.0)
    radius: float = 0.25
    opset: int = OPSET
    counted: tuple[int, ...] | None = None
    classes: bool = False

    def sketch(self, seed: int) -> Sketch:
        """An empty sketch of its shape and opset."""
        return Sketch(self.shape, seed=seed, opset=self.opset)


class Catalogue:
    """Collects the variants that a module defines, each above its wiring."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []

    def __call__(
        self, name: str, op: str, about: str, misread: str | None, shape: tuple[int, ...], **options: Any
    ) -> Callable[[Wiring], Wiring]:
        """A decorator that registers a wiring as this variant."""

        def register(wire: Wiring) -> Wiring:
            self.variants.append(Variant(name, op, about, misread, shape, wire, **options))
            return wire

        return register
