"""Proposition 2: β against second derivatives by automatic differentiation, and where it says nothing."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from dokimos.difficulty.components import EXTRAS
from dokimos_studies.veristress.smooth_cover import SmoothCover, second_order
from tests.checker.files import model
from tests.difficulty.inspections import observe, unit_box

torch = pytest.importorskip("torch", reason="torch is not installed")

ASKED = unit_box(3, 1, "(<= Y_0 0)", low=-0.5, high=1.0)
RNG = np.random.default_rng(5)
W, B, V = RNG.normal(size=(4, 3)), RNG.normal(size=4), RNG.normal(size=(1, 4))


def network(op: str, **attributes: float) -> bytes:
    nodes = [
        ("Gemm", ["X", "w", "b"], "z", {"transB": 1}),
        (op, ["z", *attributes], "h"),
        ("Gemm", ["h", "v", "zero"], "Y", {"transB": 1}),
    ]
    return model(nodes, {"w": W, "b": B, "v": V, "zero": np.zeros(1), **attributes}, [1, 3], [1, 1])


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("Pow", {"e": 3.0}), ("Pow", {"e": 2.0}), ("Sigmoid", {}), ("Tanh", {}), ("Exp", {}), ("Sin", {})],
)
def test_no_second_derivative_is_beyond_the_bound(op: str, attributes: dict[str, float]) -> None:
    from dokimos.engine.differentiable import to_torch
    from dokimos.networks.reading.onnx_file import read_onnx

    file = network(op, **attributes)
    bound = second_order(observe(file, ASKED), np.full(3, 0.75))
    function = to_torch(read_onnx(file))
    largest = 0.0
    for x in np.random.default_rng(0).uniform(-0.5, 1.0, size=(40, 3)):
        at = torch.from_numpy(x)
        found = torch.autograd.functional.hessian(lambda x: function(x[None]).sum(), at)
        largest = max(largest, float(found.abs().sum()) * 0.75**2)
    assert largest <= bound
    assert bound < 40 * largest


def test_a_square_has_the_bound_of_the_formula() -> None:
    """μ = x² on [-1/2, 1/2]: β̃ = 2·ε²/(2·ε²) = 1 for L_c at a corner."""
    file = model([("Pow", ["X", "e"], "Y")], {"e": 2.0}, [1, 1], [1, 1])
    seen = observe(file, unit_box(1, 1, "(<= Y_0 0)", low=-0.5, high=0.5))
    found = SmoothCover()(seen)
    assert found.value == pytest.approx(log(1 + sqrt(2 / seen.settings.tau)), rel=1e-3)


def test_an_affine_margin_needs_one_piece() -> None:
    file = model(
        [("Gemm", ["X", "v", "b"], "Y", {"transB": 1})], {"v": W[:1], "b": np.ones(1)}, [1, 3], [1, 1]
    )
    assert SmoothCover()(observe(file, ASKED)).value == 0


def test_a_kink_in_the_box_is_not_smooth() -> None:
    found = SmoothCover()(observe(network("Relu"), ASKED))
    assert found.value is None
    assert "kink" in (found.note or "")


def test_it_is_measured_on_request() -> None:
    assert EXTRAS["smooth_cover"].on_request
