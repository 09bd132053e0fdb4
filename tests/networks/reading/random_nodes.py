"""Random models around one operator: every attribute given or left to its default, and odd shapes.

`DRAWS` holds one function per operator that can be read. Some of what they draw is not valid, or not
supported: then the reader must say so. What it reads it must read as runtimes do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from tests.networks.building import Array

OPSETS = range(7, onnx.defs.onnx_opset_version() + 1)
DRAWS: dict[str, Callable[[Sketch], str]] = {}


class Sketch:
    """A model while it is drawn: its input is `x`."""

    def __init__(self, rng: np.random.Generator, opset: int) -> None:
        self.rng = rng
        self.opset = opset
        self.shape: tuple[int, ...] = ()
        self.positive = False
        self.nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """Both ends are among what may be drawn."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.integer(0, len(items) - 1)]

    def sizes(self, low: int, high: int, most: int = 4) -> tuple[int, ...]:
        return tuple(self.integer(1, most) for _ in range(self.integer(low, high)))

    def source(self, *shape: int) -> str:
        self.shape = shape
        return "x"

    def any_source(self, low: int = 0, high: int = 4) -> str:
        return self.source(*self.sizes(low, high))

    def axis(self, rank: int) -> int:
        return self.integer(-rank - (rank == 0), max(rank - 1, 0))

    def axes(self, rank: int, *, least: int = 0) -> list[int]:
        count = self.integer(min(least, rank), rank)
        chosen = [int(axis) for axis in self.rng.permutation(rank)[:count]]
        return [axis - rank if self.chance(0.3) else axis for axis in chosen]

    def floats(self, *shape: int) -> str:
        low = 0.25 if self.positive else -2
        return self.constant(self.rng.uniform(low, 2, shape).astype(np.float32))

    def integers(self, values: Sequence[int]) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def constant(self, array: Array) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def some(self, **attributes: Any) -> dict[str, Any]:
        """Each of these attributes or not."""
        return {name: value for name, value in attributes.items() if self.chance(0.6)}

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        node = helper.make_node(op, list(inputs), names)
        for name, value in attributes.items():
            kind = onnx.AttributeProto.INTS if value == [] else None
            node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
        self.nodes.append(node)
        return str(self.pick(names))

    def model(self, output: str) -> onnx.ModelProto:
        source = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        target = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", [source], [target], initializer=self._constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=8 if self.opset < 19 else 10,
        )
        try:
            return shape_inference.infer_shapes(model)
        except (shape_inference.InferenceError, ValueError):
            return model


def drawn(op: str, rng: np.random.Generator) -> tuple[onnx.ModelProto, list[tuple[float, float]]]:
    """A model around `op`, and bounds on its inputs."""
    sketch = Sketch(rng, int(rng.choice(OPSETS)))
    model = sketch.model(DRAWS[op](sketch))
    size = int(np.prod(sketch.shape))
    ends = np.sort(rng.uniform(0.25 if sketch.positive else -2, 2, (size, 2)).round(3), axis=1)
    return model, [(float(low), float(high)) for low, high in ends]


def doubled(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model in float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    graph = wide.graph
    del graph.value_info[:]
    attributes = [(node.op_type, attribute) for node in graph.node for attribute in node.attribute]
    tensors = [*graph.initializer, *(a.t for _, a in attributes if a.type == onnx.AttributeProto.TENSOR)]
    for tensor in tensors:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for op, attribute in attributes:
        if op == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
    return wide


_ODD = (0, 1, -1, 2, -2, 3, 5, -5, 7, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63))
_ODD_TYPES = (np.float64, np.float32, np.float16, np.int32, np.int64, np.bool_, np.uint8)


def damage(model: onnx.ModelProto, rng: random.Random) -> None:
    """Change one thing in the model: an attribute, an input or output, a constant, a shape or the opset."""
    node, graph = rng.choice(model.graph.node), model.graph
    tensors = [*graph.initializer, *(a.t for a in node.attribute if a.HasField("t"))]
    names = ["", "x", *(t.name for t in graph.initializer), *(o for n in graph.node for o in n.output)]
    sizes = graph.input[0].type.tensor_type.shape.dim
    match rng.choice(
        ["value", "value", "kind", "more", "less", "input", "output", "array", "opset", "shape", "op"]
    ):
        case "value" if node.attribute:
            _damage_attribute(rng.choice(node.attribute), rng)
        case "kind" if node.attribute:
            attribute = rng.choice(node.attribute)
            value = rng.choice([1, 1.5, "s", [1, 2], [1.5], ["a"], numpy_helper.from_array(np.zeros(2))])
            attribute.CopyFrom(helper.make_attribute(attribute.name, value))
        case "more":
            name = rng.choice(["axis", "axes", "pads", "fmod", "keepdims", "saturate", "group", "auto_pad"])
            node.attribute.append(helper.make_attribute(name, rng.choice([*_ODD, [1, -1], "SAME_UPPER"])))
        case "less" if node.attribute:
            del node.attribute[rng.randrange(len(node.attribute))]
        case "input" if node.input and rng.random() < 0.5:
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        case "input":
            node.input.append(rng.choice(names))
        case "output":
            node.output.append(rng.choice(["", "another"]))
        case "array" if tensors:
            _damage_array(rng.choice(tensors), rng)
        case "opset":
            model.opset_import[0].version = rng.choice(
                [-1, 0, 6, 7, 8, 10, 11, 12, 13, 18, *OPSETS[-9:], 99]
            )
        case "shape" if sizes:
            rng.choice(sizes).dim_value = rng.choice([0, 1, 2, 3, -1, 2**40])
        case "op":
            node.op_type = rng.choice([name.split()[0] for name in DRAWS])


def _damage_attribute(attribute: onnx.AttributeProto, rng: random.Random) -> None:
    kinds = onnx.AttributeProto
    if attribute.type == kinds.INT:
        attribute.i = rng.choice(_ODD)
    elif attribute.type == kinds.FLOAT:
        attribute.f = rng.choice([0.0, -0.0, -1.0, 1e38, 1e-45, float("nan"), float("inf")])
    elif attribute.type == kinds.STRING:
        attribute.s = rng.choice([b"", b"SAME_UPPER", b"VALID", b"linear", b"\xff"])
    elif attribute.type == kinds.INTS:
        values = [*attribute.ints, rng.choice([*_ODD, *attribute.ints])]
        if rng.random() < 0.5:
            del values[rng.randrange(len(values))]
        attribute.ints[:] = values


def _damage_array(tensor: onnx.TensorProto, rng: random.Random) -> None:
    array = numpy_helper.to_array(tensor)
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        odd = np.array(rng.choice(_ODD)).astype(array.dtype)
        forms = [flat[:0], flat, flat[:1], array[None], np.append(flat, flat), np.append(flat[1:], odd)]
        forms += [flat[0].reshape(()) if flat.size else flat, array.astype(rng.choice(_ODD_TYPES))]
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(rng.choice(forms)), tensor.name))


def _draws(*names: str) -> Callable[[Callable[[Sketch], str]], Callable[[Sketch], str]]:
    def register(draw: Callable[[Sketch], str]) -> Callable[[Sketch], str]:
        for name in names:
            DRAWS[name] = draw
        return draw

    return register


def _register_elementwise() -> None:
    for op in (
        *("Relu", "Neg", "Sigmoid", "Tanh", "Exp", "Identity", "GlobalAveragePool"),
        *("Cos", "Erf", "Sin", "Floor", "Round", "Sign"),
    ):
        least = 2 if op == "GlobalAveragePool" else 0
        DRAWS[op] = lambda s, op=op, least=least: s.add(op, s.any_source(least))
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        DRAWS[op] = lambda s, op=op: _broadcast(s, op)
    for op in ("ReduceSum", "ReduceMean"):
        DRAWS[op] = lambda s, op=op: _reduce(s, op)
    for op in ("MaxPool", "AveragePool"):
        DRAWS[op] = lambda s, op=op: _pool(s, op)
    for op in ("Abs", "Add", "Div", "Max", "Min", "Mod", "Mul", "Neg", "Sub", "Range"):
        DRAWS[f"{op} of integers"] = lambda s, op=op: _of_integers(s, op)
    for op in ("And", "Or", "Not", "Equal", "Greater", "Less", "Where"):
        DRAWS[f"{op} of integers"] = lambda s, op=op: _logic(s, op)
    for op in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"):
        DRAWS[f"{op} of integers"] = lambda s, op=op: _reduced_integers(s, op)
    for op in (
        *("Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"),
        *("Transpose", "Unsqueeze"),
    ):
        DRAWS[f"{op} of integers"] = lambda s, op=op: _moved_integers(s, op)


def _broadcast(s: Sketch, op: str) -> str:
    s.positive = op == "Div"
    x = s.any_source()
    others = 1 if op not in ("Max", "Min") else s.integer(0, 2)
    inputs = [x]
    for _ in range(others):
        kept = [n if s.chance(0.7) else 1 for n in s.shape]
        shape = s.pick([s.shape, (), kept, kept[s.integer(0, len(kept)) :], (2, *kept)])
        inputs.append(s.floats(*shape) if s.chance(0.85) else x)
    return s.add(op, *(inputs[int(i)] for i in s.rng.permutation(len(inputs))))


def _reduce(s: Sketch, op: str) -> str:
    x = s.any_source()
    rank = len(s.shape)
    attributes = s.some(keepdims=s.integer(0, 1))
    if s.opset < (13 if op == "ReduceSum" else 18):
        return s.add(op, x, **attributes, **s.some(axes=s.axes(rank)))
    attributes |= s.some(noop_with_empty_axes=s.integer(0, 1))
    axes = s.pick([[], [""], [s.integers(s.axes(rank))], [s.integers(s.axes(rank))]])
    return s.add(op, x, *axes, **attributes)


def _window(s: Sketch, rank: int, kernel: Sequence[int]) -> dict[str, Any]:
    attributes = s.some(strides=[s.integer(1, 3) for _ in range(rank)])
    auto = s.pick(["NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if auto != "NOTSET" or s.chance(0.3):
        attributes["auto_pad"] = auto
    if auto == "NOTSET" or s.chance(0.05):
        attributes |= s.some(pads=[s.integer(0, k - (k > 1)) for k in (*kernel, *kernel)])
    return attributes


@_draws("Conv")
def _conv(s: Sketch) -> str:
    rank, group, channels = s.integer(1, 3), s.integer(1, 2), s.integer(1, 2)
    kernel = [s.integer(1, 3) for _ in range(rank)]
    x = s.source(s.integer(1, 2), group * channels, *(s.integer(1, 6) for _ in range(rank)))
    attributes = {**_window(s, rank, kernel), **s.some(dilations=[s.integer(1, 2) for _ in range(rank)])}
    attributes |= s.some(kernel_shape=kernel)
    if group > 1:
        attributes["group"] = group
    weights = s.floats(group * s.integer(1, 2), channels, *kernel)
    count = s._constants[-1].dims[0]
    bias = s.pick([[], [""], [s.floats(count)], [s.floats(count)]])
    return s.add("Conv", x, weights, *bias, **attributes)


@_draws("ConvTranspose")
def _conv_transpose(s: Sketch) -> str:
    rank, group, channels = s.integer(1, 3), s.integer(1, 2), s.integer(1, 2)
    kernel = [s.integer(1, 3) for _ in range(rank)]
    x = s.source(s.integer(1, 2), group * channels, *(s.integer(1, 4) for _ in range(rank)))
    attributes = {**_window(s, rank, kernel), **s.some(dilations=[s.integer(1, 2) for _ in range(rank)])}
    attributes |= s.some(kernel_shape=kernel)
    if s.chance(0.3):
        attributes["output_padding"] = [s.integer(0, n - 1) for n in attributes.get("strides", [1] * rank)]
    if s.chance(0.1):
        attributes["output_shape"] = [s.integer(n, 2 * n + 3) for n in s.shape[2:]]
    if group > 1:
        attributes["group"] = group
    weights = s.floats(group * channels, s.integer(1, 2), *kernel)
    count = group * s._constants[-1].dims[1]
    bias = s.pick([[], [""], [s.floats(count)], [s.floats(count)]])
    return s.add("ConvTranspose", x, weights, *bias, **attributes)


def _scale(s: Sketch, *shape: int) -> str:
    return s.constant((2.0 ** s.rng.uniform(-6, 0, shape)).astype(np.float32))


def _bytes(s: Sketch, kind: type, *shape: int) -> str:
    ends = np.iinfo(kind)
    return s.constant(s.rng.integers(ends.min, ends.max + 1, shape).astype(kind))


def _byte_input(s: Sketch, kind: type) -> tuple[str, str, str]:
    """The input in integers of this type, with its scale and zero point."""
    scale, zero = _scale(s), _bytes(s, kind)
    return s.add("QuantizeLinear", "x", scale, zero), scale, zero


@_draws("QuantizeLinear", "DequantizeLinear")
def _quantised_pair(s: Sketch) -> str:
    s.opset = max(s.opset, 10)
    x, rank = s.any_source(), len(s.shape)
    kinds = [np.uint8, np.int8] + [np.uint16, np.int16] * (s.opset >= 21)
    kind, axis = s.pick(kinds), s.axis(rank)
    per_axis = s.opset >= 13 and rank > 0 and s.chance()
    size = (s.shape[axis],) if per_axis else ()
    own = {"axis": axis} if s.opset >= 13 and (per_axis or s.chance(0.3)) else {}
    block = s.some(block_size=s.pick([0, 0, 2])) if s.opset >= 21 and s.chance(0.3) else {}
    there = s.some(saturate=s.integer(0, 1)) if s.opset >= 19 else {}
    back = s.some(output_dtype=s.pick([0, 1])) if s.opset >= 23 and s.chance(0.3) else {}
    zero = [_bytes(s, kind, *size)] if s.chance(0.8) else []
    if s.opset >= 21 and s.chance(0.3):
        there |= {"output_dtype": s.pick([0, 2, helper.np_dtype_to_tensor_dtype(np.dtype(kind))])}
    if s.opset >= 23 and s.chance(0.3):
        there |= {"precision": s.pick([0, 1, 10])}
    quantised = s.add("QuantizeLinear", x, _scale(s, *size), *zero, **own, **there, **block)
    if s.chance(0.3):  # constants, too
        weights = _bytes(s, kind, *s.shape)
        return s.add("Add", x, s.add("DequantizeLinear", weights, _scale(s, *size), **own, **block, **back))
    return s.add("DequantizeLinear", quantised, _scale(s, *size), *zero, **own, **block, **back)


@_draws("MatMulInteger", "QLinearMatMul")
def _byte_product(s: Sketch) -> str:
    s.opset = max(s.opset, 10)
    s.source(*s.sizes(0, 1, 2), s.integer(1, 3), s.integer(1, 5))
    kind, own, width = s.pick([np.uint8, np.int8]), s.pick([np.uint8, np.int8]), s.integer(1, 3)
    x, scale, zero = _byte_input(s, kind)
    size = (width,) if s.chance(0.3) else ()
    weights, own_zero = _bytes(s, own, s.shape[-1], width), _bytes(s, own, *size)
    if s.chance():
        zeros = s.pick([[], [zero], [zero, own_zero], ["", own_zero]])
        return s.add("Cast", s.add("MatMulInteger", x, weights, *zeros), to=TensorProto.FLOAT)
    out = s.constant(np.float32(s.rng.uniform(0.1, 4))), _bytes(s, kind)
    found = s.add("QLinearMatMul", x, scale, zero, weights, _scale(s, *size), own_zero, *out)
    return s.add("DequantizeLinear", found, *out)


@_draws("ConvInteger", "QLinearConv")
def _byte_convolution(s: Sketch) -> str:
    s.opset = max(s.opset, 10)
    rank, group, channels = s.integer(1, 2), s.integer(1, 2), s.integer(1, 2)
    kernel, filters = [s.integer(1, 3) for _ in range(rank)], group * s.integer(1, 2)
    s.source(1, group * channels, *(s.integer(1, 5) for _ in range(rank)))
    attributes = {**_window(s, rank, kernel), **s.some(dilations=[s.integer(1, 2) for _ in range(rank)])}
    attributes |= s.some(kernel_shape=kernel) | ({"group": group} if group > 1 else {})
    kind, own = s.pick([np.uint8, np.int8]), s.pick([np.uint8, np.int8])
    x, scale, zero = _byte_input(s, kind)
    weights, own_zero = _bytes(s, own, filters, channels, *kernel), _bytes(s, own)
    if s.chance():
        zeros = s.pick([[], [zero], [zero, own_zero]])
        found = s.add("ConvInteger", x, weights, *zeros, **attributes)
        return s.add("Cast", found, to=TensorProto.FLOAT)
    bias = [s.constant(s.rng.integers(-5000, 5000, filters).astype(np.int32))] * s.integer(0, 1)
    out = s.constant(np.float32(s.rng.uniform(0.1, 4))), _bytes(s, kind)
    scales = _scale(s, *((filters,) if s.chance(0.3) else ()))
    if s.chance(0.3):
        own_zero = s.constant(np.zeros(filters, own))
    found = s.add("QLinearConv", x, scale, zero, weights, scales, own_zero, *out, *bias, **attributes)
    return s.add("DequantizeLinear", found, *out)


_COORDINATES = (
    *("align_corners", "asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"),
    *("tf_crop_and_resize", "tf_half_pixel_for_nn"),
)


@_draws("Resize")
def _resize(s: Sketch) -> str:
    s.opset, coordinates = max(s.opset, 10), s.pick(_COORDINATES)
    if coordinates == "tf_half_pixel_for_nn":
        s.opset = s.pick([11, 12, s.opset])
    x = s.source(*s.sizes(1, 4, 5))
    axes = s.axes(len(s.shape), least=1) if s.opset >= 18 and s.chance() else None
    named = list(range(len(s.shape))) if axes is None else axes
    scales = s.constant(np.array([s.pick([1, 2, 0.5, 1.5, 0.6, 3, 1.3]) for _ in named], np.float32))
    sizes = s.integers([s.integer(1, 7) for _ in named])
    mode = {"mode": s.pick(["nearest", "nearest", "nearest", "linear"])} if s.chance(0.3) else {}
    if s.opset == 10:
        return s.add("Resize", x, scales, **mode)
    region = np.sort(s.rng.uniform(0, 1, (2, len(named))), axis=0).astype(np.float32)
    roi = s.constant(
        region if coordinates == "tf_crop_and_resize" or s.chance(0.2) else np.zeros(0, np.float32)
    )
    none = "" if s.opset >= 13 else s.constant(np.zeros(0, np.float32))
    attributes = mode | ({} if axes is None else {"axes": axes})
    attributes |= s.some(nearest_mode=s.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if coordinates != "half_pixel" or s.chance():
        attributes["coordinate_transformation_mode"] = coordinates
    for name, value in {"cubic_coeff_a": -0.5, "exclude_outside": 0, "extrapolation_value": 7.0}.items():
        attributes |= {name: value} if s.chance(0.2) else {}
    if s.opset >= 18 and s.chance(0.2):
        attributes |= s.some(antialias=0, keep_aspect_ratio_policy=s.pick(["stretch", "not_larger"]))
    return s.add("Resize", x, roi, *s.pick([[scales], [scales], [none, sizes]]), **attributes)


@_draws("Upsample")
def _upsample(s: Sketch) -> str:
    s.opset = s.integer(7, 9)
    x = s.any_source(1)
    scales = [s.pick([1.0, 2.0, 1.5, 3.0, 1.3]) for _ in s.shape]
    mode = s.some(mode=s.pick(["nearest", "nearest", "nearest", "linear"]))
    if s.opset < 9:
        return s.add("Upsample", x, scales=scales, **mode)
    return s.add("Upsample", x, s.constant(np.array(scales, np.float32)), **mode)


def _pool(s: Sketch, op: str) -> str:
    rank = s.integer(1, 3)
    kernel = [s.integer(1, 3) for _ in range(rank)]
    x = s.source(s.integer(1, 2), s.integer(1, 2), *(s.integer(1, 6) for _ in range(rank)))
    attributes = {"kernel_shape": kernel, **_window(s, rank, kernel)}
    if s.opset >= 10:
        attributes |= s.some(ceil_mode=s.integer(0, 1))
    if s.opset >= (10 if op == "MaxPool" else 19) and s.chance(0.3):
        attributes["dilations"] = [s.integer(1, 2) for _ in range(rank)]
    if op == "AveragePool":
        attributes |= s.some(count_include_pad=s.integer(0, 1))
    elif s.opset >= 8:
        attributes |= s.some(storage_order=s.integer(0, 1))
    return s.add(op, x, **attributes)


@_draws("LeakyRelu")
def _leaky_relu(s: Sketch) -> str:
    return s.add("LeakyRelu", s.any_source(), **s.some(alpha=float(s.rng.uniform(-1, 2))))


@_draws("Pow")
def _pow(s: Sketch) -> str:
    exponent = s.pick([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
    s.positive = exponent in (-2.0, -1.0, 0.5)
    x = s.any_source()
    shape = s.pick([(), (1,), (1, 1), s.shape])
    if s.opset >= 12 and exponent >= 1 and s.chance(0.3):
        return s.add("Pow", x, s.constant(np.full(shape, int(exponent), np.int64)))
    return s.add("Pow", x, s.constant(np.full(shape, exponent, np.float32)))


@_draws("Sqrt")
def _sqrt(s: Sketch) -> str:
    s.positive = True
    return s.add("Sqrt", s.any_source())


@_draws("Gelu")
def _gelu(s: Sketch) -> str:
    s.opset = max(s.opset, 20)
    return s.add("Gelu", s.any_source(), **s.some(approximate="none"))


@_draws("Clip")
def _clip(s: Sketch) -> str:
    low, high = np.sort(s.rng.uniform(-2, 2, 2)).astype(np.float32)
    x = s.any_source()
    if s.opset < 11:
        return s.add("Clip", x, **s.some(min=float(low), max=float(high)))
    ends = [s.pick(["", s.constant(end)]) for end in (low, high)]
    return s.add("Clip", x, *ends[: s.integer(0, 2)])


@_draws("Gemm")
def _gemm(s: Sketch) -> str:
    rows, inner, columns = (s.integer(1, 4) for _ in range(3))
    flags = s.some(transA=s.integer(0, 1), transB=s.integer(0, 1))
    attributes = flags | s.some(alpha=float(s.rng.uniform(-2, 2)), beta=float(s.rng.uniform(-2, 2)))
    x = s.source(*((inner, rows) if flags.get("transA") else (rows, inner)))
    b = s.floats(*((columns, inner) if flags.get("transB") else (inner, columns)))
    shapes = [(), (1,), (columns,), (1, columns), (rows, 1), (rows, columns)]
    c = [] if s.opset >= 11 and s.chance(0.3) else [s.floats(*s.pick(shapes))]
    return s.add("Gemm", x, b, *c, **attributes)


@_draws("MatMul")
def _matmul(s: Sketch) -> str:
    inner, batch = s.integer(1, 4), s.sizes(0, 2)
    other = tuple(n if s.chance() else 1 for n in batch[s.integer(0, len(batch)) :])
    left = s.pick([(inner,), (s.integer(1, 3), inner), (*batch, s.integer(1, 3), inner)])
    right = s.pick([(inner,), (inner, s.integer(1, 3)), (*other, inner, s.integer(1, 3))])
    if s.chance():
        return s.add("MatMul", s.source(*left), s.floats(*right))
    return s.add("MatMul", s.floats(*left), s.source(*right))


@_draws("BatchNormalization")
def _batch_normalization(s: Sketch) -> str:
    x = s.source(s.integer(1, 2), s.integer(1, 3), *s.sizes(0, 3))
    channels = s.shape[1]
    parameters = [s.floats(channels) for _ in range(3)]
    variance = s.constant(s.rng.uniform(0.1, 2, channels).astype(np.float32))
    attributes = s.some(epsilon=float(s.rng.uniform(0, 0.5)), momentum=0.5)
    if s.opset < 9:
        attributes |= s.some(spatial=s.integer(0, 1))
    if s.opset >= 14:
        attributes |= s.some(training_mode=0)
    count = 1 if s.opset >= 14 or s.chance(0.8) else 5
    name = s.add("BatchNormalization", x, *parameters, variance, outputs=count, **attributes)
    return name.rpartition("_")[0] + "_0"


@_draws("Softmax")
def _softmax(s: Sketch) -> str:
    x = s.any_source(1)
    return s.add("Softmax", x, **s.some(axis=s.axis(len(s.shape))))


@_draws("Flatten")
def _flatten(s: Sketch) -> str:
    x = s.any_source()
    return s.add("Flatten", x, **s.some(axis=s.integer(-len(s.shape), len(s.shape))))


@_draws("Reshape")
def _reshape(s: Sketch) -> str:
    x = s.any_source()
    shape = [s.shape[int(i)] for i in s.rng.permutation(len(s.shape))]
    if shape and s.chance(0.6):
        shape[s.integer(0, len(shape) - 1)] = s.pick([0, -1])
    if s.chance(0.3):
        shape.insert(s.integer(0, len(shape)), s.pick([1, -1, 0]))
    attributes = s.some(allowzero=s.integer(0, 1)) if s.opset >= 14 else {}
    return s.add("Reshape", x, s.integers(shape), **attributes)


@_draws("Transpose")
def _transpose(s: Sketch) -> str:
    x = s.any_source()
    return s.add("Transpose", x, **s.some(perm=[int(i) for i in s.rng.permutation(len(s.shape))]))


@_draws("Concat")
def _concat(s: Sketch) -> str:
    x = s.any_source(1)
    axis = s.axis(len(s.shape))
    others = []
    for _ in range(s.integer(0, 2)):
        shape = list(s.shape)
        shape[axis] = s.integer(1, 3)
        others.append(s.floats(*shape) if s.chance(0.8) else x)
    inputs = [x, *others]
    return s.add("Concat", *(inputs[int(i)] for i in s.rng.permutation(len(inputs))), axis=axis)


@_draws("Slice")
def _slice(s: Sketch) -> str:
    x = s.any_source(1)
    axes = s.axes(len(s.shape), least=1)
    steps = [s.pick([-2, -1, 1, 1, 2]) if s.opset >= 10 else 1 for _ in axes]
    low, high = [0, -(2**31), -(2**63)], [2**31 - 1, 2**63 - 1, -1]
    starts = [s.pick([s.integer(-5, 5), s.pick(low if step > 0 else high)]) for step in steps]
    stops = [s.pick([s.integer(-5, 5), s.pick(high if step > 0 else low)]) for step in steps]
    if s.chance(0.2):
        axes = list(range(len(axes)))
    named = s.chance(0.8) or axes != list(range(len(axes)))
    if s.opset < 10:
        return s.add("Slice", x, starts=starts, ends=stops, **({"axes": axes} if named else {}))
    more = [s.integers(axes) if named else "", s.integers(steps)]
    if all(step == 1 for step in steps):
        more = more[: s.integer(1 if named else 0, 2)]
    return s.add("Slice", x, s.integers(starts), s.integers(stops), *more)


@_draws("Split")
def _split(s: Sketch) -> str:
    x = s.any_source(1)
    axis = s.axis(len(s.shape))
    size, given = s.shape[axis], s.chance()
    attributes = {"axis": axis} if axis % len(s.shape) or s.chance() else {}
    count = s.integer(1, size)
    cuts = sorted(int(i) for i in s.rng.permutation(size - 1)[: count - 1] + 1) if size > 1 else []
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    if given and s.opset < 13:
        return s.add("Split", x, outputs=len(sizes), split=sizes, **attributes)
    if given:
        return s.add("Split", x, s.integers(sizes), outputs=len(sizes), **attributes)
    if s.opset >= 18:
        attributes["num_outputs"] = count
    return s.add("Split", x, outputs=count, **attributes)


@_draws("Gather")
def _gather(s: Sketch) -> str:
    x = s.any_source(1)
    axis = s.axis(len(s.shape))
    low = -s.shape[axis] if s.opset >= 11 or s.chance(0.2) else 0
    indices = s.rng.integers(low, s.shape[axis], s.sizes(0, 2, 3))
    kind = s.pick([np.int32, np.int64])
    attributes = {"axis": axis} if axis % len(s.shape) or s.chance() else {}
    return s.add("Gather", x, s.constant(np.asarray(indices, kind)), **attributes)


@_draws("Where")
def _where(s: Sketch) -> str:
    x = s.any_source()
    kept = [n if s.chance(0.7) else 1 for n in s.shape]
    condition = s.constant(s.rng.random(s.pick([s.shape, kept, kept[1:]])) < 0.5)
    other = x if s.chance(0.3) else s.floats(*s.pick([s.shape, kept, ()]))
    return s.add("Where", condition, *([x, other] if s.chance() else [other, x]))


@_draws("ScatterND")
def _scatter_nd(s: Sketch) -> str:
    s.opset = max(s.opset, 11)
    x = s.any_source(1)
    depth = s.integer(1, len(s.shape))
    size = s.shape[:depth]
    count = s.integer(1, int(np.prod(size)))
    chosen = np.stack(np.unravel_index(s.rng.permutation(int(np.prod(size)))[:count], size), axis=-1)
    indices = np.where(s.rng.random(chosen.shape) < 0.3, chosen - np.array(size), chosen)
    indices = indices[None] if s.chance(0.3) else indices
    updates = s.floats(*indices.shape[:-1], *s.shape[depth:])
    attributes = s.some(reduction="none") if s.opset >= 16 else {}
    return s.add("ScatterND", x, s.constant(indices.astype(np.int64)), updates, **attributes)


def _with_axes(s: Sketch, op: str, x: str, axes: list[int]) -> str:
    if s.opset < 13:
        return s.add(op, x, axes=axes)
    return s.add(op, x, s.integers(axes))


@_draws("Squeeze")
def _squeeze(s: Sketch) -> str:
    x = s.source(*(s.pick([1, 1, 2]) for _ in range(s.integer(0, 4))))
    if s.chance(0.3):
        return s.add("Squeeze", x)
    ones = [axis for axis, n in enumerate(s.shape) if n == 1]
    chosen = [axis - len(s.shape) if s.chance(0.3) else axis for axis in ones if s.chance(0.6)]
    return _with_axes(s, "Squeeze", x, chosen)


@_draws("Unsqueeze")
def _unsqueeze(s: Sketch) -> str:
    x = s.any_source()
    count = s.integer(1, 2)
    rank = len(s.shape) + count
    axes = [int(i) for i in s.rng.permutation(rank)[:count]]
    return _with_axes(s, "Unsqueeze", x, [axis - rank if s.chance(0.3) else axis for axis in axes])


@_draws("Expand")
def _expand(s: Sketch) -> str:
    x = s.source(*(s.pick([1, 1, 2, 3]) for _ in range(s.integer(0, 3))))
    shape = [s.pick([n, 1]) if n > 1 else s.integer(1, 3) for n in s.shape]
    shape = s.pick([shape, shape[s.integer(0, len(shape)) :], [s.integer(1, 2), *shape]])
    return s.add("Expand", x, s.integers(shape))


@_draws("Pad")
def _pad(s: Sketch) -> str:
    x = s.any_source(1)
    rank = len(s.shape)
    mode = s.some(mode=s.pick(["constant", "constant", "constant", "reflect", "edge"]))
    value = float(s.rng.uniform(-1, 1))
    pads = [s.pick([0, 1, 2, -1]) for _ in range(2 * rank)]
    if s.opset < 11:
        return s.add("Pad", x, pads=pads, **mode, **s.some(value=value))
    more = [s.pick(["", s.constant(np.float32(value))])]
    if s.opset >= 18 and s.chance():
        axes = s.axes(rank, least=1)
        pads = pads[: 2 * len(axes)]
        more.append(s.integers(axes))
    return s.add("Pad", x, s.integers(pads), *more[: s.integer(0 if len(more) == 1 else 2, 2)], **mode)


@_draws("Dropout")
def _dropout(s: Sketch) -> str:
    x = s.any_source()
    if s.opset < 12:
        return s.add("Dropout", x, **s.some(ratio=0.5))
    more = [s.constant(np.float32(0.5)), s.constant(np.array(False))]
    return s.add("Dropout", x, *more[: s.integer(0, 2)], **s.some(seed=3))


@_draws("Cast")
def _cast(s: Sketch) -> str:
    attributes = s.some(saturate=s.integer(0, 1)) if s.opset >= 19 else {}
    x = s.source(3)
    if s.chance(0.3):
        return s.add("Cast", x, to=TensorProto.FLOAT, **attributes)
    if s.chance(0.5):
        wide = s.add("Mul", x, s.constant(np.float32(s.pick([1, 40, 1e4]))))
        kinds = ("INT64", "INT64", "INT32", "INT16", "INT8", "UINT8", "BOOL", "DOUBLE")
        cast = s.add("Cast", wide, to=getattr(TensorProto, s.pick(kinds)), **attributes)
        return s.add("Cast", cast, to=TensorProto.FLOAT, **attributes)
    kinds = [np.float64, np.float32, np.float16, np.int32, np.int64, np.int8, np.uint8, np.bool_]
    kind = np.dtype(s.pick(kinds))
    array = np.asarray(s.pick([[0, 1, 2], [0.5, 1, 1], [-1, 0, 3], [300, 0, 1], [0.1, 0, 0]]))
    with np.errstate(all="ignore"):
        array = array.astype(kind)
    first = helper.np_dtype_to_tensor_dtype(np.dtype(s.pick(kinds)))
    inner = s.add("Cast", s.constant(array), to=first, **attributes)
    return s.add("Add", x, s.add("Cast", inner, to=TensorProto.FLOAT, **attributes))


@_draws("Constant")
def _constant(s: Sketch) -> str:
    x = s.source(2)
    tensor = numpy_helper.from_array(s.rng.uniform(-2, 2, s.pick([(), (2,), (1, 2)])).astype(np.float32))
    given: list[Mapping[str, Any]] = [{"value": tensor}]
    if s.opset >= 12:
        given += [{"value_float": 0.7}, {"value_floats": [0.1, -0.3]}]
    return s.add("Add", x, s.add("Constant", **s.pick(given)))


@_draws("Shape")
def _shape(s: Sketch) -> str:
    x = s.any_source(1)
    attributes = s.some(start=s.integer(-3, 2), end=s.integer(-2, 4)) if s.opset >= 15 else {}
    found = s.add("Cast", s.add("Shape", x, **attributes), to=TensorProto.FLOAT)
    return s.add("Mul", s.add("Reshape", x, s.integers([-1, 1])), found)


@_draws("Size")
def _size(s: Sketch) -> str:
    x = s.any_source()
    return s.add("Mul", x, s.add("Cast", s.add("Size", x), to=TensorProto.FLOAT))


@_draws("ConstantOfShape")
def _constant_of_shape(s: Sketch) -> str:
    x = s.any_source(1)
    value = numpy_helper.from_array(np.array([s.pick([0.5, 1, 0])], np.float32))
    filled = s.add("ConstantOfShape", s.add("Shape", x), **s.some(value=value))
    return s.add("Add", x, filled)


def _added(s: Sketch, integers: str) -> str:
    """The input plus integers that are known."""
    return s.add("Add", s.source(1), s.add("Cast", integers, to=TensorProto.FLOAT))


def _moved_integers(s: Sketch, op: str) -> str:
    """What is drawn of floats, with known integers in their place."""
    moved = DRAWS[op](s)
    for i, tensor in enumerate(s._constants):
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            s._constants[i] = numpy_helper.from_array((9 * array).astype(np.int64), tensor.name)
    numbers = s.constant(s.rng.integers(-9, 9, s.shape))
    for node in s.nodes:
        node.input[:] = [numbers if name == "x" else name for name in node.input]
    return _added(s, moved)


def _of_integers(s: Sketch, op: str) -> str:
    kind = s.pick([np.int64, np.int32]) if s.opset >= 12 or op not in ("Max", "Min") else np.int64
    low = 0 if s.chance() else -9
    if op == "Range":
        s.opset = max(s.opset, 11)
        step = s.pick([-2, -1, 1, 2, 3])
        values = [s.integer(-3, 3), s.integer(-1, 9) * (1 if step > 0 else -1), step]
        return _added(s, s.add(op, *(s.constant(np.array(v, kind)) for v in values)))
    numbers = [
        s.constant(s.rng.integers(low, 10, s.pick([(), (1,), (3,), (2, 3), (2, 1)])).astype(kind))
        for _ in range(1 if op in ("Abs", "Neg") else 2)
    ]
    attributes = s.some(fmod=s.integer(0, 1)) if op == "Mod" else {}
    return _added(s, s.add(op, *numbers, **attributes))


def _logic(s: Sketch, op: str) -> str:
    truths = [s.constant(s.rng.random((2, 3)) < 0.5) for _ in range(2)]
    numbers = [s.constant(s.rng.integers(-2, 3, (2, 3))) for _ in range(2)]
    if op == "Where":
        return _added(s, s.add(op, truths[0], *numbers))
    if op == "Not":
        return _added(s, s.add(op, truths[0]))
    return _added(s, s.add(op, *(numbers if op in ("Equal", "Greater", "Less") else truths)))


def _reduced_integers(s: Sketch, op: str) -> str:
    rank = s.integer(1, 3)
    array = s.constant(s.rng.integers(-3, 4, [2] * rank).astype(s.pick([np.int64, np.int32])))
    attributes = s.some(keepdims=s.integer(0, 1))
    axes = s.axes(rank)
    if s.opset < (13 if op == "ReduceSum" else 18):
        return _added(s, s.add(op, array, **attributes, **s.some(axes=axes)))
    attributes |= s.some(noop_with_empty_axes=s.integer(0, 1))
    return _added(s, s.add(op, array, *s.pick([[], [s.integers(axes)]]), **attributes))


_register_elementwise()
