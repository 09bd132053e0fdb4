"""Small ONNX models that between them use every operator that can be read.

`STEPS` holds one function per operator or form of one: it puts that operator behind a tensor of any
shape. `ONE_OF_EACH` applies each alone, at several opsets; `models()` chains random ones. For inputs
of absolute value up to 2 everything stays far below the overflow of float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import onnx
from hypothesis import assume
from hypothesis import strategies as st

from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from tests.networks.building import Array, Builder

Rng = np.random.Generator
Step = Callable[[Builder, str, Rng], str]
OPSETS = (8, 12, 17, 22)
_MOST = 64

STEPS: dict[str, Step] = {}
#: The first opset that knows the form of the operator.
_SINCE: dict[str, int] = {}


def _step(name: str, *, since: int = 0) -> Callable[[Step], Step]:
    def register(step: Step) -> Step:
        STEPS[name] = step
        _SINCE[name] = since
        return step

    return register


def numbers(rng: Rng, *shape: int) -> Array:
    """Float32 numbers up to 1, half of them short fractions, the others with all bits set at random."""
    short = rng.integers(-8, 9, size=shape) / 8.0
    return np.where(rng.random(shape) < 0.5, short, rng.uniform(-1, 1, size=shape)).astype(np.float32)


def _size(b: Builder, x: str) -> int:
    return int(np.prod(b.shapes[x]))


def _flat(b: Builder, x: str) -> str:
    """The tensor as one row."""
    return x if len(b.shapes[x]) == 2 and b.shapes[x][0] == 1 else b.add("Flatten", x, axis=0)


def _of_size(b: Builder, x: str, size: int, rng: Rng) -> str:
    """A row of exactly `size` numbers made from the tensor."""
    row = _flat(b, x)
    return row if _size(b, x) == size else b.add("MatMul", row, b.constant(numbers(rng, _size(b, x), size)))


def _image(b: Builder, x: str, rng: Rng) -> str:
    """A tensor of shape [1, 2, 5, 4] made from the tensor."""
    if b.shapes[x] == (1, 2, 5, 4):
        return x
    return b.add("Reshape", _of_size(b, x, 40, rng), b.integers([1, 2, 5, 4]))


def _matrix(b: Builder, x: str, rng: Rng) -> str:
    """A tensor of shape [2, 6] made from the tensor."""
    return b.add("Reshape", _of_size(b, x, 12, rng), b.integers([2, 6]))


def _register_elementwise() -> None:
    for op in ("Relu", "Sigmoid", "Tanh", "Neg", "Identity"):
        STEPS[op] = lambda b, x, rng, op=op: b.add(op, x)
    for op in ("Add", "Sub", "Mul", "Max", "Min"):
        STEPS[op] = lambda b, x, rng, op=op: b.add(op, b.clip(x, -8, 8), b.clip(x, -4, 16))
        STEPS[f"{op}/constant"] = lambda b, x, rng, op=op: b.add(
            op, x, b.constant(numbers(rng, *b.shapes[x]))
        )
        STEPS[f"{op}/broadcast"] = lambda b, x, rng, op=op: b.add(
            op, b.constant(numbers(rng, 2, 1)), _flat(b, x)
        )
    for op in ("Max", "Min"):
        STEPS[f"{op}/many"] = lambda b, x, rng, op=op: b.add(
            op, x, b.constant(numbers(rng, 1)), b.add("Neg", x)
        )
        STEPS[f"{op}/one"] = lambda b, x, rng, op=op: b.add(op, x)
    for name in STEPS:
        _SINCE.setdefault(name, 0)


_register_elementwise()


@_step("LeakyRelu")
def _leaky_relu(b: Builder, x: str, rng: Rng) -> str:
    return b.add("LeakyRelu", x)


@_step("LeakyRelu/alpha")
def _leaky_relu_alpha(b: Builder, x: str, rng: Rng) -> str:
    return b.add("LeakyRelu", x, alpha=float(rng.choice([0.25, 0.1, -0.5, 1.5])))


@_step("Exp")
def _exp(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Exp", b.clip(x, -4, 4))


def _spaced(b: Builder, x: str, rng: Rng, scale: float = 0.3) -> str:
    """A multiple of the tensor plus a number: short fractions do not come where a step function jumps."""
    scaled = b.add("Mul", x, b.constant(scale * rng.uniform(1, 2)))
    return b.add("Add", scaled, b.constant(rng.uniform(0.1, 0.2)))


@_step("Floor")
def _floor(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Floor", _spaced(b, x, rng, 4.0))


@_step("Round", since=11)
def _round(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Round", _spaced(b, x, rng, 4.0))


@_step("QuantizeLinear", since=10)
def _quantized(b: Builder, x: str, rng: Rng) -> str:
    parameters = b.constant(np.float32(0.25)), b.constant(np.array(3, np.int8), np.int8)
    return b.add("DequantizeLinear", b.add("QuantizeLinear", _spaced(b, x, rng), *parameters), *parameters)


@_step("Sign", since=9)
def _sign(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Sign", _spaced(b, x, rng))


@_step("Cos")
def _cos(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Cos", x)


@_step("Erf", since=9)
def _erf(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Erf", x)


@_step("Gelu", since=20)
def _gelu(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Gelu", x)


@_step("Sqrt")
def _sqrt(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Sqrt", b.clip(x, 0.25, 16))


@_step("Sin")
def _sin(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Sin", x)


@_step("Cast/truncated")
def _cast_truncated(b: Builder, x: str, rng: Rng) -> str:
    near = b.clip(x, -(2.0**40), 2.0**40)  # int64 holds eight times that
    whole = b.add("Cast", _spaced(b, near, rng, 4.0), to=onnx.TensorProto.INT64)
    return b.add("Cast", b.add("Transpose", whole), to=onnx.TensorProto.FLOAT)


@_step("Cast/bool")
def _cast_bool(b: Builder, x: str, rng: Rng) -> str:
    kept = b.add("Cast", b.add("Relu", _spaced(b, x, rng)), to=onnx.TensorProto.BOOL)
    return b.add("Cast", kept, to=onnx.TensorProto.FLOAT)


@_step("Clip")
def _clip(b: Builder, x: str, rng: Rng) -> str:
    return b.clip(x, -0.3, 0.7)


@_step("Clip/below")
def _clip_below(b: Builder, x: str, rng: Rng) -> str:
    return b.clip(x, 0.1, None)


@_step("Clip/above")
def _clip_above(b: Builder, x: str, rng: Rng) -> str:
    return b.clip(x, None, 0.1)


@_step("Div")
def _div(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Div", x, b.clip(x, 0.5, 4))


@_step("Div/constant")
def _div_constant(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Div", x, b.constant(rng.choice([0.3, -0.5, 2.0, 3.0], size=b.shapes[x])))


@_step("Pow")
def _pow(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Pow", b.clip(x, -3, 3), b.constant(float(rng.choice([0, 1, 2, 3]))))


@_step("Pow/fraction")
def _pow_fraction(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Pow", b.clip(x, 0.25, 4), b.constant([float(rng.choice([0.5, -1, -2, 1.5]))]))


@_step("Pow/integer", since=12)
def _pow_integer(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Pow", b.clip(x, -3, 3), b.integers([[2]]))


@_step("Gemm")
def _gemm(b: Builder, x: str, rng: Rng) -> str:
    row = _flat(b, x)
    return b.add("Gemm", row, b.constant(numbers(rng, _size(b, x), 5)), b.constant(numbers(rng, 5)))


@_step("Gemm/scaled")
def _gemm_scaled(b: Builder, x: str, rng: Rng) -> str:
    weights, bias = b.constant(numbers(rng, 4, 6)), b.constant(numbers(rng, 2, 1))
    return b.add("Gemm", _matrix(b, x, rng), weights, bias, alpha=0.5, beta=-0.3, transB=1)


@_step("Gemm/transposed", since=11)
def _gemm_transposed(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Gemm", _matrix(b, x, rng), b.constant(numbers(rng, 2, 3)), transA=1)


@_step("Gemm/variables")
def _gemm_variables(b: Builder, x: str, rng: Rng) -> str:
    a = b.clip(_matrix(b, x, rng), -4, 4)
    return b.add("Gemm", a, a, b.constant(numbers(rng, 1)), transB=1, beta=2.0)


@_step("MatMul")
def _matmul(b: Builder, x: str, rng: Rng) -> str:
    return b.add("MatMul", _flat(b, x), b.constant(numbers(rng, _size(b, x), 3)))


@_step("MatMul/left")
def _matmul_left(b: Builder, x: str, rng: Rng) -> str:
    return b.add("MatMul", b.constant(numbers(rng, 2, 3, 2)), _matrix(b, x, rng))


@_step("MatMul/variables")
def _matmul_variables(b: Builder, x: str, rng: Rng) -> str:
    a = b.clip(_matrix(b, x, rng), -4, 4)
    return b.add("MatMul", a, b.add("Transpose", a, perm=[1, 0]))


@_step("MatMul/vector")
def _matmul_vector(b: Builder, x: str, rng: Rng) -> str:
    return b.add("MatMul", _matrix(b, x, rng), b.constant(numbers(rng, 6)))


@_step("Conv")
def _conv(b: Builder, x: str, rng: Rng) -> str:
    weights, bias = b.constant(numbers(rng, 3, 2, 3, 2)), b.constant(numbers(rng, 3))
    return b.add("Conv", _image(b, x, rng), weights, bias, pads=[1, 0, 1, 1], strides=[2, 1])


@_step("Conv/grouped")
def _conv_grouped(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Conv", _image(b, x, rng), b.constant(numbers(rng, 4, 1, 2, 2)), group=2, strides=[2, 2])


@_step("Conv/dilated")
def _conv_dilated(b: Builder, x: str, rng: Rng) -> str:
    return b.add(
        "Conv", _image(b, x, rng), b.constant(numbers(rng, 1, 2, 2, 2)), dilations=[3, 2], pads=[0, 1, 1, 0]
    )


@_step("Conv/same-upper")
def _conv_same_upper(b: Builder, x: str, rng: Rng) -> str:
    weights = b.constant(numbers(rng, 2, 2, 2, 3))
    return b.add("Conv", _image(b, x, rng), weights, auto_pad="SAME_UPPER", strides=[2, 3])


@_step("Conv/same-lower")
def _conv_same_lower(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Conv", _image(b, x, rng), b.constant(numbers(rng, 1, 2, 2, 2)), auto_pad="SAME_LOWER")


@_step("Conv/valid")
def _conv_valid(b: Builder, x: str, rng: Rng) -> str:
    weights = b.constant(numbers(rng, 1, 2, 5, 4))
    return b.add("Conv", _image(b, x, rng), weights, auto_pad="VALID", kernel_shape=[5, 4])


@_step("Conv/line")
def _conv_line(b: Builder, x: str, rng: Rng) -> str:
    line = b.add("Reshape", _of_size(b, x, 12, rng), b.integers([1, 2, 6]))
    return b.add("Conv", line, b.constant(numbers(rng, 2, 2, 3)), b.constant(numbers(rng, 2)), pads=[1, 0])


@_step("ConvTranspose")
def _conv_transpose(b: Builder, x: str, rng: Rng) -> str:
    weights, bias = b.constant(numbers(rng, 2, 3, 3, 2)), b.constant(numbers(rng, 3))
    return b.add("ConvTranspose", _image(b, x, rng), weights, bias, pads=[1, 0, 1, 1], strides=[2, 1])


@_step("ConvTranspose/grouped")
def _conv_transpose_grouped(b: Builder, x: str, rng: Rng) -> str:
    weights, more = b.constant(numbers(rng, 2, 1, 2, 2)), {"output_padding": [1, 0], "dilations": [1, 2]}
    return b.add("ConvTranspose", _image(b, x, rng), weights, group=2, strides=[3, 2], **more)


@_step("ConvTranspose/line")
def _conv_transpose_line(b: Builder, x: str, rng: Rng) -> str:
    line = b.add("Reshape", _of_size(b, x, 12, rng), b.integers([1, 2, 6]))
    return b.add(
        "ConvTranspose", line, b.constant(numbers(rng, 2, 2, 4)), auto_pad="SAME_LOWER", strides=[2]
    )


@_step("AveragePool")
def _average_pool(b: Builder, x: str, rng: Rng) -> str:
    return b.add("AveragePool", _image(b, x, rng), kernel_shape=[2, 3], pads=[1, 1, 0, 1], strides=[1, 2])


@_step("AveragePool/padded")
def _average_pool_padded(b: Builder, x: str, rng: Rng) -> str:
    return b.add("AveragePool", _image(b, x, rng), kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)


@_step("AveragePool/ceiled", since=10)
def _average_pool_ceiled(b: Builder, x: str, rng: Rng) -> str:
    return b.add("AveragePool", _image(b, x, rng), kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1)


@_step("AveragePool/dilated", since=19)
def _average_pool_dilated(b: Builder, x: str, rng: Rng) -> str:
    return b.add("AveragePool", _image(b, x, rng), kernel_shape=[2, 2], dilations=[2, 3])


@_step("AveragePool/same")
def _average_pool_same(b: Builder, x: str, rng: Rng) -> str:
    return b.add(
        "AveragePool", _image(b, x, rng), kernel_shape=[2, 2], auto_pad="SAME_UPPER", strides=[2, 1]
    )


@_step("MaxPool")
def _max_pool(b: Builder, x: str, rng: Rng) -> str:
    return b.add("MaxPool", _image(b, x, rng), kernel_shape=[2, 3], pads=[1, 1, 0, 1], strides=[2, 1])


@_step("MaxPool/dilated", since=10)
def _max_pool_dilated(b: Builder, x: str, rng: Rng) -> str:
    return b.add("MaxPool", _image(b, x, rng), kernel_shape=[2, 2], dilations=[2, 3])


@_step("MaxPool/ceiled", since=10)
def _max_pool_ceiled(b: Builder, x: str, rng: Rng) -> str:
    return b.add("MaxPool", _image(b, x, rng), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)


@_step("GlobalAveragePool")
def _global_average_pool(b: Builder, x: str, rng: Rng) -> str:
    return b.add("GlobalAveragePool", _image(b, x, rng))


@_step("BatchNormalization")
def _batch_normalization(b: Builder, x: str, rng: Rng) -> str:
    parameters = [b.constant(numbers(rng, 2)) for _ in range(3)]
    variance = b.constant(rng.uniform(0.25, 2, size=2))
    return b.add("BatchNormalization", _image(b, x, rng), *parameters, variance, epsilon=0.01)


@_step("BatchNormalization/row")
def _batch_normalization_row(b: Builder, x: str, rng: Rng) -> str:
    parameters = [b.constant(numbers(rng, 6)) for _ in range(3)]
    return b.add("BatchNormalization", _of_size(b, x, 6, rng), *parameters, b.constant(np.ones(6)))


@_step("Softmax")
def _softmax(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Softmax", b.clip(_flat(b, x), -8, 8))


@_step("Softmax/inner")
def _softmax_inner(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Softmax", b.clip(_image(b, x, rng), -8, 8), axis=2)


@_step("Softmax/default")
def _softmax_default(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Softmax", b.clip(_image(b, x, rng), -8, 8))


@_step("Softmax/negative", since=11)
def _softmax_negative(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Softmax", b.clip(_image(b, x, rng), -8, 8), axis=-3)


@_step("Flatten")
def _flatten(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Flatten", x) if b.shapes[x] else x  # a scalar has no axis 1


@_step("Flatten/axis")
def _flatten_axis(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Flatten", _image(b, x, rng), axis=3 if b.opset < 11 else -1)


@_step("Reshape")
def _reshape(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Reshape", _image(b, x, rng), b.integers([0, -1, 4]))


@_step("Reshape/computed", since=13)
def _reshape_computed(b: Builder, x: str, rng: Rng) -> str:
    image = _image(b, x, rng)
    batch = b.add("Gather", b.add("Shape", image), b.integers([0]))
    return b.add("Reshape", image, b.add("Concat", batch, b.integers([-1]), axis=0))


@_step("Transpose")
def _transpose(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Transpose", x)


@_step("Transpose/perm")
def _transpose_perm(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Transpose", _image(b, x, rng), perm=[0, 2, 3, 1])


@_step("Transpose/constant")
def _transpose_constant(b: Builder, x: str, rng: Rng) -> str:
    weights = b.add("Transpose", b.constant(numbers(rng, 3, _size(b, x))))
    return b.add("MatMul", _flat(b, x), weights)


@_step("Concat")
def _concat(b: Builder, x: str, rng: Rng) -> str:
    image = _image(b, x, rng)
    return b.add("Concat", b.add("Relu", image), b.constant(numbers(rng, 1, 1, 5, 4)), axis=1)


@_step("Concat/negative")
def _concat_negative(b: Builder, x: str, rng: Rng) -> str:
    row = _flat(b, x)
    return b.add("Concat", row, b.add("Neg", row), axis=1 if b.opset < 11 else -1)


@_step("Slice")
def _slice(b: Builder, x: str, rng: Rng) -> str:
    return b.slice(_image(b, x, rng), [1, -3], [2**31 - 1, -1], [2, 3])


@_step("Slice/default")
def _slice_default(b: Builder, x: str, rng: Rng) -> str:
    image = _image(b, x, rng)
    if b.opset < 10:
        return b.add("Slice", image, starts=[0, -2], ends=[1, 1])
    return b.add("Slice", image, b.integers([0, -100]), b.integers([1, 1]))


@_step("Slice/backward", since=10)
def _slice_backward(b: Builder, x: str, rng: Rng) -> str:
    return b.slice(_image(b, x, rng), [-1, 3], [-(2**31), 0], [-2, 3], [-2, -1])


@_step("Slice/clamped", since=10)
def _slice_clamped(b: Builder, x: str, rng: Rng) -> str:
    return b.slice(_image(b, x, rng), [100, -100], [-100, 100], [2, 3], [-1, 3])


@_step("Split")
def _split(b: Builder, x: str, rng: Rng) -> str:
    first, second = b.split(_image(b, x, rng), [1, 3], 3)
    return b.add("Add", first, second)


@_step("Split/equal")
def _split_equal(b: Builder, x: str, rng: Rng) -> str:
    image = _image(b, x, rng)
    extra = {"num_outputs": 2} if b.opset >= 18 else {}
    first, second = b.add_many("Split", image, outputs=2, axis=1, **extra)
    return b.add("Sub", second, first)


@_step("Split/uneven", since=18)
def _split_uneven(b: Builder, x: str, rng: Rng) -> str:
    parts = b.add_many("Split", _image(b, x, rng), outputs=3, axis=-2, num_outputs=3)
    return b.add("Mul", b.clip(parts[0], -4, 4), b.clip(parts[2], -4, 4))


@_step("Gather")
def _gather(b: Builder, x: str, rng: Rng) -> str:
    indices = [[4, 0], [2, 2]] if b.opset < 11 else [[-1, 0], [2, -3]]
    return b.add("Gather", _image(b, x, rng), b.constant(indices, np.int64), axis=2)


@_step("Gather/scalar")
def _gather_scalar(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Gather", _image(b, x, rng), b.constant(1, np.int64), axis=1)


@_step("Upsample")
def _upsample(b: Builder, x: str, rng: Rng) -> str:
    image, scales = _image(b, x, rng), [1.0, 1.0, 3.0, 2.0]
    if b.opset < 9:
        return b.add("Upsample", image, scales=scales)
    modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return b.add("Resize", image, b.constant(np.zeros(0)), b.constant(scales), **modes)


@_step("Resize", since=11)
def _resize(b: Builder, x: str, rng: Rng) -> str:
    none = b.constant(np.zeros(0))
    return b.add("Resize", _image(b, x, rng), none, none, b.integers([1, 2, 7, 3]))


@_step("Resize/scales", since=13)
def _resize_scales(b: Builder, x: str, rng: Rng) -> str:
    modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return b.add("Resize", _image(b, x, rng), "", b.constant([1, 1.5, 2, 0.5]), **modes)


@_step("Resize/axes", since=18)
def _resize_axes(b: Builder, x: str, rng: Rng) -> str:
    modes = {"coordinate_transformation_mode": "align_corners", "nearest_mode": "round_prefer_ceil"}
    return b.add("Resize", _image(b, x, rng), "", "", b.integers([6, 2]), axes=[-1, 1], **modes)


@_step("Squeeze")
def _squeeze(b: Builder, x: str, rng: Rng) -> str:
    return b.attribute_or_input("Squeeze", _image(b, x, rng), 13, "axes", [0])


@_step("Squeeze/all")
def _squeeze_all(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Squeeze", _image(b, x, rng))


@_step("Unsqueeze")
def _unsqueeze(b: Builder, x: str, rng: Rng) -> str:
    return b.attribute_or_input("Unsqueeze", _flat(b, x), 13, "axes", [0, 2])


@_step("Expand")
def _expand(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Expand", _flat(b, x), b.integers([2, 2, 1]))


@_step("ReduceSum")
def _reduce_sum(b: Builder, x: str, rng: Rng) -> str:
    return b.attribute_or_input("ReduceSum", _image(b, x, rng), 13, "axes", [1, 3], keepdims=0)


@_step("ReduceSum/all")
def _reduce_sum_all(b: Builder, x: str, rng: Rng) -> str:
    return b.add("ReduceSum", _image(b, x, rng))


@_step("ReduceSum/noop", since=13)
def _reduce_sum_noop(b: Builder, x: str, rng: Rng) -> str:
    return b.add("ReduceSum", x, b.integers([]), noop_with_empty_axes=1)


@_step("ReduceSum/empty", since=13)
def _reduce_sum_empty(b: Builder, x: str, rng: Rng) -> str:
    return b.add("ReduceSum", x, b.integers([]), keepdims=1)


@_step("ReduceMean")
def _reduce_mean(b: Builder, x: str, rng: Rng) -> str:
    axes = [2, 1] if b.opset < 11 else [-2, 1]
    return b.attribute_or_input("ReduceMean", _image(b, x, rng), 18, "axes", axes)


@_step("ReduceMean/all")
def _reduce_mean_all(b: Builder, x: str, rng: Rng) -> str:
    return b.add("ReduceMean", _image(b, x, rng), keepdims=0)


@_step("Pad")
def _pad(b: Builder, x: str, rng: Rng) -> str:
    return b.pad(_flat(b, x), [1, 0, 0, 2], 0.7)


@_step("Pad/crop")
def _pad_crop(b: Builder, x: str, rng: Rng) -> str:
    return b.pad(_image(b, x, rng), [0, 0, -1, 1, 0, 0, 1, -2], None)


@_step("Pad/axes", since=18)
def _pad_axes(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Pad", _image(b, x, rng), b.integers([1, 0, 0, 1]), "", b.integers([-1, 1]))


@_step("Constant")
def _constant(b: Builder, x: str, rng: Rng) -> str:
    value = onnx.numpy_helper.from_array(numbers(rng, 1))
    return b.add("Sub", b.add("Constant", value=value), x)


@_step("Constant/float", since=12)
def _constant_float(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Mul", x, b.add("Constant", value_float=0.3))


@_step("ConstantOfShape", since=9)
def _constant_of_shape(b: Builder, x: str, rng: Rng) -> str:
    value = onnx.numpy_helper.from_array(np.array([0.1], dtype=np.float32))
    return b.add("Add", x, b.add("ConstantOfShape", b.add("Shape", x), value=value))


@_step("Cast")
def _cast(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Cast", x, to=onnx.TensorProto.FLOAT)


@_step("Cast/integer")
def _cast_integer(b: Builder, x: str, rng: Rng) -> str:
    # Of a scalar the shape is empty, so it is taken of at least one number in a row.
    shape = b.add("Shape", b.add("Reshape", x, b.integers([1, -1])))
    size = b.add("ReduceSum", b.add("Cast", shape, to=onnx.TensorProto.FLOAT), keepdims=1)
    return b.add("Div", x, size)


@_step("Dropout")
def _dropout(b: Builder, x: str, rng: Rng) -> str:
    return b.add("Dropout", x)


@_step("Dropout/ratio")
def _dropout_ratio(b: Builder, x: str, rng: Rng) -> str:
    if b.opset < 12:
        return b.add("Dropout", x, ratio=0.5)
    return b.add("Dropout", x, b.constant(0.5), b.constant(False, np.bool_))


def _one(name: str, opset: int) -> onnx.ModelProto:
    rng = np.random.default_rng(sorted(STEPS).index(name))
    builder = Builder((1, 2, 5, 4), opset=opset)
    return builder.model(STEPS[name](builder, "x", rng))


#: One model per operator, form and opset, named like "Conv/grouped@12".
ONE_OF_EACH: dict[str, onnx.ModelProto] = {
    f"{name}@{opset}": _one(name, opset)
    for name in sorted(STEPS)
    for opset in OPSETS
    if opset >= _SINCE[name]
}


@cache
def network_of(name: str) -> Network:
    """One of these models, read once in each process."""
    return read_onnx(ONE_OF_EACH[name].SerializeToString())


def _grown(b: Builder, tensor: str, names: list[str], rng: Rng) -> str:
    for name in names:
        grown = STEPS[name](b, tensor, rng)
        tensor = grown if 0 < _size(b, grown) <= _MOST else _of_size(b, grown, 6, rng)
    return tensor


def _chained(
    names: list[str], fixed: list[str], join: str, shape: tuple[int, ...], opset: int, seed: int
) -> onnx.ModelProto:
    rng = np.random.default_rng(seed)
    builder = Builder(shape, opset=opset)
    tensor = _grown(builder, "x", names, rng)
    if fixed:
        other = _grown(builder, builder.constant(numbers(rng, *shape)), fixed, rng)
        rows = [builder.clip(_of_size(builder, each, 4, rng), -8, 8) for each in (other, tensor)]
        axis = {"axis": 1} if join == "Concat" else {}
        tensor = other if join == "" else builder.add(join, *rows, **axis)
    return builder.model(tensor)


@st.composite
def models(draw: st.DrawFn, most_steps: int = 5) -> onnx.ModelProto:
    """A random model of one to `most_steps` steps (a step is its operator and what prepares its input).

    In some, what is computed of constants comes beside it, or in its place.
    """
    opset = draw(st.sampled_from(OPSETS))
    known = [name for name in sorted(STEPS) if _SINCE[name] <= opset]
    names = draw(st.lists(st.sampled_from(known), min_size=1, max_size=most_steps))
    fixed = draw(st.one_of(st.just([]), st.lists(st.sampled_from(known), min_size=1, max_size=2)))
    join = draw(st.sampled_from(["Add", "Sub", "Mul", "Max", "Concat", ""]))
    shape = draw(st.sampled_from([(1, 4), (1, 2, 5, 4), (1, 3, 2), (1, 1)]))
    model = _chained(names, fixed, join, shape, opset, draw(st.integers(0, 2**32 - 1)))
    # Of some chains the shapes cannot be inferred; files without the shape of the output are refused.
    assume(model.graph.output[0].type.tensor_type.HasField("shape"))
    return model
