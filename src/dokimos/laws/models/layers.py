"""Linear models and perceptrons of scikit-learn, and torch modules, as ONNX networks of records."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dokimos.laws.domain.features import Kind, Layout, Slot
from dokimos.laws.models.pipelines import Made
from dokimos.laws.models.tested_model import Rows
from dokimos.laws.models.trees import NotRead

Floats = NDArray[np.float64]
#: A matrix of weights, one row for each output, and what is added; between two of them are ReLUs.
Layers = list[tuple[Floats, Floats]]
#: Transformers that multiply and shift each column, or give each option of a choice a number.
AFFINE = (
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "OneHotEncoder", "OrdinalEncoder"),
    *("PolynomialFeatures", "FunctionTransformer", "ColumnTransformer", "Pipeline", "SimpleImputer"),
)
#: Where linear models and perceptrons are whose decisions are the first largest score.
_KNOWN = (
    *("sklearn.linear_model.", "sklearn.neural_network.", "sklearn.discriminant_analysis"),
    "sklearn.svm._classes",
)
#: What perceptrons apply last: of classifiers, it changes no decision.
_LAST = {"identity": "", "logistic": "", "softmax": "", "exp": "Exp"}
#: The number, beside 0, at which a column is measured.
_FAR = 2.0**10


def layers_of(estimator: Any) -> Layers:
    """The layers of a fitted linear model or multilayer perceptron with ReLUs. Raises NotRead.

    A classifier gets a score for each class, of two classes 0 for the first. It decides for the first
    largest one, as the estimator does over the real numbers.
    """
    if not type(estimator).__module__.startswith(_KNOWN) or hasattr(estimator, "offset_"):
        raise NotRead(f"a {type(estimator).__name__} is not a kind of model whose inside is known here")
    if hasattr(estimator, "coefs_") and hasattr(estimator, "intercepts_"):
        if estimator.activation not in ("relu", "identity"):
            raise NotRead(f"its activation is {estimator.activation}; fit it with activation='relu'")
        layers = [
            (np.asarray(weight, dtype=np.float64).T, np.asarray(bias, dtype=np.float64))
            for weight, bias in zip(estimator.coefs_, estimator.intercepts_, strict=True)
        ]
        if estimator.activation == "identity":
            layers = [_composed(layers)]
    elif getattr(estimator, "coef_", None) is not None and hasattr(estimator, "intercept_"):
        weight = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
        layers = [(weight, np.broadcast_to(np.ravel(estimator.intercept_), len(weight)).astype(np.float64))]
    else:
        raise NotRead(f"a {type(estimator).__name__} is not a kind of model whose inside is known here")
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return layers
    if len(classes) > 2 and hasattr(estimator, "n_support_"):
        raise NotRead("it decides by votes between pairs of classes; fit a LinearSVC")
    weight, bias = layers[-1]
    if len(classes) == 2 and len(bias) == 1:
        layers[-1] = np.vstack([np.zeros_like(weight), weight]), np.append(0.0, bias)
    return layers


def _composed(layers: Layers) -> tuple[Floats, Floats]:
    weight, bias = layers[0]
    for after, more in layers[1:]:
        weight, bias = after @ weight, after @ bias + more
    return weight, bias


def of_records(
    layers: Layers,
    made: Sequence[Made],
    slots: Sequence[Slot],
    layout: Layout,
    transform: Callable[[Rows], Any],
) -> Layers:
    """Layers behind affine transformers as layers of records, which have choices one-hot.

    `transform` is measured: at 0 and another number of each column, and at each option of a choice. What
    that rounds is within the doubles of the real numbers that a proof is about.
    """
    plain = np.zeros(layout.width)
    for slot in layout.slots:
        if slot.feature.kind is Kind.CHOICE:
            plain[slot.start] = 1.0
    columns: list[tuple[int, Floats]] = []
    for source, slot in enumerate(slots):
        if not any(each.column == source for each in made):
            continue
        if slot.feature.kind is not Kind.CHOICE and not all(e.rises for e in made if e.column == source):
            what = (
                "holds strings" if slot.feature.holds_strings else "is encoded by its values, but a number"
            )
            raise NotRead(f"{slot.feature.name} {what}; declare it as a choice(…) in the domain")
        at = range(slot.start, slot.stop)
        for column in at:
            row = plain.copy()
            row[slot.start : slot.stop] = 0.0
            row[column] = 1.0 if slot.feature.kind is Kind.CHOICE else _FAR
            columns.append((column, row))
    rows = np.stack([plain, *(row for _, row in columns)])
    found = transform(rows)
    values = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
    weight, bias = np.zeros((len(made), layout.width)), values[0].copy()
    for (column, _), value in zip(columns, values[1:], strict=True):
        slot = next(each for each in layout.slots if each.start <= column < each.stop)
        own = [k for k, each in enumerate(made) if each.column is not None and slots[each.column] == slot]
        if slot.feature.kind is Kind.CHOICE:
            weight[own, column] = value[own]
        else:
            weight[own, column] = (value[own] - values[0][own]) / _FAR
    for k, each in enumerate(made):
        if each.column is not None and slots[each.column].feature.kind is Kind.CHOICE:
            if slots[each.column].feature.has_none:
                raise NotRead(f"{slots[each.column].feature.name} may be none, which has no columns")
            bias[k] = 0.0
    first, more = layers[0]
    return [(first @ weight, first @ bias + more), *layers[1:]]


def link_of(estimator: Any) -> str:
    """The operator that a regressor applies to what its layers give; empty for none. Raises NotRead."""
    if type(estimator).__name__ in ("PoissonRegressor", "GammaRegressor"):
        return "Exp"
    last = getattr(estimator, "out_activation_", "identity")
    if type(estimator).__name__ == "TweedieRegressor" or last not in _LAST:
        raise NotRead("what it makes of the last layer is not known here")
    return _LAST[last]


def written(layers: Layers, link: str = "") -> bytes:
    """Layers as the content of an ONNX file in doubles; with a `link`, that operator behind them."""
    nodes, constants, last = [], [], "records"
    for number, (weight, bias) in enumerate(layers):
        if number:
            nodes.append(helper.make_node("Relu", [last], [f"relu{number}"]))
            last = f"relu{number}"
        names = [f"{kind}{number}" for kind in ("weight", "bias", "sum")]
        constants += [
            numpy_helper.from_array(np.ascontiguousarray(weight.T), names[0]),
            numpy_helper.from_array(np.ascontiguousarray(bias), names[1]),
        ]
        nodes.append(helper.make_node("Gemm", [last, *names[:2]], [names[2]]))
        last = names[2]
    if link:
        nodes.append(helper.make_node(link, [last], ["linked"]))
        last = "linked"
    kind = TensorProto.DOUBLE
    inputs = [helper.make_tensor_value_info("records", kind, ["batch", layers[0][0].shape[1]])]
    outputs = [helper.make_tensor_value_info(last, kind, ["batch", len(layers[-1][1])])]
    graph = helper.make_graph(nodes, "layers", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content


#: Last operators that keep the order of scores, and so the decisions; by the link of a single one.
LOGISTIC: str = "the logistic function"
EXPONENTIAL: str = "the exponential"
_ORDERED = {"Sigmoid": LOGISTIC, "Exp": EXPONENTIAL}
_OF_ALL = ("Softmax", "LogSoftmax", *_ORDERED)


def without_link(content: bytes) -> tuple[bytes, str]:
    """A network without a last operator that is increasing, or a softmax of all scores; and its link.

    The first largest score is the same over the real numbers. The link is that of a single score.
    """
    model = onnx.ModelProto.FromString(content)
    graph = model.graph
    if len(graph.output) != 1 or len(graph.node) < 2:
        return content, ""
    made = {name: node for node in graph.node for name in node.output}
    last, dims = made.get(graph.output[0].name), graph.output[0].type.tensor_type.shape.dim
    if last is None or last.op_type not in _OF_ALL or last.domain or last.input[0] not in made:
        return content, ""
    if "Softmax" in last.op_type and (
        len(dims) != 2 or [a.i for a in last.attribute if a.name == "axis"] not in ([], [1], [-1])
    ):
        return content, ""
    graph.node.remove(last)
    graph.output[0].name = last.input[0]
    del graph.value_info[:]
    content = model.SerializeToString()
    return content, _ORDERED.get(last.op_type, "")


def shaped_like(content: bytes, given: bytes) -> bytes:
    """A network with the names of the input and the output of another, its batch, and its last softmax.

    Where the two do not have as many inputs and outputs in as many dimensions, nothing is changed.
    """
    made, model = (onnx.ModelProto.FromString(each) for each in (content, given))
    constants = {each.name for each in model.graph.initializer}
    wanted = [[each for each in model.graph.input if each.name not in constants], [*model.graph.output]]
    own = [[*made.graph.input], [*made.graph.output]]
    sizes = [[len(e.type.tensor_type.shape.dim) for side in both for e in side] for both in (own, wanted)]
    last = next((node for node in model.graph.node if wanted[1][0].name in node.output), None)
    if sizes[0] != sizes[1] or len(sizes[0]) != 2:
        return content
    if last is not None and last.op_type in _OF_ALL and without_link(given)[0] != given:
        ending = made.graph.node.add()
        ending.CopyFrom(last)
        ending.input[:], ending.output[:] = [own[1][0].name], [f"{own[1][0].name}.last"]
        own[1][0].name = ending.output[0]
    names = {ours.name: theirs.name for (ours,), (theirs,) in zip(own, wanted, strict=True)}
    taken = {name for node in made.graph.node for name in (*node.input, *node.output)} - names.keys()
    if len(set(names.values())) < 2 or taken & set(names.values()):
        return content
    for node in made.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for (ours,), (theirs,) in zip(own, wanted, strict=True):
        ours.name = theirs.name
        ours.type.tensor_type.shape.dim[0].CopyFrom(theirs.type.tensor_type.shape.dim[0])
    changed: bytes = made.SerializeToString()
    return changed


def thresholded(content: bytes, threshold: float) -> bytes:
    """A network of one score s as one of two: 0 and s − threshold, which is the larger where s is above."""
    model = onnx.ModelProto.FromString(content)
    graph = model.graph
    old, kind = graph.output[0].name, graph.output[0].type.tensor_type.elem_type
    type_of = helper.tensor_dtype_to_np_dtype(kind)
    column = [
        ("above.shape", np.array([-1, 1], dtype=np.int64)),
        ("above.weight", np.array([[0, 1]], dtype=type_of)),
        ("above.bias", np.array([0, -threshold], dtype=type_of)),
    ]
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in column)
    graph.node.append(helper.make_node("Reshape", [old, "above.shape"], ["above.score"]))
    graph.node.append(
        helper.make_node("Gemm", ["above.score", "above.weight", "above.bias"], ["above.scores"])
    )
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("above.scores", kind, ["batch", 2]))
    made: bytes = model.SerializeToString()
    return made


def exported(module: Any, width: int) -> bytes:
    """A torch module of records with this many columns, as the content of an ONNX file. Raises NotRead."""
    torch = importlib.import_module("torch")
    was_training, buffer = module.training, io.BytesIO()
    module.eval()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module,
                (torch.zeros(1, width),),
                buffer,
                input_names=["records"],
                output_names=["scores"],
                dynamic_axes={"records": {0: "batch"}, "scores": {0: "batch"}},
                opset_version=13,
                dynamo=False,
            )
    except Exception as problem:  # whatever torch raises for a module that cannot be traced
        said = " ".join(str(problem).split())[:150]
        raise NotRead(f"torch does not export it: {said}; export it, and give the file") from None
    finally:
        module.train(was_training)
    content = buffer.getvalue()
    onnx.load_model_from_string(content)
    return content
