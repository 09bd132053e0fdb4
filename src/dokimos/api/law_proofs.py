"""`verify_law`: laws decided for every case of a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dokimos.api.arguments import as_paths
from dokimos.api.laws import LawSource, law_domain, law_files
from dokimos.core.errors import InputError, InvalidProof
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import Domain, domain_file, load_domain
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.pools import data_of
from dokimos.laws.language.parser import read_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model, is_code, load_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving import rechecking, row_files, verifying
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.rechecking import SavedProof, format_of, planned, recheck, save_proof
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.row_files import SavedRows, compare_rows, recheck_rows
from dokimos.laws.reporting.violation_files import known_decision, save_result


@dataclass(frozen=True, repr=False)
class VerifiedLaw(Brief):
    """A law's file, the decision, and where its proof or violation was saved, if anywhere."""

    path: Path
    decision: LawDecision
    saved: Path | None = None


def verify_law(
    laws: LawSource,
    *,
    model: Any = None,
    domain: str | Path | None = None,
    settings: VerifySettings | None = None,
    out: str | Path | None = None,
    progress: ProgressCallback[VerifiedLaw] = ignore,
) -> tuple[VerifiedLaw, ...]:
    """Decide laws for every case of the set that their domain declares: `dokimos law verify`.

    `model` is a file or any object that predicts (default: the domain's own); laws can be decided for
    trees, forests and networks. Each law is proven, violated, left open, or refused with a reason. For each
    law that is decided, a proof or a violation to replay is written to the folder `out`; a later call
    checks what is there, and decides the other laws only.

    >>> older = '{"feature": [0, -1, -1], "threshold": [40.5, 0, 0], "left": [1, 1, 2], "right": [2, 1, 2],'
    >>> older += '"value": [[0, 0], [1, 0], [0, 1]]}'
    >>> head = '{"format": "dokimos-trees", "version": 1, "inputs": 1, "base": [0, 0], "trees": ['
    >>> _ = Path("older.json").write_text(head + older + "]}")
    >>> [verified] = dokimos.verify_law("older.law", model="older.json", out="proofs")
    >>> verified.decision.answer.value, verified.decision.step
    ('proven', 'leaf pairs')
    """
    chosen = VerifySettings() if settings is None else settings
    files = law_files(laws)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    verified: list[VerifiedLaw] = []
    for path, law in [(path, read_law(path)) for path in files]:
        found = law_domain(law, path, domain, allow_code=chosen.allow_code)
        found = None if found is None else with_table(found, "range")
        named = isinstance(model, str | Path)
        loaded = load_model(model, found, allow_code=chosen.allow_code) if named else model
        saved = None if out is None else Path(out) / f"{path.stem}.json"
        decision = None if saved is None else _known(saved, law, loaded, found, chosen)
        if decision is None:
            decision = verifying.verify_law(law, model=loaded, domain=found, settings=chosen)
            saved = None if saved is None else _saved(decision, saved)
        verified.append(VerifiedLaw(path, decision, saved))
        progress(ProgressUpdate("deciding", len(verified), len(files), str(path), verified[-1]))
    return tuple(verified)


def _known(
    path: Path, law: Law, model: Any, domain: Domain | None, settings: VerifySettings
) -> LawDecision | None:
    if not path.exists():
        return None
    plan = planned(law, domain, constrained=settings.constrained, allow_code=settings.allow_code)
    return known_decision(path, plan, as_domain_model(model, plan.domain), settings)


def _saved(decision: LawDecision, path: Path) -> Path | None:
    if decision.answer is LawAnswer.PROVEN:
        save_proof(decision, path)
        return path
    if decision.answer is LawAnswer.VIOLATED:
        save_result(decision.as_result(), path)
        return path
    return None


# `check_proofs`: proofs of laws checked again, without what found them


Saved = SavedProof | SavedRows


@dataclass(frozen=True)
class CheckedProof:
    """A file with a proof of a law, what that shows, and what is wrong with it (None: nothing)."""

    path: Path
    law: str
    over: str
    semantics: str
    problem: str | None = None


def check_proofs(
    files: str | Path | Sequence[str | Path],
    *,
    model: str | Path | None = None,
    domain: str | Path | None = None,
    allow_code: bool = False,
) -> tuple[CheckedProof, ...]:
    """Check proofs of laws again, from the law's text, the domain and the model: `dokimos check`.

    `files` are proofs that `verify_law` wrote to its folder `out`. `model` and `domain` are the recorded
    ones unless given. A domain or model that is code is loaded only where `allow_code` is true, or it is
    given.

    >>> [checked] = dokimos.check_proofs("proofs/older.json", allow_code=True)
    >>> checked.problem, checked.over
    (None, 'the whole domain')
    """
    checked = []
    for path in as_paths(
        files, none="There is nothing to check; give a proof that `dokimos law verify` wrote."
    ):
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
        checked.append(CheckedProof(path, saved.law.name, *shown, problem))
    return tuple(checked)


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
