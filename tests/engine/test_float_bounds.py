"""Linear bounds: one rule for each operator, each sound; what has none says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

from dokimos.core.errors import UnsupportedOp
from dokimos.engine.differentiable import to_torch
from dokimos.engine.float_bounds import LINEAR_RULES, LinearBounds, rectifiers, without_linear_bound
from dokimos.networks.graph import CORE_OPS, Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from tests.checker.files import model
from tests.networks.graphs import ONE_OF_EACH, network_of
from tests.networks.sampling import exactly, random_box

NAMES = [name for name in ONE_OF_EACH if name.endswith("@22")]
NETWORKS = {name: network_of(name) for name in NAMES}
RELAXED = [name for name in NAMES if without_linear_bound(NETWORKS[name]) is None]


def bounds_over(network: Network, lower: np.ndarray, upper: np.ndarray) -> LinearBounds:
    return LinearBounds(network, enclose(network, exactly(lower), exactly(upper)), lower, upper)


def test_every_operator_has_a_rule() -> None:
    assert set(LINEAR_RULES) == set(CORE_OPS)


def test_an_operator_without_a_rule_is_named() -> None:
    network = NETWORKS[RELAXED[0]]
    unknown = replace(network, nodes=(replace(network.nodes[0], op="Atan"), *network.nodes[1:]))
    with pytest.raises(UnsupportedOp, match="Atan"):
        without_linear_bound(unknown)


def test_every_operator_that_has_a_relaxation_is_among_the_models() -> None:
    used = {node.op for name in RELAXED for node in NETWORKS[name].nodes}
    beyond = {"Clip", "Exp", "Max", "MaxPool", "Min", "Pow", "Sigmoid", "Softmax", "Tanh"}
    beyond |= {"Cos", "Erf", "Floor", "Round", "Sign", "Sin", "Truncate"}
    assert used == set(CORE_OPS) - beyond


@pytest.mark.parametrize("name", RELAXED)
def test_each_operator_is_never_bounded_above_a_value(name: str) -> None:
    network = NETWORKS[name]
    rng = np.random.default_rng(7)
    lower, upper = (end.astype(np.float64) for end in random_box(rng, network.input_size, 2.0, 1.0))
    bounds = bounds_over(network, lower, upper)
    weights = torch.from_numpy(rng.standard_normal((4, network.output_size)))
    for place, node in rectifiers(network):
        bounds.tighten(node.inputs[0], place, bounds.unstable(node.inputs[0]))
    found = bounds.lower(network.output, weights.reshape(4, *network.output_shape), len(network.nodes))
    points = torch.from_numpy(lower + (upper - lower) * rng.random((50, network.input_size)))
    values = to_torch(network)(points) @ weights.T
    assert (found <= values + 1e-9 * values.abs().max()).all()


@pytest.mark.parametrize("op", ["Sigmoid", "Exp", "Tanh"])
def test_an_operator_without_a_relaxation_is_not_passed(op: str) -> None:
    network = read_onnx(model([(op, ["X"], "Y")], {}, [1, 1], [1, 1]))
    assert without_linear_bound(network) == f"{op} has no linear relaxation here"
    bounds = bounds_over(network, np.array([0.0]), np.array([1.0]))
    with pytest.raises(UnsupportedOp, match=op):
        bounds.lower(network.output, torch.ones((1, 1, 1), dtype=torch.float64), 1)


def test_tighter_inputs_give_tighter_bounds() -> None:
    """relu(x) + relu(−x) − 3/2 on [−1, 1] is at most −1/2 by chords, where intervals say 1/2."""
    nodes = [
        ("Gemm", ["X", "w", "b"], "a", {"transB": 1}),
        ("Relu", ["a"], "c"),
        ("Gemm", ["c", "v", "d"], "e", {"transB": 1}),
        ("Relu", ["e"], "Y"),
    ]
    weights = {"w": [[1.0], [-1.0]], "b": [0.0, 0.0], "v": [[1.0, 1.0]], "d": [-1.5]}
    network = read_onnx(model(nodes, weights, [1, 1], [1, 1]))
    bounds = bounds_over(network, np.array([-1.0]), np.array([1.0]))
    down = -torch.ones((1, 1, 1), dtype=torch.float64)
    before = bounds.lower(network.output, down, len(network.nodes))
    for place, node in rectifiers(network):
        bounds.tighten(node.inputs[0], place, bounds.unstable(node.inputs[0]))
    after = bounds.lower(network.output, down, len(network.nodes))
    assert float(before) < 0
    assert float(after) == pytest.approx(0, abs=1e-12)
