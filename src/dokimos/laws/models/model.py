"""The model under test: records in, one decision for each out, in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.class_scores import ClassScores, Rows, network_classes
from dokimos.laws.models.trees import Ensemble


@dataclass(frozen=True)
class Model:
    """`scores` gives what the model gives for each record of a batch, `decide` makes decisions of that."""

    name: str
    scores: Callable[[Rows], NDArray[Any]]
    decide: Callable[[NDArray[Any]], NDArray[Any]]
    sha256: str | None = None
    class_scores: ClassScores | None = None
    #: Which neurons each record of a batch activates, where that can be seen; made when first asked for.
    find_neurons: Callable[[], Callable[[Rows], NDArray[np.bool_]] | None] | None = None
    #: The trees, or the content of the ONNX file, that records go to column by column; None for anything
    #: else.
    made_of: Ensemble | bytes | None = None

    @cached_property
    def neurons(self) -> Callable[[Rows], NDArray[np.bool_]] | None:
        """Which neurons each record of a batch activates; None where that cannot be seen."""
        return None if self.find_neurons is None else self.find_neurons()

    @property
    def classes(self) -> ClassScores:
        """What it gives for each class: unless it is known better, what it gives for each record."""
        return self.class_scores or network_classes(self.scores)

    def predict(self, records: Rows) -> NDArray[Any]:
        """One decision for each record. Raises InputError if the model gives another number of them."""
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
        raise ValueError("it gives nan, which is not a decision")
    return np.asarray(np.argmax(flat, axis=1))


def encoding_of(domain: Domain | None) -> Callable[[Rows], Rows]:
    """What makes of records the numbers that a network sees: the domain's `encode`, or the records."""
    return (lambda records: records) if domain is None or domain.encode is None else domain.encode


def encoded(function: Callable[[Rows], Any], encode: Callable[[Rows], Rows]) -> Callable[[Rows], Any]:
    """A function of what a network sees as one of records."""
    return lambda records: function(np.asarray(encode(records)))


def decision_of(domain: Domain | None) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """What makes decisions of scores: the domain's `decide`, or the largest."""
    return largest if domain is None or domain.decide is None else domain.decide


def as_numbers(records: Rows, name: str) -> NDArray[np.float32]:
    """Records as float32, the precision of a network's input. Raises InputError."""
    try:
        return np.ascontiguousarray(records, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{name}: takes numbers, and these records are not made of numbers.") from None
