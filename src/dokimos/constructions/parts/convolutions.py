"""3×3 convolutions that keep the image's size, in float64: values, gradients, and filters of given norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.parts.robustness import split_evenly

KERNEL = 3
#: Filters are multiples of 2^-WEIGHT_BITS.
WEIGHT_BITS = 12
Array = NDArray[np.float64]


def convolve(image: Array, weight: Array) -> Array:
    """[channels, n, n] by [outputs, channels, 3, 3], stride 1, zero-padded to keep the size."""
    size = image.shape[1]
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    total: Array = np.zeros((len(weight), size, size))
    for i in range(KERNEL):
        for j in range(KERNEL):
            total += np.tensordot(weight[:, :, i, j], padded[:, i : i + size, j : j + size], axes=1)
    return total


def pull_back(slope: Array, weight: Array) -> Array:
    """The transpose of `convolve`: with this stride and padding the convolution with the rotated
    filter."""
    return convolve(slope, weight.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])


@dataclass(frozen=True)
class Stack:
    """Convolutions, each with a bias for each channel and followed by a ReLU."""

    weights: tuple[Array, ...] = ()
    biases: tuple[Array, ...] = ()

    def then(self, weight: Array, bias: Array) -> Stack:
        """This stack with one more convolution."""
        return Stack((*self.weights, weight), (*self.biases, bias))

    def __call__(self, image: Array) -> Array:
        """The features [channels, n, n]."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            image = np.maximum(convolve(image, weight) + bias[:, None, None], 0.0)
        return image

    def gradient(self, image: Array, slope: Array) -> Array:
        """The gradient of Σ slope·features at `image`."""
        active = []
        for weight, bias in zip(self.weights, self.biases, strict=True):
            image = np.maximum(convolve(image, weight) + bias[:, None, None], 0.0)
            active.append(image > 0)
        for weight, on in zip(reversed(self.weights), reversed(active), strict=True):
            slope = pull_back(slope * on, weight)
        return slope


def random_filters(count: int, inputs: int, units: int, rng: np.random.Generator) -> Array:
    """Random filters on the grid, the absolute weights of each summing to `units` steps."""
    taps = inputs * KERNEL**2
    drawn = [split_evenly(units, rng.standard_normal(taps)) for _ in range(count)]
    filters: Array = np.array(drawn, dtype=np.float64).reshape(count, inputs, KERNEL, KERNEL)
    filters /= 2**WEIGHT_BITS
    return filters


def character(rng: np.random.Generator) -> Array:
    """Signs χ(i, j) = (±1)^i·(±1)^j: filters with these signs compose without cancelling."""
    down, right = rng.choice([-1.0, 1.0], size=2)
    steps = np.arange(KERNEL)
    signs: Array = np.outer(down**steps, right**steps)
    return signs


def carrying_filter(units: int, signs: Array, rng: np.random.Generator, *, spread: bool) -> Array:
    """A filter with these signs and this norm, or one that passes on the value at its centre."""
    taps: Array = np.zeros(KERNEL**2)
    taps[KERNEL**2 // 2] = units
    if spread:
        taps[:] = split_evenly(units, rng.uniform(0.5, 1.5, size=KERNEL**2))
        taps *= signs.reshape(-1)
    taps /= 2**WEIGHT_BITS
    return taps.reshape(KERNEL, KERNEL)
