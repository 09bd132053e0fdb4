"""The model under test: it takes a batch of records and gives one decision for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.core.readable import did_you_mean
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.trees import Ensemble

# A model's numbers for each class: `score(x, class)` and `proba(x, class)` in laws


Rows = NDArray[Any]

#: How far the sum of a row of probabilities may be from 1: they are computed in single precision.
_CLOSE = 1e-3
_HOW = "say in the domain how to decide"


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
        if wanted not in self.labels and type(wanted) is int and 0 <= wanted < len(names):
            wanted = names[wanted] if names[wanted] in self.labels else wanted
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


@dataclass(frozen=True)
class Model:
    """`scores` gives the model's output for each record of a batch; `decide` turns that into decisions."""

    name: str
    scores: Callable[[Rows], NDArray[Any]]
    decide: Callable[[NDArray[Any]], NDArray[Any]]
    sha256: str | None = None
    class_scores: ClassScores | None = None
    #: The trees, or the content of the ONNX file, that take records column by column; None for anything
    #: else.
    made_of: Ensemble | bytes | None = None
    #: What `made_of` was read from, which makes one prediction for each record; None for a file's own form.
    original: Callable[[Rows], NDArray[Any]] | None = None
    #: The last scores of each record as the library that `made_of` was read from has them, if it says so.
    margins: Callable[[Rows], NDArray[Any]] | None = None
    #: The Python object that it was made of, if any.
    source: Any = None
    #: Why `made_of` is None, and what can be done, where that is known.
    unread: str = ""

    @property
    def is_network(self) -> bool:
        """Whether its output is that of the ONNX network that it is made of, not decisions made of it."""
        return isinstance(self.made_of, bytes) and (
            self.source is None or hasattr(self.source, "state_dict")
        )

    def answers(self, records: Rows) -> NDArray[Any]:
        """What it says of each record itself, before a domain decides: a label, a number, or a class."""
        return largest(np.asarray(self.scores(records)))

    @property
    def classes(self) -> ClassScores:
        """Its numbers for each class: by default, its output for each record."""
        return self.class_scores or network_classes(self.scores)

    def predict(self, records: Rows) -> NDArray[Any]:
        """One decision for each record. Raises InputError if the model gives more or fewer."""
        if len(records) == 0:
            return np.zeros(0, dtype=np.int64)
        decisions = np.asarray(self.decide(self.scores(records)))
        if decisions.shape != (len(records),):
            wanted = f"one decision for each of {len(records)} records"
            raise InputError(f"{self.name}: it gives decisions of shape {decisions.shape}, not {wanted}.")
        return decisions.astype(object) if decisions.dtype.kind == "U" else decisions


def largest(scores: NDArray[Any]) -> NDArray[Any]:
    """The index of the largest score in each row; if there is one number per row, it is the decision.

    The first of equally large scores counts. Raises ValueError for a row with nan, which has no largest
    score.
    """
    flat = scores.reshape(len(scores), -1)
    if flat.shape[1] == 1:
        return np.asarray(flat[:, 0])
    if flat.dtype.kind == "f" and np.isnan(flat).any():
        raise ValueError("it gives nan, which is not a decision")
    return np.asarray(np.argmax(flat, axis=1))


def encoding_of(domain: Domain | None) -> Callable[[Rows], Rows]:
    """The function that turns records into a network's input: the domain's `encode`, or the identity."""
    return (lambda records: records) if domain is None or domain.encode is None else domain.encode


def encoded(function: Callable[[Rows], Any], encode: Callable[[Rows], Rows]) -> Callable[[Rows], Any]:
    """A function of a network's input as a function of records."""
    return lambda records: function(np.asarray(encode(records)))


def decision_of(domain: Domain | None) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """The function that turns scores into decisions: the domain's `decide`, or the index of the largest.

    Where the domain declares CLASSES, and has no `decide`, the name of one is its index (`decided_labels`),
    and a number that is none of them raises InputError.
    """
    if domain is None or (domain.decide is None and len(domain.classes) < 2):
        return largest
    if domain.decide is not None:
        return domain.decide

    def decide(scores: NDArray[Any]) -> NDArray[Any]:
        decisions = largest(scores)
        return decisions if scores.size > len(scores) else _among_classes(decisions, domain)

    return decide


def _among_classes(decisions: NDArray[Any], domain: Domain) -> NDArray[Any]:
    if decisions.dtype.kind != "f":
        return np.array(decided_labels(decisions.tolist(), domain))
    between = decisions[np.isfinite(decisions) & (np.floor(decisions) != decisions)]
    if len(between) == 0:
        return decisions
    kind = "probability" if ((between > 0) & (between < 1)).all() else "score"
    raise InputError(
        f"Domain {domain.name}: the model gives one number for each record, such as {between[0]:g}: a "
        f"{kind}, not one of its {len(domain.classes)} CLASSES; {_HOW}, for example `decide = above(0.5)`, "
        "with `from dokimos.laws import above`."
    )


def decided_labels(labels: Sequence[Any], domain: Domain | None) -> list[Any]:
    """The decisions that a model's labels stand for: their places among CLASSES, where they are names.

    So it is unless the domain decides by its own code. Raises InputError for a name that is none of them,
    and for an integer that is the name of one and the place of another.
    """
    if domain is None or domain.decide is not None or len(domain.classes) < 2:
        return list(labels)
    places = {name: place for place, name in enumerate(domain.classes)}
    for each in dict.fromkeys(labels):
        about = f"Domain {domain.name}: the model answers {each!r}, which is"
        if isinstance(each, str) and each not in places:
            hint = did_you_mean(each, places)
            raise InputError(f"{about} not one of its CLASSES, {', '.join(domain.classes[:10])}{hint}.")
        if type(each) is int and places.get(str(each), each) != each:
            raise InputError(f"{about} the name of one of its CLASSES and the place of another; {_HOW}.")
    return [places[each] if isinstance(each, str) else each for each in labels]


def as_numbers(records: Rows, name: str) -> NDArray[np.float32]:
    """Records as float32, the precision of a network's input. Raises InputError."""
    try:
        return np.ascontiguousarray(records, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{name}: it takes numbers, but these records are not made of numbers.") from None
