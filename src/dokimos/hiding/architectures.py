"""The nine architectures of SoundnessBench as ONNX graphs with random weights, at a scale for CPUs.

Weights that training may change are called `weight_…` and `bias_…`. Dense widths of 100 and more are
multiplied by the scale. Convolutions are 3×3 with stride 1 and padding 1. The average pool is 3×3 as
there, but with stride 2 (there: 1) and padding 1, which is not counted; this matters at the border. Batch
normalisation in the transformer is the affine map that it becomes after training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np

from dokimos.core.errors import InputError
from dokimos.core.registry import unknown_name
from dokimos.networks.writing.builder import GraphBuilder

CLASSES = 2
#: Widths below this are not scaled.
_SCALED_FROM = 100
_WIDTH, _HEADS, _DEPTH = 16, 2, 2


class _Sketch:
    """A graph in the making: the tensor that the next layer reads, and its shape without the batch."""

    def __init__(self, shape: Sequence[int], scale: float, rng: np.random.Generator) -> None:
        self.graph, self.last, self.shape = GraphBuilder(), "X", tuple(shape)
        self._scale, self._rng, self._count = scale, rng, 0

    def weight(self, *shape: int, fan_in: int) -> str:
        self._count += 1
        drawn = self._rng.normal(size=shape) * (2 / fan_in) ** 0.5
        return self.graph.constant(drawn.astype(np.float32), name=f"weight_{self._count}")

    def bias(self, *shape: int, value: float = 0.0) -> str:
        self._count += 1
        return self.graph.constant(np.full(shape, value, np.float32), name=f"bias_{self._count}")

    def node(self, op: str, *inputs: str, shape: Sequence[int], **attributes: object) -> str:
        self.last, self.shape = self.graph.node(op, *inputs, **attributes), tuple(shape)
        return self.last

    def act(self, op: str) -> None:
        self.node(op, self.last, shape=self.shape)

    def conv(self, channels: int) -> None:
        before, *image = self.shape
        weight = self.weight(channels, before, 3, 3, fan_in=9 * before)
        self.node(
            *("Conv", self.last, weight, self.bias(channels)),
            shape=(channels, *image),
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
        )

    def pool(self) -> None:
        channels, *image = self.shape
        after = [(size + 1) // 2 for size in image]
        options = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 0}
        self.node("AveragePool", self.last, shape=(channels, *after), **options)

    def flatten(self) -> None:
        if len(self.shape) > 1:
            self.node("Flatten", self.last, shape=(prod(self.shape),), axis=1)

    def dense(self, width: int) -> None:
        (before,) = self.shape
        width = width if width < _SCALED_FROM else max(8, round(width * self._scale))
        weight = self.weight(width, before, fan_in=before)
        self.node("Gemm", self.last, weight, self.bias(width), shape=(width,), transB=1)


def _convolutional(
    channels: Sequence[int], act: str = "Relu", *, pooled: bool = False
) -> Callable[..., None]:
    def draw(sketch: _Sketch) -> None:
        for count in channels:
            sketch.conv(count)
            sketch.act(act)
        if pooled:
            sketch.pool()
        sketch.flatten()
        for width in (1000, 100, 20):
            sketch.dense(width)
            sketch.act(act)
        sketch.dense(CLASSES)

    return draw


def _dense(wide: int) -> Callable[..., None]:
    def draw(sketch: _Sketch) -> None:
        sketch.flatten()
        for width in (100, *[1000] * wide, 20):
            sketch.dense(width)
            sketch.act("Relu")
        sketch.dense(CLASSES)

    return draw


def _transformer(sketch: _Sketch) -> None:
    channels, height, width = sketch.shape
    tokens = height * width
    graph = sketch.graph
    shape = graph.constant([1, channels, tokens], np.int64)
    patches = graph.node("Transpose", graph.node("Reshape", "X", shape), perm=[0, 2, 1])
    x = graph.node("MatMul", patches, sketch.weight(channels, _WIDTH, fan_in=channels))
    x = graph.node("Add", x, sketch.weight(tokens, _WIDTH, fan_in=50))
    for _ in range(_DEPTH):
        x = graph.node("Add", x, _attention(sketch, _normalised(sketch, x)))
        hidden = graph.node("MatMul", _normalised(sketch, x), sketch.weight(_WIDTH, 32, fan_in=_WIDTH))
        hidden = graph.node("Relu", graph.node("Add", hidden, sketch.bias(32)))
        out = graph.node("MatMul", hidden, sketch.weight(32, _WIDTH, fan_in=32))
        x = graph.node("Add", x, graph.node("Add", out, sketch.bias(_WIDTH)))
    mean = graph.node("ReduceMean", x, axes=[1], keepdims=0)
    sketch.last, sketch.shape = mean, (_WIDTH,)
    sketch.dense(CLASSES)


def _normalised(sketch: _Sketch, x: str) -> str:
    scaled = sketch.graph.node("Mul", x, sketch.bias(_WIDTH, value=1.0))
    return sketch.graph.node("Add", scaled, sketch.bias(_WIDTH))


def _attention(sketch: _Sketch, x: str) -> str:
    graph, size = sketch.graph, _WIDTH // _HEADS
    heads = []
    for _ in range(_HEADS):
        query, key, value = (
            graph.node("MatMul", x, sketch.weight(_WIDTH, size, fan_in=2 * _WIDTH)) for _ in range(3)
        )
        scores = graph.node("MatMul", query, graph.node("Transpose", key, perm=[0, 2, 1]))
        scores = graph.node("Mul", scores, graph.constant(np.float32(size**-0.5)))
        heads.append(graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value))
    joined = graph.node("Concat", *heads, axis=2)
    out = graph.node("MatMul", joined, sketch.weight(_WIDTH, _WIDTH, fan_in=_WIDTH))
    return graph.node("Add", out, sketch.bias(_WIDTH))


#: By name: what draws the layers of one.
ARCHITECTURES: Mapping[str, Callable[[_Sketch], None]] = MappingProxyType(
    {
        "cnn1": _convolutional((10,)),
        "cnn2": _convolutional((5, 10)),
        "cnn3": _convolutional((5, 10, 20)),
        "avgpool": _convolutional((10,), pooled=True),
        "tanh": _convolutional((10,), "Tanh"),
        "sigmoid": _convolutional((10,), "Sigmoid"),
        "mlp4": _dense(3),
        "mlp5": _dense(4),
        "vit": _transformer,
    }
)


def draw_network(
    architecture: str, shape: Sequence[int], *, scale: float, rng: np.random.Generator
) -> bytes:
    """An ONNX file of this architecture on inputs of this shape (without the batch), with random weights.

    Raises InputError for an unknown architecture, or a shape that it cannot read.
    """
    if architecture not in ARCHITECTURES:
        raise unknown_name("architecture", architecture, sorted(ARCHITECTURES))
    is_dense = architecture.startswith("mlp")
    if not 1 <= len(shape) <= 3 or (len(shape) != 3 and not is_dense) or prod(shape) > 20_000:
        raise InputError(
            f"{architecture} reads images, such as 1x5x5, of at most 20,000 numbers"
            + (" (or a flat input, such as 10)" if is_dense else "")
            + f"; it cannot read {'x'.join(map(str, shape))}."
        )
    if not 0 < scale <= 4:
        raise InputError(f"The scale of an architecture must be above 0 and at most 4, not {scale:g}.")
    sketch = _Sketch(shape, scale, rng)
    ARCHITECTURES[architecture](sketch)
    return sketch.graph.build(
        {"X": ("float", [1, *shape])}, sketch.last, [1, CLASSES], output_name="Y", infer_shapes=True
    )
