"""What skl2onnx and onnxmltools export: operators of ai.onnx.ml, read as trees or as plain networks.

The arithmetic is that of onnxruntime on one thread: thresholds and sums in float32, tree after tree, the
base last. What is read is compared with a run of the file before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from dokimos.laws.domain.features import Layout
from dokimos.laws.models.layers import thresholded
from dokimos.laws.models.pipelines import Made, trees_of_records
from dokimos.laws.models.tested_model import Rows
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble, NotRead

_ML = "ai.onnx.ml"
_SCALER = "Scaler"
#: Operators that hand on what they are given, at most in another type.
_PASSING = ("Identity", "Cast", "ZipMap", "Normalizer", "Reshape", "ArrayFeatureExtractor")
_TREES = ("TreeEnsembleRegressor", "TreeEnsembleClassifier")


def read_ml(content: bytes, layout: Layout | None) -> tuple[Ensemble | bytes, tuple[Any, ...]]:
    """Trees or a plain network, and the labels of its classes, empty for a number. Raises NotRead."""
    graph = _Graph(onnx.ModelProto.FromString(content))
    try:
        return graph.trees(layout) if graph.main.op_type in _TREES else graph.network()
    except (KeyError, ValueError, IndexError, TypeError) as problem:
        said = " ".join(str(problem).split())[:100]
        raise NotRead(f"its operator {graph.main.op_type} is not as expected: {said}") from None


def has_ml(content: bytes) -> bool:
    """Whether a file has operators of ai.onnx.ml."""
    return any(node.domain == _ML for node in onnx.ModelProto.FromString(content).graph.node)


class _Graph:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model, self.graph = model, model.graph
        self.made = {name: node for node in self.graph.node for name in node.output}
        self.known = {each.name: each for each in self.graph.initializer}
        self.source = next(each.name for each in self.graph.input if each.name not in self.known)
        self.labels: tuple[Any, ...] = ()
        self.main = self._main()

    def _main(self) -> onnx.NodeProto:
        """The operator that decides, behind those that pass on what it gives."""
        node: onnx.NodeProto | None = self.made.get(self.graph.output[0].name)
        while node is not None and node.op_type in _PASSING and node.input[0] in {*self.made, *self.known}:
            if node.op_type == "ArrayFeatureExtractor":
                if node.input[0] not in self.known:
                    break
                listed = numpy_helper.to_array(self.known[node.input[0]]).ravel().tolist()
                self.labels = tuple(e.decode() if isinstance(e, bytes) else e for e in listed)
                node = self.made.get(node.input[1])
                continue
            node = self.made.get(node.input[0])
        if node is None:
            raise NotRead("nothing in it decides")
        return node

    # Trees

    def trees(self, layout: Layout | None) -> tuple[Ensemble, tuple[Any, ...]]:
        given = _attributes(self.main)
        offset, scale = self._scaled(self.main.input[0])
        labels = tuple(given.get("classlabels_int64s") or given.get("classlabels_strings") or ())
        made = _ensemble(given, labels)
        if offset is None or scale is None:
            return made, labels
        if layout is None:
            raise NotRead("what a Scaler takes is known only with a domain that has FEATURES")
        rises = np.broadcast_to(scale, made.inputs) >= 0
        if not rises.all() or len(np.broadcast_to(offset, made.inputs)) != layout.width:
            raise NotRead("its Scaler turns columns around")

        def transform(records: Rows) -> NDArray[Any]:
            with np.errstate(over="ignore", invalid="ignore"):
                rows: NDArray[Any] = np.asarray(records, dtype=np.float32)
                return (rows - offset) * scale

        slots = [layout.at(k) for k in range(layout.width)]
        columns = [Made(k) for k in range(layout.width)]
        return trees_of_records(made, columns, slots, layout, transform), labels

    def _scaled(self, name: str) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]:
        """The Scaler between the input of the file and a tensor; nothing else may be there."""
        while name != self.source:
            node = self.made[name]
            if node.op_type == _SCALER and node.input[0] == self.source:
                given = _attributes(node)
                return np.array(given["offset"], np.float32), np.array(given["scale"], np.float32)
            if node.op_type not in ("Identity", "Cast"):
                raise NotRead(f"a {node.op_type} in front of trees is not known here")
            name = node.input[0]
        return None, None

    # Linear models and perceptrons, as plain networks

    def network(self) -> tuple[bytes, tuple[Any, ...]]:
        main, cut = self.main, self.graph.output[0].name
        is_single = False
        if main.op_type == "LinearClassifier":
            given = _attributes(main)
            self.labels = tuple(given.get("classlabels_ints") or given.get("classlabels_strings") or ())
            cut = main.output[0]
            if len(given.get("intercepts", ())) != len(self.labels):
                raise NotRead("its LinearClassifier has another number of scores than of classes")
        elif main.op_type == "ArgMax":
            cut, is_single = self._decided_by(main.input[0])
            if len(self.labels) < 2:
                raise NotRead("the labels of its classes are not listed")
        elif len(self.graph.output) > 1 or self.labels:
            raise NotRead(f"decisions made by the operator {main.op_type} are not known here")
        content = self._plain(cut)
        return (thresholded(content, 0.0) if is_single else content), self.labels

    def _decided_by(self, name: str) -> tuple[str, bool]:
        """The tensor of scores that an ArgMax decides by; or of the one score, where that is above 0."""
        node = self.made[name]
        if node.op_type == "Softmax":
            return node.input[0], False
        if node.op_type == "Concat" and len(node.input) == 2:
            second = self.made[node.input[1]]
            first = self.made[node.input[0]]
            if (
                second.op_type == "Sigmoid"
                and first.op_type == "Sub"
                and first.input[1] == second.output[0]
            ):
                one = self.known.get(first.input[0])
                if one is not None and (numpy_helper.to_array(one) == 1).all():
                    return second.input[0], True
        raise NotRead("how it decides from its scores is not known here")

    def _plain(self, cut: str) -> bytes:
        """The part of the graph that makes a tensor, by operators of ONNX alone."""
        needed, nodes = {cut}, list[onnx.NodeProto]()
        for node in reversed(self.graph.node):
            if needed & set(node.output):
                needed |= set(node.input)
                nodes += reversed(_REWRITES.get(node.op_type, _kept)(node))
        constants = [each for each in self.graph.initializer if each.name in needed]
        kind = onnx.TensorProto.FLOAT
        width = self.graph.input[0].type.tensor_type.shape.dim[-1].dim_value
        inputs = [helper.make_tensor_value_info(self.source, kind, ["batch", width])]
        outputs = [helper.make_tensor_value_info(cut, kind, None)]
        graph = helper.make_graph(nodes[::-1], "plain", inputs, outputs, constants)
        opset = next((e.version for e in self.model.opset_import if e.domain in ("", "ai.onnx")), 13)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", max(opset, 13))])
        model = onnx.shape_inference.infer_shapes(model)
        content: bytes = model.SerializeToString()
        return content


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    found = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    return {
        name: [e.decode() if isinstance(e, bytes) else e for e in value]
        if isinstance(value, list)
        else value.decode()
        if isinstance(value, bytes)
        else value
        for name, value in found.items()
    }


def _constant(name: str, value: NDArray[Any]) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))


def _kept(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    if node.domain == _ML:
        raise NotRead(f"the operator {node.op_type} is not known here")
    return [node]


def _cast(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    if _attributes(node).get("to") not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
        raise NotRead("a Cast to integers is not known here")
    return [helper.make_node("Identity", node.input, node.output)]


def _scaler(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    given, last = _attributes(node), node.output[0]
    names = [f"{last}.{each}" for each in ("offset", "scale", "moved")]
    return [
        *(_constant(name, np.array(given[name.rpartition(".")[2]], np.float32)) for name in names[:2]),
        helper.make_node("Sub", [node.input[0], names[0]], [names[2]]),
        helper.make_node("Mul", [names[2], names[1]], [last]),
    ]


def _linear(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    given, last = _attributes(node), node.output[0]
    targets = len(given["intercepts"]) if "intercepts" in given else int(given.get("targets", 1))
    if node.op_type == "LinearRegressor" and given.get("post_transform", "NONE") != "NONE":
        raise NotRead("its LinearRegressor transforms what it adds up")
    weight = np.array(given["coefficients"], np.float32).reshape(targets, -1).T
    bias = np.array(given.get("intercepts", np.zeros(targets)), np.float32)
    return [
        _constant(f"{last}.weight", np.ascontiguousarray(weight)),
        _constant(f"{last}.bias", bias),
        helper.make_node("Gemm", [node.input[0], f"{last}.weight", f"{last}.bias"], [last]),
    ]


_REWRITES: Mapping[str, Callable[[onnx.NodeProto], list[onnx.NodeProto]]] = {
    "Cast": _cast,
    "Scaler": _scaler,
    "LinearRegressor": _linear,
    "LinearClassifier": _linear,
}


def _ensemble(given: Mapping[str, Any], labels: Sequence[Any]) -> Ensemble:
    """The trees in the attributes of a TreeEnsembleRegressor or -Classifier.

    Of two classes, whose leaves have one weight each, onnxruntime decides the second where the sum is above
    ½ if no weight is negative, otherwise above 0. Of more, the first largest sum.
    """
    kind = "class" if labels else "target"
    weights = np.array(given[f"{kind}_weights"], dtype=np.float32)
    ids = np.array(given[f"{kind}_ids"], dtype=np.int64)
    count = len(labels) if labels else int(given.get("n_targets", 1))
    base = np.array(given.get("base_values", ()), dtype=np.float32)
    if given.get("aggregate_function", "SUM") != "SUM" or not (labels or count == 1):
        raise NotRead("it does not add up its trees to one number")
    if not labels and given.get("post_transform", "NONE") != "NONE":
        raise NotRead("it transforms the sum of its trees")
    if len(base) not in ((0, 1) if count <= 2 else (0, count)) or (count == 2 and len(set(ids)) != 1):
        raise NotRead("it has another number of base values, or of weights, than classes")
    before = int(count == 2)
    leaves: dict[tuple[int, int], NDArray[np.float64]] = {}
    places = zip(given[f"{kind}_treeids"], given[f"{kind}_nodeids"], strict=True)
    for place, column, weight in zip(places, ids.tolist(), weights.tolist(), strict=True):
        row = leaves.setdefault(place, np.full(count, np.nan))
        row[before if before else column] = weight
    trees = _built(given, leaves, count)
    if count > 2 and len(base) == 0:
        weighted = np.all([~np.isnan(t.value[t.feature == LEAF]).any(axis=0) for t in trees], axis=0)
        if not weighted.all():
            raise NotRead("a class has no weight in some leaves")
    half = [0.5 if (weights >= 0).all() else 0.0] if before else []
    one = np.zeros(1, dtype=np.int64)
    last = np.concatenate([np.zeros(before), base if len(base) else np.zeros(count - before)])[None]
    trees = [_zeroed(each) for each in trees]
    trees.append(DecisionTree(one + LEAF, np.zeros(1), one, one, last, np.zeros(1, np.bool_)))
    is_index = list(labels) == list(range(len(labels)))
    return Ensemble(
        trees,
        inputs=max(given["nodes_featureids"]) + 1,
        base=[*half, *[0.0] * (count - before)],
        single=True,
        float32_sums=True,
        classes=() if is_index else tuple(labels),
    )


def _zeroed(tree: DecisionTree) -> DecisionTree:
    value = np.nan_to_num(tree.value)
    return DecisionTree(tree.feature, tree.threshold, tree.left, tree.right, value, tree.missing_left)


def _built(
    given: Mapping[str, Any], leaves: Mapping[tuple[int, int], NDArray[np.float64]], count: int
) -> list[DecisionTree]:
    names = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    columns = [given[f"nodes_{name}"] for name in names]
    tracks = given.get("nodes_missing_value_tracks_true") or [0] * len(columns[0])
    nodes: dict[int, dict[int, tuple[Any, ...]]] = {}
    for tree, node, *rest in zip(*columns, tracks, strict=True):
        nodes.setdefault(tree, {})[node] = tuple(rest)
    return [_tree(number, own, leaves, count) for number, own in nodes.items()]


def _tree(
    number: int,
    nodes: Mapping[int, tuple[Any, ...]],
    leaves: Mapping[tuple[int, int], NDArray[np.float64]],
    count: int,
) -> DecisionTree:
    """One tree, its nodes in an order in which children come after their parent."""
    order: list[int] = []
    pending, place = [next(iter(nodes))], dict[int, int]()
    while pending:
        node = pending.pop()
        if node in place:
            raise NotRead("a node of a tree has two parents")
        place[node] = len(order)
        order.append(node)
        if nodes[node][0] != "LEAF":
            pending += [nodes[node][4], nodes[node][3]]
    size = len(order)
    feature, at = np.full(size, LEAF), np.zeros(size)
    left, right = np.arange(size), np.arange(size)
    missing, value = np.zeros(size, dtype=np.bool_), np.zeros((size, count))
    for own, node in enumerate(order):
        mode, column, threshold, if_true, if_false, tracks = nodes[node]
        if mode == "LEAF":
            value[own] = leaves[number, node]
            continue
        if mode not in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"):
            raise NotRead(_EQUAL)
        feature[own] = column
        single = np.float32(threshold)
        is_at_most = mode in ("BRANCH_LEQ", "BRANCH_GT")
        at[own] = single if is_at_most else np.nextafter(single, np.float32(-np.inf))
        is_below = mode in ("BRANCH_LEQ", "BRANCH_LT")
        sides = (if_true, if_false) if is_below else (if_false, if_true)
        left[own], right[own] = place[sides[0]], place[sides[1]]
        missing[own] = bool(tracks) == is_below
    return DecisionTree(feature, at, left, right, value, missing)


_EQUAL = "its splits compare for equality; encode categories as columns of 0 and 1"
