from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker import prove
from dokimos.checker.proofs.attention import softmax_bound
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Certificate, Label
from dokimos.suites.vnnlib.model import Box, Linear
from tests.checker.attention_models import (
    assert_sound,
    random_box,
    random_constraint,
    softmax_parts,
)
from tests.checker.files import instance_of, question

MARGIN = Linear((), ((0, Fraction(1)), (1, Fraction(-1))), Fraction(0))


@pytest.mark.no_cover
@settings(deadline=None, max_examples=75)
@given(
    seed=st.integers(0, 2**32),
    tokens=st.integers(1, 4),
    width=st.integers(1, 3),
    hinges=st.integers(0, 2),
    radius=st.sampled_from([0.0, 2.0**-10, 2.0**-6, 2.0**-4]),
)
def test_the_bound_is_never_above_a_value(
    seed: int, tokens: int, width: int, hinges: int, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    network = softmax_parts(rng, tokens=tokens, width=width, hinges=hinges).build()
    box = random_box(rng, tokens * width, radius)
    bound = softmax_bound(read_onnx(network))
    try:
        lower, found = assert_sound(network, bound, random_constraint(rng, box.size), box, rng)
    except InvalidProof as error:
        assert "keeps the largest score" in str(error)
        return
    if radius == 0.0:
        assert lower == pytest.approx(found, abs=1e-9)


def test_most_random_networks_with_a_small_box_can_be_bounded() -> None:
    proven = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        network = read_onnx(softmax_parts(rng, tokens=3, width=2, hinges=1).build())
        try:
            softmax_bound(network)(MARGIN, random_box(rng, 6, 2.0**-10))
        except InvalidProof:
            continue
        proven += 1
    assert proven >= 30


def test_saturated_scores_move_little() -> None:
    """Lemma 2: where one key has nearly all the weight, only the values move the output."""
    drifts = {}
    for scale in (1.0, 64.0):
        parts = softmax_parts(np.random.default_rng(3), tokens=2, width=2, hinges=0)
        names = {node[2] for node in parts.nodes}
        weights = parts.weights | {"WQ": np.eye(2) * scale, "WK": np.eye(2), "WV": np.eye(2)[:, :1]}
        weights |= {"PQ": np.zeros((1, 2, 2)), "PK": np.zeros((2, 2)), "PV": np.zeros(1)}
        weights |= {"head": np.array([[1.0, 1.0], [0.0, 0.0]]), "scale": np.array(1.0)}
        nodes = [node for node in parts.nodes if node[2] not in ("S1", "A")]
        at = next(i for i, node in enumerate(nodes) if node[2] == "Z")
        nodes.insert(at, ("Softmax", ("S",), "A", {"axis": -1}))
        assert {"S", "Z"} <= names
        network = read_onnx(replace(parts, nodes=nodes, weights=weights).build())
        point = (Fraction(1), Fraction(0), Fraction(0), Fraction(1))
        radius = Fraction(1, 64)
        bound = softmax_bound(network)
        wide = Box(tuple(x - radius for x in point), tuple(x + radius for x in point))
        drifts[scale] = float(bound(MARGIN, Box(point, point)) - bound(MARGIN, wide))
    assert drifts[64.0] == pytest.approx(2 / 64, rel=1e-6)
    assert drifts[1.0] > 1.2 * drifts[64.0]


CHANGES: dict[str, dict[str, tuple[Any, ...]]] = {
    "along the keys": {"A": ("Softmax", ("S1",), "A", {"axis": 1})},
    "not the output of a Softmax": {"A": ("Exp", ("S1",), "A")},
    "not a product": {"S": ("Exp", ("Q1",), "S")},
    "not transposed": {"KT": ("Transpose", ("K1",), "KT", {"perm": [0, 1, 2]})},
    "not constant": {"Q1": ("Add", ("Q0", "V0"), "Q1")},
    "not the input times": {"Q0": ("MatMul", ("X1", "WQ"), "Q0")},
    "followed by the hinges": {"FH": ("Concat", ("F", "H", "H"), "FH", {"axis": 1})},
    "do not read the flat input": {"H0": ("Gemm", ("F", "HW", "HB"), "H0")},
    "a factor": {"Y": ("Gemm", ("FH", "head", "bias"), "Y", {"transB": 1, "alpha": 2.0})},
    "not the output of a Gemm": {"Y": ("Relu", ("Y0",), "Y")},
    "more than one number": {"S1": ("Mul", ("S", "WQ"), "S1")},
}


@pytest.mark.parametrize("reason", CHANGES)
def test_any_other_graph_is_refused(reason: str) -> None:
    seed = next(
        s
        for s in range(50)
        if any(
            n[2] == "S1" for n in softmax_parts(np.random.default_rng(s), tokens=2, width=2, hinges=1).nodes
        )
    )
    parts = softmax_parts(np.random.default_rng(seed), tokens=2, width=2, hinges=1)
    softmax_bound(read_onnx(parts.build()))
    parts.weights["WV"] = np.eye(2)
    parts.weights["PV"] = np.zeros(2)
    width = 5 if reason != "followed by the hinges" else 6
    parts.weights["head"] = np.ones((2, width))
    extra = [("Relu", ("X",), "X1")]
    if reason == "not the output of a Gemm":
        at = len(parts.nodes) - 1
        extra.append((*parts.nodes[at][:2], "Y0", parts.nodes[at][3]))
        nodes = [*extra[:1], *parts.nodes[:at], extra[1], parts.nodes[at]]
    else:
        nodes = [*extra, *parts.nodes]
    with pytest.raises(InvalidProof, match=reason):
        softmax_bound(read_onnx(replace(parts, nodes=nodes).build(**CHANGES[reason])))


def test_the_data_must_be_empty() -> None:
    parts = softmax_parts(np.random.default_rng(1), tokens=2, width=2, hinges=0)
    instance = instance_of(parts.build(), question([(0, 0)] * 4, 2, "(<= Y_0 Y_1)"))
    with pytest.raises(UnreadableFile, match="unknown field `rho`"):
        prove(instance, Certificate("softmax-attention", {"rho": "1"}), Label.UNSAT, None)


def test_scores_divided_by_zero_are_refused() -> None:
    for seed in range(50):
        parts = softmax_parts(np.random.default_rng(seed), tokens=2, width=2, hinges=0)
        if any(node[0] == "Div" for node in parts.nodes):
            break
    parts.weights["scale"] = np.array(0.0)
    with pytest.raises(InvalidProof, match="divided by zero"):
        softmax_bound(read_onnx(parts.build()))
