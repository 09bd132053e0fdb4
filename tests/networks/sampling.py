"""What bounds are tested against: onnxruntime as the float32 network, exact values as the real one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from dokimos.networks.graph import Network
from dokimos.networks.semantics.exact import Enclosure, Undecided, evaluate


def float32_network(
    content: bytes, network: Network
) -> Callable[[NDArray[np.float32]], NDArray[np.float64]]:
    """onnxruntime with nothing optimised: the output, shaped as in `network`, at a flat float32 point."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def run(point: NDArray[np.float32]) -> NDArray[np.float64]:
        (output,) = session.run(None, {name: point.reshape(network.input_shape)})
        return np.asarray(output, dtype=np.float64).reshape(network.output_shape)

    return run


def exactly(values: NDArray[np.floating]) -> list[Fraction]:
    numbers = np.asarray(values, dtype=np.float64).ravel().tolist()
    return [Fraction(*number.as_integer_ratio()) for number in numbers]  # twice as fast as of the float


def random_box(
    rng: np.random.Generator, size: int, scale: float, width: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A box with float32 ends up to `scale`, at most `width` times that wide; `width` 0 is a point."""
    centre = rng.uniform(-scale, scale, size)
    radius = width * scale * rng.random(size)
    lower = np.clip(centre - radius, -scale, scale).astype(np.float32)
    return lower, np.maximum(lower, np.clip(centre + radius, -scale, scale).astype(np.float32))


def points_of(
    rng: np.random.Generator, lower: NDArray[np.float32], upper: NDArray[np.float32], count: int
) -> list[NDArray[np.float32]]:
    """Float32 points of the box: both ends, corners, and points inside."""
    points = [lower, upper]
    while len(points) < count:
        corner = np.where(rng.random(lower.size) < 0.5, lower, upper)
        inside = lower + (upper.astype(np.float64) - lower) * rng.random(lower.size)
        points += [corner, np.clip(inside.astype(np.float32), lower, upper)]
    return points[:count]


def real_value(network: Network, point: NDArray[np.floating]) -> Enclosure | None:
    """The exact outputs at a point, to within 2^-300; None where the network has no value there."""
    try:
        return evaluate(network, exactly(point), relative_width=Fraction(1, 2**300))
    except Undecided:
        return None
