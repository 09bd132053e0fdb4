"""ONNX files that output a label as well as scores, as classifiers exported from scikit-learn do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.gzipped import uncompressed
from dokimos.networks.semantics.replay import load_session, reason_of

_NUMBERS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
_LABEL_LISTS = ("classlabels_ints", "classlabels_int64s", "classlabels_strings")
_LABELS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.STRING)


@dataclass(frozen=True)
class LabelClassifier:
    """A loaded file whose first output is labels; `labels` are those that it lists for its classes."""

    name: str
    session: Any
    kind: type
    labels: tuple[Any, ...]

    def predict(self, records: NDArray[Any]) -> NDArray[Any]:
        """The label of each record. Raises InputError."""
        return np.asarray(self._run(records, 0)).reshape(len(records))

    def probabilities(self, records: NDArray[Any]) -> NDArray[Any]:
        """Its numbers for each class, in the order of the labels. Raises InputError."""
        if len(self.session.get_outputs()) < 2:
            raise InputError("the model gives only labels, so there is no score")
        found = self._run(records, 1)
        if isinstance(found, list):  # one dictionary from labels to numbers for each record
            order = self.labels or tuple(found[0])
            return np.array([[row[label] for label in order] for row in found])
        return np.asarray(found)

    def _run(self, records: NDArray[Any], output: int) -> Any:
        (source,) = self.session.get_inputs()
        try:
            rows: NDArray[Any] = np.ascontiguousarray(records.reshape(len(records), -1), dtype=self.kind)
        except (TypeError, ValueError):
            message = f"{self.name}: it takes numbers, but these records are not made of numbers."
            raise InputError(message) from None
        try:
            (found,) = self.session.run([self.session.get_outputs()[output].name], {source.name: rows})
        except Exception as problem:  # onnxruntime's errors share no base class of their own
            raise InputError(f"{self.name}: onnxruntime failed: {reason_of(problem)}.") from None
        return found


def label_classifier(content: bytes, *, name: str) -> LabelClassifier | None:
    """The classifier in the content of a file; None if the file is an ordinary network.

    Such a file has one input, and its first output is one integer or string for each record: those of
    the operators TreeEnsembleClassifier, LinearClassifier, SVMClassifier, and pipelines that end in them.
    Raises UnreadableFile if onnxruntime cannot load it.
    """
    plain = uncompressed(content, file=name)
    graph = _graph(plain)
    if graph is None or not graph.output:
        return None
    known = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in known]
    if len(inputs) != 1 or graph.output[0].type.tensor_type.elem_type not in _LABELS:
        return None
    if len(graph.output[0].type.tensor_type.shape.dim) > 1:
        return None
    session = load_session(plain, name, optimised=True)
    (source,) = session.get_inputs()
    if source.type not in _NUMBERS:
        raise UnreadableFile(name, f"its input is a {source.type}, not a tensor of numbers.")
    return LabelClassifier(name, session, _NUMBERS[source.type], _labels(graph))


def _labels(graph: onnx.GraphProto) -> tuple[Any, ...]:
    """The labels that the classifier in a graph lists; empty unless there is exactly one classifier."""
    lists = [
        tuple(each.decode() if isinstance(each, bytes) else each for each in (*part.ints, *part.strings))
        for node in graph.node
        for part in node.attribute
        if part.name in _LABEL_LISTS and (part.ints or part.strings)
    ]
    return lists[0] if len(set(lists)) == 1 else ()


def _graph(content: bytes) -> onnx.GraphProto | None:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        return None
    return model.graph
