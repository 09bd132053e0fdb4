"""Decides a law for every case of a set: tries to falsify it, the cheapest way first, then to prove it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dokimos.checker.lemmas.zones import Cover, Number, Zone
from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.proving.case_tables import CaseTables, falsifying
from dokimos.laws.proving.copies import CopiesOfNetwork
from dokimos.laws.proving.expressions import Refusal, Unread
from dokimos.laws.proving.law_search import (
    FIRST_TURN,
    NetworkSearch,
    search_copies,
    search_trees,
    taking_turns,
)
from dokimos.laws.proving.question import Deadline, SearchEnd, first_end
from dokimos.laws.proving.results import LawAnswer, LawDecision, RowDecision, RowsDecision, VerifySettings
from dokimos.laws.proving.row_zones import Tolerance, row_numbers
from dokimos.laws.proving.stated_laws import StatedLaw, planned, state_law
from dokimos.laws.proving.tree_questions import TreeQuestion

#: How many tests are made of a model that cannot be read.
_TESTS = 20_000
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
    end = _searched(start.settings.seed, stated, deadline)
    if end.case is not None:
        violation = stated.replay.violation(end.case)
        return replace(start, answer=LawAnswer.VIOLATED, step=end.step, case=end.case, violation=violation)
    if end.cover is not None:
        semantics = stated.check(end.cover)
        return replace(start, answer=LawAnswer.PROVEN, step=end.step, cover=end.cover, semantics=semantics)
    return replace(start, step=end.step, share=end.share)


def _tables(stated: StatedLaw, zone: Zone | None = None) -> CaseTables:
    """Many cases at once, of a zone, by default of the whole set."""
    question = stated.question if zone is None else replace(stated.question, zone=zone)
    return CaseTables(question, stated.closer.scores)


def _searched(seed: int, stated: StatedLaw, deadline: Deadline) -> SearchEnd:
    """All cases, or draws and a guided search, in turn with what may find a proof.

    Of networks two searches may, which share the time of the proof.
    """
    tables, confirms, closer = _tables(stated), stated.confirms, stated.closer
    if isinstance(closer, TreeQuestion):
        draws = falsifying(tables, confirms, seed=seed, guided=False)
        return search_trees(closer.statement(), confirms, deadline, draws)
    zones = NetworkSearch(closer, tables, confirms, seed=seed)
    copies = search_copies(CopiesOfNetwork(closer), confirms, deadline)
    proving = taking_turns(zones.run(), copies, expected=(0.0, FIRST_TURN))
    steps = taking_turns(falsifying(tables, confirms, seed=seed), proving)
    return first_end(steps, deadline) or zones.ends[0]


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
        search = NetworkSearch(
            closer,
            _tables(self.stated),
            self.stated.confirms,
            zones=zones,
            seconds_each=(1 - _GUIDED_SHARE) * seconds,
            seed=self.settings.seed,
        )
        for _ in search.run():
            pass
        return [
            self._guided(zone, end) if end.case is None and end.cover is None else end
            for zone, end in zip(zones, search.ends, strict=True)
        ]

    def _guided(self, zone: Zone, end: SearchEnd) -> SearchEnd:
        """A violation that a guided search finds around one row, otherwise what is already known."""
        until = Deadline.after(_GUIDED_SHARE * self.settings.seconds)
        tables, seed = _tables(self.stated, zone), self.settings.seed
        return first_end(falsifying(tables, self.stated.confirms, seed=seed), until) or end
