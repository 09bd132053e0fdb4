"""Networks that a proof could misread: each of these labels is false, or true for another reason."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest

from dokimos.checker import check, prove
from dokimos.checker.lemmas.piecewise_linear import piecewise_linear
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import TINY
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.instance import Certificate, Instance, Label
from tests.checker.files import instance_of, lines, model, question, stated


def refused(instance: Instance, kind: str, data: dict[str, object] | None = None) -> None:
    with pytest.raises(InvalidProof):
        check(instance, stated(instance, kind, data))


def test_a_bias_for_each_row_is_not_one_for_each_column() -> None:
    """Y is the first row of the product, all of whose entries get the row's bias −1."""
    network = model(
        [
            ("Reshape", ["X", "i_square"], "a"),
            ("Gemm", ["a", "w", "b"], "g"),
            ("Reshape", ["g", "i_flat"], "Y"),
        ],
        {
            "w": np.zeros((2, 2)),
            "b": [[-1.0], [1.0]],
            "i_square": np.array([2, 2]),
            "i_flat": np.array([1, 4]),
        },
        [1, 4],
        [1, 4],
    )
    # A reader of columns sees Y_1 = 1 > 0.
    instance = instance_of(network, question([(0, 1)] * 4, 4, "(<= Y_1 0)"))
    refused(instance, "linear", lines())
    refused(instance, "convex-corners")


def test_a_bias_for_every_entry_is_refused_in_one_sentence() -> None:
    network = model(
        [
            ("Reshape", ["X", "i_square"], "a"),
            ("Gemm", ["a", "w", "b"], "g"),
            ("Reshape", ["g", "i_flat"], "Y"),
        ],
        {"w": np.zeros((2, 2)), "b": [[1, 2], [3, 4]], "i_square": np.array([2, 2]), "i_flat": [1, 4]}
        | {"i_flat": np.array([1, 4])},
        [1, 4],
        [1, 4],
    )
    refused(instance_of(network, question([(0, 1)] * 4, 4, "(<= Y_1 0)")), "convex-corners")


@pytest.mark.parametrize("shape", [(2,), (1, 2), (1,), (1, 1), ()])
def test_biases_that_every_row_shares_are_read(shape: tuple[int, ...]) -> None:
    network = model([("Gemm", ["X", "w", "b"], "Y")], {"w": np.eye(2), "b": np.ones(shape)}, [1, 2], [1, 2])
    instance = instance_of(network, question([(0, 1)] * 2, 2, "(<= Y_1 0.5)"))
    proven = prove(instance, Certificate("linear", lines()), Label.UNSAT, None)
    assert Fraction(499, 1000) < proven.real <= Fraction(1, 2)


def test_the_second_of_a_batch_is_not_the_first() -> None:
    """Y_1 = x_1, which the box lets be 0; the convolution of the first image alone says x_0 >= 1."""
    network = model(
        [("Conv", ["X", "w"], "c"), ("Add", ["c", "zero"], "Y")],
        {"w": np.ones((1, 1, 1, 1)), "zero": np.zeros((2, 1, 1, 1))},
        [2, 1, 1, 1],
        [2, 1, 1, 1],
    )
    instance = instance_of(network, question([(1, 2), (0, 2)], 2, "(<= Y_1 0.5)"))
    refused(instance, "linear", lines())
    refused(instance, "convex-corners")


def test_the_channels_of_a_second_image_count() -> None:
    """The head subtracts the second image's feature, which no weight of the first image shows."""
    network = model(
        [
            ("Conv", ["X", "w"], "c"),
            ("Relu", ["c"], "r"),
            ("Reshape", ["r", "i_flat"], "f"),
            ("Gemm", ["f", "v", "b"], "Y"),
        ],
        {"w": np.ones((1, 1, 1, 1)), "i_flat": np.array([1, 2]), "v": [[0.0], [-5.0]], "b": [1.0]},
        [2, 1, 1, 1],
        [1, 1],
    )
    instance = instance_of(network, question([(0, 1), (0, 1)], 1, "(<= Y_0 0)"))
    refused(instance, "ordered-pairs", {"convolution": "c", "pairs": []})


def _paired(extra: list[tuple[object, ...]], **weights: object) -> bytes:
    """Two channels of one filter, rectified as r; `extra` goes on to Y."""
    return model(
        [("Conv", ["X", "w", "b"], "c"), ("Relu", ["c"], "r"), *extra],
        {"w": np.ones((2, 1, 1, 1)), "b": [1.0, 0.0], "i_flat": np.array([1, 2]), **weights},
        [1, 1, 1, 1],
        [1, 1],
    )


@pytest.mark.parametrize(
    "extra",
    [
        # a skip around the ReLU, which brings the unrectified channel in
        [("Sub", ["r", "c"], "s"), ("Reshape", ["s", "i_flat"], "f"), ("Gemm", ["f", "v", "one"], "Y")],
        # a second ReLU on the same convolution
        [
            ("Relu", ["c"], "again"),
            ("Sub", ["r", "again"], "s"),
            ("Reshape", ["s", "i_flat"], "f"),
            ("Gemm", ["f", "v", "one"], "Y"),
        ],
        # a skip from the input
        [("Add", ["r", "X"], "s"), ("Reshape", ["s", "i_flat"], "f"), ("Gemm", ["f", "v", "one"], "Y")],
        # a head that is not affine
        [
            ("Reshape", ["r", "i_flat"], "f"),
            ("Gemm", ["f", "v"], "g"),
            ("Relu", ["g"], "h"),
            ("Neg", ["h"], "n"),
            ("Add", ["n", "one"], "Y"),
        ],
    ],
)
def test_what_goes_around_the_pair_is_seen(extra: list[tuple[object, ...]]) -> None:
    network = _paired(extra, v=[[1.0], [0.0]], one=[1.0])
    instance = instance_of(network, question([(-9, 9)], 1, "(<= Y_0 0)"))
    refused(instance, "ordered-pairs", {"convolution": "c", "pairs": [[0, 1]]})


@pytest.mark.parametrize(
    ("head", "pairs"),
    [
        ([1.0, -2.0], [[0, 1]]),  # the smaller channel outweighs the larger
        ([-1.0, 1.0], [[0, 1]]),  # the larger channel is subtracted
        ([-1.0, 1.0], [[1, 0]]),  # the pair is named in the wrong order
        ([1.0, -1.0], []),  # a lone channel is subtracted
        ([1.0, -1.0], [[0, 1], [0, 1]]),  # a channel in two pairs
        ([1.0, -1.0], [[0, 2]]),  # no such channel
        ([1.0, -1.0], [[1, 1]]),  # a channel paired with itself
    ],
)
def test_pairs_that_prove_nothing(head: list[float], pairs: list[list[int]]) -> None:
    network = _paired(
        [("Reshape", ["r", "i_flat"], "f"), ("Gemm", ["f", "v", "one"], "Y")],
        v=[[w] for w in head],
        one=[1.0],
    )
    instance = instance_of(network, question([(-9, 9)], 1, "(<= Y_0 0)"))
    refused(instance, "ordered-pairs", {"convolution": "c", "pairs": pairs})


def test_groups_read_different_inputs() -> None:
    network = model(
        [
            ("Conv", ["X", "w", "b"], "c", {"group": 2}),
            ("Relu", ["c"], "r"),
            ("Reshape", ["r", "i_flat"], "f"),
            ("Gemm", ["f", "v", "one"], "Y"),
        ],
        {"w": np.ones((2, 1, 1, 1)), "b": [1.0, 0.0], "v": [[1.0], [-1.0]], "one": [1.0]}
        | {"i_flat": np.array([1, 2])},
        [1, 2, 1, 1],
        [1, 1],
    )
    instance = instance_of(network, question([(0, 9), (0, 9)], 1, "(<= Y_0 0)"))
    refused(instance, "ordered-pairs", {"convolution": "c", "pairs": [[0, 1]]})


@pytest.mark.parametrize("attributes", [{"alpha": 0.5}, {"beta": 0.5}])
def test_factors_of_a_product_are_not_overlooked(attributes: dict[str, float]) -> None:
    network = model(
        [("Gemm", ["X", "w", "b"], "Y", attributes)], {"w": [[1.0]], "b": [1.0]}, [1, 1], [1, 1]
    )
    instance = instance_of(network, question([(1, 2)], 1, "(<= Y_0 1.75)"))
    refused(instance, "linear", lines())


def test_lone_weights_may_be_flushed_to_zero() -> None:
    network = read_onnx(model([("MatMul", ["X", "w"], "Y")], {"w": [[1.0]]}, [1, 1], [1, 1]))
    box = (Fraction(-1),), (Fraction(1),)
    form = piecewise_linear(network, rounding=rounding_bounds(network, *box))
    assert set(form.noise.values()) == {Fraction(TINY)}


def test_a_float64_network_has_no_claim_in_float32() -> None:
    network = model([("Gemm", ["X", "w"], "Y")], {"w": [[1.0]]}, [1, 1], [1, 1], dtype=np.float64)
    instance = instance_of(network, question([(1, 2)], 1, "(<= Y_0 0)"))
    certificate = Certificate("linear", lines())
    proven = prove(instance, certificate, Label.UNSAT, None)
    assert Fraction(999, 1000) < proven.real <= 1
    assert proven.floats is None
    with pytest.raises(InvalidProof, match="claimed for float32"):
        check(instance, stated(instance, "linear", lines(), float32=Fraction(0)))


def test_shapes_whose_product_wraps_around_do_not_fit() -> None:
    wide = 2**32
    network = model([("Relu", ["X"], "Y")], {}, [1, wide, wide, 1], [1, wide, wide, 1])
    instance = instance_of(network, question([(0, 1)], 1, "(<= Y_0 0)"))
    with pytest.raises(UnreadableFile, match="too large"):
        prove(instance, Certificate("linear", lines()), Label.UNSAT, None)


@pytest.mark.parametrize("kind", ["convex-corners", "linear"])
def test_an_output_that_is_a_constant_is_one(kind: str) -> None:
    network = model([("Transpose", ["w"], "Y")], {"w": [[1.0]]}, [1, 1], [1, 1])
    data = lines() if kind == "linear" else {}
    for bound, is_true in (("0.5", True), ("1.5", False)):
        instance = instance_of(network, question([(0, 1)], 1, f"(<= Y_0 {bound})"))
        if is_true:
            proven = prove(instance, Certificate(kind, data), Label.UNSAT, None).real
            assert Fraction(499, 1000) < proven <= Fraction(1, 2)
        else:
            refused(instance, kind, data)


@pytest.mark.parametrize("bound", ["1" + "0" * 300, "1" + "0" * 308 + ".5"])
@pytest.mark.parametrize("weight", [3e38, 1e-45])
def test_huge_boxes_end_in_a_sentence(bound: str, weight: float) -> None:
    network = model([("Gemm", ["X", "w"], "Y")], {"w": [[weight], [weight]]}, [1, 2], [1, 1])
    instance = instance_of(network, question([(f"-{bound}", bound)] * 2, 1, "(<= Y_0 0)"))
    refused(instance, "linear", lines())
    refused(instance, "convex-corners")


def test_a_huge_margin_is_proven_over_the_reals_only() -> None:
    bound = "1" + "0" * 307
    network = model([("Gemm", ["X", "w", "b"], "Y")], {"w": [[3e38]], "b": [1.0]}, [1, 1], [1, 1])
    instance = instance_of(network, question([(bound, bound)], 1, "(<= Y_0 0)"))
    proven = prove(instance, Certificate("convex-corners"), Label.UNSAT, None)
    assert proven.real > 10**345
    assert proven.floats is None
    refused(instance, "linear", lines())
    check(instance, stated(instance, "convex-corners", real=Fraction(10**300)))


def test_infinite_responses_give_no_order_in_float32() -> None:
    network = model(
        [
            ("Conv", ["X", "u"], "a"),
            ("Conv", ["a", "w", "b"], "c"),
            ("Relu", ["c"], "r"),
            ("Reshape", ["r", "i_flat"], "f"),
            ("Gemm", ["f", "v", "one"], "Y"),
        ],
        {"u": np.full((1, 1, 1, 1), 3e38), "w": np.zeros((2, 1, 1, 1)), "b": [1.0, 0.0]}
        | {"i_flat": np.array([1, 2]), "v": [[1.0], [-1.0]], "one": [1.0]},
        [1, 1, 1, 1],
        [1, 1],
    )
    instance = instance_of(network, question([(0, 9)], 1, "(<= Y_0 0)"))
    certificate = Certificate("ordered-pairs", {"convolution": "c", "pairs": [[0, 1]]})
    proven = prove(instance, certificate, Label.UNSAT, None)
    assert proven.real == 1
    assert proven.floats is None


@pytest.mark.parametrize("shape", [(3,), (3, 2), (2, 3, 2)])
def test_a_constant_matrix_on_the_left_multiplies_the_second_axis_from_the_end(
    shape: tuple[int, ...],
) -> None:
    """Every output is the sum that numpy has there, over the reals and with noise for float32."""
    weights, size = np.arange(12.0).reshape(4, 3) - 5, int(np.prod(shape))
    out = np.matmul(weights, np.zeros(shape)).shape
    network = read_onnx(model([("MatMul", ["w", "X"], "Y")], {"w": weights}, list(shape), list(out)))
    point = [Fraction(k * k - 2) for k in range(size)]
    expected = np.matmul(weights, np.array([float(x) for x in point]).reshape(shape)).ravel()

    def value(terms: Mapping[int, Fraction], constant: Fraction) -> Fraction:
        return constant + sum((c * point[v] for v, c in terms.items() if v < size), Fraction(0))

    real = piecewise_linear(network)
    assert [value(e.terms, e.constant) for e in real.outputs] == [Fraction(y) for y in expected]
    bounds = rounding_bounds(network, [Fraction(-9)] * size, [Fraction(40)] * size)
    noisy = piecewise_linear(network, rounding=bounds)
    assert [value(e.terms, e.constant) for e in noisy.outputs] == [Fraction(y) for y in expected]
    assert len(noisy.noise) == len(expected) and min(noisy.noise.values()) > 0
