"""Reference architectures as lists of layers, and what their training depends on; read without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from dokimos.constructions.data.data_set import Normalisation
from dokimos.core.errors import InputError
from dokimos.core.readable import unknown_name
from dokimos.networks.writing.builder import ModelBuilder

# The reference architectures as lists of layers, used for training, bounding and writing


@dataclass(frozen=True)
class Convolution:
    """A square convolution with a bias."""

    channels: int
    kernel: int
    stride: int = 1
    padding: int = 0


@dataclass(frozen=True)
class Dense:
    """A fully connected layer; its input is flattened."""

    units: int


@dataclass(frozen=True)
class Rectifier:
    """ReLU."""


@dataclass(frozen=True)
class ResidualBlock:
    """Two convolutions plus a shortcut (a 1×1 convolution if sizes change), followed by a ReLU."""

    channels: int
    stride: int = 1

    def paths(self, channels: int) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
        """The main path and the shortcut, for an input with this many channels."""
        main = (
            Convolution(self.channels, 3, self.stride, 1),
            Rectifier(),
            Convolution(self.channels, 3, 1, 1),
        )
        same = self.stride == 1 and channels == self.channels
        return main, () if same else (Convolution(self.channels, 1, self.stride),)


#: The smallest side of a picture for convolutions.
_LEAST_SIDE = 8

#: The weight of a shape, and its bias, in the order in which layers are written.
Weights = Callable[[tuple[int, ...]], tuple[Any, Any]]
Layer = Convolution | Dense | Rectifier | ResidualBlock


@dataclass(frozen=True)
class Architecture:
    """A name, the data set it is meant for, and its layers; the last one has a unit for each class."""

    name: str
    data: str
    layers: tuple[Layer, ...]

    def require_fit(self, shape: tuple[int, ...], source: str) -> None:
        """Raise InputError if records of this shape do not fit: convolutions need square pictures."""
        convolves = any(isinstance(layer, Convolution | ResidualBlock) for layer in self.layers)
        if convolves and (len(shape) != 3 or shape[1] != shape[2] or shape[1] < _LEAST_SIDE):
            raise InputError(
                f"{self.name} needs square pictures with sides of at least {_LEAST_SIDE} pixels, but "
                f"a record of {source} has the shape {shape}; choose another architecture."
            )

    def write(
        self,
        shape: tuple[int, ...],
        classes: int,
        weights: Weights,
        normalisation: Normalisation | None = None,
    ) -> bytes:
        """The ONNX file; with a normalisation, it normalises raw records itself."""
        builder = ModelBuilder(shape)
        if normalisation is not None:
            mean, deviation = normalisation.columns(shape)
            builder.plus(-mean[None].astype(np.float64))
            builder.scaled((np.float32(1) / deviation)[None].astype(np.float64))
        _add(builder, (*self.layers[:-1], Dense(classes)), shape, weights)
        return builder.build(classes)


def _add(
    builder: ModelBuilder, layers: Sequence[Layer], shape: tuple[int, ...], weights: Weights
) -> tuple[int, ...]:
    """Add these layers to a file; return the shape of their output."""
    for layer in layers:
        if isinstance(layer, ResidualBlock):
            start, (main, shortcut) = builder.last, layer.paths(shape[0])
            after = _add(builder, main, shape, weights)
            end = builder.last
            _add(builder.resume(start), shortcut, shape, weights)
            builder.joined_with(end).relu()
            shape = after
        elif isinstance(layer, Convolution):
            size = (layer.channels, shape[0], layer.kernel, layer.kernel)
            builder.conv(*weights(size), stride=layer.stride, padding=layer.padding)
            side = (shape[1] + 2 * layer.padding - layer.kernel) // layer.stride + 1
            shape = (layer.channels, side, side)
        elif isinstance(layer, Dense):
            if len(shape) > 1:
                builder.flatten()
            builder.affine(*weights((layer.units, prod(shape))))
            shape = (layer.units,)
        else:
            builder.relu()
    return shape


def _convolutional(name: str, *convolutions: Convolution) -> Architecture:
    layers: list[Layer] = []
    for each in convolutions:
        layers += [each, Rectifier()]
    return Architecture(name, "cifar10", (*layers, Dense(100), Rectifier(), Dense(10)))


def _residual(name: str, first: int, *blocks: ResidualBlock) -> Architecture:
    start = (Convolution(first, 3, 2, 1), Rectifier())
    return Architecture(name, "cifar10", (*start, *blocks, Dense(100), Rectifier(), Dense(10)))


def _dense(name: str, data: str, *units: int) -> Architecture:
    layers = [layer for width in units for layer in (Dense(width), Rectifier())]
    return Architecture(name, data, (*layers, Dense(10)))


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        each.name: each
        for each in (
            _residual("resnet2b", 8, ResidualBlock(16, 2), ResidualBlock(16)),
            _residual(
                "resnet4b",
                16,
                ResidualBlock(32, 2),
                ResidualBlock(32),
                ResidualBlock(32, 2),
                ResidualBlock(32),
            ),
            _convolutional("oval-base", Convolution(8, 4, 2, 1), Convolution(16, 4, 2, 1)),
            _convolutional("oval-wide", Convolution(16, 4, 2, 1), Convolution(32, 4, 2, 1)),
            _convolutional(
                "oval-deep",
                Convolution(8, 4, 2, 1),
                Convolution(8, 3, 1, 1),
                Convolution(8, 3, 1, 1),
                Convolution(8, 4, 2, 1),
            ),
            *(_dense(f"mnistfc-256x{depth}", "mnist", *(256,) * depth) for depth in (2, 4, 6)),
            _dense("digits-fc", "digits", 32, 32),
            Architecture(
                "digits-cnn",
                "digits",
                (Convolution(4, 3, 2, 1), Rectifier(), Dense(32), Rectifier(), Dense(10)),
            ),
        )
    }
)


def find_architecture(name: str) -> Architecture:
    """Find the architecture of this name. Raises InputError if there is none."""
    if name not in ARCHITECTURES:
        raise unknown_name("architecture", name, list(ARCHITECTURES))
    return ARCHITECTURES[name]


# What a training depends on; read without torch, so that mistakes are reported at once


class Method(Enum):
    """What is minimised: the loss at the record, at an adversarial example, or over bounds."""

    NORMAL = "normal"
    ADVERSARIAL = "adversarial"
    BOUNDS = "bounds"


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How a reference network is trained and measured: see `dokimos.train_model`.

    With PGD examples within `adversarial`, or with interval bounds within `certified`, on a growing radius;
    otherwise plainly. `batch` is how many records a step has (None: 128,
    or 32 for small data sets). `normalise` says how records are normalised, outside the network unless
    `inside` is true. `limits` is the range of values of your own data. The accuracy, the accuracy under PGD
    and the share verified by bounds are measured on the first `evaluate` test records.
    """

    adversarial: float | None = None
    certified: float | None = None
    batch: int | None = None
    normalise: str | None = None
    inside: bool = False
    limits: tuple[float, float] | None = (0.0, 1.0)
    evaluate: int = 200

    def __post_init__(self) -> None:
        if self.adversarial is not None and self.certified is not None:
            raise InputError("Training is either adversarial or certified; give only one of the two.")

    @property
    def method(self) -> Method:
        """What is minimised."""
        if self.adversarial is not None:
            return Method.ADVERSARIAL
        return Method.NORMAL if self.certified is None else Method.BOUNDS

    @property
    def radius(self) -> float:
        """Over balls of which radius."""
        return self.adversarial or self.certified or 0.0


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Everything that the weights depend on, except the data.

    `radius` is in the units of the data. With bounds, it grows from 0 over the first half of the epochs,
    and the weight of the plain loss falls from 1 to ½.
    """

    architecture: str
    method: Method = Method.NORMAL
    radius: float = 0.0
    epochs: int = 10
    batch: int = 128
    rate: float = 1e-3
    seed: int = 0
    attack_steps: int = 7
    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise InputError(f"The seed must be 0 or more and below 2^63, not {self.seed}.")
        if self.epochs < 1 or self.batch < 1 or not 0 < self.rate < 10:
            raise InputError(
                "Training needs at least 1 epoch, batches of at least 1 record, and a learning rate "
                "above 0."
            )
        if (self.method is Method.NORMAL) != (self.radius == 0) or self.radius < 0:
            raise InputError(
                "Adversarial and certified training need a radius above 0; plain training takes none."
            )
