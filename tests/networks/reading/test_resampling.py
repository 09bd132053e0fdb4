"""Upsample, Resize, ConvTranspose and casts to integers, as they are read: by hand, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided, evaluate
from tests.networks.building import Builder, single

INT64, INT32, BOOL, FLOAT = TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.FLOAT


def read(model: onnx.ModelProto) -> Network:
    return read_onnx(model.SerializeToString())


def values(network: Network, *point: float) -> list[Fraction]:
    found = evaluate(network, [Fraction(x) for x in point])
    assert found.is_exact
    return list(found.lower)


def resize(length: int, *, opset: int = 19, sizes: Any = None, scales: Any = None, **modes: Any) -> Network:
    b = Builder((length,), opset=opset)
    none = b.constant(np.zeros(0))
    given = [b.constant(scales)] if scales is not None else [none, b.integers(sizes)]
    return read(b.model(b.add("Resize", "x", none, *given, **modes)))


@pytest.mark.parametrize(
    ("place", "nearest", "new", "expected"),
    [
        ("half_pixel", "round_prefer_floor", 6, [0, 0, 1, 1, 2, 2]),
        ("half_pixel", "floor", 6, [0, 0, 0, 1, 1, 2]),
        ("half_pixel", "ceil", 6, [0, 1, 1, 2, 2, 2]),
        ("asymmetric", "floor", 6, [0, 0, 1, 1, 2, 2]),
        ("asymmetric", "round_prefer_ceil", 6, [0, 1, 1, 2, 2, 2]),
        ("asymmetric", "round_prefer_floor", 6, [0, 0, 1, 1, 2, 2]),
        ("align_corners", "round_prefer_floor", 5, [0, 0, 1, 1, 2]),
        ("align_corners", "round_prefer_ceil", 5, [0, 1, 1, 2, 2]),
        ("pytorch_half_pixel", "round_prefer_floor", 1, [0]),
        ("half_pixel", "round_prefer_floor", 1, [1]),
        ("half_pixel_symmetric", "round_prefer_floor", 6, [0, 0, 1, 1, 2, 2]),
    ],
)
def test_the_nearest_entries_are_those_of_the_standard(
    place: str, nearest: str, new: int, expected: list[int]
) -> None:
    network = resize(3, sizes=[new], coordinate_transformation_mode=place, nearest_mode=nearest)
    assert values(network, 0, 1, 2) == expected
    assert {node.op for node in network.nodes} == {"Gather"}


def test_upsample_is_resize_by_the_floor() -> None:
    assert values(read(single("Upsample", (2,), opset=8, attributes={"scales": [3.0]})), 5, 7) == [
        *[5] * 3,
        *[7] * 3,
    ]
    before = single("Resize", (2,), [np.array([3], dtype=np.float32)], opset=10)
    assert values(read(before), 5, 7) == [*[5] * 3, *[7] * 3]


@pytest.mark.parametrize(
    ("length", "arguments", "reason"),
    [
        (3, {"sizes": [6], "mode": "linear"}, "the mode 'linear' is not supported"),
        (3, {"sizes": [6], "coordinate_transformation_mode": "tf_half_pixel_for_nn"}, "opset 19 has no"),
        (3, {"sizes": [6], "nearest_mode": "nowhere"}, "nearest_mode 'nowhere'"),
        (3, {"scales": [1.3], "nearest_mode": "floor"}, "runtimes copy an input that keeps its shape"),
        (10, {"scales": [0.7]}, "would have [67] or [67] entries"),
        (3, {"scales": [float("nan")]}, "not finite"),
        (3, {"scales": [1e9]}, "would have 3000000000 entries"),
        (3, {"sizes": [6], "keep_aspect_ratio_policy": "not_larger"}, "keep_aspect_ratio_policy"),
    ],
)
def test_what_has_no_exact_meaning_is_refused_in_one_sentence(
    length: int, arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        resize(length, **arguments)
    assert "\n" not in str(caught.value)


def test_where_runtimes_round_a_place_to_different_entries_it_is_refused() -> None:
    """Downsampling before opset 11: by the floor or by the ceiling, ONNX does not say."""
    model = single("Resize", (5,), [np.array([0.6], dtype=np.float32)], opset=10)
    with pytest.raises(InputError, match="runtimes disagree on which of the entries"):
        read(model)


def test_a_transposed_convolution_is_the_transpose_of_the_convolution() -> None:
    """⟨ConvTranspose(y), x⟩ = ⟨y, Conv(x)⟩ for one set of weights, strides, pads and dilations."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-4, 5, (2, 3, 3, 2)).astype(np.float32)
    window: dict[str, Any] = {"strides": [2, 3], "pads": [1, 0, 0, 1], "dilations": [1, 2]}
    back = read(single("Conv", (1, 3, 6, 8), [weights], attributes=window))
    y_shape = back.output_shape
    forth = read(
        single("ConvTranspose", y_shape, [weights], attributes={**window, "output_padding": [0, 0]})
    )
    assert forth.output_shape == (1, 3, 6, 8)
    x, y = rng.integers(-4, 5, 144), rng.integers(-4, 5, back.output_size)
    left = sum(a * int(b) for a, b in zip(values(forth, *map(int, y)), x, strict=True))
    right = sum(a * int(b) for a, b in zip(values(back, *map(int, x)), y, strict=True))
    assert left == right != 0


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"auto_pad": "SAME_UPPER", "strides": [2]}, "runtimes disagree"),
        ({"output_shape": [4], "pads": [1, 1]}, "contradict"),
        ({"pads": [9, 9]}, "does not fit|crop"),
        ({"group": 3}, "in 3 groups"),
    ],
)
def test_a_transposed_convolution_that_is_ambiguous_is_refused(
    attributes: dict[str, Any], reason: str
) -> None:
    node = onnx.helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    weights = onnx.numpy_helper.from_array(np.ones((2, 1, 3), np.float32), "w")
    source = onnx.helper.make_tensor_value_info("x", FLOAT, [1, 2, 4])
    target = onnx.helper.make_tensor_value_info("y", FLOAT, None)
    graph = onnx.helper.make_graph([node], "g", [source], [target], initializer=[weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.graph.output[0].type.tensor_type.shape.SetInParent()
    with pytest.raises(InputError, match=reason) as caught:
        read(model)
    assert "\n" not in str(caught.value)


def cast(*kinds: int, then: str | None = None) -> onnx.ModelProto:
    b = Builder((3,), opset=17)
    name = "x"
    for kind in kinds:
        name = b.add("Cast", name, to=kind)
    return b.model(b.add(then, name, name) if then else name)


def test_a_cast_to_integers_cuts_off_the_fraction() -> None:
    assert values(read(cast(INT64, FLOAT)), 2.75, -2.75, -0.5) == [2, -2, 0]
    assert values(read(cast(INT32, INT64, FLOAT)), 7.5, -8, 0) == [7, -8, 0]
    assert values(read(cast(BOOL, FLOAT)), 0.25, -3, 0) == [1, 1, 0]


def test_beyond_the_integer_type_a_cast_has_no_value() -> None:
    with pytest.raises(Undecided):
        evaluate(read(cast(INT32, FLOAT)), [Fraction(2**31), Fraction(0), Fraction(0)])
    assert values(read(cast(INT64, FLOAT)), 2**31, 0, 0) == [2**31, 0, 0]


def test_integers_that_depend_on_the_input_are_only_moved_or_cast_back() -> None:
    with pytest.raises(
        InputError,
        match="operator Mul: what is of another type than the network can only be",
    ):
        read(cast(INT64, then="Mul"))
    with pytest.raises(UnreadableFile, match="its output 't0_0' is int64, not float32; cast it"):
        read(cast(INT64))
    with pytest.raises(InputError, match="from float32 to float64 may round"):
        read(cast(TensorProto.DOUBLE, FLOAT))


def test_constants_are_cut_off_as_well() -> None:
    b = Builder((1,), opset=17)
    whole = b.add("Cast", b.add("Cast", b.constant([-2.75]), to=INT64), to=FLOAT)
    assert values(read(b.model(b.add("Add", "x", whole))), 1) == [-1]
