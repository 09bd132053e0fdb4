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
from dokimos.laws.domain.features import Layout
from dokimos.laws.domain.functions import has_parameter
from dokimos.laws.models.boosted import categories_of, margins_of, placed_categories, read_booster
from dokimos.laws.models.category_splits import of_scikit
from dokimos.laws.models.estimators import (
    fitted_names,
    handing,
    input_slots,
    is_booster,
    placed_trees,
    plain_columns,
)
from dokimos.laws.models.layers import AFFINE, Layers, exported, layers_of, link_of, of_records, written
from dokimos.laws.models.pipelines import Made, made_of, trees_of_records
from dokimos.laws.models.scikit import native_predict, read_scikit
from dokimos.laws.models.tested_model import (
    Model,
    Rows,
    as_numbers,
    decision_of,
    encoding_of,
    estimator_classes,
    network_classes,
)
from dokimos.laws.models.trees import Damaged, Ensemble, NotRead

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
    return _with_trees(found, given, hand, domain)


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
    return replace(_object_model(given, domain, name, sha256), source=given)


def _object_model(given: Any, domain: Domain | None, name: str, sha256: str | None) -> Model:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.nn.Module):
        found = Model(name, _torch_scores(torch, given, encoding_of(domain)), decision_of(domain), sha256)
        return _as_network(found, lambda layout: exported(given, layout.width), domain)
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

        return _with_trees(Model(name, predict, decision_of(domain), sha256, classes), given, hand, domain)
    if not callable(given):
        raise InputError(f"{name}: this is not a model: it has no method `predict` and is not callable.")
    if getattr(given, "batched", False):
        return Model(name, lambda records: np.asarray(given(records)), decision_of(domain), sha256)
    return Model(name, lambda records: _each(given, records), decision_of(domain), sha256)


def _with_trees(model: Model, given: Any, hand: Callable[[Rows], Any], domain: Domain | None) -> Model:
    """The model with its trees, where it consists of such; otherwise with the reason why not."""
    booster = _booster_of(given)
    steps = given.steps if type(given).__name__ == "Pipeline" and hasattr(given, "steps") else []
    last = steps[-1][1] if steps else given
    if booster is None and (hasattr(last, "coefs_") or getattr(last, "coef_", None) is not None):
        return _as_network(
            model, lambda layout: written(_layers(given, last, hand, layout), link_of(last)), domain
        )
    try:
        if steps:
            return replace(model, made_of=_behind(given, hand, domain), original=model.answers)
        trees, stages = _trees(given, booster)
        placed = _of_categories(given, trees, booster, hand, domain)
    except Damaged as problem:
        raise InputError(f"{model.name}: is damaged: {problem}.") from None
    except NotRead as reason:
        return replace(model, unread=str(reason))
    if placed is not None:
        margins = (
            None if booster is None else margins_of(booster, hand, stages, in_place=booster is not given)
        )
        return replace(model, made_of=placed, original=model.answers, margins=margins)
    columns = plain_columns(trees.names, domain, name=model.name)
    if columns is None:
        return replace(model, unread="one of its columns holds strings; encode them in a Pipeline")
    return replace(
        model,
        scores=native_predict(trees, columns, model.scores) if booster is None else model.scores,
        made_of=placed_trees(trees, columns, domain),
        original=model.answers,
        margins=None
        if booster is None
        else margins_of(booster, hand, stages, in_place=booster is not given),
    )


def _of_categories(
    given: Any, trees: Ensemble, booster: Any, hand: Callable[[Rows], Any], domain: Domain | None
) -> Ensemble | None:
    """Trees with splits by categories as trees of records; None for trees without. Raises NotRead."""
    is_encoded = getattr(given, "_preprocessor", None) is not None
    names = {} if booster is None else categories_of(booster)
    if not is_encoded and not names:
        return None
    layout = None if domain is None else domain.layout
    if layout is None:
        raise NotRead("its categories are known only with a domain that has FEATURES")
    slots = input_slots(given, layout)
    if is_encoded:
        return of_scikit(given, trees, slots, layout, hand)
    return placed_categories(booster, trees, slots, layout, hand)


def _as_network(model: Model, make: Callable[[Layout], bytes], domain: Domain | None) -> Model:
    """The model with the network that it is, of the records of its domain, or the reason why not."""
    layout = None if domain is None else domain.layout
    if layout is None or (domain is not None and domain.encode is not None):
        return model
    try:
        return replace(model, made_of=make(layout))
    except NotRead as reason:
        return replace(model, unread=str(reason))


def _layers(given: Any, last: Any, hand: Callable[[Rows], Any], layout: Layout) -> Layers:
    """The layers of a linear model or a perceptron, also at the end of a Pipeline. Raises NotRead."""
    layers, slots = layers_of(last), input_slots(given, layout)
    before = given[:-1] if given is not last and len(given.steps) > 1 else None
    made = [Made(k) for k in range(len(slots))]
    if before is not None:
        made = made_of(before, made, AFFINE)
    if len(made) != layers[0][0].shape[1]:
        raise NotRead("the transformers make another number of columns than the model takes")

    return of_records(layers, made, slots, layout, _transforming(before, hand))


def _behind(pipeline: Any, hand: Callable[[Rows], Any], domain: Domain | None) -> Ensemble:
    """The trees at the end of a Pipeline, as trees of records. Raises NotRead."""
    layout = None if domain is None else domain.layout
    if layout is None:
        raise NotRead("what a Pipeline takes is known only with a domain that has FEATURES")
    last = pipeline.steps[-1][1]
    booster = _booster_of(last)
    trees, _ = _trees(last, booster)
    if getattr(last, "_preprocessor", None) is not None or (booster is not None and categories_of(booster)):
        raise NotRead("its splits are sets of categories; encode them as columns of 0 and 1")
    slots = input_slots(pipeline, layout)
    before = pipeline[:-1]
    made = made_of(before, [Made(k) for k in range(len(slots))])
    steps = before if len(pipeline.steps) > 1 else None
    return trees_of_records(trees, made, slots, layout, _transforming(steps, hand))


def _transforming(before: Any, hand: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
    """What turns records into the input of the last step of a Pipeline. Raises NotRead where it fails."""

    def transform(records: Rows) -> Any:
        try:
            return hand(records) if before is None else before.transform(hand(records))
        except Exception as problem:  # whatever a transformer raises
            said = " ".join(str(problem).split())[:150]
            raise NotRead(f"its transformers do not take every record: {said}") from None

    return transform


def _booster_of(given: Any) -> Any:
    """The Booster of an estimator of xgboost or lightgbm, or a model of catboost; None for any other."""
    library = type(given).__module__.partition(".")[0]
    if library == "xgboost" and hasattr(given, "get_booster"):
        return given.get_booster()
    if library == "lightgbm" and hasattr(given, "booster_"):
        return given.booster_
    is_own = is_booster(given, "xgboost") or is_booster(given, "lightgbm")
    return given if is_own or (library == "catboost" and hasattr(given, "save_model")) else None


def _trees(given: Any, booster: Any) -> tuple[Ensemble, int | None]:
    """The trees of a model, and how many stages of them count (None: all). Raises NotRead."""
    if booster is None:
        return read_scikit(given), None
    absent = getattr(given, "missing", None)
    if absent is not None and absent == absent:
        raise NotRead(f"it takes {absent!r} for a missing value; give missing values as nan")
    names = fitted_names(given)
    if not is_booster(booster, "xgboost"):
        trees, stages = read_booster(booster, names=names), None
    else:
        stages = given.best_iteration + 1 if getattr(given, "early_stopping_rounds", None) else None
        trees = read_booster(booster, names=names, stages=stages, in_place=booster is not given)
    classes = np.asarray(getattr(given, "classes_", ())).tolist() if len(trees.base) > 1 else []
    return (trees if classes in ([], list(range(len(classes)))) else trees.changed(classes=classes)), stages


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
