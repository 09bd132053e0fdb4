"""Boosters of xgboost: they take matrices of their own, and say in their configuration what they give."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.class_scores import Rows, network_classes
from dokimos.laws.models.handing import handing
from dokimos.laws.models.model import Model, decision_of


def booster_model(given: Any, domain: Domain | None, *, name: str, sha256: str | None) -> Model | None:
    """A Booster of xgboost as a model; None where it is none. Raises InputError.

    Where it predicts the probability of one of two classes, the decision is the likelier class.
    """
    kind = type(given)
    if kind.__name__ != "Booster" or kind.__module__.partition(".")[0] != "xgboost":
        return None
    package = sys.modules[kind.__module__.partition(".")[0]]
    names = given.feature_names
    hand = handing(_Fitted(names or ()), domain, name=name)
    objective = json.loads(given.save_config())["learner"]["objective"]["name"]

    def scores(records: Rows) -> NDArray[Any]:
        rows = hand(records)
        is_table = hasattr(rows, "columns")
        options = {"enable_categorical": True} if is_table else {"feature_names": names}
        found = np.asarray(given.predict(package.DMatrix(rows, **options)))
        if objective == "binary:logistic":
            return np.stack([1 - found, found], axis=1)
        return found.astype(np.int64) if objective == "multi:softmax" else found

    return Model(name, scores, decision_of(domain), sha256, network_classes(scores))


class _Fitted:
    """What `handing` asks an estimator: the columns that it was fitted on."""

    def __init__(self, names: Any) -> None:
        self.feature_names_in_ = names
