"""Boosters of xgboost and lightgbm: the input they need, and the output that their objective implies."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.categories import is_booster
from dokimos.laws.models.class_scores import Rows, network_classes
from dokimos.laws.models.handing import handing
from dokimos.laws.models.model import Model, decision_of

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

    return Model(name, scores, decision_of(domain), sha256, network_classes(scores))


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
