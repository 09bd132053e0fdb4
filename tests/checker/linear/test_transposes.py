"""Transposes are transposes, of every affine operator in every form, in numpy and in torch."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.linear.transposes import TRANSPOSES, Arrays, NumpyArrays
from dokimos.checker.linear.walk import Steps, WalkStep, steps_of
from dokimos.engine.fast_walk import TorchArrays
from dokimos.networks.graph import CORE_OPS, Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import INTERVAL_RULES
from dokimos.networks.semantics.outward import Floats, point
from tests.networks.graphs import ONE_OF_EACH, models

ARRAYS: dict[str, tuple[Arrays, float]] = {"numpy": (NumpyArrays(), 1e-12), "torch": (TorchArrays(), 1e-4)}


def written(steps: Steps, step: WalkStep, values: dict[str, Floats]) -> Floats:
    """What a step writes, constants as they are."""
    arguments = [
        None if not name else point(values[name]) if name in values else steps.constants[name]
        for name in step.node.inputs
    ]
    found = INTERVAL_RULES[step.node.op](step.node, arguments)
    return (found.lower + found.upper) / 2


def assert_transposed(network: Network, arrays: Arrays, tolerance: float, rng: np.random.Generator) -> int:
    """λ·(A·v) = (Aᵀλ)·v for every affine step; how many there are."""
    steps = steps_of(network, arrays)
    count = 0
    for step in steps.steps:
        if step.transposes is None or not step.sources:
            continue
        count += 1
        shape = steps.shapes[step.node.output]
        values = {name: rng.integers(-4, 5, size=steps.shapes[name]) / 2 for name in step.sources}
        varying = [name for name in step.node.inputs if name and name not in steps.constants]
        zeros = {name: np.zeros(steps.shapes[name]) for name in values}
        with np.errstate(all="ignore"):
            before, after = (written(steps, step, given) for given in (zeros, values))
            change = after - before
        rows = rng.integers(-4, 5, size=(3, *shape)) / 2
        left = rows.reshape(3, -1) @ change.reshape(-1)
        right = np.zeros(3)
        for name, transposed in zip(varying, step.transposes, strict=True):
            back = np.asarray(transposed(arrays.constant(rows)), dtype=np.float64)
            assert back.shape == (3, *steps.shapes[name])
            right += back.reshape(3, -1) @ values[name].reshape(-1)
        if np.isfinite(left).all():
            size = np.abs(rows).reshape(3, -1).sum(1) * (1 + np.abs([before, after]).max(initial=0))
            assert (np.abs(left - right) <= tolerance * (1 + size)).all(), step.node
    return count


@pytest.mark.parametrize("library", ARRAYS)
def test_one_of_each_operator(library: str) -> None:
    met = set()
    for name, model in ONE_OF_EACH.items():
        network = read_onnx(model.SerializeToString())
        assert_transposed(network, *ARRAYS[library], np.random.default_rng(0))
        met |= {step.node.op for step in steps_of(network).steps if step.transposes and step.sources}
        assert name
    assert met == set(TRANSPOSES) < set(CORE_OPS)


@settings(max_examples=60, deadline=None)
@given(model=models(), seed=st.integers(0, 2**32))
def test_random_networks(model: onnx.ModelProto, seed: int) -> None:
    network = read_onnx(model.SerializeToString())
    for arrays, tolerance in ARRAYS.values():
        assert_transposed(network, arrays, tolerance, np.random.default_rng(seed))
