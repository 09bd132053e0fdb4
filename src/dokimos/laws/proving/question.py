"""The question about a model: is there a case in a set in which its decisions violate a law?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import (
    Cover,
    Cut,
    ForbiddenDecisions,
    Formula,
    Number,
    Quantity,
    Zone,
)
from dokimos.checker.trees.covers import left_uncut
from dokimos.checker.trees.leaves import ForbiddenScores
from dokimos.core.errors import InvalidProof
from dokimos.laws.domain.features import Kind, Layout

#: A case: a number for each variable.
ExactCase = tuple[Number, ...]
#: Whether a case certainly violates the law.
Confirms = Callable[[ExactCase], bool]
#: What of a model violates the law, and in which part of the set.
Forbidden = ForbiddenDecisions | ForbiddenScores


@dataclass(frozen=True)
class CaseVariable:
    """A number that differs between cases: a feature of an input, a draw, or a feature that a law sets."""

    name: str
    is_choice: bool = False


@dataclass(frozen=True)
class PredictedRecord:
    """A record that the model decides on: the value of each feature, by its place in the layout.

    That of a choice is the index of what is chosen. Each is a number, or a variable of the question, and
    may be missing in some cases.
    """

    name: str
    features: tuple[Quantity, ...]


@dataclass(frozen=True)
class LawQuestion:
    """Is there a case in `zone` that satisfies `conditions`, in which the model's decisions are forbidden?

    The law is violated in the set iff there is. `inputs` and `draws` give what a run of the law needs to
    repeat a case: the features of every input, and what each random call gives. `over` says in words which
    set of cases this is about.
    """

    law: str
    layout: Layout
    variables: tuple[CaseVariable, ...]
    zone: Zone
    conditions: tuple[Formula, ...]
    records: tuple[PredictedRecord, ...]
    #: Classes; or, where the model's decisions are numbers, its only score.
    forbidden: tuple[Forbidden, ...]
    inputs: tuple[PredictedRecord, ...]
    draws: tuple[Quantity, ...]
    over: str

    @property
    def is_of_numbers(self) -> bool:
        """Whether numbers are forbidden, not classes."""
        return any(isinstance(each, ForbiddenScores) for each in self.forbidden)

    def rules_out(self, zone: Zone) -> bool:
        """Whether a condition is false in all cases of a zone."""
        return zone.is_empty or any(each.over(zone) is False for each in self.conditions)

    def admits(self, case: Sequence[Number]) -> bool:
        """Whether a case is one of the set."""
        return case in self.zone and all(each.holds(case) for each in self.conditions)

    def is_violated(self, case: Sequence[Number], classes: Sequence[int]) -> bool:
        """Whether these decisions violate the law in a case of the set."""
        return self.admits(case) and any(
            isinstance(each, ForbiddenDecisions)
            and each.classes == tuple(classes)
            and each.where.holds(case)
            for each in self.forbidden
        )

    def columns(self, record: PredictedRecord, case: Sequence[Number]) -> NDArray[Any]:
        """A record as the model takes it: one double for each column."""
        made = np.zeros(self.layout.width)
        for slot, feature in zip(self.layout.slots, record.features, strict=True):
            value = feature.at(case)
            if feature.is_missing(case):
                made[slot.start] = np.nan
            elif slot.feature.kind is not Kind.CHOICE:
                made[slot.start] = float(value)
            elif value >= 0:
                made[slot.start + int(value)] = 1.0
        return made

    def exact_columns(self, record: PredictedRecord, case: Sequence[Number]) -> list[Number]:
        """A record as the model takes it, without rounding."""
        made: list[Number] = [0] * self.layout.width
        for slot, feature in zip(self.layout.slots, record.features, strict=True):
            value = feature.at(case)
            if slot.feature.kind is not Kind.CHOICE:
                made[slot.start] = value
            elif value >= 0:
                made[slot.start + int(value)] = 1
        return made


# Certificates that a law holds in a set: the set is cut into zones, none of which has a violation


@dataclass(frozen=True)
class LinearCover:
    """The data of a proof of the kind `linear` about copies of a network (see `copies`)."""

    data: dict[str, Any]

    @property
    def leaves(self) -> int:
        """Into how many parts the set is cut."""
        return sum(list(each.get("tree", [-1])).count(-1) for each in self.data["questions"])


#: Zones that are checked at a time.
_BATCH = 512


class ZoneCloser(Protocol):
    """Shows, in exact or outward-rounded arithmetic, that no case of a zone violates a law."""

    def closed(self, zones: Sequence[Zone]) -> list[bool]:
        """For which of these zones it is shown; false means nothing is shown."""
        ...


def check_covers(claims: Sequence[tuple[Zone, Cover]], closer: ZoneCloser) -> list[bool]:
    """Of which zones of a question their covers show that no case violates the law.

    Raises InvalidProof if a cover is none.

    Theorem. No case of a zone for which this gives True violates the law.

    *Proof.* Every case of a zone is in one of the two parts of each cut of it (`Span.cut`, `Options.cut`).
    So by induction every case of the zone is in a leaf of the tree of cuts; and every leaf is closed: no
    case of it satisfies the conditions with decisions that the law forbids (`closer`). ∎
    """
    proven = [True] * len(claims)
    leaves = ((number, leaf) for number, claim in enumerate(claims) for leaf in left_uncut(*claim, _cut))
    while batch := list(islice(leaves, _BATCH)):
        closed = closer.closed([zone for _, zone in batch])
        for (number, _), is_closed in zip(batch, closed, strict=True):
            proven[number] = proven[number] and is_closed
    return proven


def _cut(zone: Zone, step: Cut) -> tuple[Zone, Zone]:
    if not 0 <= step.variable < len(zone.values):
        raise InvalidProof(f"a cut names variable {step.variable}, which the question does not have")
    return zone.cut(step.variable, step.at)


# What a search for a proof, or for a violation, has found


@dataclass(frozen=True)
class SearchEnd:
    """A proof, by a cover without open zones or about copies of a network; or a case that violates the law.

    `share` of the set was left open: of all values that the variables may have, whatever the conditions.
    `step` says what found it.
    """

    step: str = ""
    cover: Cover | LinearCover | None = None
    case: ExactCase | None = None
    share: float = 0.0


@dataclass(frozen=True)
class Deadline:
    """The CPU time of this process at which a search ends."""

    at: float

    @staticmethod
    def after(seconds: float) -> Deadline:
        """The deadline that many CPU seconds from now."""
        return Deadline(time.process_time() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether it has passed."""
        return time.process_time() > self.at

    @property
    def left(self) -> float:
        """How many CPU seconds are left."""
        return max(0.0, self.at - time.process_time())


def first_end(steps: Iterable[SearchEnd | None], deadline: Deadline) -> SearchEnd | None:
    """What the steps of a search find; None if they find nothing in time."""
    for found in steps:
        if found is not None or deadline.is_over:
            return found
    return None
