"""`verify_law`: laws decided for every case of a set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dokimos.api.laws import LawSource, law_domain, law_files
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import Domain
from dokimos.laws.language.parser import read_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.proving import verifying
from dokimos.laws.proving.rechecking import planned, save_proof
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
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
