"""Models from Python objects: torch modules, estimators and policies with `predict`, and callables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.functions import has_parameter
from dokimos.laws.models.boosters import booster_model
from dokimos.laws.models.class_scores import Rows, estimator_classes
from dokimos.laws.models.handing import handing, placed_trees, plain_columns
from dokimos.laws.models.model import Model, as_numbers, decision_of, encoding_of
from dokimos.laws.models.sklearn_trees import native_predict, read_sklearn


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

        trees = read_sklearn(given)
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
        )
    if not callable(given):
        raise InputError(f"{name}: this is not a model: it has no method `predict` and is not callable.")
    if getattr(given, "batched", False):
        return Model(name, lambda records: np.asarray(given(records)), decision_of(domain), sha256)
    return Model(name, lambda records: _each(given, records), decision_of(domain), sha256)


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
