"""`verify_law` and `recheck_law`: laws decided for every case of a set, and their proofs checked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dokimos.api.laws import LawSource, law_domain, law_files
from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.errors import InputError, InvalidProof
from dokimos.laws.domain.definition import call_domain
from dokimos.laws.domain.lookup import load_domain
from dokimos.laws.domain.tables import with_table
from dokimos.laws.engine.pools import as_records
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.proving import verifying
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.proof_files import read_proof, save_proof
from dokimos.laws.proving.rechecking import planned, recheck
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.row_deciding import RowsDecision, verify_rows
from dokimos.laws.proving.row_files import SavedRows, is_about_rows, read_rows, recheck_rows, save_rows
from dokimos.laws.proving.row_zones import Tolerance
from dokimos.laws.reporting.violation_files import save_result


@dataclass(frozen=True)
class VerifiedLaw:
    """A law's file, what is known of it, and where its proof or violation was saved, if anywhere."""

    path: Path
    decision: LawDecision
    saved: Path | None = None


def verify_law(
    laws: LawSource,
    *,
    model: Any = None,
    domain: str | None = None,
    settings: VerifySettings | None = None,
    out: str | Path | None = None,
    progress: ProgressCallback[VerifiedLaw] = ignore,
) -> tuple[VerifiedLaw, ...]:
    """Decide laws for every case of the set that their domain declares: `dokimos law verify`.

    `model` is a file or any object that predicts, the domain's own unless given; it is decided of trees,
    forests and networks. Each law is proven, violated, left open, or refused with the reason. The folder
    `out` gets a proof, or a violation to replay, of each law that is decided.

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
        found = None if found is None else with_table(found)
        named = isinstance(model, str | Path)
        loaded = load_model(model, found, allow_code=chosen.allow_code) if named else model
        decision = verifying.verify_law(law, model=loaded, domain=found, settings=chosen)
        saved = None if out is None else _saved(decision, Path(out) / f"{path.stem}.json")
        verified.append(VerifiedLaw(path, decision, saved))
        progress(ProgressUpdate("deciding", len(verified), len(files), str(path), verified[-1]))
    return tuple(verified)


def _saved(decision: LawDecision, path: Path) -> Path | None:
    if decision.answer is LawAnswer.PROVEN:
        save_proof(decision, path)
        return path
    if decision.answer is LawAnswer.VIOLATED:
        save_result(decision.as_result(), path)
        return path
    return None


@dataclass(frozen=True)
class VerifiedRows:
    """A law's file, what is known of it around rows, and where that was saved, if anywhere."""

    path: Path
    decision: RowsDecision
    saved: Path | None = None


def verify_law_rows(
    laws: LawSource,
    *,
    rows: int,
    tolerances: Sequence[float | Fraction] = (Fraction(1, 100),),
    free: Sequence[str] = (),
    model: Any = None,
    domain: str | None = None,
    settings: VerifySettings | None = None,
    out: str | Path | None = None,
    progress: ProgressCallback[VerifiedRows | None] = ignore,
) -> tuple[VerifiedRows, ...]:
    """Decide laws for all cases around the first rows of the domain's data: `dokimos law verify --rows`.

    A tolerance is a share: numbers move by that share of their range, at least by 1; flags and choices stay
    as they are unless `free` names them. `settings.seconds` is the processor time for each row. The folder
    `out` gets a file for each law and tolerance, with a proof or a case for every row that is decided.

    >>> [found] = dokimos.verify_law_rows("older.law", rows=3, model="older.json", domain="people.py")
    >>> found.decision.tolerance.words, len(found.decision.rows)
    ('1 %', 3)
    """
    if rows < 1:
        raise InputError(f"Laws are decided around 1 row or more, not {rows}.")
    chosen = VerifySettings(seconds=10.0) if settings is None else settings
    around = [Tolerance(Fraction(str(each)), tuple(free)) for each in tolerances]
    files = law_files(laws)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    verified: list[VerifiedRows] = []
    for path, law in [(path, read_law(path)) for path in files]:
        found = law_domain(law, path, domain, allow_code=chosen.allow_code)
        if found is None or found.inputs is None:
            raise InputError(f"{path}: its domain has no `inputs`, so there are no rows.")
        given = call_domain(found.inputs, found, "inputs")
        found = with_table(found)
        data = as_records(given, found.layout, found.name)[:rows].tolist()
        named = isinstance(model, str | Path)
        loaded = load_model(model, found, allow_code=chosen.allow_code) if named else model
        for tolerance in around:
            place = f"{path.stem} ± {tolerance.words}"

            def done(count: int, total: int = len(data), place: str = place) -> None:
                progress(ProgressUpdate("rows", count, total, place, None))

            decision = verify_rows(
                law, data, tolerance, model=loaded, domain=found, settings=chosen, done=done
            )
            saved = None
            if out is not None and not decision.reason:
                saved = Path(out) / f"{path.stem}-{float(100 * tolerance.share):g}.json"
                save_rows(decision, saved)
            verified.append(VerifiedRows(path, decision, saved))
            progress(ProgressUpdate("deciding", len(verified), len(files), place, verified[-1]))
    return tuple(verified)


@dataclass(frozen=True)
class RecheckedLaw:
    """A file with a proof of a law, what that shows, and what is wrong with it (None: nothing)."""

    path: Path
    law: str
    over: str
    semantics: str
    problem: str | None = None


def recheck_law(
    files: str | Path | Sequence[str | Path],
    *,
    model: str | None = None,
    domain: str | None = None,
    allow_code: bool = False,
) -> tuple[RecheckedLaw, ...]:
    """Check proofs of laws again, from the law's text, the domain and the model: `dokimos law recheck`.

    `files` are proofs that `verify_law` wrote to its folder `out`. `model` and `domain` are the recorded
    ones unless given. A domain or model that is code is loaded only where `allow_code` is true, or it is
    given.

    >>> [checked] = dokimos.recheck_law("proofs/older.json", allow_code=True)
    >>> checked.problem, checked.over
    (None, 'the whole domain')
    """
    checked = []
    for path in [Path(files)] if isinstance(files, str | Path) else map(Path, files):
        saved = read_proof(path) if not is_about_rows(path) else read_rows(path)
        place = domain if domain is not None else saved.domain
        if place is None:
            raise InputError(f"{path}: names no domain; give --domain.")
        found = with_table(load_domain(place, allow_code=allow_code or domain is not None))
        loaded = load_model(
            saved.model if model is None else model, found, allow_code=allow_code or model is not None
        )
        plan = planned(saved.law, found, constrained=saved.constrained, allow_code=allow_code)
        shown, problem = None, None
        try:
            if saved.model_sha256 != loaded.sha256:
                raise InvalidProof("the model is not the one that the proof is about")
            own = as_domain_model(loaded, plan.domain)
            if isinstance(saved, SavedRows):
                recheck_rows(plan, own, saved)
                checked.append(_rows_checked(path, saved))
                continue
            shown = recheck(plan, own, saved.cover)
            if (saved.over, saved.semantics) != (shown.over, shown.semantics):
                claimed = f"{saved.over}, {saved.semantics}"
                raise InvalidProof(f"it claims {claimed}; what it shows is {shown.over}, {shown.semantics}")
        except (InvalidProof, Refusal) as reason:
            problem = str(reason)
        over, semantics = ("", "") if shown is None else (shown.over, shown.semantics)
        checked.append(RecheckedLaw(path, saved.law.name, over, semantics, problem))
    return tuple(checked)


def _rows_checked(path: Path, saved: SavedRows) -> RecheckedLaw:
    counts = [(sum(each.answer is answer for each in saved.rows), answer) for answer in LawAnswer]
    words = ", ".join(f"{number:,} {answer.value}" for number, answer in counts if number)
    over = f"records ± {saved.tolerance.words}"
    single = sum(each.in_float32 for each in saved.rows)
    return RecheckedLaw(path, saved.law.name, over, f"{words} ({single:,} proven in float32 too)")
