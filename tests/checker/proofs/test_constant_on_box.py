"""A tensor that is constant on the box decides; one that is not, or does not decide, proves nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dokimos.checker import check, prove
from dokimos.core.errors import DokimosError, InvalidProof, UnreadableFile
from dokimos.suites.instance import Certificate, Instance, Label
from tests.checker.files import instance_of, model, question, stated

BOX = [("0.25", "0.75"), ("-0.5", "0.5")]
#: Off on the box, which reaches 0.75 and −0.5, by the slack of the biases.
HINGES = [[1.0, 0.0], [0.0, -1.0]]
GEMM = {"transB": 1}


def hinged(
    biases: list[float],
    *,
    behind: list[tuple[Any, ...]] | None = None,
    hinges: list[list[float]] | None = None,
    **more: Any,
) -> bytes:
    """Y = behind(t + hinges), t = (2, −1); by default the rows of (3z₀ + z₁, z₀) = (5, 2)."""
    nodes = [
        ("Gemm", ("X", "w0", "b0"), "pre", GEMM),
        ("Relu", ("pre",), "off"),
        ("Gemm", ("off", "w1", "b1"), "z", GEMM),
        *(behind or [("Gemm", ("z", "w2", "b2"), "Y", GEMM)]),
    ]
    weights = {
        "w0": hinges or HINGES,
        "b0": biases,
        "w1": [[1.0, 1.0], [8.0, 0.0]],
        "b1": [2.0, -1.0],
        "w2": [[3.0, 1.0], [1.0, 0.0]],
        "b2": [0.0, 0.0],
    }
    return model(nodes, {**weights, **more}, (1, 2), (1, 2))


def asked(network: bytes, unsafe: str = "(<= Y_0 Y_1)", box: Any = BOX) -> Instance:
    return instance_of(network, question(box, 2, unsafe))


def proven(instance: Instance, tensor: str = "z") -> Any:
    return prove(instance, Certificate("constant-on-box", {"tensor": tensor}), Label.UNSAT, None)


def test_the_margin_is_the_difference_at_the_constant() -> None:
    margins = proven(asked(hinged([-0.75, -0.5])))
    assert margins.real == 3
    assert Fraction(3) - Fraction(1, 10**5) < margins.floats <= 3


def test_a_hinge_that_touches_its_threshold_is_off() -> None:
    assert proven(asked(hinged([-0.75, -0.5]))).real == 3


@pytest.mark.parametrize("at", [0, 1])
def test_one_float_inside_the_box_is_too_much(at: int) -> None:
    biases = [-0.75, -0.5]
    biases[at] = float(np.nextafter(np.float32(biases[at]), np.float32(0)))
    with pytest.raises(InvalidProof, match="changes sign"):
        proven(asked(hinged(biases)))


def test_a_relu_that_is_always_active_is_what_it_reads() -> None:
    """Two of them cancel: z₀ = t₀ + (x₀ + 1) − (x₀ + 1)."""
    cancelling = hinged(
        [1.0, 1.0], hinges=[[1.0, 0.0], [1.0, 0.0]], w1=[[1.0, -1.0], [2.0, -2.0]], b1=[2.0, -1.0]
    )
    assert proven(asked(cancelling)).real == 3
    with pytest.raises(InvalidProof, match="not constant"):
        proven(asked(hinged([1.0, 1.0], hinges=[[1.0, 0.0], [1.0, 0.0]])))


def test_a_coordinate_without_width_is_constant() -> None:
    box = [("0.25", "0.25"), ("-0.5", "0.5")]
    z = (2 + Fraction(5, 4), -1 + 8 * Fraction(5, 4))
    assert proven(asked(hinged([1.0, -0.5]), box=box)).real == 2 * z[0] + z[1]


def test_what_lies_behind_may_be_any_network() -> None:
    behind = [
        ("Tanh", ("z",), "bent"),
        ("Gemm", ("bent", "w2", "b2"), "Y", GEMM),
    ]
    margin = float(proven(asked(hinged([-1.0, -1.0], behind=behind))).real)
    assert abs(margin - (2 * np.tanh(2.0) + np.tanh(-1.0))) < 1e-9
    assert margin <= 2 * np.tanh(2.0) + np.tanh(-1.0) + 1e-15


def test_a_constant_that_is_unsafe_proves_nothing() -> None:
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(asked(hinged([-1.0, -1.0]), "(<= Y_1 Y_0)"))
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(asked(hinged([-1.0, -1.0]), "(<= Y_0 5.0)"))


def test_a_path_around_the_tensor_is_seen() -> None:
    behind = [
        ("Gemm", ("z", "w2", "b2"), "y", GEMM),
        ("Add", ("y", "X"), "Y"),
    ]
    with pytest.raises(InvalidProof, match="depends on more"):
        proven(asked(hinged([-1.0, -1.0], behind=behind)))


@pytest.mark.parametrize("tensor", ["nothing", "X", "w1", ""])
def test_a_tensor_that_no_node_computes_is_refused(tensor: str) -> None:
    with pytest.raises(InvalidProof, match="the network has no tensor"):
        proven(asked(hinged([-1.0, -1.0])), tensor)


def test_any_tensor_on_the_way_may_be_named_if_it_is_constant() -> None:
    instance = asked(hinged([-1.0, -1.0]))
    assert [proven(instance, name).real for name in ("off", "z", "Y")] == [3, 3, 3]
    with pytest.raises(InvalidProof, match="not constant"):
        proven(instance, "pre")


def test_constraints_on_inputs_take_their_worst_corner() -> None:
    instance = asked(hinged([-1.0, -1.0]), "(<= (+ Y_0 X_1) (+ Y_1 X_0))")
    assert proven(instance).real == 3 - Fraction(1, 2) - Fraction(3, 4)


@pytest.mark.parametrize("data", [{}, {"tensor": 3}, {"tensor": "z", "more": 1}])
def test_data_of_the_wrong_shape_is_unreadable(data: dict[str, Any]) -> None:
    with pytest.raises(UnreadableFile):
        prove(asked(hinged([-1.0, -1.0])), Certificate("constant-on-box", data), Label.UNSAT, None)


def test_a_network_without_a_value_there_is_refused() -> None:
    behind = [
        ("Sub", ("z", "b1"), "zero"),
        ("Div", ("b1", "zero"), "Y"),
    ]
    with pytest.raises(DokimosError):
        proven(asked(hinged([-1.0, -1.0], behind=behind)))


def test_float32_is_not_claimed_where_rounding_is_larger_than_the_margin() -> None:
    b2 = [float(np.float32(-3.0 + 2.0**-21)), 0.0]
    instance = asked(hinged([-1.0, -1.0], b2=b2))
    margins = proven(instance)
    assert (margins.real, margins.floats) == (Fraction(1, 2**21), None)
    truth = stated(instance, "constant-on-box", {"tensor": "z"}, float32=Fraction(0))
    with pytest.raises(InvalidProof, match="not proven there"):
        check(instance, truth)
