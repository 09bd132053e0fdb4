"""Building small ONNX models for tests, in the spelling of any opset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, shape_inference

Array = NDArray[Any]


class Builder:
    """A model that grows node by node from the input `x`."""

    def __init__(self, shape: Sequence[int], *, opset: int, dtype: type = np.float32) -> None:
        self.opset = opset
        self.dtype = dtype
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._input_shape = tuple(shape)
        self._kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.shapes: dict[str, tuple[int, ...]] = {"x": tuple(shape)}

    def constant(self, array: Any, dtype: type | None = None) -> str:
        array = np.asarray(array, dtype=dtype or self.dtype)
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        self.shapes[name] = array.shape
        return name

    def integers(self, values: Sequence[int]) -> str:
        return self.constant(np.array(values, dtype=np.int64), np.int64)

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        return self.add_many(op, *inputs, outputs=outputs, **attributes)[0]

    def add_many(self, op: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        names = [f"t{len(self._nodes)}_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        inferred = shape_inference.infer_shapes(
            self._model(names[-1]), strict_mode=True, data_prop=True
        ).graph
        for info in (*inferred.value_info, *inferred.output):
            self.shapes[info.name] = tuple(d.dim_value for d in info.type.tensor_type.shape.dim)
        return names

    def attribute_or_input(
        self, op: str, x: str, since: int, key: str, values: Sequence[int], **rest: Any
    ) -> str:
        """`values` as the attribute `key` before opset `since`, as the second input from then on."""
        if self.opset < since:
            return self.add(op, x, **{key: list(values)}, **rest)
        return self.add(op, x, self.integers(values), **rest)

    def clip(self, x: str, low: float | None, high: float | None) -> str:
        bounds = {"min": low, "max": high}
        if self.opset < 11:
            return self.add("Clip", x, **{k: float(v) for k, v in bounds.items() if v is not None})
        return self.add("Clip", x, *("" if v is None else self.constant(v) for v in bounds.values()))

    def slice(
        self,
        x: str,
        starts: Sequence[int],
        ends: Sequence[int],
        axes: Sequence[int],
        steps: Sequence[int] = (),
    ) -> str:
        if self.opset < 10:
            return self.add("Slice", x, starts=list(starts), ends=list(ends), axes=list(axes))
        inputs = [self.integers(v) for v in (starts, ends, axes, steps) if len(v)]
        return self.add("Slice", x, *inputs)

    def pad(self, x: str, pads: Sequence[int], value: float | None) -> str:
        if self.opset < 11:
            return self.add("Pad", x, pads=list(pads), **({} if value is None else {"value": value}))
        return self.add("Pad", x, self.integers(pads), *([] if value is None else [self.constant(value)]))

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        if self.opset < 13:
            return self.add_many("Split", x, outputs=len(sizes), axis=axis, split=list(sizes))
        return self.add_many("Split", x, self.integers(sizes), outputs=len(sizes), axis=axis)

    def model(self, output: str) -> onnx.ModelProto:
        """The whole model, its output's shape filled in."""
        return shape_inference.infer_shapes(self._model(output), strict_mode=True, data_prop=True)

    def _model(self, output: str) -> onnx.ModelProto:
        source = helper.make_tensor_value_info("x", self._kind, self._input_shape)
        target = helper.make_empty_tensor_value_info(output)
        graph = helper.make_graph(self._nodes, "test", [source], [target], initializer=self._constants)
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8 if self.opset < 19 else 10)


def single(
    op: str,
    shape: Sequence[int],
    constants: Sequence[Array] = (),
    *,
    opset: int = 17,
    attributes: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:
    """A model of one node: `op` of the input and then the constants."""
    builder = Builder(shape, opset=opset)
    names = [builder.constant(array, array.dtype.type) for array in constants]
    return builder.model(builder.add(op, "x", *names, **(attributes or {})))
