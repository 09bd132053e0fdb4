"""Decides a law for every case of a set: tries to falsify it, the cheapest way first, then to prove it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.case_tables import CaseTables, falsify, falsifying
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.network_search import search_networks
from dokimos.laws.proving.rechecking import StatedLaw, planned, state_law
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.row_zones import CaseReplay
from dokimos.laws.proving.searching import Deadline, ExactCase, SearchEnd
from dokimos.laws.proving.tree_deciding import search_trees
from dokimos.laws.proving.tree_questions import TreeQuestion

#: The share of the remaining time spent on random draws, and on a guided search, for violations.
_DRAWING_SHARE, _GUIDED_SHARE = 0.1, 0.5
#: The most zones of a proof that is tried before the guided search.
_SHORT = 300


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
        found = _decided(found, plan, stated, Deadline.after(settings.seconds))
    except Refusal as refusal:
        found = replace(found, answer=LawAnswer.REFUSED, reason=str(refusal))
    return replace(found, seconds=time.process_time() - begun)


def _decided(start: LawDecision, plan: LawPlan, stated: StatedLaw, deadline: Deadline) -> LawDecision:
    closer = stated.closer
    decided = closer.reach.decided if isinstance(closer, NetworkCloser) else None
    replay = CaseReplay(plan, start.model, stated.question, decided)
    tables = CaseTables(stated.question, _scores(start.model))
    steps = _Steps(start.settings, stated, tables, confirms(replay, stated), deadline)
    for step, end in steps.network(closer) if isinstance(closer, NetworkCloser) else steps.trees(closer):
        if end.case is not None:
            violation = replay.violation(end.case)
            return replace(start, answer=LawAnswer.VIOLATED, step=step, case=end.case, violation=violation)
        if end.cover is not None:
            semantics = stated.check(end.cover)
            return replace(start, answer=LawAnswer.PROVEN, step=step, cover=end.cover, semantics=semantics)
    return replace(start, step=step, share=end.share)


def confirms(replay: CaseReplay, stated: StatedLaw) -> Callable[[ExactCase], bool]:
    """Tells whether a case violates the law when the model is run; for a network, also exactly."""
    closer = stated.closer
    if isinstance(closer, TreeQuestion):
        return replay.violates
    return lambda case: (
        replay.violates(case) and exactly_violated(stated.question, closer.reach, case) is True
    )


@dataclass(frozen=True)
class _Steps:
    """The steps that may decide a law, the cheapest first; each yields its name and its result."""

    settings: VerifySettings
    stated: StatedLaw
    tables: CaseTables
    confirms: Callable[[ExactCase], bool]
    deadline: Deadline

    def trees(self, closer: TreeQuestion) -> Iterator[tuple[str, SearchEnd]]:
        """All cases or draws, in turn with a search for a cover."""
        draws = falsifying(self.tables, self.confirms, np.random.default_rng(self.settings.seed))
        yield search_trees(closer.statement(), self.confirms, self.deadline, draws)

    def network(self, closer: NetworkCloser) -> Iterator[tuple[str, SearchEnd]]:
        """All cases or draws, a search for a short proof, a guided search, then one for a long proof."""
        yield from self._falsified(_DRAWING_SHARE, draws=True, guided=False)
        yield "bounds on zones", self._zones(closer, _SHORT)
        yield from self._falsified(_GUIDED_SHARE, draws=False, guided=True)
        yield "branch and bound", self._zones(closer, None)

    def _falsified(self, share: float, *, draws: bool, guided: bool) -> Iterator[tuple[str, SearchEnd]]:
        looking = Deadline.after(share * self.deadline.left)
        found = falsify(
            self.tables,
            self.confirms,
            seed=self.settings.seed,
            deadline=looking,
            draws=draws,
            guided=guided,
        )
        if found is not None:
            yield found.step, SearchEnd(case=found.case)

    def _zones(self, closer: NetworkCloser, most: int | None) -> SearchEnd:
        (end,) = search_networks(
            closer,
            self.tables,
            self.confirms,
            self.deadline,
            most_zones=most,
            seed=self.settings.seed,
        )
        return end


def _scores(model: Model) -> Any:
    return model.made_of if callable(model.made_of) else model.scores
