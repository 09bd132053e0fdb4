"""What is proven for float32 holds for float32: corners, hinges and random points, in any order of sums."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.checker import prove
from dokimos.constructions.base import Draft
from dokimos.engine.runtimes.sessions import Replayer
from dokimos.suites.instance import Instance
from dokimos.suites.vnnlib.writer import write_vnnlib1
from tests.checker.files import instance_of
from tests.checker.statements import drafts

Floats = NDArray[np.float32]
#: The families whose networks are chains that `Evaluator` knows.
CHAINS = ("convex-corners", "exclusive-pairs", "paired-bias")


def as_instance(draft: Draft) -> Instance:
    return instance_of(draft.network, write_vnnlib1(draft.question).encode())


def added_up(terms: Floats, rng: np.random.Generator, way: int) -> Floats:
    """The sums over the last axis in float32: one after the other, in pairs, or in a random order."""
    terms = terms[..., rng.permutation(terms.shape[-1])] if way else terms
    if way == 2:
        while terms.shape[-1] > 1:
            if terms.shape[-1] % 2:
                terms = np.concatenate([terms, np.zeros_like(terms[..., :1])], axis=-1)
            terms = terms[..., ::2] + terms[..., 1::2]
        return terms[..., 0]
    total = np.zeros(terms.shape[:-1], np.float32)
    for k in range(terms.shape[-1]):
        total = total + terms[..., k]
    return total


class Evaluator:
    """A chain of Gemm, Conv (stride 1), Relu and Flatten, in float32, with sums in an order of its own."""

    def __init__(self, network: bytes) -> None:
        model = onnx.load_from_string(network)
        self._arrays = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self._nodes = list(model.graph.node)
        self._shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]

    def __call__(self, points: Floats, rng: np.random.Generator, way: int) -> Floats:
        value = points.reshape(len(points), *self._shape[1:])
        for node in self._nodes:
            weights = [self._arrays[name] for name in node.input[1:]]
            if node.op_type == "Relu":
                value = np.maximum(value, np.float32(0))
            elif node.op_type == "Flatten":
                value = value.reshape(len(value), -1)
            elif node.op_type == "Gemm":
                value = self._affine(value[:, None], weights[0], weights[1], rng, way)[:, 0]
            else:
                value = self._conv(node, value, weights, rng, way)
        return value

    def _affine(self, rows: Floats, weight: Floats, bias: Floats, rng: Any, way: int) -> Floats:
        products = rows[..., None, :] * weight
        biases = np.broadcast_to(bias[:, None], (*products.shape[:-1], 1))
        return added_up(np.concatenate([biases, products], axis=-1), rng, way)

    def _conv(self, node: Any, value: Floats, weights: list[Floats], rng: Any, way: int) -> Floats:
        pads = next(list(a.ints) for a in node.attribute if a.name == "pads")
        padded = np.pad(value, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
        view = np.lib.stride_tricks.sliding_window_view(padded, weights[0].shape[2:], axis=(2, 3))
        count, _, height, width = view.shape[:4]
        rows = np.moveaxis(view, 1, 3).reshape(count, height * width, -1)
        flat = weights[0].reshape(len(weights[0]), -1)
        out = self._affine(rows, flat, weights[1], rng, way)
        return np.moveaxis(out, 2, 1).reshape(count, -1, height, width)


def hard_points(draft: Draft, rng: np.random.Generator, count: int) -> Floats:
    """Corners, uniform points, points on which a hinge of the first layer is 0, and their neighbours."""
    (case,) = draft.question.cases
    lower = np.array([float(x) for x in case.box.lower])
    upper = np.array([float(x) for x in case.box.upper])
    uniform = rng.uniform(lower, upper, (count, len(lower)))
    corners = np.where(rng.random((count, len(lower))) < 0.5, lower, upper)
    sets = [uniform, corners]
    first = {
        t.name: numpy_helper.to_array(t) for t in onnx.load_from_string(draft.network).graph.initializer
    }
    if "weight_0" in first:
        weight, bias = first["weight_0"].astype(float), first["bias_0"].astype(float)
        chosen = rng.integers(len(weight), size=count)
        w, b = weight[chosen], bias[chosen]
        distance = ((uniform * w).sum(axis=1) + b) / np.maximum((w * w).sum(axis=1), 1e-9)
        sets.append(uniform - distance[:, None] * w)
    points = np.vstack(sets).astype(np.float32)
    ends = lower.astype(np.float32), upper.astype(np.float32)
    up = np.nextafter(points, np.float32(np.inf))
    return np.clip(np.vstack([points, up]), *ends).astype(np.float32)


def smallest_margin(outputs: Floats) -> Fraction:
    """The smallest of Y_0 − Y_k, exactly, over all rows."""
    wide = outputs.astype(np.float64)
    gaps = wide[:, :1] - wide[:, 1:]
    row, column = np.unravel_index(int(np.argmin(gaps)), gaps.shape)
    return Fraction(float(outputs[row, 0])) - Fraction(float(outputs[row, column + 1]))


def attacked(draft: Draft, rng: np.random.Generator, count: int) -> Fraction:
    """The smallest margin that any float32 run of the robust draft shows."""
    points = hard_points(draft, rng, count)
    evaluate, replay = Evaluator(draft.network), Replayer(draft.network)
    runs = [evaluate(points, rng, way) for way in (0, 1, 1, 2, 2)]
    runs.append(replay(points))
    return min(smallest_margin(outputs) for outputs in runs)


@pytest.mark.parametrize("family", CHAINS)
def test_default_instances(family: str) -> None:
    rng = np.random.default_rng(3)
    robust, violated = drafts(family, 4)
    proven = prove(as_instance(robust), robust.certificate, robust.label, None)
    assert proven.floats is not None
    assert attacked(robust, rng, 300) >= proven.floats
    broken = prove(as_instance(violated), violated.certificate, violated.label, violated.witness)
    assert broken.floats is not None
    assert violated.witness is not None
    point = np.array([[float(x) for x in violated.witness]], dtype=np.float32)
    evaluate = Evaluator(violated.network)
    runs = [evaluate(point, rng, way) for way in (0, *[1] * 40, *[2] * 40)]
    for outputs in [*runs, Replayer(violated.network)(point)]:
        best = max(
            Fraction(float(outputs[0, k])) - Fraction(float(outputs[0, 0]))
            for k in range(1, outputs.shape[1])
        )
        assert best >= broken.floats


def near_the_limit(seed: int) -> tuple[str, dict[str, Any]]:
    """Knobs whose margin is about what rounding takes away: some claims stand, some do not."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        knobs: dict[str, Any] = {"inputs": int(rng.integers(2, 30)), "pairs": int(rng.integers(1, 4))}
        return "exclusive-pairs", knobs | {"gamma": 10 ** rng.uniform(-6, -4.3), "classes": 2}
    if seed % 3 == 1:
        knobs = {"inputs": 8, "block": 4, "hinges": 3, "classes": 2}
        return "convex-corners", knobs | {"margin": 10 ** rng.uniform(-6, -5)}
    knobs = {"size": 3 + seed % 2, "depth": 0, "pairs": 2, "classes": 2, "gap": 0.001}
    return "paired-bias", knobs | {"margin": 10 ** rng.uniform(-5, -4)}


def sweep(seeds: range) -> dict[bool, int]:
    """How many instances near the limit are claimed for float32, and how many are not."""
    tally = {True: 0, False: 0}
    for seed in seeds:
        family, knobs = near_the_limit(seed)
        robust, _ = drafts(family, seed, **knobs)
        proven = prove(as_instance(robust), robust.certificate, robust.label, None)
        tally[proven.floats is not None] += 1
        if proven.floats is not None:
            assert attacked(robust, np.random.default_rng(seed), 120) >= proven.floats
    return tally


def test_claims_near_the_limit_of_rounding() -> None:
    tally = sweep(range(60))
    assert tally[True] >= 15, tally
    assert tally[False] >= 5, tally


@pytest.mark.slow
def test_many_claims_near_the_limit_of_rounding() -> None:
    assert sweep(range(60, 1500))[True] >= 300
