"""Decides a law for every case of a set: tries to falsify it, the cheapest way first, then to prove it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.proving.case_tables import CaseTables, falsify, falsifying
from dokimos.laws.proving.copies import CopiesOfNetwork
from dokimos.laws.proving.expressions import Refusal, Unread
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.network_search import search_networks
from dokimos.laws.proving.rechecking import StatedLaw, planned, state_law
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.row_zones import CaseReplay
from dokimos.laws.proving.searching import Deadline, ExactCase, SearchEnd
from dokimos.laws.proving.tree_deciding import search_trees
from dokimos.laws.proving.tree_questions import TreeQuestion

#: The share of the time spent on random draws, and the share of the rest in which searches take turns.
_DRAWING_SHARE, _TURNS_SHARE = 0.1, 0.8
#: The first turn of the guided search, in seconds; that of linear bounds, and the next, are longer.
_FIRST_TURN, _LONGER = 1.0, 3.0
#: How many tests are made of a model that cannot be read.
_TESTS = 20_000
#: The most zones of a proof that is tried after a few batches of draws, and before the guided search.
_FEW, _SHORTEST, _SHORT = 2, 8, 300


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


def _decided(start: LawDecision, plan: LawPlan, stated: StatedLaw, deadline: Deadline) -> LawDecision:
    closer = stated.closer
    decided = closer.decided if isinstance(closer, NetworkCloser) else None
    replay = CaseReplay(plan, start.model, stated.question, decided)
    tables = CaseTables(stated.question, stated.scores)
    steps = _Steps(start.settings, stated, tables, confirms(replay, stated), deadline)
    for step, end in steps.network(closer) if isinstance(closer, NetworkCloser) else steps.trees(closer):
        if end.case is not None:
            violation = replay.violation(end.case)
            return replace(start, answer=LawAnswer.VIOLATED, step=step, case=end.case, violation=violation)
        if (cover := end.cover or end.linear) is not None:
            semantics = stated.check(cover)
            return replace(start, answer=LawAnswer.PROVEN, step=step, cover=cover, semantics=semantics)
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
        """A few draws and zones, all cases or more draws, a search for a short proof; then a guided search
        and linear bounds of copies, in turns that grow longer; at last a search for a long proof."""
        draws = falsifying(self.tables, self.confirms, np.random.default_rng(self.settings.seed))
        share = Deadline.after(_DRAWING_SHARE * self.deadline.left)
        for number, found in enumerate(draws):
            if number == _FEW:
                yield "bounds on zones", self._zones(closer, _SHORTEST)
            if found is not None:
                yield found.step, SearchEnd(case=found.case)
            if share.is_over:
                break
        yield "bounds on zones", self._zones(closer, _SHORT)
        copies, turn = CopiesOfNetwork(closer), _FIRST_TURN
        last = (1 - _TURNS_SHARE) * self.deadline.left
        while (left := self.deadline.left - last) > 0:
            yield from self._guided(min(turn, left))
            until = Deadline.after(min(_LONGER * turn, max(0.0, self.deadline.left - last)))
            if find_spec("torch") is not None:
                yield "linear bounds of copies", copies.search(self.confirms, until)
            turn *= _LONGER
        yield "branch and bound", self._zones(closer, None)

    def _guided(self, seconds: float) -> Iterator[tuple[str, SearchEnd]]:
        found = falsify(
            self.tables,
            self.confirms,
            seed=self.settings.seed,
            deadline=Deadline.after(seconds),
            draws=False,
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
