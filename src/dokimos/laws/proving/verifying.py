"""Decides a law for every case of a set: tries to falsify it, the cheapest way first, then to prove it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from dokimos.checker.lemmas.zones import Cover, Number, Zone
from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.proving.case_tables import CaseTables, falsify, falsifying
from dokimos.laws.proving.copies import CopiesOfNetwork
from dokimos.laws.proving.expressions import Refusal, Unread
from dokimos.laws.proving.law_search import search_networks, search_trees
from dokimos.laws.proving.network_closing import NetworkCloser
from dokimos.laws.proving.question import Deadline, SearchEnd
from dokimos.laws.proving.results import LawAnswer, LawDecision, RowDecision, RowsDecision, VerifySettings
from dokimos.laws.proving.row_zones import Tolerance, row_numbers
from dokimos.laws.proving.stated_laws import StatedLaw, planned, state_law
from dokimos.laws.proving.tree_questions import TreeQuestion

#: The share of the time spent on random draws, and the share of the rest in which searches take turns.
_DRAWING_SHARE, _TURNS_SHARE = 0.1, 0.8
#: The first turn of the guided search, in seconds; that of linear bounds, and the next, are longer.
_FIRST_TURN, _LONGER = 1.0, 3.0
#: How many tests are made of a model that cannot be read.
_TESTS = 20_000
#: The most zones of a proof that is tried after a few batches of draws, and before the guided search.
_FEW, _SHORTEST, _SHORT = 2, 8, 300
#: Rows that are decided together.
_TOGETHER = 64
#: The share of a row's time for a guided search, if branch and bound has not decided it.
_GUIDED_SHARE = 0.25


def verify_law(
    law: Law, *, model: Any = None, domain: Domain | None = None, settings: VerifySettings | None = None
) -> LawDecision:
    """Decide a law for every case of the set that its domain declares.

    Raises LawError or InputError if the law, the domain or the model is not usable.
    """
    settings = settings or VerifySettings()
    plan = planned(law, domain, constrained=settings.constrained, allow_code=settings.allow_code)
    loaded = as_domain_model(model, plan.domain)
    begun = time.process_time()
    found = LawDecision(plan.law, plan.domain, loaded, settings, LawAnswer.OPEN)
    try:
        stated = state_law(plan, loaded)
        found = replace(found, over=stated.question.over, left_out=stated.left_out)
        found = _decided(found, stated, Deadline.after(settings.seconds))
    except Unread as refusal:
        found = _tested(found, str(refusal))
    except Refusal as refusal:
        found = replace(found, answer=LawAnswer.REFUSED, reason=str(refusal))
    return replace(found, seconds=time.process_time() - begun)


def _tested(start: LawDecision, reason: str) -> LawDecision:
    """What tests with draws from the ranges say where the inside of a model is not known."""
    settings = LawSettings(seed=start.settings.seed, source="range", in_range=True, keep=1, budget=_TESTS)
    try:
        ran = test_law(start.law, model=start.model, domain=start.domain, settings=settings)
    except InputError as problem:
        return replace(start, answer=LawAnswer.REFUSED, reason=f"{reason}; and not tested: {problem}")
    if ran.violations:
        step = "draws from the ranges"
        over = "the whole domain"
        return replace(start, answer=LawAnswer.VIOLATED, over=over, step=step, violation=ran.violations[0])
    more = f"; {ran.tested:,} tests found no violation" if ran.tested else ""
    return replace(start, answer=LawAnswer.REFUSED, reason=reason + more)


def _decided(start: LawDecision, stated: StatedLaw, deadline: Deadline) -> LawDecision:
    steps = _Steps(start.settings, stated, deadline)
    closer = stated.closer
    for end in steps.network(closer) if isinstance(closer, NetworkCloser) else steps.trees(closer):
        if end.case is not None:
            violation = stated.replay.violation(end.case)
            return replace(
                start, answer=LawAnswer.VIOLATED, step=end.step, case=end.case, violation=violation
            )
        if end.cover is not None:
            semantics = stated.check(end.cover)
            return replace(
                start, answer=LawAnswer.PROVEN, step=end.step, cover=end.cover, semantics=semantics
            )
    return replace(start, step=end.step, share=end.share)


def _tables(stated: StatedLaw, zone: Zone | None = None) -> CaseTables:
    """Many cases at once, of a zone, by default of the whole set."""
    question = stated.question if zone is None else replace(stated.question, zone=zone)
    return CaseTables(question, stated.closer.scores)


@dataclass(frozen=True)
class _Steps:
    """The steps that may decide a law, the cheapest first; each yields its result."""

    settings: VerifySettings
    stated: StatedLaw
    deadline: Deadline

    def _draws(self) -> Iterator[SearchEnd | None]:
        rng = np.random.default_rng(self.settings.seed)
        return falsifying(_tables(self.stated), self.stated.confirms, rng)

    def trees(self, closer: TreeQuestion) -> Iterator[SearchEnd]:
        """All cases or draws, in turn with a search for a cover."""
        yield search_trees(closer.statement(), self.stated.confirms, self.deadline, self._draws())

    def network(self, closer: NetworkCloser) -> Iterator[SearchEnd]:
        """A few draws and zones, all cases or more draws, a search for a short proof; then a guided search
        and linear bounds of copies, in turns that grow longer; at last a search for a long proof."""
        share = Deadline.after(_DRAWING_SHARE * self.deadline.left)
        for number, found in enumerate(self._draws()):
            if number == _FEW:
                yield self._zones(closer, _SHORTEST)
            if found is not None:
                yield found
            if share.is_over:
                break
        yield self._zones(closer, _SHORT)
        copies, turn = CopiesOfNetwork(closer), _FIRST_TURN
        last = (1 - _TURNS_SHARE) * self.deadline.left
        while (left := self.deadline.left - last) > 0:
            guided = self._guided(min(turn, left))
            if guided is not None:
                yield guided
            until = Deadline.after(min(_LONGER * turn, max(0.0, self.deadline.left - last)))
            if find_spec("torch") is not None:
                yield copies.search(self.stated.confirms, until)
            turn *= _LONGER
        yield replace(self._zones(closer, None), step="branch and bound")

    def _guided(self, seconds: float) -> SearchEnd | None:
        tables, seed, until = _tables(self.stated), self.settings.seed, Deadline.after(seconds)
        return falsify(tables, self.stated.confirms, seed=seed, deadline=until, draws=False)

    def _zones(self, closer: NetworkCloser, most: int | None) -> SearchEnd:
        stated, seed = self.stated, self.settings.seed
        (end,) = search_networks(
            closer, _tables(stated), stated.confirms, self.deadline, most_zones=most, seed=seed
        )
        return end


# The same around every row of a data set, many rows at a time


def verify_rows(
    law: Law,
    rows: Sequence[Sequence[float]],
    tolerance: Tolerance,
    *,
    model: Any = None,
    domain: Domain | None = None,
    settings: VerifySettings | None = None,
    known: Sequence[RowDecision] = (),
    done: Callable[[RowsDecision], None] = lambda _: None,
) -> RowsDecision:
    """Decide a law for all cases around each of some rows, in `settings.seconds` of processor time each.

    Rows that are `known` are not decided again. `done` is called with what is known so far. Raises LawError
    or InputError if the law, the domain or the model is not usable.
    """
    settings = settings or VerifySettings()
    plan = planned(law, domain, constrained=settings.constrained, allow_code=settings.allow_code)
    loaded = as_domain_model(model, plan.domain)
    begun = time.process_time()
    found = RowsDecision(plan.law, plan.domain, loaded, settings, tolerance)
    try:
        stated = state_law(plan, loaded)
        given = [row_numbers(stated.question.layout, row) for row in rows]
        zones = [tolerance.over(stated.question, each) for each in given]
        work = _Rows(stated, settings)
        decided = {each.row: each for each in known}
        inside = [(n, each, zone) for n, (each, zone) in enumerate(zip(given, zones, strict=True)) if zone]
        found = replace(found, semantics=stated.semantics, outside=len(given) - len(inside))
        found = replace(found, rows=tuple(decided[n] for n in sorted(decided)))
        asked = [each for each in inside if each[0] not in decided]
        for start in range(0, len(asked), _TOGETHER):
            made = work.decide(asked[start : start + _TOGETHER])
            decided |= {each.row: each for each in made}
            found = replace(found, rows=tuple(decided[n] for n in sorted(decided)))
            done(found)
    except Refusal as refusal:
        found = replace(found, reason=str(refusal))
    return replace(found, seconds=time.process_time() - begun)


@dataclass(frozen=True)
class _Rows:
    stated: StatedLaw
    settings: VerifySettings

    def decide(self, rows: Sequence[tuple[int, tuple[Number | None, ...], Zone]]) -> list[RowDecision]:
        """What is known around each row: its number, its columns and the zone around it."""
        stated = self.stated
        zones = [zone for _, _, zone in rows]
        ends = self._ends(zones)
        covers = [
            (z, end.cover) for z, end in zip(zones, ends, strict=True) if isinstance(end.cover, Cover)
        ]
        proven, strict = iter(stated.proven(covers)), iter(stated.strictly_proven(covers))
        found = []
        for (row, columns, zone), end in zip(rows, ends, strict=True):
            made = RowDecision(row, columns, LawAnswer.OPEN, share=end.share)
            if end.case is not None:
                made = replace(made, answer=LawAnswer.VIOLATED, case=end.case)
            elif isinstance(end.cover, Cover):
                assert next(proven)  # what closed the zones has checked them
                made = replace(
                    made,
                    answer=LawAnswer.PROVEN,
                    cover=end.cover,
                    in_float32=next(strict),
                    is_empty=stated.question.rules_out(zone),
                )
            found.append(made)
        return found

    def _ends(self, zones: Sequence[Zone]) -> list[SearchEnd]:
        closer, seconds = self.stated.closer, self.settings.seconds
        if isinstance(closer, TreeQuestion):
            confirms = self.stated.confirms
            return [
                search_trees(closer.statement(zone), confirms, Deadline.after(seconds)) for zone in zones
            ]
        ends = search_networks(
            closer,
            _tables(self.stated),
            self.stated.confirms,
            Deadline(np.inf),
            zones=zones,
            seconds_each=(1 - _GUIDED_SHARE) * seconds,
            seed=self.settings.seed,
        )
        return [
            self._guided(zone, end) if end.case is None and end.cover is None else end
            for zone, end in zip(zones, ends, strict=True)
        ]

    def _guided(self, zone: Zone, end: SearchEnd) -> SearchEnd:
        """A violation that a guided search finds around one row, otherwise what is already known."""
        until = Deadline.after(_GUIDED_SHARE * self.settings.seconds)
        tables, seed = _tables(self.stated, zone), self.settings.seed
        return falsify(tables, self.stated.confirms, seed=seed, deadline=until) or end
