"""Models from files that are not code (ONNX, trees), and from pickles, which are."""

from __future__ import annotations

import hashlib
import importlib
import io
import logging
import pickle
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from dokimos.core.errors import InputError, OversizedOp, UnreadableFile
from dokimos.core.files import read_whole
from dokimos.core.inputs import uncompressed
from dokimos.core.readable import printable
from dokimos.engine.runtimes.sessions import Replayer, load_session, reason_of
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.estimators import EVERY, placed_trees, plain_columns
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.onnx_ml import has_ml, read_ml
from dokimos.laws.models.tested_model import (
    ClassScores,
    Model,
    Rows,
    as_numbers,
    decision_of,
    encoded,
    encoding_of,
    network_classes,
)
from dokimos.laws.models.trees import Ensemble, NotRead, read_trees
from dokimos.laws.models.trial import LOADERS, expect_survival
from dokimos.networks.reading.onnx_file import read_onnx

# ONNX files that output a label as well as scores, as classifiers exported from scikit-learn do


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


#: How many numbers go into one run of onnxruntime: enough to amortise its overhead, few enough for caches.
_NUMBERS_PER_RUN = 2**18
_MIN_ROWS_PER_RUN = 256
#: The key by which files of other packages identify themselves.
_HEAD = 2**12
#: Suffixes of files written by joblib.
JOBLIB = ".joblib"
_log = logging.getLogger("dokimos")


def in_python(package: str, call: str) -> str:
    """Which package a model file belongs to, and how to load it in a Python file."""
    return f"{package}; load it in a Python file (model = {call}) and give FILE.py:model"


XGBOOST: str = in_python("xgboost", "xgboost.Booster(model_file=…)")
LIGHTGBM = in_python("lightgbm", "lightgbm.Booster(model_file=…)")
CATBOOST = in_python("catboost", "catboost.CatBoost().load_model(…)")
#: How a text file of lightgbm begins.
LIGHTGBM_HEAD = b"tree\nversion="


def onnx_model(content: bytes, domain: Domain | None, *, name: str) -> Model:
    """The model in the content of an ONNX file. Raises InputError."""
    encode, sha256 = encoding_of(domain), hashlib.sha256(content).hexdigest()
    _expect_modest(content, name)
    found = label_classifier(content, name=name)
    if found is not None:
        labels = encoded(found.predict, encode)
        classes = encoded(found.probabilities, encode)
        scores_of = ClassScores(classes, classes, found.labels)
        return _with_ml(Model(name, labels, decision_of(domain), sha256, scores_of), content, domain)
    network = Replayer(content, name=name)
    rows_per_run = max(_MIN_ROWS_PER_RUN, _NUMBERS_PER_RUN // network.input_size)

    def scores(records: Rows) -> NDArray[np.float32]:
        rows = as_numbers(encode(records), name).reshape(len(records), -1)
        return network(rows, rows_per_run=rows_per_run)

    made = Model(name, scores, decision_of(domain), sha256, made_of=content)
    return _with_ml(made, content, domain) if has_ml(uncompressed(content, file=name)) else made


def _with_ml(model: Model, content: bytes, domain: Domain | None) -> Model:
    """The model with what its operators of ai.onnx.ml are, or the reason why they are not read."""
    model = replace(model, made_of=None)
    if domain is not None and domain.encode is not None:
        return model
    try:
        layout = None if domain is None else domain.layout
        made, labels = read_ml(uncompressed(content, file=model.name), layout)
    except NotRead as reason:
        return replace(model, unread=str(reason))
    if isinstance(made, Ensemble):
        if layout is not None and made.inputs < layout.width:
            made = made.changed(inputs=layout.width)
        return replace(model, made_of=made, original=model.predict)
    known = model.class_scores
    scores_of = None if known is None else replace(known, labels=labels)
    return replace(model, made_of=made, class_scores=scores_of)


def _expect_modest(content: bytes, name: str) -> None:
    """Raise OversizedOp for tensors and windows that Dokimos refuses in every network that it reads.

    A network that it cannot read may still be a model: then onnxruntime's memory is limited.
    """
    try:
        read_onnx(uncompressed(content, file=name), name=name)
    except OversizedOp:
        raise
    except InputError:
        return


def tree_model(content: bytes, domain: Domain | None, *, name: str) -> Model:
    """The model in the content of a file of trees. Raises InputError."""
    if content.lstrip().startswith(b"{") and b'"learner"' in content[:_HEAD]:
        return xgboost_model(content, domain, name=name)
    if content.lstrip().startswith(b"{") and b'"catboost_version_info"' in content:
        return catboost_model(content, domain, name=name, form="json")
    ensemble = read_trees(content, name=name)
    own = (domain is not None and domain.decide is not None) or len(ensemble.base) == 1
    decide = decision_of(domain) if own else ensemble.decide
    has_code = domain is not None and domain.encode is not None  # which gives the columns, in their order
    columns = EVERY if has_code else plain_columns(ensemble.names, domain, name=name)
    if columns is None:
        raise InputError(f"{name}: the trees take numbers, but one of their columns is not a number.")
    if isinstance(columns, slice):
        scores = encoded(ensemble, encoding_of(domain))
    else:
        scores = lambda records: ensemble(np.asarray(records)[:, columns])  # noqa: E731
    return Model(
        name,
        scores,
        decide,
        hashlib.sha256(content).hexdigest(),
        network_classes(scores, ensemble.classes),
        made_of=placed_trees(ensemble, columns, domain),
    )


def lightgbm_model(content: bytes, domain: Domain | None, *, name: str) -> Model:
    """The model in a text file of lightgbm, where that is installed. Raises InputError."""
    return _library_model("lightgbm", LIGHTGBM, content, domain, name)


def xgboost_model(content: bytes, domain: Domain | None, *, name: str) -> Model:
    """The model in a JSON or UBJSON file of xgboost, where that is installed. Raises InputError."""
    return _library_model("xgboost", XGBOOST, content, domain, name)


def catboost_model(content: bytes, domain: Domain | None, *, name: str, form: str = "cbm") -> Model:
    """The model in a file of catboost, where that is installed. Raises InputError."""
    return _library_model("catboost", CATBOOST, content, domain, name, form)


def _library_model(
    library: str, hint: str, content: bytes, domain: Domain | None, name: str, form: str = ""
) -> Model:
    expect_survival(library, content, form, name=name)
    try:
        booster = LOADERS[library](importlib.import_module(library), content, form)
    except ImportError:
        raise InputError(f"{name}: is a model of {hint}; or pip install {library}, to read it.") from None
    except Exception as problem:  # whatever the library raises
        said = printable(" ".join(str(problem).split())[:200])
        raise InputError(f"{name}: {library} does not load it: {said}.") from None
    return object_model(booster, domain, name=name, sha256=hashlib.sha256(content).hexdigest())


@cache
def _warn_of_code(path: str, _changed: int) -> None:
    _log.warning("%s: opening a pickle runs the code in it; open only files that you trust.", path)


def read_pickle(path: Path) -> tuple[Any, bytes]:
    """The object in a pickle (or joblib file), and its content. Runs its code. Raises UnreadableFile."""
    content = read_whole(path)
    _warn_of_code(str(path.absolute()), path.stat().st_mtime_ns)
    try:
        if path.suffix == JOBLIB:
            return importlib.import_module("joblib").load(io.BytesIO(content)), content
        return pickle.loads(content), content
    except Exception as problem:
        raise UnreadableFile(
            path, f"is not a pickle of a model: {type(problem).__name__}: {problem}."
        ) from None
