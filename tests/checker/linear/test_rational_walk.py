"""Exact walks: what they leave is no more than the network's exact value, and just that if it is affine."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.linear.rational_walk import RationalWalk
from dokimos.checker.linear.transposes import TRANSPOSES
from dokimos.checker.linear.walk import BoundedNetwork, BoxRegions, steps_of
from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.semantics.outward import Interval
from dokimos.suites.vnnlib.model import Box
from tests.networks.graphs import ONE_OF_EACH, models


def check(network: Network, seed: int) -> bool:
    """Whether the network is walked through exactly; then the walk is compared with exact values."""
    rng = np.random.default_rng(seed)
    steps = steps_of(network)
    lower = rng.integers(-64, 64, size=network.input_size) / 32.0
    upper = lower + rng.integers(0, 64, size=network.input_size) / 32.0
    inputs, row = (
        list(map(Fraction, rng.integers(-3, 4, size=size).tolist()))
        for size in (network.input_size, network.output_size)
    )
    some = [0.0, 0.25, 1.0, np.nan]
    choices = {name: rng.choice(some, size=(1, *shape)) for name, shape in steps.units.items()}
    try:
        facts = BoundedNetwork(steps, Interval(lower, upper), refined={}, ulps=None).facts
        walk = RationalWalk.of(steps, facts, BoxRegions(1), choices)
        ends = [tuple(map(Fraction, end.tolist())) for end in (lower, upper)]
        bound = walk.minimum(inputs, row, Box(*ends))
    except (InvalidProof, UnsupportedOp):
        return False
    is_affine = not any(step.node.op == "Relu" for step in steps.steps)
    for place in rng.integers(0, 5, size=(3, network.input_size)):
        point = tuple(a + (b - a) * Fraction(int(s), 4) for a, b, s in zip(*ends, place, strict=True))
        value = sum(c * y for c, y in zip(row, evaluate(network, point).lower, strict=True))
        value += sum(c * x for c, x in zip(inputs, point, strict=True)) * (network.input != network.output)
        assert bound <= value
        if is_affine:  # where the box is one point, the bound is the value
            assert walk.minimum(inputs, row, Box(point, point)) == value
    return True


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_walks_through_every_operator_are_exact(name: str) -> None:
    network = read_onnx(ONE_OF_EACH[name].SerializeToString())
    walked = [check(network, seed) for seed in range(3)]
    ops = {node.op for node in network.nodes}
    if ops <= {"Relu", *TRANSPOSES} - {"AveragePool", "BatchNormalization", "Div", "Gemm", "ReduceMean"}:
        assert any(walked) or not ops


@settings(max_examples=60, deadline=None)
@given(models(), st.integers(0, 2**32 - 1))
def test_walks_through_random_networks_are_exact(model: onnx.ModelProto, seed: int) -> None:
    check(read_onnx(model.SerializeToString()), seed)
