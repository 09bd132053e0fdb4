"""The model under test, whatever it is made of: records in, one decision for each out, in batches.

ONNX networks and classifiers, decision trees and ensembles of them, scikit-learn-like estimators and
policies (anything with `predict`), torch modules, and any callable (on one record, or on a batch where it
has a true attribute `batched`).
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.domain import Domain, has_parameter, load_module
from dokimos.laws.engine.sources import call_domain
from dokimos.laws.language.problems import did_you_mean
from dokimos.laws.models.onnx_classifiers import label_function
from dokimos.laws.models.policies import load_policy
from dokimos.laws.models.sklearn_trees import native_predict
from dokimos.laws.models.trees import read_trees
from dokimos.networks.semantics.replay import Replayer

Rows = NDArray[Any]
#: Numbers in one run of onnxruntime: large enough for its overhead not to count, small enough for caches.
_NUMBERS_PER_RUN = 2**18
_MIN_ROWS_PER_RUN = 256
_PICKLES = (".pkl", ".pickle")
_POLICY = ".zip"


@dataclass(frozen=True)
class Model:
    """`scores` gives what the model gives for each record of a batch, `decide` makes decisions of that."""

    name: str
    scores: Callable[[Rows], NDArray[Any]]
    decide: Callable[[NDArray[Any]], NDArray[Any]]
    sha256: str | None = None

    def predict(self, records: Rows) -> NDArray[Any]:
        """One decision for each record. Raises InputError where the model gives another number of them."""
        if len(records) == 0:
            return np.zeros(0, dtype=np.int64)
        decisions = np.asarray(self.decide(self.scores(records)))
        if decisions.shape != (len(records),):
            wanted = f"one decision for each of {len(records)} records"
            raise InputError(f"{self.name}: gives decisions of shape {decisions.shape}, not {wanted}.")
        return decisions.astype(object) if decisions.dtype.kind == "U" else decisions


def largest(scores: NDArray[Any]) -> NDArray[Any]:
    """The index of the largest score in each row; scores that are one number a row are the decisions.

    The first of equally large scores counts. A row with a nan has no largest: raises ValueError.
    """
    flat = scores.reshape(len(scores), -1)
    if flat.shape[1] == 1:
        return np.asarray(flat[:, 0])
    if flat.dtype.kind == "f" and np.isnan(flat).any():
        raise ValueError("it gives nan, which is no decision")
    return np.asarray(np.argmax(flat, axis=1))


def load_model(given: str | Path, domain: Domain | None, *, allow_code: bool = True) -> Model:
    """A model: NAME.onnx, NAME.json (trees), NAME.pkl, NAME.zip (a policy), FILE.py:NAME, MODULE:NAME.

    Or one of the models that the domain names. Only files that are no code where `allow_code` is false.
    Raises InputError.
    """
    text = str(given)
    if domain is not None and text in domain.models:
        made = call_domain(domain.models[text], domain, text)
        return as_model(made, domain, name=str(made) if isinstance(made, str | Path) else text)
    place, colon, name = text.rpartition(":")
    is_object = bool(colon) and name.isidentifier()
    path = Path(text)
    if not is_object and path.suffix not in (*_PICKLES, _POLICY):
        _expect_file(path, domain)
        if path.suffix == ".py":
            raise InputError(f"{path}: is a file of Python; name the model in it, as {path}:NAME.")
        return (_trees if path.suffix == ".json" else _onnx)(path, domain)
    if not allow_code:
        raise InputError(f"{text}: is Python code, which --no-code refuses to run.")
    if is_object:
        return as_model(_object(place, name), domain, name=text)
    if path.suffix == _POLICY:
        policy = load_policy(path)
        return as_model(policy, domain, name=text, sha256=hashlib.sha256(_content(path)).hexdigest())
    unpickled, content = read_pickle(path)
    return as_model(unpickled, domain, name=text, sha256=hashlib.sha256(content).hexdigest())


def read_pickle(path: Path) -> tuple[Any, bytes]:
    """What a pickle holds, and its content; opening it runs code. Raises UnreadableFile."""
    content = _content(path)
    try:
        return pickle.loads(content), content
    except Exception as problem:
        raise UnreadableFile(
            path, f"is no pickle of a model: {type(problem).__name__}: {problem}."
        ) from None


def _object(place: str, name: str) -> Any:
    if place.endswith(".py"):
        module = load_module(Path(place))
    else:
        try:
            module = importlib.import_module(place)
        except Exception as problem:
            reason = problem if isinstance(problem, ImportError) else f"{type(problem).__name__}: {problem}"
            raise InputError(f"{place}:{name}: cannot be imported: {reason}.") from None
    if not hasattr(module, name):
        raise InputError(f"{place}: has no {name}.")
    return getattr(module, name)


def _expect_file(path: Path, domain: Domain | None) -> None:
    """Where there is no such file, a name of a model of the domain may have been meant."""
    if domain is not None and domain.models and not path.exists() and path.suffix == "":
        named = ", ".join(domain.models)
        hint = did_you_mean(str(path), domain.models)
        raise InputError(f"{path}: there is no such file, and the domain's models are {named}{hint}.")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise UnreadableFile(path, f"cannot be read: {problem.strerror or problem}.") from None


def _onnx(path: Path, domain: Domain | None) -> Model:
    return onnx_model(_content(path), domain, name=str(path))


def _trees(path: Path, domain: Domain | None) -> Model:
    return tree_model(_content(path), domain, name=str(path))


def tree_model(content: bytes, domain: Domain | None, *, name: str) -> Model:
    """The model in the content of a file of trees. Raises InputError."""
    ensemble = read_trees(content, name=name)
    own = domain is not None and domain.decide is not None
    decide = _decide(domain) if own else ensemble.decide
    return Model(name, ensemble, decide, hashlib.sha256(content).hexdigest())


def onnx_model(content: bytes, domain: Domain | None, *, name: str) -> Model:
    """The model in the content of an ONNX file. Raises InputError."""
    labels = label_function(content, name=name)
    if labels is not None:
        return Model(name, labels, _decide(domain), hashlib.sha256(content).hexdigest())
    network = Replayer(content, name=name)
    rows_per_run = max(_MIN_ROWS_PER_RUN, _NUMBERS_PER_RUN // network.input_size)

    encode = _encode(domain)

    def scores(records: Rows) -> NDArray[np.float32]:
        rows = _numbers(encode(records), name).reshape(len(records), -1)
        return network(rows, rows_per_run=rows_per_run)

    return Model(name, scores, _decide(domain), hashlib.sha256(content).hexdigest())


def _numbers(records: Rows, name: str) -> NDArray[np.float32]:
    """Records as float32, the precision of the network's input."""
    try:
        return np.ascontiguousarray(records, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{name}: takes numbers, and these records are not made of numbers.") from None


def as_model(given: Any, domain: Domain | None, *, name: str, sha256: str | None = None) -> Model:
    """A Python object as a model. Raises InputError where it is none."""
    if isinstance(given, Model):
        return given
    if isinstance(given, str | Path):
        return load_model(given, domain)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.nn.Module):
        return Model(name, _torch_scores(torch, given, _encode(domain)), _decide(domain), sha256)
    native = native_predict(given)
    if native is not None:
        return Model(name, native, _decide(domain), sha256)
    if callable(getattr(given, "predict", None)):
        # A policy of stable-baselines3 draws its actions at random unless told otherwise.
        options = {"deterministic": True} if has_parameter(given.predict, "deterministic") else {}
        return Model(
            name, lambda records: _first(given.predict(records, **options)), _decide(domain), sha256
        )
    if not callable(given):
        raise InputError(f"{name}: is no model: it has no method `predict` and cannot be called.")
    if getattr(given, "batched", False):
        return Model(name, lambda records: np.asarray(given(records)), _decide(domain), sha256)
    return Model(name, lambda records: _each(given, records), _decide(domain), sha256)


def _each(function: Callable[[Any], Any], records: Sequence[Any] | Rows) -> NDArray[Any]:
    return np.asarray([function(record) for record in records])


def _first(answer: Any) -> NDArray[Any]:
    """What an estimator predicts; policies give their state as well, second."""
    return np.asarray(answer[0] if isinstance(answer, tuple) else answer)


def _torch_scores(
    torch: Any, module: Any, encode: Callable[[Rows], Rows]
) -> Callable[[Rows], NDArray[Any]]:
    def scores(records: Rows) -> NDArray[Any]:
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad():
                return np.asarray(module(torch.from_numpy(_numbers(encode(records), "the torch module"))))
        finally:
            module.train(was_training)

    return scores


def _encode(domain: Domain | None) -> Callable[[Rows], Rows]:
    return (lambda records: records) if domain is None or domain.encode is None else domain.encode


def _decide(domain: Domain | None) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return largest if domain is None or domain.decide is None else domain.decide
