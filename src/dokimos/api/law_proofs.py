"""`verify_law`: laws decided for every case of a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dokimos.api.laws import LawSource, law_domain, law_files
from dokimos.core.errors import InputError
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import Domain, call_domain
from dokimos.laws.engine.pools import as_records
from dokimos.laws.language.parser import read_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.proving import verifying
from dokimos.laws.proving.rechecking import planned, save_proof
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.row_deciding import verify_rows
from dokimos.laws.proving.row_files import RowDecision, RowsDecision, known_rows, save_rows
from dokimos.laws.proving.row_zones import Tolerance
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


# `verify_law_rows`: laws decided around the rows of a data set


@dataclass(frozen=True, repr=False)
class VerifiedRows(Brief):
    """A law's file, what is known of it around rows, and where that was saved, if anywhere."""

    path: Path
    decision: RowsDecision
    saved: Path | None = None


def verify_law_rows(
    laws: LawSource,
    *,
    rows: int,
    tolerances: Sequence[float | Fraction] | None = None,
    free: Sequence[str] = (),
    model: Any = None,
    domain: str | Path | None = None,
    settings: VerifySettings | None = None,
    out: str | Path | None = None,
    progress: ProgressCallback[VerifiedRows | None] = ignore,
) -> tuple[VerifiedRows, ...]:
    """Decide laws for all cases around the first rows of the domain's data: `dokimos law verify --rows`.

    A tolerance is a share, 1 % unless given: numbers move by that share of their range, at least by 1;
    flags and choices stay as they are unless `free` names them. `settings.seconds` is the processor time
    for each row. The folder `out` gets a file for each law and tolerance, with a proof or a case for every
    row that is decided; it is written as rows are decided, and a later call checks what is there, and
    decides the other rows only.

    >>> [found] = dokimos.verify_law_rows("older.law", rows=3, model="older.json", domain="people.py")
    >>> found.decision.tolerance.words, len(found.decision.rows)
    ('1 %', 3)
    """
    if rows < 1:
        raise InputError(f"Laws are decided around 1 row or more, not {rows}.")
    chosen = VerifySettings(seconds=10.0) if settings is None else settings
    shares = (Fraction(1, 100),) if tolerances is None else [Fraction(str(each)) for each in tolerances]
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
        data = as_records(given, found.layout, found.name)[:rows]
        named = isinstance(model, str | Path)
        loaded = load_model(model, found, allow_code=chosen.allow_code) if named else model
        for tolerance in [Tolerance(share, tuple(free)) for share in shares]:
            place = f"{path.stem} ± {tolerance.words}"

            def done(count: int, total: int = len(data), place: str = place) -> None:
                progress(ProgressUpdate("rows", count, total, place, None))

            name = f"{float(100 * tolerance.share):g}"
            saved = None if out is None else Path(out) / f"{path.stem}-{name}.json"
            decision = _rows(law, found, loaded, data, tolerance, chosen, saved, done)
            verified.append(VerifiedRows(path, decision, None if decision.reason else saved))
            progress(ProgressUpdate("deciding", len(verified), len(files), place, verified[-1]))
    return tuple(verified)


def _rows(
    law: Law,
    domain: Domain,
    model: Any,
    data: NDArray[Any],
    tolerance: Tolerance,
    settings: VerifySettings,
    saved: Path | None,
    done: Callable[[int], None],
) -> RowsDecision:
    plan = planned(law, domain, constrained=settings.constrained, allow_code=settings.allow_code)
    own = as_domain_model(model, plan.domain)
    known: tuple[RowDecision, ...] = ()
    if saved is not None and saved.exists():
        known = known_rows(saved, plan, own, tolerance, data)
        if known:
            done(len(known))

    def keep(so_far: RowsDecision) -> None:
        if saved is not None:
            save_rows(so_far, saved)
        done(len(so_far.rows))

    given = data.tolist()
    decision = verify_rows(
        law, given, tolerance, model=own, domain=domain, settings=settings, known=known, done=keep
    )
    if saved is not None and not decision.reason:
        save_rows(decision, saved)
    return decision
