"""Certificates that a law holds in a set: the set is cut into zones, none of which has a violation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from dokimos.core.errors import InvalidProof
from dokimos.laws.proving.question import LawQuestion
from dokimos.laws.proving.zones import Number, Zone

#: Zones that are checked at a time.
_BATCH = 512


@dataclass(frozen=True)
class Cut:
    """A zone cut in two: the variable, and where."""

    variable: int
    at: Number


@dataclass(frozen=True)
class Cover:
    """A tree of cuts in preorder: a cut, all of its first part, then all of its second; None is a leaf."""

    steps: tuple[Cut | None, ...]

    @property
    def leaves(self) -> int:
        """How many zones are left uncut."""
        return sum(step is None for step in self.steps)


class ZoneCloser(Protocol):
    """Shows, in exact or outward-rounded arithmetic, that no case of a zone violates a law."""

    def closed(self, zones: Sequence[Zone]) -> list[bool]:
        """For which of these zones it is shown; false means nothing is shown."""
        ...


def check_cover(question: LawQuestion, cover: Cover, closer: ZoneCloser) -> None:
    """Check that no case of the question's zone violates the law. Raises InvalidProof."""
    (is_proven,) = check_covers([(question.zone, cover)], closer)
    if not is_proven:
        raise InvalidProof("a zone of the cover is not shown to have no violation")


def check_covers(claims: Sequence[tuple[Zone, Cover]], closer: ZoneCloser) -> list[bool]:
    """Of which zones of a question their covers show that no case violates the law.

    Raises InvalidProof if a cover is none.

    Theorem. No case of a zone for which this gives True violates the law.

    *Proof.* Every case of a zone is in one of the two parts of each cut of it (`Span.cut`, `Options.cut`).
    So by induction every case of the zone is in a leaf of the tree of cuts; and every leaf is closed: no
    case of it satisfies the conditions with decisions that the law forbids (`closer`). ∎
    """
    proven = [True] * len(claims)
    leaves = ((number, leaf) for number, claim in enumerate(claims) for leaf in _leaves(*claim))
    while batch := list(islice(leaves, _BATCH)):
        closed = closer.closed([zone for _, zone in batch])
        for (number, _), is_closed in zip(batch, closed, strict=True):
            proven[number] = proven[number] and is_closed
    return proven


def _leaves(start: Zone, cover: Cover) -> Iterator[Zone]:
    pending = [start]
    for step in cover.steps:
        if not pending:
            raise InvalidProof("the tree of cuts continues after its end")
        zone = pending.pop()
        if step is None:
            yield zone
            continue
        if not 0 <= step.variable < len(zone.values):
            raise InvalidProof(f"a cut names variable {step.variable}, which the question does not have")
        first, second = zone.cut(step.variable, step.at)
        pending += [second, first]
    if pending:
        raise InvalidProof("the tree of cuts ends before all zones are leaves")
