"""What to hide and where: points with their boxes and labels, some of them with a counterexample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.draft import ball, class_loses
from dokimos.core.errors import InputError
from dokimos.core.readable import unknown_name
from dokimos.networks.writing.builder import GraphBuilder
from dokimos.suites.vnnlib.model import Box, Point, Property

#: Inputs lie in [-DOMAIN, DOMAIN]; `epsilon` is a share of it, as in the paper.
DOMAIN = Fraction(1, 10)
#: Points and radii are multiples of 2^-GRID_BITS: exact in float32, and short decimals.
GRID_BITS = 14
#: Counterexamples are planted in the interior: no further out than this share of the radius.
INTERIOR = 0.7
_MOST_TRIES = 1000


@dataclass(frozen=True)
class PlantedPoint:
    """A point whose class should win on its box, except at `plant` (None for a regular point)."""

    centre: Point
    radius: Fraction
    label: int
    plant: Point | None

    @property
    def box(self) -> Box:
        """All inputs within the radius."""
        return ball(self.centre, self.radius)

    @property
    def question(self) -> Property:
        """Unsafe: the other class is at least as high."""
        return class_loses(self.box, self.label, CLASSES)


def draw_points(
    shape: Sequence[int],
    *,
    epsilon: float,
    planted: int,
    regular: int,
    rng: np.random.Generator,
    corner: bool = False,
) -> tuple[PlantedPoint, ...]:
    """Random points, the planted ones first, pairwise further apart than two radii.

    Counterexamples are in the interior, or, with `corner`, at a corner of the box. Raises InputError if
    that many points do not fit.
    """
    if not 0 < epsilon <= 1:
        raise InputError(
            f"epsilon is a share of the domain's half-width, above 0 and at most 1, not {epsilon:g}."
        )
    size, steps = prod(shape), 2**GRID_BITS
    reach = int(DOMAIN * steps)
    radius = Fraction(int(Fraction(epsilon) * DOMAIN * steps), steps)
    found: list[NDArray[np.int64]] = []
    for _ in range(_MOST_TRIES * (planted + regular)):
        if len(found) == planted + regular:
            break
        drawn = rng.integers(-reach, reach + 1, size=size)
        if all(np.abs(drawn - other).max() > 2 * int(radius * steps) for other in found):
            found.append(drawn)
    else:
        raise InputError(
            f"{planted + regular} points with disjoint boxes do not fit; use fewer, or a smaller epsilon."
        )
    labels = rng.permutation(np.arange(planted + regular) % 2)
    inner = int(INTERIOR * int(radius * steps))
    points = []
    for number, (drawn, label) in enumerate(zip(found, labels, strict=True)):
        centre = tuple(Fraction(int(k), steps) for k in drawn)
        offset = rng.integers(-inner, inner + 1, size=size)
        if corner:
            offset = np.where(offset < 0, -1, 1) * int(radius * steps)
        plant = tuple(x + Fraction(int(k), steps) for x, k in zip(centre, offset, strict=True))
        points.append(PlantedPoint(centre, radius, int(label), plant if number < planted else None))
    return tuple(points)


# The settings of `hide`


TIERS = ("lock", "trained")
FILTERS = ("quick", "paper", "none")
RECIPES = ("quick", "paper")


@dataclass(frozen=True, kw_only=True)
class HideSettings:
    """Which network hides counterexamples, where, and how; validated on creation.

    `recipe` says how the trained tier trains: `quick` as told in docs/hiding.md, `paper` as the public code
    of SoundnessBench. What is None is the recipe's: its epochs, the restarts and steps of its attack, the
    window of perturbations, the largest `lead` at a plant, the highest learning rate, and whether
    counterexamples are at a corner.
    """

    tier: str = "lock"
    architecture: str = "cnn1"
    input_shape: tuple[int, ...] = (1, 5, 5)
    epsilon: float = 0.2
    points: int = 10
    seed: int = 0
    scale: float = 0.25
    bits: int | None = None
    weight: int = 7
    model: str = ""
    data: str = ""
    filter: str = "quick"
    recipe: str = "quick"
    epochs: int | None = None
    restarts: int | None = None
    steps: int | None = None
    window: int | None = None
    lead: float | None = None
    learning_rate: float | None = None
    corner: bool | None = None
    prove_seconds: float = 5.0
    timeout_seconds: float = 60.0
    two_sided: bool = True
    sliding: bool = True

    def __post_init__(self) -> None:
        if self.tier not in TIERS:
            raise InputError(f"There is no tier {self.tier!r}; choose one of {', '.join(TIERS)}.")
        if self.filter not in FILTERS:
            raise InputError(f"There is no filter {self.filter!r}; choose one of {', '.join(FILTERS)}.")
        if self.recipe not in RECIPES:
            raise InputError(f"There is no recipe {self.recipe!r}; choose one of {', '.join(RECIPES)}.")
        if any(one is not None and not 0 < one < 1 for one in (self.lead, self.learning_rate)):
            raise InputError("The lead and the learning rate must be above 0 and below 1.")
        if bool(self.model) != bool(self.data):
            raise InputError("Your own network needs your own points: give both `model` and `data`.")
        if self.model and self.tier != "lock":
            raise InputError("Only a lock can be added to your own network; leave out `tier`.")
        if not 1 <= self.points <= 1000:
            raise InputError(f"The number of points must be between 1 and 1000, not {self.points}.")
        if self.seed < 0:
            raise InputError(f"The seed must be 0 or more, not {self.seed}.")
        if self.bits is not None and not 1 <= self.bits <= 2000:
            raise InputError(f"A lock has between 1 and 2000 bits, not {self.bits}.")
        if not 0 < self.timeout_seconds < 1e9 or not 0 < self.prove_seconds < 1e6:
            raise InputError(
                "Times must be positive numbers of seconds, below a billion (for a proof, a million)."
            )

    @property
    def plants_at_corners(self) -> bool:
        """Whether counterexamples are at corners, as asked or as the recipe has it."""
        return self.recipe == "paper" if self.corner is None else self.corner

    def as_recipe(self) -> dict[str, Any]:
        """The settings as stored in `suite.json`: only the names and hashes of the user's files."""
        from dokimos.suites.entry import read_content
        from dokimos.suites.instance import sha256

        kept = asdict(self) | {"input_shape": list(self.input_shape)}
        for name in ("model", "data"):
            if kept[name]:
                path = Path(kept[name])
                kept |= {name: path.name, f"{name}_sha256": sha256(read_content(path))}
        return {"hide": kept}


def parse_shape(text: str) -> tuple[int, ...]:
    """A shape such as 1x5x5 or 10."""
    try:
        shape = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        shape = ()
    if not shape or len(shape) > 3 or any(not 1 <= size <= 10_000 for size in shape):
        raise InputError(f"{text!r} is not an input shape; write it like 1x5x5, or 10.")
    return shape


# The 26 settings of SoundnessBench


_SMALL, _COLOUR, _FLAT = (1, 5, 5), (3, 5, 5), (10,)
_IMAGES = ((0.2, _SMALL), (0.2, _COLOUR), (0.5, _SMALL), (0.5, _COLOUR))
_VECTORS = ((0.2, _FLAT), (0.5, _FLAT))
#: The radii and shapes of each architecture.
_SOUNDNESS = {
    **dict.fromkeys(("cnn1", "cnn2", "cnn3", "avgpool"), _IMAGES),
    **dict.fromkeys(("tanh", "sigmoid"), _IMAGES[:2]),
    **dict.fromkeys(("mlp4", "mlp5"), _VECTORS),
    "vit": _IMAGES[:2],
}


def soundness_settings(options: HideSettings) -> dict[str, HideSettings]:
    """All 26 by name, with other settings taken from `options`; as locks, all but the transformer's."""
    return {
        f"{architecture}-{'x'.join(map(str, shape))}-{epsilon:g}": replace(
            options, architecture=architecture, input_shape=shape, epsilon=epsilon
        )
        for architecture, variants in _SOUNDNESS.items()
        if options.tier == "trained" or architecture != "vit"
        for epsilon, shape in variants
    }


# The nine architectures of SoundnessBench as ONNX graphs with random weights, at a scale for CPUs


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

    def conv(self, channels: int, *, kernel: int = 3, stride: int = 1) -> None:
        before, *image = self.shape
        weight = self.weight(channels, before, kernel, kernel, fan_in=kernel**2 * before)
        self.node(
            *("Conv", self.last, weight, self.bias(channels)),
            shape=(channels, *((size - 1) // stride + 1 for size in image)),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
        )

    def pool(self, stride: int, *, counted: bool) -> None:
        """The average over 3×3 numbers; whether those beyond the border count, as 0, is `counted`."""
        channels, *image = self.shape
        self.node(
            *("AveragePool", self.last),
            shape=(channels, *((size - 1) // stride + 1 for size in image)),
            kernel_shape=[3, 3],
            strides=[stride, stride],
            pads=[1, 1, 1, 1],
            count_include_pad=int(counted),
        )

    def flatten(self) -> None:
        if len(self.shape) > 1:
            self.node("Flatten", self.last, shape=(prod(self.shape),), axis=1)

    def dense(self, width: int) -> None:
        (before,) = self.shape
        width = width if width < _SCALED_FROM else max(8, round(width * self._scale))
        weight = self.weight(width, before, fan_in=before)
        self.node("Gemm", self.last, weight, self.bias(width), shape=(width,), transB=1)


def _convolutional(
    sketch: _Sketch, *channels: int, act: str = "Relu", pool: tuple[int, bool] | None = None
) -> None:
    """Of three convolutions the last has no activation; Tanh and Sigmoid read one channel in steps of 2."""
    coarse = {"kernel": 5, "stride": 2} if act != "Relu" and sketch.shape[0] == 1 else {}
    for number, count in enumerate(channels):
        sketch.conv(count, **coarse)
        if number < 2:
            sketch.act(act)
    if pool is not None:
        sketch.pool(pool[0], counted=pool[1])
    sketch.flatten()
    for width in (1000, 100, 20):
        sketch.dense(width)
        sketch.act(act)
    sketch.dense(CLASSES)


def _dense(sketch: _Sketch, wide: int) -> None:
    sketch.flatten()
    for width in (100, *[1000] * wide, 20):
        sketch.dense(width)
        sketch.act("Relu")
    sketch.dense(CLASSES)


def _transformer(sketch: _Sketch) -> None:
    """Patches of one pixel behind a class token, attention with biases, and BatchNormalization."""
    graph, tokens = sketch.graph, prod(sketch.shape[1:])
    sketch.conv(_WIDTH, kernel=1)
    flat = graph.node("Reshape", sketch.last, graph.constant([1, _WIDTH, tokens], np.int64))
    patches = graph.node("Transpose", flat, perm=[0, 2, 1])
    x = graph.node("Concat", sketch.weight(1, 1, _WIDTH, fan_in=50), patches, axis=1)
    x = graph.node("Add", x, sketch.weight(tokens + 1, _WIDTH, fan_in=50))
    for _ in range(_DEPTH):
        x = graph.node("Add", x, _attention(sketch, _normalised(sketch, x), tokens + 1))
        hidden = graph.node("Relu", _linear(sketch, _normalised(sketch, x), 2 * _WIDTH, before=_WIDTH))
        x = graph.node("Add", x, _linear(sketch, hidden, _WIDTH, before=2 * _WIDTH))
    mean = graph.node("ReduceMean", x, axes=[1], keepdims=0)
    sketch.last, sketch.shape = _batch_norm(sketch, mean), (_WIDTH,)
    sketch.dense(CLASSES)


def _linear(sketch: _Sketch, x: str, width: int, *, before: int) -> str:
    product = sketch.graph.node("MatMul", x, sketch.weight(before, width, fan_in=2 * before))
    return sketch.graph.node("Add", product, sketch.bias(width))


def _batch_norm(sketch: _Sketch, x: str) -> str:
    """As it is after training: an affine map of each channel, whose mean and variance are constants."""
    mean, variance = (
        sketch.graph.constant(np.full(_WIDTH, value, np.float32), name=f"{role}_of_{x}")
        for role, value in (("mean", 0.0), ("variance", 1.0))
    )
    weights = sketch.bias(_WIDTH, value=1.0), sketch.bias(_WIDTH)
    return sketch.graph.node("BatchNormalization", x, *weights, mean, variance)


def _normalised(sketch: _Sketch, x: str) -> str:
    turned = sketch.graph.node("Transpose", x, perm=[0, 2, 1])
    return sketch.graph.node("Transpose", _batch_norm(sketch, turned), perm=[0, 2, 1])


def _attention(sketch: _Sketch, x: str, tokens: int) -> str:
    graph, size = sketch.graph, _WIDTH // _HEADS
    apart = graph.constant([1, tokens, _HEADS, size], np.int64)
    together = graph.constant([1, tokens, _WIDTH], np.int64)
    query, key, value = (
        graph.node("Reshape", _linear(sketch, x, _WIDTH, before=_WIDTH), apart) for _ in range(3)
    )
    rows, values = (graph.node("Transpose", each, perm=[0, 2, 1, 3]) for each in (query, value))
    scores = graph.node("MatMul", rows, graph.node("Transpose", key, perm=[0, 2, 3, 1]))
    scores = graph.node("Mul", scores, graph.constant(np.float32(size**-0.5)))
    mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), values)
    joined = graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), together)
    return _linear(sketch, joined, _WIDTH, before=_WIDTH)


#: By name: what draws the layers of one. `avgpool-border` is ours: tools that count its padding are wrong.
#: How each is drawn, and with which widths.
ARCHITECTURES: Mapping[str, tuple[Callable[..., None], tuple[int, ...], Mapping[str, Any]]] = (
    MappingProxyType(
        {
            "cnn1": (_convolutional, (10,), {}),
            "cnn2": (_convolutional, (5, 10), {}),
            "cnn3": (_convolutional, (5, 10, 20), {}),
            "avgpool": (_convolutional, (10,), {"pool": (1, True)}),
            "avgpool-border": (_convolutional, (10,), {"pool": (2, False)}),
            "tanh": (_convolutional, (10,), {"act": "Tanh"}),
            "sigmoid": (_convolutional, (10,), {"act": "Sigmoid"}),
            "mlp4": (_dense, (3,), {}),
            "mlp5": (_dense, (4,), {}),
            "vit": (_transformer, (), {}),
        }
    )
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
    draw, widths, options = ARCHITECTURES[architecture]
    draw(sketch, *widths, **options)
    return sketch.graph.build(
        {"X": ("float", [1, *shape])}, sketch.last, [1, CLASSES], output_name="Y", infer_shapes=True
    )
