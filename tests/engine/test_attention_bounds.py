"""Linear bounds of attention: never above what points of the box give."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from dokimos.engine.float_bounds import ATTENTION_RULES, AttentionBounds, softmax_ends, without_linear_bound
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.writing.builder import ModelBuilder

TOKENS, WIDTH = 3, 2


def attention(seed: int) -> bytes:
    """One head, ReLUs behind it, and two outputs."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return rng.integers(-4, 5, size=shape) / 4

    builder = ModelBuilder([TOKENS, WIDTH])
    source = builder.times_matrix(draw(WIDTH, WIDTH)).last
    key = builder.times_matrix(draw(WIDTH, WIDTH)).transpose((0, 2, 1)).last
    value = builder.resume(source).times_matrix(draw(WIDTH, WIDTH)).last
    builder.resume(source).times_matrix(draw(WIDTH, WIDTH)).times(key).scaled(0.5).softmax().times(value)
    builder.joined_with(source).relu().reshape((1, TOKENS * WIDTH))
    return builder.affine(draw(2, TOKENS * WIDTH), draw(2)).build(2)


@pytest.mark.parametrize("seed", range(8))
def test_no_point_of_the_box_is_below_the_bound_tightened_or_not(seed: int) -> None:
    model = attention(seed)
    network = read_onnx(model, name="net")
    assert without_linear_bound(network) == "MatMul has no linear relaxation here"
    assert without_linear_bound(network, ATTENTION_RULES) is None
    rng = np.random.default_rng(seed)
    centre = rng.integers(-8, 9, size=network.input_size) / 8
    lower, upper = centre - 0.25, centre + 0.25
    ends = [[Fraction(float(x)) for x in end] for end in (lower, upper)]
    bounds = AttentionBounds(network, enclose(network, *ends), lower, upper)
    row = torch.tensor([[[1.0, -1.0]]], dtype=torch.float64).reshape(1, *network.output_shape)
    before = float(bounds.lower(network.output, row, len(network.nodes)))
    for name, place in bounds.bounded:
        bounds.tighten(name, place, bounds.unstable(name))
    after = float(bounds.lower(network.output, row, len(network.nodes)))
    corners = rng.integers(2, size=(200, network.input_size))
    points = (lower + (upper - lower) * corners).astype(np.float32)
    seen = replay(model, points).astype(np.float64)
    assert max(before, after) <= (seen[:, 0] - seen[:, 1]).min() + 1e-4
    assert after > -10 and seen.std(axis=0).min() > 0


def test_softmax_stays_between_its_ends_and_nothing_is_known_of_infinite_ones() -> None:
    lower, upper = torch.tensor([[-1.0, 0.0, 2.0]]), torch.tensor([[0.0, 0.5, 3.0]])
    least, most = softmax_ends(lower, upper, 1)
    for seed in range(50):
        share = torch.rand(lower.shape, generator=torch.Generator().manual_seed(seed)).round(decimals=1)
        found = torch.softmax(lower + share * (upper - lower), 1)
        assert (least - 1e-6 <= found).all() and (found <= most + 1e-6).all()
    endless = torch.full_like(lower, torch.inf)
    least, most = softmax_ends(-endless, endless, 1)
    assert (least == 0).all() and (most == 1).all()
