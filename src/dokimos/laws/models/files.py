"""Models from files that are not code (ONNX, trees), and from pickles, which are."""

from __future__ import annotations

import hashlib
import importlib
import io
import logging
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError, OversizedOp, UnreadableFile
from dokimos.core.files import read_whole
from dokimos.core.gzipped import uncompressed
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.class_scores import ClassScores, Rows, network_classes
from dokimos.laws.models.handing import EVERY, placed_trees, plain_columns
from dokimos.laws.models.model import Model, as_numbers, decision_of, encoded, encoding_of
from dokimos.laws.models.neurons import neuron_function
from dokimos.laws.models.onnx_classifiers import label_classifier
from dokimos.laws.models.tree_files import read_trees
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.replay import Replayer

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


XGBOOST = in_python("xgboost", "xgboost.Booster(model_file=…)")


def onnx_model(content: bytes, domain: Domain | None, *, name: str) -> Model:
    """The model in the content of an ONNX file. Raises InputError."""
    encode, sha256 = encoding_of(domain), hashlib.sha256(content).hexdigest()
    _expect_modest(content, name)
    found = label_classifier(content, name=name)
    if found is not None:
        labels = encoded(found.predict, encode)
        classes = encoded(found.probabilities, encode)
        scores_of = ClassScores(classes, classes, found.labels)
        return Model(name, labels, decision_of(domain), sha256, scores_of)
    network = Replayer(content, name=name)
    rows_per_run = max(_MIN_ROWS_PER_RUN, _NUMBERS_PER_RUN // network.input_size)

    def scores(records: Rows) -> NDArray[np.float32]:
        rows = as_numbers(encode(records), name).reshape(len(records), -1)
        return network(rows, rows_per_run=rows_per_run)

    def find_neurons() -> Callable[[Rows], NDArray[np.bool_]] | None:
        active = neuron_function(content, name=name)
        if active is None:
            return None
        return lambda records: active(as_numbers(encode(records), name).reshape(len(records), -1))

    return Model(name, scores, decision_of(domain), sha256, find_neurons=find_neurons, made_of=content)


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
        raise InputError(f"{name}: is a model of {XGBOOST}.")
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


def warn_of_code(path: Path, what: str) -> None:
    """Warn, once per file, that opening it runs the code in it."""
    _warn(str(path.absolute()), path.stat().st_mtime_ns, what)


@cache
def _warn(path: str, _changed: int, what: str) -> None:
    _log.warning("%s: opening %s runs the code in it; open only files that you trust.", path, what)


def read_pickle(path: Path) -> tuple[Any, bytes]:
    """The object in a pickle (or joblib file), and its content. Runs its code. Raises UnreadableFile."""
    content = read_whole(path)
    warn_of_code(path, "a pickle")
    try:
        if path.suffix == JOBLIB:
            return importlib.import_module("joblib").load(io.BytesIO(content)), content
        return pickle.loads(content), content
    except Exception as problem:
        raise UnreadableFile(
            path, f"is not a pickle of a model: {type(problem).__name__}: {problem}."
        ) from None
