"""The number behind a model's decisions: what "rises with income" is about, also for a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError, InputError
from dokimos.laws.models.estimators import fitted_names
from dokimos.laws.models.tested_model import Model, Rows, largest
from dokimos.laws.models.trees import Ensemble

#: How many rows a model is asked about to see what it gives.
_ASKED = 16


def score_models(model: Model, data: NDArray[Any]) -> Mapping[str, Model]:
    """By what the number is called, models that predict a number that the given one decides by.

    A regressor's prediction, or what its trees add up to before a link; of two classes, the score of the
    second; of more, of each; of several outputs, each. Raises InputError where it gives no numbers.
    """
    trees = model.made_of
    if isinstance(trees, Ensemble):
        labels = trees.classes or range(len(trees.base))
        if len(trees.base) == 1:
            return {"prediction" if not trees.link else "score": _of_trees(model, trees, 0)}
        first = 1 if len(trees.base) == 2 and not trees.is_vector else 0
        kind = "output" if trees.is_vector else "score of"
        return {
            f"{kind} {label}": _of_trees(model, trees, k) for k, label in list(enumerate(labels))[first:]
        }
    give = model.scores if model.class_scores is None else model.class_scores.scores
    try:
        shown = np.asarray(give(data[:_ASKED]))
    except DokimosError:
        raise
    except Exception as problem:
        raise InputError(f"{model.name}: it fails on the data: {problem}.") from None
    table = shown.reshape(len(shown), -1)
    if table.dtype.kind not in "biuf":
        raise InputError(f"{model.name}: it gives no numbers that could rise or fall.")
    count = table.shape[1]
    if count == 1:
        return {"prediction": _of_column(model, give, 0)}
    labels = () if model.class_scores is None else model.class_scores.labels
    first, kind = (1 if count == 2 else 0, "score of") if len(labels) == count else (0, "output")
    return {f"{kind} {k}": _of_column(model, give, k) for k in range(first, count)}


def _of_trees(model: Model, trees: Ensemble, column: int) -> Model:
    """What trees that were compared with the model add up to for one score."""
    own = trees.column(column).changed(link="")
    return Model(model.name, own, largest, model.sha256, made_of=own)


def _of_column(model: Model, give: Any, column: int) -> Model:
    def scores(records: Rows) -> NDArray[Any]:
        return np.asarray(give(records)).reshape(len(records), -1)[:, column]

    return replace(model, scores=scores, decide=largest, class_scores=None, original=None, margins=None)


# The monotone constraints that a model was fitted with


def constraints_of(given: Any, names: Sequence[str]) -> dict[str, int]:
    """By the name of a feature, 1 where a model was asked to rise with it, −1 to fall; empty if unknown.

    `names` are those of the model's inputs, in order.
    """
    for read in (_parameter, _of_lightgbm, _of_catboost):
        found = read(given)
        if found is not None:
            return {
                name: sign for name, sign in _by_name(found, fitted_names(given) or names).items() if sign
            }
    return {}


def _parameter(given: Any) -> Any:
    for name in ("monotonic_cst", "monotone_constraints"):
        found = getattr(given, name, None)
        if found is not None and not callable(found):
            return found
    parameters = given.get_params() if hasattr(given, "get_params") else {}
    return parameters.get("monotone_constraints") if isinstance(parameters, dict) else None


def _of_lightgbm(given: Any) -> Any:
    if not hasattr(given, "model_to_string"):
        return None
    for line in given.model_to_string(num_iteration=1).splitlines():
        if line.startswith("[monotone_constraints: ") and line != "[monotone_constraints: ]":
            return line.removeprefix("[monotone_constraints: ").rstrip("]")
    return None


def _of_catboost(given: Any) -> Any:
    found = given.get_all_params() if hasattr(given, "get_all_params") else {}
    return found.get("monotone_constraints")


def _by_name(given: Any, names: Sequence[str]) -> dict[str, int]:
    """Constraints as the libraries take them: signs in order, also as a text, or by name or number."""
    if isinstance(given, str):
        given = [int(each) for each in given.strip("()[] ").split(",") if each.strip()]
    if isinstance(given, Mapping):
        return {
            str(key) if str(key) in names else names[int(key)]: int(sign) for key, sign in given.items()
        }
    return {name: int(sign) for name, sign in zip(names, np.asarray(given).tolist(), strict=False)}
