from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker import prove
from dokimos.checker.lemmas.attention import GraphReader
from dokimos.checker.proofs.attention import linear_bound, row_weights
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Certificate, Label
from tests.checker.attention_models import assert_sound, linear_parts, random_box, random_constraint
from tests.checker.files import instance_of, model, question


@pytest.mark.no_cover
@settings(deadline=None, max_examples=75)
@given(
    seed=st.integers(0, 2**32),
    tokens=st.integers(1, 4),
    width=st.integers(1, 3),
    hinges=st.integers(0, 2),
    radius=st.sampled_from([0.0, 2.0**-10, 2.0**-5, 2.0**-3, 1.0]),
)
def test_the_bound_is_never_above_a_value(
    seed: int, tokens: int, width: int, hinges: int, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    network = linear_parts(rng, tokens=tokens, width=width, hinges=hinges).build()
    box = random_box(rng, tokens * width, radius)
    bound = linear_bound(read_onnx(network))
    try:
        lower, found = assert_sound(network, bound, random_constraint(rng, box.size), box, rng)
    except InvalidProof as error:
        assert "not provably positive" in str(error) or "not finite" in str(error)
        return
    if radius == 0.0:
        assert lower == pytest.approx(found, abs=1e-6)


@pytest.mark.no_cover
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), radius=st.sampled_from([2.0**-6, 2.0**-3]))
def test_the_ranges_of_the_weights_hold(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    parts = linear_parts(rng, tokens=3, width=2, hinges=0)
    network, box = read_onnx(parts.build()), random_box(rng, 6, radius)
    try:
        rows = row_weights(network, GraphReader(network).linear_attention(), box)
    except InvalidProof:
        return
    lower, upper = (np.array([float(x) for x in end]) for end in (box.lower, box.upper))
    for x in lower + rng.uniform(size=(50, 6)) * (upper - lower):
        tokens = x.reshape(3, 2)
        queries = np.maximum(tokens @ parts.weights["WQ"] + parts.weights["PQ"][0], 0)
        keys = np.maximum(tokens @ parts.weights["WK"] + parts.weights["PK"], 0)
        weights = queries @ keys.T
        weights /= weights.sum(axis=1, keepdims=True)
        for row, found in zip(rows, weights, strict=True):
            assert np.all([float(a.lower()) <= f + 1e-12 for a, f in zip(row.lower, found, strict=True)])
            assert np.all([float(b.upper()) >= f - 1e-12 for b, f in zip(row.upper, found, strict=True)])
            assert 1 - found[row.key] <= float(row.others.upper()) + 1e-12


def test_a_row_without_weight_is_refused() -> None:
    parts = linear_parts(np.random.default_rng(0), tokens=2, width=2, hinges=0)
    parts.weights["PQ"] = parts.weights["PQ"] - 100
    network = read_onnx(parts.build())
    with pytest.raises(InvalidProof, match="row 0 of the weights is not provably positive"):
        linear_bound(network)(
            random_constraint(np.random.default_rng(0), 4), random_box(np.random.default_rng(0), 4, 0.125)
        )


CHANGES: dict[str, dict[str, tuple[Any, ...]]] = {
    "not the output of a Div": {"A": ("Softmax", ("W",), "A", {"axis": 2})},
    "divided by the sums of their rows": {"R": ("ReduceSum", ("W", "i_other"), "R", {"keepdims": 1})},
    "not the output of a ReduceSum": {"A": ("Div", ("W", "W"), "A")},
    "not the output of a Relu": {"Q": ("Exp", ("Q1",), "Q")},
    "not transposed": {"KT": ("Transpose", ("K",), "KT", {"perm": [0, 1, 2]})},
    "not the input times": {"V0": ("MatMul", ("X1", "WV"), "V0")},
    "not the output of a MatMul": {"V0": ("Relu", ("X",), "V0")},
}


@pytest.mark.parametrize("reason", CHANGES)
def test_any_other_graph_is_refused(reason: str) -> None:
    parts = linear_parts(np.random.default_rng(5), tokens=3, width=3, hinges=1)
    linear_bound(read_onnx(parts.build()))
    parts.weights["i_other"] = np.array([1], dtype=np.int64)
    parts.weights.update(WV=np.eye(3), PV=np.zeros(3), head=np.ones((2, 10)))
    parts.nodes.insert(0, ("Relu", ("X",), "X1"))
    with pytest.raises(InvalidProof, match=reason):
        linear_bound(read_onnx(parts.build(**CHANGES[reason])))


def test_a_flat_input_is_refused() -> None:
    network = model([("Gemm", ("X", "W", "B"), "Y")], {"W": np.eye(2), "B": np.zeros(2)}, [1, 2], [1, 2])
    with pytest.raises(InvalidProof, match="sequence of tokens"):
        linear_bound(read_onnx(network))


def test_neither_rho_nor_anything_else_is_read_from_the_data() -> None:
    parts = linear_parts(np.random.default_rng(1), tokens=2, width=2, hinges=0)
    instance = instance_of(parts.build(), question([(0, 0)] * 4, 2, "(<= Y_0 Y_1)"))
    with pytest.raises(UnreadableFile, match="unknown field `rho`"):
        prove(instance, Certificate("linear-attention", {"rho": "1000"}), Label.UNSAT, None)


def test_constraints_on_inputs_count() -> None:
    rng = np.random.default_rng(4)
    network = linear_parts(rng, tokens=2, width=2, hinges=1).build()
    bound = linear_bound(read_onnx(network))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        constraint = random_constraint(rng, 4)
        assert constraint.bound != Fraction(0)
        assert_sound(network, bound, constraint, random_box(rng, 4, 2.0**-6), rng)
