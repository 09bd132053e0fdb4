"""Decides a law around every row of a data set, many rows at a time, each with a proof or a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dokimos.checker.lemmas.zones import Number, Zone
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.case_tables import CaseTables, falsify
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.network_search import search_networks
from dokimos.laws.proving.rechecking import StatedLaw, planned, state_law
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_files import RowDecision, RowsDecision
from dokimos.laws.proving.row_zones import CaseReplay, Tolerance, row_numbers
from dokimos.laws.proving.searching import Deadline, ExactCase, SearchEnd
from dokimos.laws.proving.tree_deciding import search_trees

#: Rows that are decided together.
_TOGETHER = 64
#: The share of a row's time for a guided search, if branch and bound has not decided it.
_GUIDED_SHARE = 0.25


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
        work = _Rows(plan, stated, loaded, settings)
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


class _Rows:
    def __init__(self, plan: LawPlan, stated: StatedLaw, model: Model, settings: VerifySettings) -> None:
        self._stated, self._settings = stated, settings
        closer = stated.closer
        decided = closer.decided if isinstance(closer, NetworkCloser) else None
        self._replay = CaseReplay(plan, model, stated.question, decided)
        self._scores = stated.scores

    def decide(self, rows: Sequence[tuple[int, tuple[Number | None, ...], Zone]]) -> list[RowDecision]:
        """What is known around each row: its number, its columns and the zone around it."""
        stated = self._stated
        zones = [zone for _, _, zone in rows]
        ends = self._ends(zones)
        covers = [(zone, end.cover) for zone, end in zip(zones, ends, strict=True) if end.cover is not None]
        proven, strict = iter(stated.proven(covers)), iter(stated.strictly_proven(covers))
        found = []
        for (row, columns, zone), end in zip(rows, ends, strict=True):
            made = RowDecision(row, columns, LawAnswer.OPEN, share=end.share)
            if end.case is not None:
                made = replace(made, answer=LawAnswer.VIOLATED, case=end.case)
            elif end.cover is not None:
                assert next(proven)  # what closed the zones has checked them
                made = replace(
                    made,
                    answer=LawAnswer.PROVEN,
                    cover=end.cover,
                    in_float32=next(strict, False),
                    is_empty=stated.question.rules_out(zone),
                )
            found.append(made)
        return found

    def _confirms(self, case: ExactCase) -> bool:
        closer = self._stated.closer
        return self._replay.violates(case) and (
            not isinstance(closer, NetworkCloser)
            or exactly_violated(self._stated.question, closer.reach, case) is True
        )

    def _tables(self, zone: Zone) -> CaseTables:
        return CaseTables(replace(self._stated.question, zone=zone), self._scores)

    def _ends(self, zones: Sequence[Zone]) -> list[SearchEnd]:
        closer, seconds = self._stated.closer, self._settings.seconds
        if not isinstance(closer, NetworkCloser):
            found = []
            for zone in zones:
                found.append(
                    search_trees(closer.statement(zone), self._confirms, Deadline.after(seconds))[1]
                )
            return found
        ends = search_networks(
            closer,
            self._tables(self._stated.question.zone),
            self._confirms,
            Deadline(np.inf),
            zones=zones,
            seconds_each=(1 - _GUIDED_SHARE) * seconds,
            seed=self._settings.seed,
        )
        return [
            self._guided(zone, end) if end.case is None and end.cover is None else end
            for zone, end in zip(zones, ends, strict=True)
        ]

    def _guided(self, zone: Zone, end: SearchEnd) -> SearchEnd:
        """A violation that a guided search finds around one row, otherwise what is already known."""
        deadline = Deadline.after(_GUIDED_SHARE * self._settings.seconds)
        found = falsify(self._tables(zone), self._confirms, seed=self._settings.seed, deadline=deadline)
        return end if found is None else SearchEnd(case=found.case)
