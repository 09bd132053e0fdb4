"""Lipschitz constants are exactly the operator norms, and margins never more than what they leave."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dokimos.checker import prove
from dokimos.checker.proofs.contraction import lipschitz_constants
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Certificate, Instance, Label
from tests.checker.files import instance_of, model, question

GEMM = {"transB": 1}


def proven(instance: Instance, data: dict[str, Any] | None = None) -> Any:
    return prove(instance, Certificate("contraction", data or {}), Label.UNSAT, None)


def constant_of(network: bytes) -> Fraction:
    graph = read_onnx(network, name="net")
    return lipschitz_constants(graph)[graph.output]


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[bytes, int]:
    """A convolution without bias with any stride, padding, dilation and groups, and its input size."""
    group = draw(st.sampled_from([1, 2]))
    channels, outputs = 2, 2 * group
    height, width = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    kernel = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pads = [draw(st.integers(0, 3)) for _ in range(4)]
    strides = [draw(st.integers(1, 2)) for _ in range(2)]
    dilations = [draw(st.integers(1, 2)) for _ in range(2)]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    positions = [
        (n + pads[i] + pads[i + 2] - spans[i]) // strides[i] + 1 for i, n in enumerate((height, width))
    ]
    assume(min(positions) >= 1)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weight = rng.integers(-16, 17, size=(outputs, channels // group, *kernel)) / 16
    attributes = {"pads": pads, "strides": strides, "dilations": dilations, "group": group}
    network = model(
        [("Conv", ("X", "w"), "Y", attributes)],
        {"w": weight},
        (1, channels, height, width),
        (1, outputs, *positions),
    )
    return network, channels * height * width


@given(convolutions())
@settings(max_examples=60, deadline=None)
def test_the_norm_of_a_convolution_is_that_of_its_matrix(drawn: tuple[bytes, int]) -> None:
    network, size = drawn
    matrix = replay(network, np.eye(size, dtype=np.float32))
    assert constant_of(network) == Fraction(float(abs(matrix.astype(np.float64)).sum(axis=0).max()))


def test_layers_multiply_and_branches_add() -> None:
    weights = {"w": [[1.0, -2.0], [0.5, 0.25]], "b": [7.0, -7.0], "m": [[0.5, 1.0], [0.5, -3.0]]}
    twice = [("Gemm", ("X", "w", "b"), "h", {"transB": 1, "alpha": -0.5}), ("Relu", ("h",), "r")]
    chain = model([*twice, ("MatMul", ("r", "m"), "Y")], weights, (1, 2), (1, 2))
    assert constant_of(chain) == Fraction(3, 2) * 4
    branch = model([*twice, ("Add", ("r", "X"), "Y")], weights, (1, 2), (1, 2))
    assert constant_of(branch) == Fraction(3, 2) + 1
    shifted = model([*twice, ("Sub", ("b", "r"), "Y")], weights, (1, 2), (1, 2))
    assert constant_of(shifted) == Fraction(3, 2)
    joined = model([*twice, ("Concat", ("r", "X"), "Y", {"axis": 1})], weights, (1, 2), (1, 4))
    assert constant_of(joined) == Fraction(3, 2)


@pytest.mark.parametrize("op", ["Relu", "Tanh", "Sigmoid", "Neg"])
def test_what_acts_entry_by_entry_does_not_expand(op: str) -> None:
    assert constant_of(model([(op, ("X",), "Y")], {}, (1, 3), (1, 3))) == 1


def test_operators_without_a_constant_here_prove_nothing() -> None:
    for nodes in (
        [("Mul", ("X", "X"), "Y")],
        [("MatMul", ("w", "X"), "Y")],
        [("Gemm", ("w", "X"), "Y")],
        [("Gemm", ("X", "w", "X"), "Y")],
    ):
        network = model(nodes, {"w": np.eye(2)}, (2, 2), (2, 2))
        instance = instance_of(network, question([("0", "1")] * 4, 4, "(<= Y_0 -100.0)"))
        with pytest.raises(InvalidProof):
            proven(instance)


@pytest.mark.parametrize(
    ("node", "weights"),
    [
        (("Gemm", ("X", "w"), "Y", {"transA": 1}), np.eye(2)),
        (("MatMul", ("X", "w"), "Y"), np.ones((1, 2, 2))),
    ],
)
def test_forms_without_a_norm_here_are_refused(node: tuple[Any, ...], weights: Any) -> None:
    shape = (2, 2) if node[0] == "Gemm" else (1, 2, 2)
    network = model([node], {"w": weights}, shape, shape)
    with pytest.raises(InvalidProof, match="operator norm"):
        constant_of(network)


def test_a_matrix_without_an_offset_has_its_norm() -> None:
    network = model([("Gemm", ("X", "w"), "Y")], {"w": [[1.0, 2.0], [3.0, -4.0]]}, (1, 2), (1, 2))
    assert constant_of(network) == 6


def test_a_layer_that_reads_a_constant_is_refused() -> None:
    """The reader folds such layers; the proof does not rely on it."""
    network = Network(
        input="X",
        output="Y",
        nodes=(Node("Relu", ("c",), "Y"),),
        constants={"c": np.ones((1, 2), dtype=np.float32)},
        shapes={"X": (1, 2), "Y": (1, 2), "c": (1, 2)},
    )
    with pytest.raises(InvalidProof, match="a constant where"):
        lipschitz_constants(network)


def linear(rows: Any, offsets: Any, box: Any, unsafe: str) -> Instance:
    network = model([("Gemm", ("X", "w", "b"), "Y", GEMM)], {"w": rows, "b": offsets}, (1, 2), (1, 2))
    return instance_of(network, question(box, 2, unsafe))


def test_for_an_affine_network_on_a_cube_the_margin_is_the_minimum() -> None:
    box = [("1.0", "2.0"), ("-1.0", "0.0")]
    instance = linear([[2.0, -1.0], [1.0, 1.0]], [8.0, 0.0], box, "(<= Y_0 Y_1)")
    assert proven(instance).real == 8 + 1 - 0
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(linear([[2.0, -1.0], [1.0, 1.0]], [-1.0, 0.0], box, "(<= Y_0 Y_1)"))


def test_the_widest_side_of_the_box_counts() -> None:
    box = [("0.0", "4.0"), ("0.0", "0.0")]
    instance = linear([[0.0, 1.0], [0.0, 0.0]], [3.0, 0.0], box, "(<= Y_0 Y_1)")
    assert proven(instance).real == 1


def test_rows_are_subtracted_before_the_norm_is_taken() -> None:
    """y₀ − y₁ does not depend on the input, though y₀ and y₁ do."""
    box = [("-100.0", "100.0")] * 2
    instance = linear([[5.0, -7.0], [5.0, -7.0]], [1.0, 0.5], box, "(<= Y_0 Y_1)")
    assert proven(instance).real == Fraction(1, 2)


def test_behind_another_last_operator_every_output_moves_on_its_own() -> None:
    network = model(
        [("Gemm", ("X", "w", "b"), "y", GEMM), ("Relu", ("y",), "Y")],
        {"w": [[1.0, 1.0], [1.0, 1.0]], "b": [16.0, 2.0]},
        (1, 2),
        (1, 2),
    )
    asked = question([("-1.0", "1.0")] * 2, 2, "(<= Y_0 Y_1)")
    assert proven(instance_of(network, asked)).real == 14 - 4


def test_constraints_on_inputs_move_with_their_own_widths() -> None:
    box = [("0.0", "4.0"), ("0.0", "2.0")]
    rows = [[0.0, 0.0], [0.0, 0.0]]
    instance = linear(rows, [9.0, 0.0], box, "(<= (+ Y_0 X_0) (+ Y_1 X_1))")
    assert proven(instance).real == 9 - 2


def test_float32_leaves_less_than_the_reals() -> None:
    margins = proven(linear([[2.0, -1.0], [1.0, 1.0]], [8.0, 0.0], [("1.0", "2.0")] * 2, "(<= Y_0 Y_1)"))
    assert margins.floats is not None
    assert margins.real - Fraction(1, 10**4) < margins.floats < margins.real


def test_data_is_refused() -> None:
    with pytest.raises(UnreadableFile):
        proven(linear(np.eye(2), [0.0, 0.0], [("0", "1")] * 2, "(<= Y_0 -9.0)"), {"norm": "1"})
