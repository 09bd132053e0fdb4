"""What is proven of attention for float32 holds at hard float32 points, in any order of sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dokimos.checker import prove
from dokimos.constructions.draft import Draft
from dokimos.engine.runtimes.sessions import replay
from tests.checker.statements import drafts
from tests.checker.test_float32_claims import (
    Floats,
    added_up,
    as_instance,
    smallest_margin,
)

FAMILIES = ("softmax-attention", "linear-attention")


class Evaluator:
    """The operators of attention in float32; sums in an order of its own, exponentials off by some ulps."""

    def __init__(self, network: bytes) -> None:
        self._model = onnx.load_from_string(network)
        self._arrays = {t.name: numpy_helper.to_array(t) for t in self._model.graph.initializer}

    def __call__(self, points: Floats, rng: np.random.Generator, way: int) -> Floats:
        shape = [d.dim_value for d in self._model.graph.input[0].type.tensor_type.shape.dim]
        values: dict[str, Any] = self._arrays | {"X": points.reshape(len(points), *shape[1:])}

        def total(terms: Floats) -> Floats:
            return added_up(terms, rng, way)

        def product(a: Floats, b: Floats) -> Floats:
            return total(a[..., :, None, :] * np.swapaxes(b, -1, -2)[..., None, :, :])

        def gemm(a: Floats, b: Floats, c: Floats) -> Floats:
            products = a[:, None, :] * b
            return total(
                np.concatenate([np.broadcast_to(c[:, None], (*products.shape[:2], 1)), products], 2)
            )

        def softmax(x: Floats) -> Floats:
            powers = np.exp(x - x.max(axis=-1, keepdims=True))
            for _ in range(4):
                powers = np.nextafter(powers, np.float32(rng.integers(0, 2)))
            return powers / total(powers)[..., None]

        rules: dict[str, Callable[..., Any]] = {
            "Add": np.add,
            "Concat": lambda a, b: np.concatenate([a, b], axis=1),
            "Div": np.divide,
            "Flatten": lambda x: x.reshape(len(x), -1),
            "Gemm": gemm,
            "MatMul": product,
            "Mul": np.multiply,
            "ReduceSum": lambda x, axes: total(x)[..., None],
            "Relu": lambda x: np.maximum(x, np.float32(0)),
            "Softmax": softmax,
            "Transpose": lambda x: np.swapaxes(x, 1, 2),
        }
        for node in self._model.graph.node:
            values[node.output[0]] = rules[node.op_type](*(values[name] for name in node.input))
        result: Floats = values["Y"]
        assert result.dtype == np.float32
        return result


def points_of(draft: Draft, rng: np.random.Generator) -> Floats:
    """Hard points, and the corners where hinges are highest."""
    (case,) = draft.question.cases
    lower, upper = (np.array([float(x) for x in end]) for end in (case.box.lower, case.box.upper))
    arrays = (numpy_helper.to_array(t) for t in onnx.load_from_string(draft.network).graph.initializer)
    rows = next(a for a in arrays if a.ndim == 2 and a.shape[1] == len(lower))
    corners = np.where(rows > 0, upper, lower).astype(np.float32)
    uniform = rng.uniform(lower, upper, (60, len(lower)))
    random = np.where(rng.random((60, len(lower))) < 0.5, lower, upper)
    points = np.vstack([uniform, random]).astype(np.float32)
    ends = lower.astype(np.float32), upper.astype(np.float32)
    return np.clip(np.vstack([points, corners]), *ends).astype(np.float32)


def assert_holds(draft: Draft, rng: np.random.Generator) -> bool:
    """Whether the draft is proven for float32, after attacking the claim."""
    proven = prove(as_instance(draft), draft.certificate, draft.label, draft.witness).floats
    if proven is None:
        return False
    evaluate = Evaluator(draft.network)
    if draft.witness is None:
        points = points_of(draft, rng)
        runs = [*(evaluate(points, rng, way) for way in (0, 1, 2)), replay(draft.network, points)]
        assert min(smallest_margin(outputs) for outputs in runs) >= proven
        return True
    point = np.array([[float(x) for x in draft.witness]], dtype=np.float32)
    runs = [*(evaluate(point, rng, way) for way in (0, *[1] * 10, *[2] * 10)), replay(draft.network, point)]
    assert max(smallest_margin(outputs) for outputs in runs) <= -proven
    return True


@pytest.mark.parametrize("family", FAMILIES)
def test_default_instances(family: str) -> None:
    rng = np.random.default_rng(3)
    for draft in drafts(family, 4):
        assert assert_holds(draft, rng)


@pytest.mark.parametrize("family", FAMILIES)
def test_claims_near_the_limit_of_rounding(family: str) -> None:
    tally = {True: 0, False: 0}
    for seed in range(16):
        rng = np.random.default_rng(seed)
        slack = 1 + 10 ** rng.uniform(-4, -2)
        sizes = {"tokens": int(rng.integers(2, 5)), "width": 4, "classes": 2, "hinges": 1}
        tally[assert_holds(drafts(family, seed, slack=slack, **sizes)[0], rng)] += 1
    assert tally[True] >= 3, tally
    assert tally[False] >= 3, tally
