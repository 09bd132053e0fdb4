"""The nine architectures, held against what the public code of SoundnessBench builds."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest

from dokimos.constructions.hiding.plants import draw_network
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx

SMALL, COLOUR, FLAT = (1, 5, 5), (3, 5, 5), (10,)
DENSE = (1000, 100, 20, 2)


def drawn(name: str, shape: tuple[int, ...], scale: float = 1.0) -> Network:
    return read_onnx(draw_network(name, shape, scale=scale, rng=np.random.default_rng(0)))


def counted(name: str, shape: tuple[int, ...]) -> int:
    """The parameters of the published code at full width; running means and variances are none."""
    if name == "vit":
        block = 4 * (16 * 16 + 16) + 2 * 2 * 16 + (16 * 32 + 32) + (32 * 16 + 16)
        return (shape[0] * 16 + 16) + 16 + 26 * 16 + 2 * block + 2 * 16 + (16 * 2 + 2)
    if name.startswith("mlp"):
        sizes = [10, 100, *[1000] * (3 if name == "mlp4" else 4), 20, 2]
        return sum(a * b + b for a, b in itertools.pairwise(sizes))
    coarse = name in ("tanh", "sigmoid") and shape[0] == 1
    channels = {"cnn2": (5, 10), "cnn3": (5, 10, 20)}.get(name, (10,))
    taps, places = (25, 9) if coarse else (9, 25)
    count, before = 0, shape[0]
    for after in channels:
        count, before = count + taps * before * after + after, after
    sizes = [places * before, *DENSE]
    return count + sum(a * b + b for a, b in itertools.pairwise(sizes))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *((name, shape) for name in ("cnn1", "cnn2", "cnn3", "avgpool") for shape in (SMALL, COLOUR)),
        *((name, shape) for name in ("tanh", "sigmoid", "vit") for shape in (SMALL, COLOUR)),
        *((name, FLAT) for name in ("mlp4", "mlp5")),
    ],
)
def test_they_have_as_many_parameters_as_published(name: str, shape: tuple[int, ...]) -> None:
    network = drawn(name, shape)
    weights = {n: a for n, a in network.constants.items() if n.startswith(("weight_", "bias_"))}
    assert sum(array.size for array in weights.values()) == counted(name, shape)


def test_the_average_counts_the_border_and_keeps_the_size() -> None:
    network = drawn("avgpool", SMALL, 0.1)
    (pool,) = (node for node in network.nodes if node.op == "AveragePool")
    assert pool.integers("strides") == (1, 1)
    assert bool(pool.integer("count_include_pad"))
    assert prod(network.shapes[pool.output]) == 250


def test_the_third_convolution_has_no_activation() -> None:
    ops = [node.op for node in drawn("cnn3", SMALL, 0.1).nodes]
    assert ops[:5] == ["Conv", "Relu", "Conv", "Relu", "Conv"]
    assert ops[5] != "Relu"


@pytest.mark.parametrize(("shape", "places"), [(SMALL, 9), (COLOUR, 25)])
def test_smooth_ones_read_one_channel_coarsely(shape: tuple[int, ...], places: int) -> None:
    network = drawn("tanh", shape, 0.1)
    assert prod(network.shapes[network.nodes[0].output]) == 10 * places


def test_the_transformer_has_a_class_token_and_five_normalisations() -> None:
    network = drawn("vit", SMALL)
    ops = [node.op for node in network.nodes]
    assert ops.count("BatchNormalization") == 5
    assert ops.count("Softmax") == 2
    (softmax, _) = (node for node in network.nodes if node.op == "Softmax")
    assert network.shapes[softmax.output] == (1, 2, 26, 26)


def test_the_transformer_file_runs() -> None:
    file = draw_network("vit", COLOUR, scale=1, rng=np.random.default_rng(0))
    assert np.isfinite(replay(file, np.zeros((1, 75), np.float32))).all()
