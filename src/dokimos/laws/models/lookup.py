"""Finds the model: a file, an object in a module, one that the domain names, or the object itself.

ONNX networks and classifiers, decision trees and ensembles of them, scikit-learn-like estimators and
policies (anything with `predict`), torch modules, and any callable.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from pathlib import Path
from typing import Any

from dokimos.core.errors import InputError
from dokimos.core.files import read_whole
from dokimos.core.readable import did_you_mean
from dokimos.laws.domain.definition import Domain, call_domain
from dokimos.laws.domain.functions import load_module
from dokimos.laws.models.model_files import (
    JOBLIB,
    LIGHTGBM,
    LIGHTGBM_HEAD,
    catboost_model,
    in_python,
    lightgbm_model,
    onnx_model,
    read_pickle,
    tree_model,
    xgboost_model,
)
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.tested_model import Model

_PICKLES = (".pkl", ".pickle", JOBLIB)
#: Files of other packages, and how to load them in a Python file.
_ELSEWHERE = {
    ".txt": LIGHTGBM,
    ".pt": in_python("torch", "torch.jit.load(…), or the module with its weights"),
    ".pth": in_python("torch", "the module with its weights"),
    ".safetensors": in_python("torch", "the module with its weights"),
    ".zip": in_python("stable-baselines3", "PPO.load(…)"),
    ".h5": in_python("keras", "keras.models.load_model(…)"),
    ".keras": in_python("keras", "keras.models.load_model(…)"),
}


#: Files that the library that wrote them reads.
_LIBRARIES = {".ubj": xgboost_model, ".bst": xgboost_model, ".cbm": catboost_model}


def load_model(given: str | Path, domain: Domain | None, *, allow_code: bool = True) -> Model:
    """A model: NAME.onnx, NAME.json (trees), NAME.pkl, FILE.py:NAME, MODULE:NAME.

    Or one of the models that the domain names. If `allow_code` is false, only files that are not code are
    loaded. Raises InputError.
    """
    text = str(given)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        raise InputError(f"{text}: is an address; fetch the file, and give its path.")
    if domain is not None and text in domain.models:
        made = call_domain(domain.models[text], domain, text)
        return as_model(made, domain, name=str(made) if isinstance(made, str | Path) else text)
    place, name = _object_named(text)
    path = Path(text)
    if not is_code(text):
        _expect_file(path, domain)
        if path.suffix == ".py":
            raise InputError(f"{path}: this is a Python file; name the model in it, as {path}:NAME.")
        content = read_whole(path)
        if path.suffix == ".txt" and content.startswith(LIGHTGBM_HEAD):
            return lightgbm_model(content, domain, name=str(path))
        if path.suffix in _LIBRARIES:
            return _LIBRARIES[path.suffix](content, domain, name=str(path))
        if path.suffix in _ELSEWHERE:
            raise InputError(f"{path}: by its name, this is a model of {_ELSEWHERE[path.suffix]}.")
        read = tree_model if path.suffix == ".json" else onnx_model
        return read(content, domain, name=str(path))
    if not allow_code:
        raise InputError(f"{text}: this is Python code, which `allow_code=False` refuses to run.")
    if name:
        return object_model(_object(place, name), domain, name=text)
    unpickled, content = read_pickle(path)
    return object_model(unpickled, domain, name=text, sha256=hashlib.sha256(content).hexdigest())


def is_code(given: str) -> bool:
    """Whether loading this model runs Python: an object in a module or file, or a pickle."""
    return bool(_object_named(given)[1]) or Path(given).suffix in _PICKLES


def _object_named(given: str) -> tuple[str, str]:
    """FILE.py or MODULE, and NAME, if a model is written that way; otherwise None."""
    place, colon, name = given.rpartition(":")
    return (place, name) if colon and name.isidentifier() else ("", "")


def as_model(given: Any, domain: Domain | None, *, name: str) -> Model:
    """Anything given as a model: a Model, a path or a name, or an object. Raises InputError."""
    if isinstance(given, Model):
        return given
    if isinstance(given, str | Path):
        return load_model(given, domain)
    return object_model(given, domain, name=name)


def given_model(given: Any, domain: Domain | None, *, allow_code: bool = True) -> Any:
    """The model that is named, or the object itself; None stays None. Raises InputError."""
    return load_model(given, domain, allow_code=allow_code) if isinstance(given, str | Path) else given


def as_domain_model(given: Any, domain: Domain) -> Model:
    """The given model, or the domain's own if none is given. Raises InputError."""
    if given is None:
        if domain.model is None:
            raise InputError(f"Give a model to test: the domain {domain.name} has none of its own.")
        own = call_domain(domain.model, domain, "model")
        return as_model(
            own, domain, name=str(own) if isinstance(own, str | Path) else f"the model of {domain.name}"
        )
    name = str(given) if isinstance(given, str | Path) else getattr(given, "name", type(given).__name__)
    return as_model(given, domain, name=str(name))


def _object(place: str, name: str) -> Any:
    if place.endswith(".py"):
        module = load_module(Path(place), beside=True)
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
    """Raise InputError if there is no such file; perhaps one of the domain's models was meant."""
    if domain is not None and domain.models and not path.exists() and path.suffix == "":
        named = ", ".join(domain.models)
        hint = did_you_mean(str(path), domain.models)
        raise InputError(f"{path}: there is no such file, and the domain's models are {named}{hint}.")
