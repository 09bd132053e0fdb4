"""Models from Python objects: torch modules, estimators and policies with `predict`, and callables."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.functions import has_parameter
from dokimos.laws.models.boosted import margins_of, read_lightgbm, read_xgboost
from dokimos.laws.models.estimators import (
    fitted_names,
    handing,
    is_booster,
    native_predict,
    placed_trees,
    plain_columns,
    read_sklearn,
)
from dokimos.laws.models.tested_model import (
    Model,
    Rows,
    as_numbers,
    decision_of,
    encoding_of,
    estimator_classes,
    network_classes,
)
from dokimos.laws.models.trees import Ensemble

# Boosters of xgboost and lightgbm: the input they need, and the output that their objective implies


#: Objectives whose only prediction is the probability of the second of two classes.
_PROBABILITIES = ("binary:logistic", "binary")


def booster_model(given: Any, domain: Domain | None, *, name: str, sha256: str | None) -> Model | None:
    """A Booster as a model; None if the object is not one. Raises InputError.

    If it predicts the probability of one of two classes, the decision is the likelier class.
    """
    if is_booster(given, "xgboost"):
        predict, objective = _of_xgboost(given)
    elif is_booster(given, "lightgbm"):
        predict, objective = given.predict, _lightgbm_objective(given)
    else:
        return None
    hand = handing(given, domain, name=name)

    def scores(records: Rows) -> NDArray[Any]:
        found = np.asarray(predict(hand(records)))
        if objective in _PROBABILITIES:
            return np.stack([1 - found, found], axis=1)
        return found.astype(np.int64) if objective == "multi:softmax" else found

    found = Model(name, scores, decision_of(domain), sha256, network_classes(scores))
    trees = _booster_trees(given, fitted_names(given))
    columns = None if trees is None else plain_columns(trees.names, domain, name=name)
    if trees is None or columns is None:
        return found
    return replace(
        found,
        made_of=placed_trees(trees, columns, domain),
        original=found.predict,
        margins=margins_of(given, hand),
    )


def _of_xgboost(booster: Any) -> tuple[Callable[[Any], Any], str]:
    """The function that predicts rows, which xgboost needs in its own matrix type, and the objective."""
    package = sys.modules["xgboost"]
    names = booster.feature_names

    def predict(rows: Any) -> Any:
        is_table = hasattr(rows, "columns")
        options = {"enable_categorical": True} if is_table else {"feature_names": names}
        return booster.predict(package.DMatrix(rows, **options))

    return predict, str(json.loads(booster.save_config())["learner"]["objective"]["name"])


def _lightgbm_objective(booster: Any) -> str:
    found = re.search(r"^objective=(\w+)", booster.model_to_string(num_iteration=1), re.MULTILINE)
    return found[1] if found else ""


def object_model(given: Any, domain: Domain | None, *, name: str, sha256: str | None = None) -> Model:
    """A Python object as a model. Raises InputError if it is not one.

    A callable takes one record, or a batch if its attribute `batched` is true.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.nn.Module):
        return Model(name, _torch_scores(torch, given, encoding_of(domain)), decision_of(domain), sha256)
    booster = booster_model(given, domain, name=name, sha256=sha256)
    if booster is not None:
        return booster
    if callable(getattr(given, "predict", None)):
        # A policy of stable-baselines3 draws its actions at random unless asked not to.
        options = {"deterministic": True} if has_parameter(given.predict, "deterministic") else {}
        hand = handing(given, domain, name=name)
        classes = estimator_classes(given, hand)

        def predict(records: Rows) -> NDArray[Any]:
            return _first(given.predict(hand(records), **options))

        booster = _classifier_booster(given)
        trees = read_sklearn(given) if booster is None else _booster_trees(booster, fitted_names(given))
        columns = None if trees is None else plain_columns(trees.names, domain, name=name)
        if trees is None or columns is None:
            return Model(name, predict, decision_of(domain), sha256, classes)
        return Model(
            name,
            native_predict(trees, columns, predict),
            decision_of(domain),
            sha256,
            classes,
            made_of=placed_trees(trees, columns, domain),
            original=predict,
            margins=None if booster is None else margins_of(booster, hand),
        )
    if not callable(given):
        raise InputError(f"{name}: this is not a model: it has no method `predict` and is not callable.")
    if getattr(given, "batched", False):
        return Model(name, lambda records: np.asarray(given(records)), decision_of(domain), sha256)
    return Model(name, lambda records: _each(given, records), decision_of(domain), sha256)


def _classifier_booster(given: Any) -> Any:
    """The Booster of a fitted classifier of xgboost or lightgbm for the classes 0 and 1."""
    if np.asarray(getattr(given, "classes_", ())).tolist() != [0, 1]:
        return None
    if type(given).__name__ == "XGBClassifier" and not given.early_stopping_rounds:
        return given.get_booster()
    return given.booster_ if type(given).__name__ == "LGBMClassifier" else None


def _booster_trees(booster: Any, names: list[str]) -> Ensemble | None:
    read = read_xgboost if is_booster(booster, "xgboost") else read_lightgbm
    return read(booster, names=names)


def _each(function: Callable[[Any], Any], records: Sequence[Any] | Rows) -> NDArray[Any]:
    return np.asarray([function(record) for record in records])


def _first(answer: Any) -> NDArray[Any]:
    """The prediction of an estimator; policies return their state as well, as a second value."""
    return np.asarray(answer[0] if isinstance(answer, tuple) else answer)


def _torch_scores(
    torch: Any, module: Any, encode: Callable[[Rows], Rows]
) -> Callable[[Rows], NDArray[Any]]:
    def scores(records: Rows) -> NDArray[Any]:
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad():
                return np.asarray(module(torch.from_numpy(as_numbers(encode(records), "the torch module"))))
        finally:
            module.train(was_training)

    return scores
