"""What laws require of the slopes of a network's scores: enough for them to hold on the whole domain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from dokimos.laws.domain.features import Kind
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import limits_of
from dokimos.laws.proving.question import LawQuestion


@dataclass(frozen=True, order=True)
class SlopeRequirement:
    """sign · (score of class `above` − score of class `below`) must not fall as the column grows."""

    above: int
    below: int
    column: int
    sign: int

    @property
    def direction(self) -> int:
        """1 if a larger value must lead to a higher class, −1 if to a lower one."""
        return self.sign if self.above > self.below else -self.sign


def slope_requirements(questions: Iterable[LawQuestion]) -> tuple[SlopeRequirement, ...]:
    """Conditions that suffice for the laws behind these questions to hold, wherever the records are.

    Theorem. Let a law forbid that record r is decided a and record s is decided b ≠ a, and let s − r be of
    one sign in each column in which they differ. If score a − score b grows with none of these columns
    against that sign, it does not fall from r to s, so these decisions are not possible (`NetworkCloser`).

    Raises Refusal if a law is about anything but the sign of slopes: a choice, a number that may move
    either way, one record, or decisions that must not change at all.
    """
    found = {each for question in questions for each in _of(question)}
    for each in found:
        if SlopeRequirement(each.below, each.above, each.column, each.sign) in found:
            raise Refusal("a feature must make no difference at all; remove it from the model instead")
    return tuple(sorted(found))


def _of(question: LawQuestion) -> Iterator[SlopeRequirement]:
    if len(question.records) < 2:
        raise Refusal(f"{question.law}: the law is about one record, not about how scores change")
    for forbidden in question.forbidden:
        moved = False
        for r, s in combinations(range(len(question.records)), 2):
            a, b = forbidden.classes[r], forbidden.classes[s]
            if a != b:
                moved = True
                for column, sign in _moved(question, r, s):
                    yield SlopeRequirement(a, b, column, sign)
        if not moved:
            raise Refusal(f"{question.law}: the law forbids a decision whatever the other records get")


def _moved(question: LawQuestion, r: int, s: int) -> Sequence[tuple[int, int]]:
    """The columns in which two records differ, and the sign of the difference."""
    first, second = question.records[r], question.records[s]
    found = []
    for slot, one, other in zip(question.layout.slots, first.features, second.features, strict=True):
        if one == other:
            continue
        name = slot.feature.name
        if slot.feature.kind is Kind.CHOICE:
            raise Refusal(f"{question.law}: moves {name}, which is a choice and so has no slope")
        difference = other.plus(one, -1)
        ends, limits = difference.ends(question.zone), limits_of(question, difference)
        if max(ends[0], limits[0]) >= 0:
            found.append((slot.start, 1))
        elif min(ends[1], limits[1]) <= 0:
            found.append((slot.start, -1))
        else:
            raise Refusal(f"{question.law}: moves {name} either way")
    return found
