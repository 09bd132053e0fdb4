from __future__ import annotations

import gzip
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from dokimos.core.errors import InputError, UnreadableFile, UnsupportedOp
from dokimos.engine.runtimes.sessions import ReferenceSession, Replayer, load_session
from dokimos.networks.graph import CORE_OPS, Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.semantics.outward import FLOAT16
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.entry import read_onnx_file
from tests.networks.building import Builder, single
from tests.networks.graphs import ONE_OF_EACH, network_of
from tests.networks.runtime import run
from tests.shared import SHARED

MUST_READ = {
    *("Gemm", "MatMul", "Add", "Sub", "Mul", "Div", "Neg", "Pow", "Exp", "Clip", "Max", "Min"),
    *("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Softmax", "Dropout", "BatchNormalization"),
    *("Conv", "AveragePool", "MaxPool", "GlobalAveragePool", "ReduceSum", "ReduceMean", "Pad"),
    *("Flatten", "Reshape", "Transpose", "Concat", "Slice", "Split", "Gather", "Squeeze", "Unsqueeze"),
    *("Expand", "Constant", "Identity", "Cast", "ConvTranspose", "Resize", "Upsample"),
    *("Sign", "Floor", "Round", "Cos", "Sin", "QuantizeLinear", "DequantizeLinear"),
    *("Erf", "Gelu", "Sqrt"),
}


def read(model: onnx.ModelProto) -> Network:
    return read_onnx(model.SerializeToString())


def ops(network: Network) -> list[str]:
    return [node.op for node in network.nodes]


def graph_of(
    nodes: list[onnx.NodeProto],
    *,
    inputs: list[onnx.ValueInfoProto] | None = None,
    outputs: list[str] | None = None,
    initializer: list[onnx.TensorProto] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])] if inputs is None else inputs
    targets = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in outputs or ["y"]]
    graph = helper.make_graph(nodes, "g", inputs, targets, initializer=initializer or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


RELU = helper.make_node("Relu", ["x"], ["y"])
THREE_TWOS = numpy_helper.from_array(np.full(3, 2, np.float32), "s")
NONE = numpy_helper.from_array(np.zeros(0, np.float32), "s")


def test_every_operator_is_among_the_models() -> None:
    used = {node.op_type for model in ONE_OF_EACH.values() for node in model.graph.node}
    assert used >= MUST_READ


def test_every_core_operator_is_lowered_to() -> None:
    assert {op for name in ONE_OF_EACH for op in ops(network_of(name))} == set(CORE_OPS)


def test_the_graphs_are_in_order_and_complete() -> None:
    for name in ONE_OF_EACH:
        network = network_of(name)
        seen = {network.input, *network.constants}
        for node in network.nodes:
            assert node.op in CORE_OPS, name
            assert {tensor for tensor in node.inputs if tensor} <= seen, name
            seen.add(node.output)
        assert network.output in seen, name
        assert seen == set(network.shapes), name
        assert all(network.constants[n].shape == network.shapes[n] for n in network.constants), name


def test_flatten_becomes_reshape_and_identity_vanishes() -> None:
    b = Builder((1, 2, 5, 4), opset=17)
    network = read(b.model(b.add("Identity", b.add("Flatten", b.add("Identity", "x")))))
    assert ops(network) == ["Reshape"]
    assert network.nodes[0].inputs == ("x",)
    assert network.nodes[0].integers("shape") == (1, 40)


def test_identity_alone_is_the_input_itself() -> None:
    network = read(single("Identity", (1, 3)))
    assert (network.nodes, network.output) == ((), "x")


@pytest.mark.parametrize(
    ("opset", "axis", "expected"),
    [
        (11, 3, ["Softmax"]),
        (11, 1, ["Reshape", "Softmax", "Reshape"]),
        (13, 1, ["Softmax"]),
    ],
)
def test_softmax_flattens_only_before_opset_13(opset: int, axis: int, expected: list[str]) -> None:
    assert ops(read(single("Softmax", (1, 2, 3, 2), opset=opset, attributes={"axis": axis}))) == expected


def test_default_attributes_are_rounded_to_float32() -> None:
    assert read(single("LeakyRelu", (1, 2))).nodes[0].real("alpha") == float(np.float32(0.01))


@pytest.mark.parametrize(
    ("auto_pad", "pads"),
    [("SAME_UPPER", (0, 1, 1, 1)), ("SAME_LOWER", (1, 1, 0, 1)), ("VALID", (0, 0, 0, 0))],
)
def test_auto_pad_is_spelt_out(auto_pad: str, pads: tuple[int, ...]) -> None:
    attributes = {"kernel_shape": [2, 3], "auto_pad": auto_pad}
    node = read(single("MaxPool", (1, 1, 4, 4), attributes=attributes)).nodes[0]
    assert node.integers("pads") == pads


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_auto_pad_of_a_dilated_window_is_refused(auto_pad: str) -> None:
    """onnxruntime takes the window for a dense one, ONNX does not: the values differ, or even the shape."""
    dilated = {"kernel_shape": [1, 2], "auto_pad": auto_pad, "dilations": [1, 3]}
    with pytest.raises(UnsupportedOp, match="write out its pads"):
        read(single("MaxPool", (1, 1, 4, 4), attributes=dilated))
    one_wide = {"kernel_shape": [1, 2], "auto_pad": auto_pad, "dilations": [3, 1]}
    assert sum(read(single("MaxPool", (1, 1, 4, 4), attributes=one_wide)).nodes[0].integers("pads")) == 1


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "Conv"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_auto_pad_that_would_crop_is_refused(op: str, auto_pad: str, dilation: int) -> None:
    """Strides that leap over inputs: onnxruntime crops or fails, ONNX's reference does something else."""
    attributes = {"kernel_shape": [1], "auto_pad": auto_pad, "strides": [4], "dilations": [dilation]}
    weights = [np.ones((1, 1, 1), np.float32)] if op == "Conv" else []
    refused(single(op, (1, 1, 8), weights, attributes=attributes, opset=19), UnsupportedOp, "write out its")


def test_a_pointwise_convolution_of_every_other_input_is_read() -> None:
    """The pad would be -1: all runtimes take it for 0, and networks of Keras have such convolutions."""
    weights = np.ones((1, 1, 1), np.float32)
    model = single("Conv", (1, 1, 4), [weights], attributes={"auto_pad": "SAME_UPPER", "strides": [2]})
    x = np.array([[[1, 2, 3, 4]]], np.float32)
    assert run(model, x).tolist() == [[[1, 3]]]
    assert read(model).nodes[0].integers("pads") == (0, 0)


@pytest.mark.parametrize("opset", [7, 8, 9, 13])
def test_a_normalization_that_trains_is_refused(opset: int) -> None:
    """Before opset 14 five outputs mean training: the statistics are those of the input itself."""
    b = Builder((1, 2, 3), opset=opset)
    parameters = [b.constant(np.array(values)) for values in ([1, 1], [0, 0], [0, 0], [1, 1])]
    outputs = b.add_many("BatchNormalization", "x", *parameters, outputs=5)
    refused(b.model(outputs[0]), UnsupportedOp, "output")


def test_outputs_that_no_rule_computes_are_refused() -> None:
    b = Builder((1, 1, 4), opset=17)
    refused(b.model(b.add("MaxPool", "x", outputs=2, kernel_shape=[2])), UnsupportedOp, "output")
    refused(graph_of([helper.make_node("Dropout", ["x"], ["y", "mask"])]), UnsupportedOp, "'mask'")


def test_attributes_that_are_not_heeded_are_refused() -> None:
    attributes = {"auto_pad": "SAME_UPPER", "pads": [1, 0], "kernel_shape": [2]}
    refused(single("MaxPool", (1, 1, 4), attributes=attributes), UnsupportedOp, "'pads'")
    split = helper.make_node("Split", ["x", "s"], ["y", "z"], axis=1, num_outputs=2)
    sizes = numpy_helper.from_array(np.array([1, 1]), "s")
    refused(graph_of([split], opset=18, initializer=[sizes]), UnsupportedOp, "'num_outputs'")


def test_attributes_without_effect_are_read_over() -> None:
    assert ops(read(graph_of([helper.make_node("Dropout", ["x"], ["y"], ratio=0.5)], opset=9))) == []
    attributes = {"kernel_shape": [2], "storage_order": 1}
    assert ops(read(single("MaxPool", (1, 1, 4), attributes=attributes))) == ["MaxPool"]


def test_an_attribute_of_no_function_is_refused() -> None:
    relu = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.5)
    relu.attribute[0].ClearField("f")
    relu.attribute[0].ref_attr_name = "slope"
    refused(graph_of([relu]), UnsupportedOp, "alpha refers to an attribute of a function")


def test_a_constant_that_is_only_moved_stays_a_constant() -> None:
    b = Builder((1, 1, 4), opset=17)
    weights = b.add("Unsqueeze", b.constant([[1.0, 2.0]]), b.integers([0]))
    network = read(b.model(b.add("Conv", "x", weights)))
    assert ops(network) == ["Conv"]
    assert [array.tolist() for array in network.constants.values()] == [[[[1.0, 2.0]]]]


def test_arithmetic_on_constants_is_not_folded() -> None:
    b = Builder((1, 2), opset=17)
    network = read(b.model(b.add("Add", "x", b.add("Mul", b.constant(0.1), b.constant(0.1)))))
    assert ops(network) == ["Mul", "Add"]


def test_constants_are_read_only() -> None:
    network = read(single("Add", (1, 2), [np.ones(2, np.float32)]))
    with pytest.raises(ValueError, match="read-only"):
        next(iter(network.constants.values()))[0] = 2


@pytest.mark.parametrize("batch", ["N", 0, None, -1])
def test_an_open_batch_dimension_becomes_one(batch: str | int | None) -> None:
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 2])
    assert read(graph_of([RELU], inputs=[info])).input_shape == (1, 2)


def test_another_open_dimension_is_refused() -> None:
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "width"])
    with pytest.raises(UnreadableFile, match="dimension 1 of the input 'x' is width"):
        read(graph_of([RELU], inputs=[info]))


def test_weights_may_be_listed_among_the_inputs() -> None:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in ("w", "x")]
    weight = numpy_helper.from_array(np.ones((1, 2), np.float32), "w")
    network = read(
        graph_of([helper.make_node("Add", ["x", "w"], ["y"])], inputs=infos, initializer=[weight])
    )
    assert network.input == "x"
    assert set(network.constants) == {"w"}


def test_what_the_output_does_not_need_is_left_out() -> None:
    b = Builder((1, 2), opset=17)
    b.add("Atan", "x")
    assert ops(read(b.model(b.add("Relu", "x")))) == ["Relu"]


def test_a_network_of_float64_is_read() -> None:
    b = Builder((1, 2), opset=17, dtype=np.float64)
    network = read(b.model(b.add("Add", "x", b.constant([0.1, 0.2]))))
    assert next(iter(network.constants.values())).dtype == np.float64


def narrow(kind: int, *, io: int | None = None, moved: str = "") -> onnx.ModelProto:
    """relu(x·w + 0.1) in a type of 16 bits, read from and written as another one if `io` says so."""
    numbers = np.array([[0.5, -1.25], [2.0, 0.1]]).astype(helper.tensor_dtype_to_np_dtype(kind))
    weight = numpy_helper.from_array(numbers, "w")
    bias = numpy_helper.from_array(numbers[1, 1:].repeat(2), "b")
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    if io is not None:
        nodes[0].input[0], nodes[1].output[0] = "inner", "outer"
        nodes.insert(0, helper.make_node("Cast", ["x"], ["inner"], to=kind))
        nodes.append(helper.make_node("Cast", ["outer"], ["y"], to=io))
    infos = [helper.make_tensor_value_info(name, io or kind, [1, 2]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [weight, bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("kind", "name"), [(TensorProto.FLOAT16, "float16"), (TensorProto.BFLOAT16, "bfloat16")]
)
def test_a_network_of_16_bits_is_read_with_its_exact_constants(kind: int, name: str) -> None:
    network = read(narrow(kind))
    assert network.dtype.name == name
    assert ops(network) == ["Gemm", "Relu"]
    kept = np.asarray(0.1).astype(network.dtype).astype(np.float64)
    assert kept != 0.1
    assert network.constants["b"].dtype == np.float32
    assert network.constants["b"].astype(np.float64).tolist() == [kept, kept]
    at_zero = evaluate(network, [Fraction(0), Fraction(0)])
    assert at_zero.lower == (Fraction(float(kept)),) * 2


def test_an_input_that_is_cast_is_rounded_once() -> None:
    network = read(narrow(TensorProto.FLOAT16, io=TensorProto.FLOAT))
    assert network.dtype == np.float16
    assert ops(network) == ["Mul", "Gemm", "Relu"]
    at = [Fraction(1, 3), Fraction(1, 5)]
    found = rounding_bounds(network, at, at, form=FLOAT16)[network.nodes[0].output]
    for x, error in zip(at, found.error.reshape(-1).tolist(), strict=True):
        assert 0 < abs(Fraction(float(np.float16(float(x)))) - x) <= Fraction(error)
    real = evaluate(network, at)
    assert real.lower[1] == max(0, at[0] * Fraction(-5, 4) + (at[1] + 1) * Fraction(float(np.float16(0.1))))


def test_what_computes_in_two_types_is_refused() -> None:
    model = narrow(TensorProto.FLOAT16, io=TensorProto.FLOAT)
    model.graph.node[2].op_type = "Cast"
    model.graph.node[2].attribute.append(helper.make_attribute("to", int(TensorProto.FLOAT)))
    model.graph.node[3].op_type, model.graph.node[3].attribute[0].i = "Relu", 0
    del model.graph.node[3].attribute[:]
    refused(
        model, UnsupportedOp, "what is of another type than the network can only be moved, or cast back"
    )


def refused(model: onnx.ModelProto, error: type[InputError], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        read_onnx(model.SerializeToString(), name="net.onnx")
    message = str(caught.value)
    assert message.startswith("net.onnx: ")
    assert "\n" not in message


def test_unknown_operators_are_named() -> None:
    refused(
        graph_of([helper.make_node("Atan", ["x"], ["y"])]), UnsupportedOp, "operator Atan: it is not one of"
    )


def test_foreign_domains_are_refused() -> None:
    model = graph_of([helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    refused(model, UnsupportedOp, "domain 'com.microsoft'")


def test_several_inputs_or_outputs_are_refused() -> None:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in ("x", "z")]
    two = graph_of([helper.make_node("Add", ["x", "z"], ["y"])], inputs=infos)
    refused(two, UnreadableFile, "has 2 inputs")
    refused(graph_of([RELU], outputs=["y", "x"]), UnreadableFile, "has 2 outputs")


def test_no_input_is_refused() -> None:
    value = numpy_helper.from_array(np.ones((1, 2), np.float32))
    refused(
        graph_of([helper.make_node("Constant", [], ["y"], value=value)], inputs=[]),
        UnreadableFile,
        "has 0 inputs",
    )


def test_integer_inputs_are_refused() -> None:
    info = helper.make_tensor_value_info("x", TensorProto.INT64, [1, 2])
    refused(graph_of([RELU], inputs=[info]), UnreadableFile, "not a tensor of floats")


def test_an_input_without_shape_is_refused() -> None:
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    refused(graph_of([RELU], inputs=[info]), UnreadableFile, "shape")


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_an_opset_may_be_named_twice_but_not_two_of_them(domain: str) -> None:
    model = graph_of([RELU], opset=13)
    model.opset_import.append(helper.make_opsetid(domain, 13))
    assert ops(read(model)) == ["Relu"]
    model.opset_import[1].version = 14
    refused(model, UnreadableFile, "names 2 opsets")
    del model.opset_import[:]
    refused(model, UnreadableFile, "opset")


@pytest.mark.parametrize("opset", [6, 1000])
def test_opsets_out_of_range_are_refused(opset: int) -> None:
    refused(graph_of([RELU], opset=opset), UnreadableFile, "opset|valid")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(value: float) -> None:
    refused(single("Add", (1, 2), [np.array([1, value], np.float32)]), UnreadableFile, "not finite")


def with_weights_elsewhere() -> onnx.ModelProto:
    model = single("Add", (1, 2), [np.ones(2, np.float32)])
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "weights.bin"
    return model


def test_external_data_is_refused() -> None:
    refused(with_weights_elsewhere(), UnreadableFile, "another file")


@pytest.mark.parametrize(
    "load", [Replayer, partial(load_session, name="n"), partial(ReferenceSession, name="n")]
)
def test_no_runtime_takes_weights_from_the_folder_that_we_are_in(
    load: Callable[[bytes], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights.bin").write_bytes(np.ones(2, np.float32).tobytes())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableFile, match="stored in another file"):
        load(with_weights_elsewhere().SerializeToString())


def test_sparse_weights_are_refused() -> None:
    model = single("Add", (1, 2), [np.ones(2, np.float32)])
    sparse = model.graph.sparse_initializer.add()
    sparse.dims.append(2)
    refused(model, UnreadableFile, "sparse")


def test_missing_and_short_weights_are_refused() -> None:
    model = single("Add", (1, 2), [np.ones(2, np.float32)])
    short = onnx.ModelProto.FromString(model.SerializeToString())
    short.graph.initializer[0].raw_data = b"\0\0\0"
    refused(short, UnreadableFile, "c0|bytes|raw_data|size")
    del model.graph.initializer[:]
    refused(model, UnreadableFile, "c0")


@pytest.mark.parametrize(
    "form",
    [
        {"data_type": TensorProto.BOOL, "int32_data": [256, 0]},
        {"data_type": TensorProto.BOOL, "int32_data": [2, 0]},
        {"data_type": TensorProto.BOOL, "raw_data": b"\x02\x00"},
        {"data_type": TensorProto.INT8, "int32_data": [300, 0]},
        {"data_type": TensorProto.UINT8, "int32_data": [-1, 0]},
        {"data_type": TensorProto.UINT32, "uint64_data": [2**32, 0]},
    ],
)
def test_a_number_that_is_not_of_its_type_is_refused(form: dict[str, Any]) -> None:
    """Readers make different numbers of it: onnxruntime takes the 256 for true, onnx for false."""
    where = helper.make_node("Where", ["c", "x", "x"], ["y"])
    tensor = TensorProto(name="c", dims=[1, 2], **form)
    with pytest.raises(UnreadableFile, match="'c' has a number that is not of its type"):
        read(graph_of([where], initializer=[tensor]))


def test_shapes_that_do_not_fit_are_refused() -> None:
    matrix = numpy_helper.from_array(np.ones((3, 2), np.float32), "m")
    model = graph_of([helper.make_node("MatMul", ["x", "m"], ["y"])], initializer=[matrix])
    refused(model, UnreadableFile, r"node 'y' \(MatMul\)")


def test_casts_that_may_round_are_refused() -> None:
    double = helper.make_node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE)
    back = helper.make_node("Cast", ["d"], ["y"], to=TensorProto.FLOAT)
    refused(graph_of([double, back]), UnsupportedOp, "from float32 to float64")
    rounded = helper.make_node("Cast", ["c"], ["r"], to=TensorProto.FLOAT)
    constant = numpy_helper.from_array(np.array([0.1]), "c")
    add = helper.make_node("Add", ["x", "r"], ["y"])
    refused(graph_of([rounded, add], initializer=[constant]), UnsupportedOp, "changes its value")


def test_a_cast_that_does_not_round_is_read() -> None:
    cast = helper.make_node("Cast", ["c"], ["r"], to=TensorProto.FLOAT)
    constant = numpy_helper.from_array(np.array([0.5]), "c")
    network = read(graph_of([cast, helper.make_node("Add", ["x", "r"], ["y"])], initializer=[constant]))
    assert network.constants["r"].tolist() == [0.5]
    assert network.constants["r"].dtype == np.float32


SHAPE = numpy_helper.from_array(np.array([-1, 3]), "s")


def conv_of_computed_weights() -> onnx.ModelProto:
    b = Builder((1, 1, 2, 2), opset=17)
    return b.model(b.add("Conv", "x", b.add("Relu", "x")))


def scattered(indices: list[list[int]], **attributes: str) -> onnx.ModelProto:
    constants = [np.array(indices), np.ones((2, 3), np.float32)]
    return single("ScatterND", (2, 3), constants, attributes=attributes, opset=18)


def normalization(variance: float) -> onnx.ModelProto:
    ones = [np.ones(1, np.float32)] * 3
    return single("BatchNormalization", (1, 1, 2), [*ones, np.array([variance], np.float32)])


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (conv_of_computed_weights(), "weights must be constant"),
        (single("Dropout", (1, 2), [np.array(0.5, np.float32), np.array(True)]), "training"),
        (
            single(
                "AveragePool",
                (1, 1, 4, 4),
                attributes={"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
            ),
            "ceil_mode",
        ),
        (
            single("MaxPool", (1, 1, 2, 2), attributes={"kernel_shape": [2, 2], "pads": [2, 0, 2, 0]}),
            "padding",
        ),
        (single("Pad", (1, 3), [np.array([0, 1, 0, 1])], attributes={"mode": "reflect"}), "'reflect'"),
        (single("Pad", (1, 3), [np.array([0, 1, 0, 1]), np.zeros(0, np.float32)]), "its value must be one"),
        (single("Pad", (1, 3), [np.array([0, 1, 0, 1]), np.ones(2, np.float32)]), "its value must be one"),
        (single("Pow", (1, 2), [np.array([1, 2], np.float32)]), "a single number"),
        (normalization(-1.0), "not positive"),
        (single("Gather", (1, 2), [np.array([5])], attributes={"axis": 1}), "index"),
        (scattered([[1], [1]]), "an entry twice"),
        (scattered([[1], [-1]]), "an entry twice"),
        (scattered([[0], [2]]), "outside"),
        (scattered([[0], [1]], reduction="add"), "'add'"),
        (single("Slice", (1, 2), [np.array([2]), np.array([2]), np.array([1])]), "no numbers"),
        (single("Clip", (1, 2), [np.array(np.nan, np.float32)]), "nan"),
        (single("Clip", (1, 2), [np.array(1, np.float32), np.array(0, np.float32)]), "exceeds"),
        (single("Clip", (1, 2), [np.array(-np.inf, np.float32)] * 2), "no finite number"),
        (single("ReduceSum", (1, 2), attributes={"keepdims": 2}), "neither 0 nor 1"),
        (single("Squeeze", (1, 2), [np.zeros(0, np.int64)]), "axes is empty"),
        (graph_of([helper.make_node("Min", ["x", "x", ""], ["y"])]), "input 2 is left out"),
        (graph_of([helper.make_node("Split", ["x"], ["y", ""])]), "output 1 is left out"),
        (graph_of([helper.make_node("Cast", ["x"], ["y"], to=1, saturate=2)], opset=19), "neither 0 nor 1"),
        (graph_of([helper.make_node("Pow", ["x", "s"], ["y"])], initializer=[THREE_TWOS]), "do not fit"),
        (
            graph_of([helper.make_node("BatchNormalization", ["x", *"ssss"], ["y"])], initializer=[NONE]),
            "empty",
        ),
        (single("Expand", (1, 2), [np.array([2**20, 2**20, 1, 2])]), "too large"),
        (graph_of([helper.make_node("Cast", ["x"], ["y"], to=99)]), "no type 99"),
        (graph_of([helper.make_node("Reshape", ["x", "s"], ["y"])], initializer=[SHAPE]), "does not fit"),
    ],
)
def test_forms_that_are_not_known_are_refused(model: onnx.ModelProto, match: str) -> None:
    refused(model, UnsupportedOp, match)


@pytest.mark.parametrize("count", [1, 3])
def test_a_split_into_another_number_of_parts_is_refused(count: int) -> None:
    split = helper.make_node("Split", ["x"], ["y", "z"], axis=1, num_outputs=count)
    refused(graph_of([split], opset=18), UnsupportedOp, "num_outputs")


def test_shapes_on_which_onnx_disagrees_are_refused() -> None:
    # Before opset 11 axes may not be negative: ONNX's inference and the runtimes read them differently.
    unsqueeze = helper.make_node("Unsqueeze", ["x"], ["y"], axes=[-3, 2])
    refused(graph_of([unsqueeze], opset=9), UnreadableFile, "but ONNX infers")


def test_integer_arithmetic_on_shapes_is_folded() -> None:
    b = Builder((1, 2, 6), opset=17)
    size = b.add("Gather", b.add("Shape", "x"), b.integers([2]))
    half = b.add("Div", b.add("Mul", size, b.integers([1])), b.integers([2]))
    network = read(b.model(b.add("Slice", "x", b.integers([0]), half, b.integers([2]))))
    assert ops(network) == ["Slice"]
    assert network.output_shape == (1, 2, 3)


def test_integers_are_folded_as_onnx_says() -> None:
    """ONNX's own evaluator takes no entry of this slice, and inserts unsorted axes one after the other."""
    b = Builder((1, 3), opset=11)
    numbers = b.constant([10, 20, 30], np.int64)
    first = b.add("Slice", numbers, b.integers([-5]), b.integers([-9]), b.integers([0]), b.integers([-1]))
    model = b.model(b.add("Add", "x", b.add("Cast", first, to=onnx.TensorProto.FLOAT)))
    assert np.array_equal(run(model, np.zeros((1, 3), np.float32)), [[10, 10, 10]])
    assert [array.tolist() for array in read(model).constants.values()] == [[10.0]]

    b = Builder((1, 2, 1, 2), opset=11)
    wide = b.add("Unsqueeze", b.constant([[1, 2], [3, 4]], np.int64), axes=[2, 0])
    model = b.model(b.add("Add", "x", b.add("Cast", wide, to=onnx.TensorProto.FLOAT)))
    assert [array.shape for array in read(model).constants.values()] == [(1, 2, 1, 2)]


@pytest.mark.parametrize(
    ("op", "a", "b", "wanted"),
    [
        ("Div", [-7, 7, -7, 7], [2, -2, -2, 2], [-3, -3, 3, 3]),
        ("Mod", [-7, 7, -7, 7], [2, -2, -2, 2], [1, -1, -1, 1]),
        ("Sub", [-(2**63), 1], [0, 2], [-(2**63), -1]),
    ],
)
def test_integers_are_computed_as_onnxruntime_does(op: str, a: Any, b: Any, wanted: Any) -> None:
    build = Builder((1, len(a)), opset=17)
    found = build.add(op, build.integers(a), build.integers(b))
    model = build.model(build.add("Add", "x", build.add("Cast", found, to=onnx.TensorProto.FLOAT)))
    assert np.array_equal(run(model, np.zeros((1, len(a)), np.float32)), [np.array(wanted, np.float32)])
    assert [array.tolist() for array in read(model).constants.values()] == [wanted]


@pytest.mark.parametrize(
    ("op", "a", "b", "match"),
    [
        ("Div", [1], [0], "divides by zero"),
        ("Div", [-(2**63)], [-1], "does not fit int64"),
        ("Mul", [2**62], [2], "does not fit int64"),
        ("Add", [1, 2], [1, 2, 3], "do not fit each other"),
        ("BitwiseAnd", [1], [1], "BitwiseAnd"),
    ],
)
def test_integers_that_cannot_be_computed_are_refused(op: str, a: Any, b: Any, match: str) -> None:
    values = [
        helper.make_tensor(name, onnx.TensorProto.INT64, [len(v)], v) for name, v in (("a", a), ("b", b))
    ]
    nodes = [helper.make_node(op, ["a", "b"], ["i"]), helper.make_node("Cast", ["i"], ["f"], to=1)]
    nodes.append(helper.make_node("Add", ["x", "f"], ["y"]))
    refused(graph_of(nodes, opset=18, initializer=values), UnsupportedOp, match)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_integers_that_are_none_cannot_be_reduced(op: str, keepdims: int) -> None:
    """onnxruntime gives none, ONNX one."""
    empty = helper.make_tensor("e", onnx.TensorProto.INT32, [0], [])
    nodes = [
        helper.make_node(op, ["e"], ["i"], keepdims=keepdims),
        helper.make_node("Cast", ["i"], ["f"], to=1),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    refused(graph_of(nodes, opset=11, initializer=[empty]), UnsupportedOp, "holds no numbers")


@pytest.mark.parametrize("content", [b"", b"\0", b"not a network", b"\xff" * 100, b"(vnnlib)" * 50])
def test_garbage_is_refused(content: bytes) -> None:
    with pytest.raises(UnreadableFile, match="ONNX file"):
        read_onnx(content)


def test_every_truncation_is_refused_or_read() -> None:
    content = ONE_OF_EACH["Conv@17"].SerializeToString()
    outcomes = []
    for length in range(len(content)):
        try:
            read_onnx(content[:length])
            outcomes.append(True)
        except InputError as error:
            assert "\n" not in str(error)
            outcomes.append(False)
    assert outcomes.count(False) > 0.9 * len(outcomes)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(sorted(name for name in ONE_OF_EACH if name.endswith("@17"))),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_files_are_refused_or_read(name: str, changes: list[tuple[float, int]]) -> None:
    content = bytearray(ONE_OF_EACH[name].SerializeToString())
    for where, byte in changes:
        content[int(where * len(content))] = byte
    try:
        network = read_onnx(bytes(content))
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert network.output in network.shapes


def test_packed_files_are_read(tmp_path: Path) -> None:
    content = single("Relu", (1, 2)).SerializeToString()
    (tmp_path / "a.onnx").write_bytes(content)
    (tmp_path / "b.onnx.gz").write_bytes(gzip.compress(content))
    assert (
        ops(read_onnx_file(tmp_path / "a.onnx")) == ops(read_onnx_file(tmp_path / "b.onnx.gz")) == ["Relu"]
    )


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    packed = gzip.compress(single("Relu", (1, 2)).SerializeToString())
    (tmp_path / "short.onnx.gz").write_bytes(packed[:-12])
    (tmp_path / "plain.onnx.gz").write_bytes(b"plain")
    for name, match in {
        "short.onnx.gz": "truncated or damaged",
        "plain.onnx.gz": "plain.onnx.gz",
        "none.onnx": "there is no such file",
    }.items():
        with pytest.raises(UnreadableFile, match=match):
            read_onnx_file(tmp_path / name)
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_onnx_file(tmp_path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real networks are not here")
def test_real_networks_are_read() -> None:
    # Parts of the network of dist_shift, with two inputs and with two outputs; no instance names them.
    parts = {"mnist_generator.onnx.gz": "has 2 inputs", "mnist_prior.onnx.gz": "has 2 outputs"}
    paths = sorted(SHARED.rglob("*.onnx*"))
    assert paths
    for path in paths:
        if path.name in parts:
            with pytest.raises(UnreadableFile, match=parts[path.name]):
                read_onnx_file(path)
            continue
        network = read_onnx_file(path)
        assert network.nodes
        assert network.output_size >= 1
