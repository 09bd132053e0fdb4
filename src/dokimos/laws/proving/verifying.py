"""Decides a law for every case of a set: falsify first, the cheapest way first, then prove."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.models.model import Model
from dokimos.laws.proving.case_tables import CaseTables
from dokimos.laws.proving.covers import check_cover
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.falsifying import falsify
from dokimos.laws.proving.rechecking import StatedLaw, planned, state_law
from dokimos.laws.proving.replaying import CaseReplay
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.searching import Deadline, ExactCase, SearchEnd
from dokimos.laws.proving.tree_reach import TreeCloser
from dokimos.laws.proving.tree_search import search_trees

#: The share of the time that is spent on looking for violations of a law on trees before it is decided.
_DRAWING_SHARE = 0.1


def verify_law(
    law: Law, *, model: Any = None, domain: Domain | None = None, settings: VerifySettings | None = None
) -> LawDecision:
    """Decide a law for every case of the set that its domain declares.

    Raises LawError or InputError where the law, the domain or the model is not usable.
    """
    settings = settings or VerifySettings()
    plan = planned(law, domain, constrained=settings.constrained, allow_code=settings.allow_code)
    loaded = as_domain_model(model, plan.domain)
    begun = time.monotonic()
    found = LawDecision(plan.law, plan.domain, loaded, settings, LawAnswer.OPEN)
    try:
        stated = state_law(plan, loaded)
        found = replace(found, over=stated.question.over)
        found = _decided(found, plan, stated, Deadline.after(settings.seconds))
    except Refusal as refusal:
        found = replace(found, answer=LawAnswer.REFUSED, reason=str(refusal))
    return replace(found, seconds=time.monotonic() - begun)


def _decided(start: LawDecision, plan: LawPlan, stated: StatedLaw, deadline: Deadline) -> LawDecision:
    model, question = start.model, stated.question
    replay = CaseReplay(plan, model, question)
    looking = Deadline.after(_DRAWING_SHARE * deadline.left)
    tables = CaseTables(question, _scores(model))
    falsified = falsify(tables, replay.violates, seed=start.settings.seed, deadline=looking, guided=False)
    if falsified is not None:
        return _violated(start, replay, falsified.case, falsified.step)
    end, step = _searched(stated, deadline)
    if end.case is not None and replay.violates(end.case):
        return _violated(start, replay, end.case, step)
    if end.cover is None:
        return replace(start, step=step, share=end.share)
    check_cover(question, end.cover, stated.closer)
    return replace(start, answer=LawAnswer.PROVEN, step=step, cover=end.cover, semantics=stated.semantics)


def _scores(model: Model) -> Any:
    return model.made_of if callable(model.made_of) else model.scores


def _searched(stated: StatedLaw, deadline: Deadline) -> tuple[SearchEnd, str]:
    assert isinstance(stated.closer, TreeCloser)
    return search_trees(stated.question, stated.closer.reach, deadline), "leaf pairs"


def _violated(start: LawDecision, replay: CaseReplay, case: ExactCase, step: str) -> LawDecision:
    return replace(start, answer=LawAnswer.VIOLATED, step=step, violation=replay.violation(case))
