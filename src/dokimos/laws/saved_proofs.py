"""A saved proof of a law checked again, without what found it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dokimos.core.errors import InputError, InvalidProof
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import domain_file, load_domain
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.pools import data_of
from dokimos.laws.models.lookup import as_domain_model, is_code, load_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving import rechecking, row_files
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.rechecking import SavedProof, format_of, planned, recheck
from dokimos.laws.proving.results import LawAnswer
from dokimos.laws.proving.row_files import SavedRows, compare_rows, recheck_rows

Saved: TypeAlias = SavedProof | SavedRows


@dataclass(frozen=True)
class CheckedProof:
    """A file with a proof of a law, what that shows, and what is wrong with it (None: nothing)."""

    path: Path
    law: str
    over: str
    semantics: str
    problem: str | None = None


def check_saved(
    path: Path, *, model: str | Path | None, domain: str | Path | None, allow_code: bool
) -> CheckedProof:
    """Check the proof in a file: see `dokimos.check_proofs`. Raises InputError."""
    is_rows = format_of(path) == row_files.FORMAT
    saved: Saved = row_files.read_rows(path) if is_rows else rechecking.read_proof(path)
    place = domain if domain is not None else saved.domain
    if place is None:
        raise InputError(f"{path}: names no domain; give a `domain`.")
    named = [place] if domain is None and domain_file(place) is not None else []
    named += [saved.model] if model is None and is_code(saved.model) else []
    if named and not allow_code:
        raise InputError(f"{path}: names Python code, {named[0]}; `allow_code` runs it.")
    found = with_table(load_domain(place, allow_code=allow_code or domain is not None), "range")
    loaded = load_model(
        saved.model if model is None else model, found, allow_code=allow_code or model is not None
    )
    plan = planned(saved.law, found, constrained=saved.constrained, allow_code=allow_code)
    shown, problem = ("", ""), None
    try:
        if saved.model_sha256 != loaded.sha256:
            raise InvalidProof("the proof is about another model")
        shown = _shown(plan, as_domain_model(loaded, plan.domain), saved)
    except (InvalidProof, Refusal) as reason:
        problem = str(reason)
    return CheckedProof(path, saved.law.name, *shown, problem)


def _shown(plan: LawPlan, model: Model, saved: Saved) -> tuple[str, str]:
    """What a file shows: for which cases, and how. Raises InvalidProof or Refusal."""
    if isinstance(saved, SavedRows):
        recheck_rows(plan, model, saved)
        single = sum(each.in_float32 for each in saved.rows)
        answers = _counts([each.answer for each in saved.rows])
        more = "" if _are_compared(plan, saved) else "; the data set is not at hand to compare rows with"
        shown = f"{answers} ({single:,} proven in float32 too{more})"
        return f"records ± {saved.tolerance.words}", shown
    found = recheck(plan, model, saved.cover)
    if (saved.over, saved.semantics) != (found.over, found.semantics):
        claimed = f"{saved.over}, {saved.semantics}"
        raise InvalidProof(f"it claims {claimed}; what it shows is {found.over}, {found.semantics}")
    return found.over, found.semantics


def _are_compared(plan: LawPlan, saved: SavedRows) -> bool:
    """Whether the rows of a file were compared with the data set; not where that is not to be had."""
    data = data_of(plan.domain)
    if data is not None:
        compare_rows(saved, data)
    return data is not None


def _counts(answers: Sequence[LawAnswer]) -> str:
    counts = [(answers.count(answer), answer) for answer in LawAnswer]
    return ", ".join(f"{number:,} {answer.value}" for number, answer in counts if number)
