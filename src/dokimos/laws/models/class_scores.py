"""A model's numbers for each class: `score(x, class)` and `proba(x, class)` in laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError

Rows = NDArray[Any]

#: How far the sum of a row of probabilities may be from 1: they are computed in single precision.
_CLOSE = 1e-3


@dataclass(frozen=True)
class ClassScores:
    """`scores` gives a row of numbers for each record of a batch, one for each class.

    `probabilities` gives them as probabilities; it is None if the model has none. `labels` are the
    decisions that the numbers belong to; if it is empty, they are 0, 1, …
    """

    scores: Callable[[Rows], NDArray[Any]]
    probabilities: Callable[[Rows], NDArray[Any]] | None
    labels: tuple[Any, ...] = ()

    def of(self, records: Rows, wanted: Rows, names: Sequence[str], *, kind: str) -> NDArray[np.float64]:
        """The score of the wanted class for each record; if `kind` is proba, its probability.

        A class is given by its label, by its index, or by its name among `names`, which are in the order of
        the labels. Raises InputError if there is no such class or there are no such numbers; ValueError if
        one is nan.
        """
        give = self.probabilities if kind == "proba" else self.scores
        if give is None:
            raise InputError("the model gives no probabilities; use score(x, class)")
        given = np.asarray(give(records))
        if given.dtype.kind not in "biuf":
            raise InputError(f"the model gives no scores for classes, so there is no {kind}")
        table = given.reshape(len(records), -1).astype(np.float64)
        columns = {value: self._column(value, names, table.shape[1]) for value in set(wanted.tolist())}
        places = np.array([columns[value] for value in wanted.tolist()], dtype=np.int64)
        found = np.asarray(table[np.arange(len(records)), places])
        if np.isnan(found).any():
            raise ValueError("it gives nan, which is not a score")
        return found

    def _column(self, wanted: Any, names: Sequence[str], width: int) -> int:
        if wanted in self.labels:
            return self.labels.index(wanted)
        if isinstance(wanted, str) and wanted in names and names.index(wanted) < width:
            return list(names).index(wanted)
        is_number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
        if not self.labels and is_number and wanted in range(width):
            return int(wanted)
        known = self.labels or (tuple(names) if len(names) == width else tuple(range(width)))
        raise InputError(f"the model has no class {wanted!r}; it has {', '.join(map(str, known[:10]))}")


def network_classes(scores: Callable[[Rows], NDArray[Any]], labels: Sequence[Any] = ()) -> ClassScores:
    """The class scores of a model that gives a row of numbers for each record.

    Rows that are not already probabilities (none negative, sum 1) are passed through softmax; a single
    number has none.
    """

    def probabilities(records: Rows) -> NDArray[Any]:
        given = np.asarray(scores(records))
        table = given.reshape(len(records), -1)
        if table.shape[1] < 2 or table.dtype.kind not in "biuf":
            raise InputError("the model gives one number for each record, so there is no proba")
        table = table.astype(np.float64)
        known = (table >= 0).all(axis=1) & (np.abs(table.sum(axis=1) - 1) <= _CLOSE)
        return np.where(known[:, None], table, _softmax(table))

    return ClassScores(scores, probabilities, tuple(labels))


def _softmax(table: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(table - table.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def estimator_classes(estimator: Any, hand: Callable[[Rows], Any]) -> ClassScores:
    """The class scores of a scikit-learn-like estimator; `hand` turns records into its input.

    The score is its `decision_function` if it has one, else its `predict_proba`, else its prediction.
    """
    proba = getattr(estimator, "predict_proba", None)
    decision = getattr(estimator, "decision_function", None)

    def probabilities(records: Rows) -> NDArray[Any]:
        return np.asarray(proba(hand(records)))  # type: ignore[misc]

    def scores(records: Rows) -> NDArray[Any]:
        if decision is None:
            return np.asarray((proba or estimator.predict)(hand(records)))
        found = np.asarray(decision(hand(records)))
        return np.stack([-found, found], axis=1) if found.ndim == 1 and len(labels) == 2 else found

    known = getattr(estimator, "classes_", ())
    labels = tuple(np.asarray(known).tolist()) if np.ndim(known) == 1 else ()
    return ClassScores(scores, None if proba is None else probabilities, labels)
