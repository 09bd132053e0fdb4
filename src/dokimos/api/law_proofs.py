"""Proofs of laws: found, checked again, asked of any verifier; and networks repaired to have them."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dokimos.api.campaigns import run
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, only_one, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import Domain, call_domain
from dokimos.laws.engine.pools import as_records
from dokimos.laws.language.syntax import Law
from dokimos.laws.law_sources import DomainSource, LawSource, law_domain, laws_in
from dokimos.laws.models.lookup import as_domain_model, given_model
from dokimos.laws.models.lookup import is_code as is_code
from dokimos.laws.proving import verifying
from dokimos.laws.proving.law_suites import AskedInstance, ExportedLaws, write_instances
from dokimos.laws.proving.monotone import Monotone as Monotone
from dokimos.laws.proving.monotone import MonotoneFeature as MonotoneFeature
from dokimos.laws.proving.monotone import decide_monotone
from dokimos.laws.proving.results import LawAnswer as LawAnswer
from dokimos.laws.proving.results import LawDecision as LawDecision
from dokimos.laws.proving.results import RowDecision
from dokimos.laws.proving.results import RowsDecision as RowsDecision
from dokimos.laws.proving.results import VerifySettings as VerifySettings
from dokimos.laws.proving.row_zones import Tolerance
from dokimos.laws.proving.saved_proofs import known_rows, save_proof, save_rows
from dokimos.laws.proving.stated_laws import planned
from dokimos.laws.proving.verifying import verify_rows
from dokimos.laws.repair.kept_repairs import KeptRepairs, repair_of, run_seeds
from dokimos.laws.repair.repair import RepairedModel as RepairedModel
from dokimos.laws.repair.repair import RepairSettings as RepairSettings
from dokimos.laws.repair.repair_task import RepairWay as RepairWay
from dokimos.laws.reporting.terminal import decision_words as decision_words
from dokimos.laws.reporting.terminal import repair_table as repair_table
from dokimos.laws.reporting.terminal import rows_words as rows_words
from dokimos.laws.reporting.violation_files import known_decision, save_result
from dokimos.suites.answers import Answer
from dokimos.suites.vnnlib.writer import Version, vnnlib_version
from dokimos.verifiers.base import Verifier


@dataclass(frozen=True, repr=False)
class VerifiedLaw(Brief):
    """A law's file, the decision, and where its proof or violation was saved, if anywhere."""

    path: Path
    decision: LawDecision
    saved: Path | None = None

    def _repr_html_(self) -> str:
        """The answer in words, for a notebook."""
        return f"<pre>{escape(decision_words(self.decision))}</pre>"


def verify_law(
    laws: LawSource,
    *,
    model: Any = None,
    domain: DomainSource | None = None,
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
    asked = laws_in(laws)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    verified: list[VerifiedLaw] = []
    for path, law in asked:
        found = law_domain(law, path, domain, allow_code=chosen.allow_code)
        found = None if found is None else with_table(found, "range")
        loaded = given_model(model, found, allow_code=chosen.allow_code)
        saved = None if out is None else Path(out) / f"{path.stem}.json"
        decision = None if saved is None else _known(saved, law, loaded, found, chosen)
        if decision is None:
            decision = verifying.verify_law(law, model=loaded, domain=found, settings=chosen)
            saved = None if saved is None else _saved(decision, saved)
        verified.append(VerifiedLaw(path, decision, saved))
        progress(ProgressUpdate("deciding", len(verified), len(asked), str(path), verified[-1]))
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


# `monotone`: whether a model rises or falls with features


def monotone(
    model: Any,
    data: Any,
    constraints: Mapping[str, int] | None = None,
    *,
    target: str | None = None,
    settings: VerifySettings | None = None,
    progress: ProgressCallback[MonotoneFeature] = ignore,
) -> Monotone:
    """Prove that a model rises or falls with features, or find a small counterexample: `dokimos monotone`.

    `model` is a fitted model or a file; `data` is a DataFrame, an array or a CSV file, whose ranges are the
    set of records; the columns that the model was not fitted on are left out, as is `target`. `constraints`
    has 1 or −1 for each feature; by default, those that the model was fitted with. Of a classifier, the
    score of a class is asked about (of two, that of the second), of a model with several outputs, each.

    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> ages = np.arange(20.0, 60.0).reshape(-1, 1)
    >>> model = DecisionTreeRegressor(max_depth=3, monotonic_cst=[1]).fit(ages, np.sqrt(ages[:, 0]))
    >>> dokimos.monotone(model, ages).is_proven
    True
    """
    chosen = VerifySettings() if settings is None else settings
    return decide_monotone(model, data, constraints, target, chosen, progress)


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
    domain: DomainSource | None = None,
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
    asked = laws_in(laws)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    verified: list[VerifiedRows] = []
    for path, law in asked:
        found = law_domain(law, path, domain, allow_code=chosen.allow_code)
        if found is None or found.inputs is None:
            raise InputError(f"{path}: its domain has no `inputs`, so there are no rows.")
        given = call_domain(found.inputs, found, "inputs")
        found = with_table(found)
        data = as_records(given, found.layout, found.name)[:rows]
        loaded = given_model(model, found, allow_code=chosen.allow_code)
        for tolerance in [Tolerance(share, tuple(free)) for share in shares]:
            place = f"{path.stem} ± {tolerance.words}"

            def done(count: int, total: int = len(data), place: str = place) -> None:
                progress(ProgressUpdate("rows", count, total, place, None))

            name = f"{float(100 * tolerance.share):g}"
            saved = None if out is None else Path(out) / f"{path.stem}-{name}.json"
            decision = _rows(law, found, loaded, data, tolerance, chosen, saved, done)
            verified.append(VerifiedRows(path, decision, None if decision.reason else saved))
            progress(ProgressUpdate("deciding", len(verified), len(asked), place, verified[-1]))
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


# `export_law` and `ask_law`: laws as instances for any verifier


def export_law(
    laws: LawSource,
    *,
    out: str | Path,
    model: Any = None,
    domain: DomainSource | None = None,
    rows: int | None = None,
    tolerances: Sequence[float | Fraction] = (Fraction(1, 100),),
    free: Sequence[str] = (),
    vnnlib: str = "1",
    settings: VerifySettings | None = None,
    progress: ProgressCallback[str] = ignore,
) -> ExportedLaws:
    """Write laws on a network as a new suite of instances for any verifier: `dokimos law export`.

    An instance asks whether a law is violated in the whole domain, or around a row, `rows` of them for each
    tolerance. In VNN-LIB 1.0 it has one network, the product of as many copies as the law has records; in
    2.0 its property speaks of that many networks. `label` looks for the labels, with proofs. Of `settings`,
    `constrained` and `allow_code` count.

    >>> exported = dokimos.export_law("older.law", model="older.json", out="suite")
    Traceback (most recent call last):
    dokimos.core.errors.InputError: older.json: is not a network; only laws on networks are exported.
    """
    return write_instances(
        laws,
        Path(out),
        model=model,
        domain=domain,
        rows=rows,
        around=[Tolerance(Fraction(str(each)), tuple(free)) for each in tolerances],
        version=vnnlib_version(vnnlib),
        settings=VerifySettings() if settings is None else settings,
        progress=progress,
    )


@dataclass(frozen=True, repr=False)
class AskedLaw(Brief):
    """What a verifier says of a law in a set of cases: `place` names the law, and the row and tolerance.

    PROVEN is the verifier's word, which nobody has checked. VIOLATED has `words`: a case that was run
    again, exactly and in onnxruntime. OPEN has a `reason`.
    """

    place: str
    verifier: str
    answer: LawAnswer
    words: str = ""
    reason: str = ""
    seconds: float = 0.0


def ask_law(
    laws: LawSource,
    verifier: str | Verifier,
    *,
    model: Any = None,
    domain: DomainSource | None = None,
    rows: int | None = None,
    tolerances: Sequence[float | Fraction] = (Fraction(1, 100),),
    free: Sequence[str] = (),
    settings: VerifySettings | None = None,
    progress: ProgressCallback[AskedLaw] = ignore,
) -> tuple[AskedLaw, ...]:
    """Ask a verifier whether a case violates laws on a network: `dokimos law verify --verifier`.

    Each law, or each law around each row, is written as one product network with a property in VNN-LIB 1.0
    (see `export_law`), and the verifier has `settings.seconds` for each. What it calls `unsat` is proven by
    it alone. What it calls `sat` counts where its point is a case of the law, or rounds to one, that
    violates the law when the network is run again, exactly and in onnxruntime.

    >>> dokimos.ask_law("older.law", "reference", model="older.json")
    Traceback (most recent call last):
    dokimos.core.errors.InputError: older.json: is not a network; only laws on networks are exported.
    """
    settings = VerifySettings() if settings is None else settings
    with tempfile.TemporaryDirectory(prefix="dokimos-law-") as folder:
        exported = write_instances(
            laws,
            Path(folder) / "laws",
            model=model,
            domain=domain,
            rows=rows,
            around=[Tolerance(Fraction(str(each)), tuple(free)) for each in tolerances],
            version=Version.ONE,
            settings=settings,
        )
        known = {each.name: each for each in exported.asked}
        found: list[AskedLaw] = []

        def tell(update: ProgressUpdate[object]) -> None:
            if isinstance(update.item, RunRecord):
                found.append(_answer(known[update.item.instance], update.item))
                progress(ProgressUpdate("asking", len(found), len(known), found[-1].place, found[-1]))

        run(
            exported.suite.folder,
            verifier,
            out=Path(folder) / "run",
            settings=RunSettings(timeout_seconds=settings.seconds),
            progress=tell,
        )
    return tuple(found)


def _answer(asked: AskedInstance, record: RunRecord) -> AskedLaw:
    said = (record.detail or record.answer.value).strip().splitlines()
    answer, words, reason = LawAnswer.OPEN, "", said[-1].strip()  # of a traceback, the error
    if record.answer is Answer.UNSAT:
        answer, reason = LawAnswer.PROVEN, ""
    elif record.answer is Answer.SAT:
        words = "" if record.witness is None else asked.violation_at(record.witness)
        answer = LawAnswer.VIOLATED if words else LawAnswer.OPEN
        reason = "" if words else "its counterexample is not a case that violates the law"
    return AskedLaw(asked.place, record.verifier, answer, words, reason, record.wall_seconds)


# `repair_law`: a network changed so that it keeps laws


def repair_law(
    laws: LawSource,
    *,
    model: Any = None,
    domain: DomainSource | None = None,
    settings: RepairSettings | None = None,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    out: str | Path | None = None,
    table: str | Path | None = None,
    progress: ProgressCallback[RepairedModel] = ignore,
) -> tuple[RepairedModel, ...]:
    """Change a model so that it keeps laws and its answers, once for each seed: `dokimos law repair`.

    The laws must have the same domain and be about increasing or decreasing numbers in a record. Networks
    are trained; trees get other values of leaves, lose splits or are fitted again, and only the held-out
    rows depend on the seed. A model that keeps the laws already is left as it is. The model with the most
    proven laws and, among those, the most unchanged answers is written to the file `out`: NAME.onnx,
    NAME.json for trees, or NAME.pkl for an estimator. A table of all seeds, in Markdown, is written to the
    file `table`. If interrupted (Ctrl-C), the same call continues where it stopped: until both are written,
    what is finished is kept beside `out`, in NAME.onnx-unfinished.json.

    >>> made = dokimos.repair_law("older.law", model="older.json", domain="people.py", seeds=[0])
    >>> made[0].after.proven
    1
    """
    chosen = RepairSettings() if settings is None else settings
    path = None if out is None else Path(out)
    if path is not None:
        expect_writable(path, what="repaired model", example="repaired.onnx")
    page = None if table is None else Path(table)
    if page is not None:
        expect_writable(page, what="table", example="repair.md")
    if not seeds:
        raise InputError("A repair needs at least one seed.")
    repair = repair_of(laws, model, domain, chosen)
    forms = repair.forms(chosen)
    if path is not None and path.suffix not in forms:
        raise InputError(f"{path}: this model is written to a file that ends in {' or '.join(forms)}.")
    if path is None:
        made = run_seeds(repair, chosen, seeds, None, progress)
        _write(made, path, page)
        return made
    beside = path.resolve()
    with only_one(beside.with_name(f".{beside.name}.lock"), doing=f"repairs {path}"):
        kept = KeptRepairs(beside.with_name(f"{beside.name}-unfinished.json"), repair.key(chosen))
        made = run_seeds(repair, chosen, seeds, kept, progress)
        _write(made, path, page)
        kept.remove()
    return made


def _write(made: Sequence[RepairedModel], path: Path | None, page: Path | None) -> None:
    if page is not None:
        write_whole(page, repair_table(made))
    if path is not None:
        best = max(made, key=lambda each: (each.after.proven, each.after.agreement))
        is_pickle = path.suffix == ".pkl"
        content = pickle.dumps(best.estimator) if is_pickle else best.content
        write_whole(path, content, make_folder=False)
