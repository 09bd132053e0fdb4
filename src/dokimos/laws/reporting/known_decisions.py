"""What an earlier call has decided about a law, from the file it has left, checked again."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from dokimos.core.errors import DokimosError
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.engine.pools import as_records
from dokimos.laws.models.model import Model
from dokimos.laws.proving import rechecking
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import NetworkCloser
from dokimos.laws.proving.rechecking import StatedLaw, format_of, read_proof, state_law
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.row_zones import CaseReplay
from dokimos.laws.proving.verifying import confirms
from dokimos.laws.reporting import violation_files
from dokimos.laws.reporting.violation_files import read_violations

_STEP = "kept from before"


def known_decision(path: Path, plan: LawPlan, model: Model, settings: VerifySettings) -> LawDecision | None:
    """The decision in a file; None where there is none, it does not hold, or is about something else."""
    begun = time.process_time()
    none = LawDecision(plan.law, plan.domain, model, settings, LawAnswer.OPEN, step=_STEP)
    try:
        stated = state_law(plan, model)
        none = replace(none, over=stated.question.over, left_out=stated.left_out)
        match format_of(path):
            case rechecking.FORMAT:
                found = _proven(path, none, stated)
            case violation_files.FORMAT:
                found = _violated(path, none, plan, stated)
            case _:
                found = None
    except (DokimosError, Refusal):
        return None
    return None if found is None else replace(found, seconds=time.process_time() - begun)


def _proven(path: Path, none: LawDecision, stated: StatedLaw) -> LawDecision | None:
    saved = read_proof(path)
    about = (saved.law.text, saved.model_sha256, saved.constrained)
    if about != (none.law.text, none.model.sha256, none.settings.constrained):
        return None
    semantics = stated.check(saved.cover)
    if (saved.over, saved.semantics) != (none.over, semantics):
        return None
    return replace(none, answer=LawAnswer.PROVEN, cover=saved.cover, semantics=semantics)


def _violated(path: Path, none: LawDecision, plan: LawPlan, stated: StatedLaw) -> LawDecision | None:
    saved = read_violations(path)
    about = (saved.law.text, saved.model_sha256)
    if about != (none.law.text, none.model.sha256) or len(saved.cases) != 1:
        return None
    layout = stated.question.layout
    for name, record in saved.cases[0].inputs.items():
        as_records([record], layout, name)  # refuses what is no record
    closer = stated.closer
    decided = closer.reach.decided if isinstance(closer, NetworkCloser) else None
    replay = CaseReplay(plan, none.model, stated.question, decided)
    case = replay.case_of(saved.cases[0])
    if case is None or not confirms(replay, stated)(case):
        return None
    return replace(none, answer=LawAnswer.VIOLATED, case=case, violation=replay.violation(case))
