"""The question about a model: is there a case in a set in which its decisions violate a law?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Kind, Layout
from dokimos.laws.proving.terms import Formula, Quantity
from dokimos.laws.proving.zones import Number, Zone


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
class ForbiddenDecisions:
    """One class for each predicted record, and in which part of the set these decisions violate the law."""

    classes: tuple[int, ...]
    where: Formula


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
    forbidden: tuple[ForbiddenDecisions, ...]
    inputs: tuple[PredictedRecord, ...]
    draws: tuple[Quantity, ...]
    over: str

    def rules_out(self, zone: Zone) -> bool:
        """Whether a condition is false in all cases of a zone."""
        return zone.is_empty or any(each.over(zone) is False for each in self.conditions)

    def admits(self, case: Sequence[Number]) -> bool:
        """Whether a case is one of the set."""
        return case in self.zone and all(each.holds(case) for each in self.conditions)

    def is_violated(self, case: Sequence[Number], classes: Sequence[int]) -> bool:
        """Whether these decisions violate the law in a case of the set."""
        return any(
            each.classes == tuple(classes) and each.where.holds(case) for each in self.forbidden
        ) and self.admits(case)

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
