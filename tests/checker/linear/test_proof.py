"""The kind `linear` proves what is true, and rejects every certificate that is not a cover with choices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from dokimos.checker.base import Problem, Proven
from dokimos.checker.linear import cover, proof, walk
from dokimos.checker.linear.cover import pack
from dokimos.checker.linear.proof import LinearProof
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import point
from dokimos.suites.instance import Semantics
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.checker.files import model, question

#: Y = |x| + |x − 1/2|, which is at least 1/2, by four ReLUs.
WEIGHTS = {
    "a": np.array([[1.0, -1.0, 1.0, -1.0]]),
    "b": np.array([0.0, 0.0, -0.5, 0.5]),
    "c": np.ones((4, 1)),
}
NODES = [("Gemm", ["X", "a", "b"], "h"), ("Relu", ["h"], "r"), ("MatMul", ["r", "c"], "Y")]
CONTENT = model(NODES, WEIGHTS, [1, 1], [1, 1])
#: The entries of h come after the one input.
ON, OFF = 1, 3


def proven(data: dict[str, Any], unsafe: str = "(<= Y_0 0.4375)") -> Proven:
    asked = read_vnnlib(question([(-1, 1)], 1, unsafe), file="p")
    return LinearProof().prove(Problem(read_onnx(CONTENT), asked), {"questions": [data]})


def table(*rows: list[int]) -> str:
    """Lines of leaves, as a certificate has them."""
    found = np.array(rows, dtype=np.uint8)
    return pack(np.diff(found, axis=0, prepend=np.zeros((1, found.shape[1]), np.uint8)).tobytes())


def test_lines_prove_what_the_usual_ones_do_not() -> None:
    half = {"lines": table([127, 127, 127, 127])}
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(half, "(<= Y_0 0.25)")
    usual = {"tree": [-1]}
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(usual, "(<= Y_0 0.25)")
    # |x| >= 0·x and |x − 1/2| >= ½ − x on the left half, and so on: cut at the kinks.
    found = proven({"tree": [0, -1, -1]}, "(<= Y_0 -0.6)")
    assert found.floats is not None and found.real > 0


#: Cut at both kinks. x <= 0: Y >= ½ − 2x; 0 <= x <= ½: Y >= ½; x >= ½: Y >= 2x − ½, by slopes of 0 and 1.
KINKS = {
    "tree": [ON, -1, OFF, -1, -1],
    "lines": table([0, 254, 0, 254], [254, 0, 0, 254], [254, 0, 254, 0]),
}


def pulls(factor: float) -> dict[str, str]:
    """Multipliers that make up for ∓factor·x on the outer leaves."""
    return {"multipliers": pack(np.array([factor, 0, 0, 0, factor], dtype="<f4").tobytes())}


def test_cuts_of_units_decide_the_network() -> None:
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(KINKS)
    found = proven({**KINKS, **pulls(2.0)})
    assert found.floats is not None
    assert Fraction(1, 17) < found.floats <= found.real < Fraction(1, 16)
    for data, unsafe in (
        ({**KINKS, **pulls(2.0)}, "(<= Y_0 0.5)"),
        ({**KINKS, **pulls(3.0)}, "(<= Y_0 0.4375)"),
    ):
        with pytest.raises(InvalidProof, match="not above 0"):
            proven(data, unsafe)


def test_cuts_of_inputs_decide_the_network() -> None:
    found = proven({"tree": [0, -1, 0, -1, -1], "refined": [1], "again": [1]})
    assert found.floats is not None and found.real <= Fraction(1, 16)


def test_a_cut_at_a_value_is_a_cut() -> None:
    data = {"tree": [0, -1, 0, -1, -1], "at": {"0": 0.25, "2": 0.5}, "refined": [1], "again": [1]}
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(data)  # the kink at 0 is inside a leaf
    assert proven(data, "(<= Y_0 -0.1)").real > 0


def test_weights_add_constraints_up() -> None:
    """Neither Y <= −x nor Y <= x fails everywhere by 1/8, but their sum does."""
    both = "(or (and (<= (+ Y_0 X_0) 0.25) (<= (- Y_0 X_0) 0.25)))"
    data = {**KINKS, **pulls(4.0)}
    weights = {"weights": pack(np.array([[1, 1]] * 3, dtype=np.uint8).tobytes())}
    asked = read_vnnlib(question([(-1, 1)], 1, both), file="p")
    problem = Problem(read_onnx(CONTENT), asked)
    found = LinearProof().prove(problem, {"questions": [{**data, **weights}]})
    assert Fraction(1, 5) < found.real <= Fraction(1, 4)
    with pytest.raises(InvalidProof):
        LinearProof().prove(problem, {"questions": [data]})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"tree": [ON, -1]}, "ends before"),
        ({"tree": []}, "ends before"),
        ({"tree": [-1, -1]}, "continues after"),
        ({"tree": [99, -1, -1]}, "no entry 99"),
        ({"refined": [9]}, "no tensor 9"),
        ({"again": [9]}, "no tensor 9"),
        ({"tree": [ON, -1, -1], "multipliers": pack(np.array([1.0, -1.0], "<f4").tobytes())}, "negative"),
        ({"tree": [ON, -1, -1], "multipliers": pack(np.array([np.nan, 1.0], "<f4").tobytes())}, "negative"),
        ({"tree": [ON, -1, -1], "multipliers": pack(np.array([np.inf, 1.0], "<f4").tobytes())}, "negative"),
    ],
)
def test_what_is_no_cover_is_rejected(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProof, match=message):
        proven(data, "(<= Y_0 -9)")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"lines": pack(b"\0" * 3)}, "1 times 4"),
        ({"root": pack(b"\0" * 3), "refined": [1]}, "2 times 4"),
        ({"weights": pack(b"\0" * 3)}, "1 times 1"),
        ({"multipliers": pack(b"\0" * 4)}, "1 times 0"),
        ({"lines": "not base64"}, "not packed bytes"),
        ({"lines": "AAAA"}, "not packed bytes"),
        ({"lines": pack(b"\0" * 4)[:-8]}, "does not end|not packed"),
        ({"at": {"0": float("inf")}}, "not finite"),
        ({"tree": [-2]}, "tree"),
        ({"tree": ["0"]}, "tree"),
        ({"more": 1}, "more"),
    ],
)
def test_what_cannot_be_read_is_unreadable(data: dict[str, Any], message: str) -> None:
    with pytest.raises(UnreadableFile, match=message):
        proven(data, "(<= Y_0 -9)")


def test_bytes_that_unpack_to_too_many_are_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover, "MOST_BYTES", 1 << 10)
    with pytest.raises(UnreadableFile, match="too long"):
        proven({"lines": pack(b"\0" * (1 << 20))})


def test_there_is_a_limit_to_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover, "MOST_LEAVES", 1)
    with pytest.raises(InvalidProof, match="more than 1 leaves"):
        proven({"tree": [0, -1, -1]})


def test_each_question_needs_a_cover() -> None:
    asked = read_vnnlib(question([(-1, 1)], 1, "(or (and (<= Y_0 -1)) (and (<= Y_0 -2)))"), file="p")
    problem = Problem(read_onnx(CONTENT), asked)
    with pytest.raises(UnreadableFile, match="a list of 2"):
        LinearProof().prove(problem, {"questions": [{}]})
    assert LinearProof().prove(problem, {"questions": [{}, {}]}).real > 0


def test_a_leaf_may_be_empty_but_not_all_that_holds_a_run() -> None:
    """The cut at −9 leaves nothing below it; what is above must still be closed."""
    data = {"tree": [ON, -1, -1], "at": {"0": -9.0}}
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(data)
    assert proven(data, "(<= Y_0 -2)").real > 0


def test_weights_of_zero_close_only_what_holds_no_run() -> None:
    zero = {"weights": pack(np.zeros((2, 1), np.uint8).tobytes())}
    with pytest.raises(InvalidProof):
        proven({"tree": [ON, -1, -1], **zero}, "(<= Y_0 -9)")
    multipliers = {"multipliers": pack(np.array([1.0, 1.0], "<f4").tobytes())}
    with pytest.raises(InvalidProof):
        proven({"tree": [ON, -1, -1], **zero, **multipliers}, "(<= Y_0 -9)")


def test_the_rounding_of_float32_counts() -> None:
    """So near to the least value, the label holds over the reals only."""
    close = proven({**KINKS, **pulls(2.0)}, "(<= Y_0 0.4999999)")
    assert close.floats is None
    assert 0 < close.real <= Fraction(1, 10**7)


def test_a_tensor_of_16_bits_may_be_read_rounded_and_as_it_is() -> None:
    """onnxruntime keeps the product in float32 for the difference, and rounds it for what only moves it."""
    kind, weights = TensorProto.FLOAT16, {"c": np.float16([[0.3333, 0.7]])}
    weights |= {name: np.array([at]) for name, at in (("first", 0), ("next", 1))}
    nodes = [
        helper.make_node("Mul", ["X", "c"], ["a"]),
        helper.make_node("Concat", ["a", "a"], ["k"], axis=0),
        helper.make_node("Slice", ["k", "first", "next", "first"], ["r"]),
        helper.make_node("Sub", ["r", "a"], ["Y"]),
    ]
    infos = [helper.make_tensor_value_info(name, kind, [1, 2]) for name in "XY"]
    arrays = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], arrays)
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    network, point = read_onnx(built.SerializeToString()), np.float16([0.7, 0.9])
    kept = np.float32(point[1]) * np.float32(weights["c"][0, 1])
    bounds = [(float(x), float(x)) for x in point]

    def in_floats(bound: str) -> Fraction | None:
        asked = read_vnnlib(question(bounds, 2, f"(<= Y_1 -{bound})"), file="p")
        data = {"questions": [{}]}
        return LinearProof().prove(Problem(network, asked, semantics=Semantics.FLOAT16), data).floats

    assert np.float32(np.float16(kept)) - kept < -0.0002
    assert in_floats("0.0002") is None
    assert (in_floats("0.004") or 0) > 0


def test_an_output_that_is_a_constant_is_rounded_to_the_type() -> None:
    content = model([], {"Y": np.array([[0.1]])}, [1, 1], [1, 1])
    asked = read_vnnlib(question([(0, 0)], 1, "(<= Y_0 0.09999)"), file="p")
    assert float(np.float16(0.1)) < 0.09999

    def in_floats(semantics: Semantics) -> Fraction | None:
        problem = Problem(read_onnx(content), asked, semantics=semantics)
        return LinearProof().prove(problem, {"questions": [{}]}).floats

    assert in_floats(Semantics.FLOAT16) is None
    assert in_floats(Semantics.FLOAT32) is not None


def test_what_holds_for_all_noise_holds_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the reals other lines are the usual ones, and may prove less; if both fail, the proof does."""
    data = {"tree": [0, -1, 0, -1, -1], "refined": [1], "again": [1]}
    margin = proof.BoundedQuestion.margin

    def none_over_the_reals(asked: proof.BoundedQuestion) -> Fraction:
        if asked._ulps is None:
            raise InvalidProof("a leaf's bound is not above 0")
        return margin(asked)

    alone = proven(data)
    monkeypatch.setattr(proof.BoundedQuestion, "margin", none_over_the_reals)
    assert proven(data) == Proven(real=alone.floats or Fraction(0), floats=alone.floats)
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(data, "(<= Y_0 0.625)")


def test_in_a_network_without_nodes_inputs_and_outputs_count_together() -> None:
    """Y − 3X <= −3/2 holds at X = Y = 1."""
    kind = helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 1])
    made = helper.make_model(helper.make_graph([], "g", [kind], [kind]), ir_version=8)
    made.opset_import[0].version = 13
    content = made.SerializeToString()
    for bound, holds in (("-1.5", True), ("-2.5", False)):
        asked = read_vnnlib(question([(-1, 1)], 1, f"(<= (+ Y_0 (* -3.0 X_0)) {bound})"), file="p")
        problem = Problem(read_onnx(content), asked)
        if holds:
            with pytest.raises(InvalidProof, match="not above 0"):
                LinearProof().prove(problem, {"questions": [{}]})
        else:
            assert LinearProof().prove(problem, {"questions": [{}]}).real <= Fraction(1, 2)


@pytest.mark.parametrize("name", ["m/Relu1", "m/Mul0", "m/Mul2", "m/Add2", "m/constant0", "m/constant1"])
@pytest.mark.parametrize("unsafe", ["(<= Y_0 -5)", "(>= Y_0 5)"])
def test_a_tensor_of_the_file_may_have_the_name_of_a_part(name: str, unsafe: str) -> None:
    """Y = 5X + max(X, X/2) reaches −5.5 and 6, whatever 5X is called."""
    nodes = [
        ("Mul", ["X", "five"], name),
        ("LeakyRelu", ["X"], "m", {"alpha": 0.5}),
        ("Add", [name, "m"], "Y"),
    ]
    network = read_onnx(model(nodes, {"five": np.array(5.0)}, [1, 1], [1, 1]))
    asked = read_vnnlib(question([(-1, 1)], 1, unsafe), file="p")
    with pytest.raises(InvalidProof, match="not above 0"):
        LinearProof().prove(Problem(network, asked), {"questions": [{}]})


@pytest.mark.parametrize("factor", ["1" + "0" * 307 + ".1", "1e308"])
def test_numbers_that_overflow_together_are_refused(factor: str) -> None:
    network = read_onnx(model([("Relu", ["X"], "Y")], {}, [1, 1], [1, 1]))
    unsafe = f"(<= (* {factor} Y_0) -1.0)"
    asked = read_vnnlib(question([(0, "1" + "0" * 308)], 1, unsafe), file="p")
    with pytest.raises(InvalidProof, match=r"too large|not above 0"):
        LinearProof().prove(Problem(network, asked), {"questions": [{}]})


def test_leaves_that_turn_out_to_be_empty_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part X <= 0.2, r >= 0.9 holds no run, as is seen when r is bounded again: none is left for s."""
    monkeypatch.setattr(proof, "MOST_NUMBERS", 1)
    nodes = [("Relu", ["X"], "r"), ("Tanh", ["r"], "s"), ("Tanh", ["s"], "Y")]
    network = read_onnx(model(nodes, {}, [1, 1], [1, 1]))
    asked = read_vnnlib(question([(-1, 1)], 1, "(<= Y_0 -1)"), file="p")
    data = {"tree": [0, 1, -1, -1, -1], "again": [1, 2], "at": {"0": 0.2, "1": 0.9}}
    assert LinearProof().prove(Problem(network, asked), {"questions": [data]}).real > 0


@pytest.mark.parametrize("tree", [[-1], [0, -1, -1], [70, -1, -1]])
@pytest.mark.parametrize("own", [False, True])
def test_a_node_without_parts_counts_by_its_facts_over_the_whole_box(tree: list[int], own: bool) -> None:
    """Softmax over 65 numbers is at most e/(64 + e), whichever part of the box it is asked about."""
    size = 65
    nodes = [("Relu", ["X"], "r"), ("Softmax", ["r"], "Y", {"axis": 1})]
    network = read_onnx(model(nodes, {}, [1, size], [1, size]))
    for unsafe, holds in (("(<= Y_0 0.9)", False), ("(<= Y_0 0.02)", False), ("(>= Y_0 0.05)", True)):
        asked = read_vnnlib(question([(0, 1)] * size, size, unsafe), file="p")
        data = {"questions": [{"tree": tree, "own": own and 70 not in tree}]}
        if holds:
            assert 0 < LinearProof().prove(Problem(network, asked), data).real < Fraction(1, 20)
        else:
            with pytest.raises(InvalidProof, match="not above 0"):
                LinearProof().prove(Problem(network, asked), data)


TINY = 0.99 * 2.0**-975
SCALED = [("Mul", ["a", "k"], "Y")]


@pytest.mark.parametrize(
    ("first", "weights"),
    [
        (("Gemm", ["X", "w"], "a", {"alpha": 2.0**-100}), {"w": [[TINY]]}),
        (
            ("BatchNormalization", ["X", "s", "z", "z", "v"], "a"),
            {"s": [TINY * 2.0**400], "z": [0.0], "v": [2.0**1000]},
        ),
    ],
    ids=["Gemm", "BatchNormalization"],
)
def test_a_factor_that_float64_takes_for_0_is_none(first: Any, weights: dict[str, Any]) -> None:
    """x·2^-1075 is 2^25 behind a factor of 2^200 where x is 2^900: not below 6."""
    content = model([first, *SCALED], weights | {"k": [[2.0**200]]}, [1, 1], [1, 1], dtype=np.float64)
    asked = read_vnnlib(question([(0, 2**900)], 1, "(>= Y_0 6.0)"), file="p")
    with pytest.raises(InvalidProof):
        LinearProof().prove(Problem(read_onnx(content), asked), {"questions": [{"tree": [-1]}]})


def test_the_size_of_a_normalisation_is_not_below_what_it_writes() -> None:
    """A variance below 0 makes factors larger, not smaller."""
    given = {"s": [1.0], "z": [0.0], "v": [-0.999e-5]}
    nodes = [("BatchNormalization", ["X", "s", "z", "z", "v"], "Y")]
    network = read_onnx(model(nodes, given, [1, 1], [1, 1]))
    (node,) = network.nodes
    named = [point(network.constants[name]) for name in node.inputs[1:]]
    sizes = walk._size(node, [point(np.ones((1, 1))), *named])
    assert sizes.item() >= 1 / np.sqrt(1e-5 - 0.999e-5)


def test_exact_walks_show_margins_that_floats_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Y is at least 1/2, and is 1/2 from 0 to 1/2: the unsafe set is missed by 1e-20, or met."""
    data = {**KINKS, **pulls(2.0)}
    found = proven(data, "(<= Y_0 0.49999999999999999999)")
    assert (found.real, found.floats) == (Fraction(1, 10**20), None)
    for unsafe in ("0.5", "0.50000000000000000001"):
        with pytest.raises(InvalidProof, match="not above 0"):
            proven(data, f"(<= Y_0 {unsafe})")
    for other in ({**KINKS, **pulls(1.9375)}, {**KINKS, **pulls(2.0), "tree": [ON, -1, -1], "lines": ""}):
        with pytest.raises((InvalidProof, UnreadableFile)):
            proven(other, "(<= Y_0 0.49999999999999999999)")
    monkeypatch.setattr(proof, "MOST_EXACT", 10)
    with pytest.raises(InvalidProof, match="not above 0"):
        proven(data, "(<= Y_0 0.49999999999999999999)")


@pytest.mark.parametrize(("weights", "is_proven"), [([1, 0], True), ([0, 1], False), ([1, 1], True)])
def test_exact_walks_weigh_constraints(weights: list[int], is_proven: bool) -> None:
    """The first fails everywhere by 1e-20; the second holds where Y = 1/2, by 1e-21."""
    unsafe = "(<= Y_0 0.49999999999999999999) (<= Y_0 0.500000000000000000001)"
    data = {**KINKS, **pulls(2.0 * sum(weights)), "weights": pack(bytes(weights * 3))}
    if is_proven:
        assert 0 < proven(data, f"(and {unsafe})").real <= Fraction(1, 10**20)
    else:
        with pytest.raises(InvalidProof, match="not above 0"):
            proven(data, f"(and {unsafe})")


def test_exact_walks_take_the_box_as_it_is_written() -> None:
    """Float64 has no 1/10: rounded outward, the box reaches below it."""
    network = read_onnx(model([("Sub", ["X", "b"], "Y")], {"b": np.array([1.0])}, [1, 1], [1, 1]))
    for unsafe, is_proven in (("-0.90000000000000000001", True), ("-0.9", False)):
        asked = read_vnnlib(question([("0.1", 1)], 1, f"(<= Y_0 {unsafe})"), file="p")
        problem = Problem(network, asked)
        if is_proven:
            assert LinearProof().prove(problem, {"questions": [{}]}).real == Fraction(1, 10**20)
        else:
            with pytest.raises(InvalidProof, match="not above 0"):
                LinearProof().prove(problem, {"questions": [{}]})


def shown(nodes: list[Any], weights: dict[str, Any], unsafe: str, shape: list[int]) -> Proven:
    """Of a network of one input in [0, 1]."""
    network = read_onnx(model(nodes, weights, shape, shape))
    asked = read_vnnlib(question([(0, 1)], 1, unsafe), file="p")
    return LinearProof().prove(Problem(network, asked), {"questions": [{}]})


@pytest.mark.parametrize("bound", ["-5.0", "-5.5"])
@pytest.mark.parametrize(
    "nodes",
    [
        [("Identity", ["c"], "Y")],
        [("Gemm", ["c", "one", "X"], "Y")],
        [("Gemm", ["one", "c", "X"], "Y")],
        [("Relu", ["five"], "r"), ("Sub", ["X", "r"], "Y")],
        [("MatMul", ["c", "one"], "p"), ("Add", ["X", "p"], "Y")],
        [("Clip", ["c"], "p"), ("Add", ["X", "p"], "Y")],
    ],
    ids=["the output", "a product", "the other way round", "a ReLU", "a step", "a part"],
)
def test_exact_walks_keep_what_is_constant(nodes: Any, bound: str) -> None:
    """Y is −5, or X − 5: never below −5, but −5."""
    weights = {"c": np.array([[-5.0]]), "one": np.array([[1.0]]), "five": np.array([[5.0]])}
    if bound == "-5.5":
        assert shown(nodes, weights, f"(<= Y_0 {bound})", [1, 1]).real > 0
        return
    with pytest.raises(InvalidProof, match="not above 0"):
        shown(nodes, weights, f"(<= Y_0 {bound})", [1, 1])


def test_tensors_without_axes_are_left_to_floats() -> None:
    """Y = 2·max(0, X), of one number without an axis in between."""
    nodes = [
        ("Reshape", ["X", "i_none"], "x"),
        ("Relu", ["x"], "r"),
        ("Mul", ["r", "two"], "m"),
        ("Reshape", ["m", "i_shape"], "Y"),
    ]
    weights = {"i_none": np.zeros(0, np.int64), "two": np.array(2.0), "i_shape": np.array([1, 1])}
    with pytest.raises(InvalidProof, match="not above 0"):
        shown(nodes, weights, "(<= Y_0 0.0)", [1, 1])
    assert shown(nodes, weights, "(<= Y_0 -0.5)", [1, 1]).real > 0
