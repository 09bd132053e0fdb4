"""ONNX files that give a label beside its scores, as classifiers exported from scikit-learn do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.gzipped import uncompressed

_FATAL = 4
_NUMBERS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
_LABELS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.STRING)


def label_function(content: bytes, *, name: str) -> Callable[[NDArray[Any]], NDArray[Any]] | None:
    """A function from records to labels; None where the file is a network like any other.

    Such a file has one input, and its first output is one integer or string for each record: those of
    the operators TreeEnsembleClassifier, LinearClassifier, SVMClassifier, and pipelines that end in them.
    Whatever else it gives is left alone. Raises UnreadableFile where onnxruntime cannot load it.
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
    session = _session(plain, name)
    (source,) = session.get_inputs()
    if source.type not in _NUMBERS:
        raise UnreadableFile(name, f"its input is a {source.type}, not a tensor of numbers.")
    kind, first = _NUMBERS[source.type], session.get_outputs()[0].name

    def labels(records: NDArray[Any]) -> NDArray[Any]:
        try:
            rows = np.ascontiguousarray(records.reshape(len(records), -1), dtype=kind)
        except (TypeError, ValueError):
            raise InputError(f"{name}: takes numbers, and these records are not made of numbers.") from None
        try:
            (found,) = session.run([first], {source.name: rows})
        except Exception as problem:  # onnxruntime's errors share no base class of their own
            raise InputError(f"{name}: onnxruntime failed: {_first_line(problem)}.") from None
        return np.asarray(found).reshape(len(rows))

    return labels


def _graph(content: bytes) -> onnx.GraphProto | None:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        return None
    return model.graph


def _session(content: bytes, name: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # onnxruntime's errors share no base class of their own
        raise UnreadableFile(name, f"onnxruntime cannot load it: {_first_line(problem)}.") from None


def _first_line(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0].rstrip(".")
