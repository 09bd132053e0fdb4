"""Copies of a network side by side are found, and nothing else is taken for them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dokimos.engine.pairs import pairs_in
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.model import Box
from tests.difficulty.inspections import dense, random_dense


def box(size: int) -> Box:
    return Box((Fraction(-1),) * size, (Fraction(1),) * size)


def copies(change: float) -> Network:
    """A network of two layers of three ReLUs, and a copy whose first weights differ by a share."""
    rng = np.random.default_rng(1)
    layers = []
    for m, n in ((3, 4), (3, 3), (1, 3)):
        weight, bias = rng.normal(size=(m, n)), rng.normal(size=m)
        shared = n == 4  # both read the same inputs
        both = np.vstack([weight, weight * (1 + change)]) if shared else np.kron(np.eye(2), weight)
        layers.append((both.astype(np.float32), np.concatenate([bias, bias]).astype(np.float32)))
    return read_onnx(dense(*layers))


def test_copies_are_paired_layer_by_layer() -> None:
    assert pairs_in(copies(0.0), box(4)) == ((0, 3), (1, 4), (2, 5), (6, 9), (7, 10), (8, 11))
    assert pairs_in(copies(0.1), box(4)) == ((0, 3), (1, 4), (2, 5), (6, 9), (7, 10), (8, 11))


def test_other_networks_have_no_pairs() -> None:
    assert pairs_in(copies(3.0), box(4)) == ()
    for seed in range(5):
        network = read_onnx(random_dense(np.random.default_rng(seed), (4, 6, 6, 2)))
        assert pairs_in(network, box(4)) == ()
