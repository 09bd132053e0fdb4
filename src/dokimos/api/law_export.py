"""`export_law`: laws as instances for any verifier."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dokimos import __version__
from dokimos.api.campaigns import run
from dokimos.api.laws import LawSource, law_domain, law_files
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.core.inputs import uncompressed
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.law_suites import AskedInstance, LawWriter, SuiteWriter
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.rechecking import planned, state_law
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_zones import CaseReplay, Tolerance, cases_near
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.folder import Suite
from dokimos.suites.instance import Answer, sha256
from dokimos.suites.vnnlib.model import Point
from dokimos.suites.vnnlib.writer import Version, vnnlib_version
from dokimos.verifiers.base import Verifier


@dataclass(frozen=True, repr=False)
class ExportedLaws(Brief):
    """The suite that was written; of each law or row that has no instance, why.

    `sat` have a witness, `unsat` a proof that the checker has accepted; `open_ones` says of each instance
    for which a label was looked for in vain, why. If interrupted, the suite has what was done before.
    """

    suite: Suite
    sat: int
    unsat: int
    asked: tuple[AskedInstance, ...]
    left_out: tuple[str, ...]
    open_ones: tuple[str, ...]
    is_interrupted: bool


def export_law(
    laws: LawSource,
    *,
    out: str | Path,
    model: Any = None,
    domain: str | Path | None = None,
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
    2.0 its property speaks of that many networks. In 1.0, a violation that is found in `settings.seconds`
    becomes the witness of a label `sat`, and a proof that is found in as many a label `unsat`; `label`
    looks for the other labels. If interrupted (Ctrl-C) after the
    first instance, what is there is a suite, and the same call continues it: labels that are there are
    checked again, the others looked for.

    >>> exported = dokimos.export_law("older.law", model="older.json", out="suite")
    Traceback (most recent call last):
    dokimos.core.errors.InputError: older.json: is not a network; only laws on networks are exported.
    """
    return _exported(
        laws,
        Path(out),
        model,
        domain,
        rows,
        [Tolerance(Fraction(str(each)), tuple(free)) for each in tolerances],
        vnnlib_version(vnnlib),
        VerifySettings(seconds=2.0) if settings is None else settings,
        progress,
    )


def _exported(
    laws: LawSource,
    out: Path,
    model: Any,
    domain: str | Path | None,
    rows: int | None,
    around: Sequence[Tolerance],
    version: Version,
    chosen: VerifySettings,
    progress: ProgressCallback[str] = ignore,
    *,
    labelled: bool = True,
) -> ExportedLaws:
    """The same; unless `labelled`, no labels are looked for."""
    seconds = chosen.seconds if labelled and version is Version.ONE else None

    def tell(done: int, total: int, note: str) -> None:
        progress(ProgressUpdate("exporting", done, total, note, note))

    laws_on = [_law_on(path, model, domain, rows, chosen) for path in law_files(laws)]
    key = _key(laws_on, [rows, around, version, chosen.constrained])
    writer = SuiteWriter(out, version, seconds, key)
    writer.require_new_or_unfinished()
    is_interrupted = False
    try:
        for number, (path, plan, own) in enumerate(laws_on, 1):
            network, content = _network(own)
            try:
                law_writer = LawWriter(writer, plan, own, state_law(plan, own), network, content)
                if rows is None:
                    tell(number, len(laws_on), f"{path.stem}: {law_writer.add_whole(path.stem, chosen)}")
                else:
                    law_writer.add_rows(path.stem, rows, around, chosen, tell)
            except Refusal as refusal:
                writer.left_out.append(f"{path.stem}: {refusal}")
    except KeyboardInterrupt:
        if not writer.rows:
            raise
        is_interrupted = True
    if not writer.rows:
        reasons = "; ".join(writer.left_out[:3])
        raise InputError(f"None of these laws can be exported: {reasons}.")
    return ExportedLaws(
        writer.write_index(is_finished=not is_interrupted),
        writer.sat,
        writer.unsat,
        tuple(writer.asked),
        tuple(writer.left_out),
        tuple(writer.open_ones),
        is_interrupted,
    )


def _law_on(
    path: Path, model: Any, domain: str | Path | None, rows: int | None, settings: VerifySettings
) -> tuple[Path, LawPlan, Model]:
    """A law that is read, and the network that it is about. Raises what reading them raises."""
    law = read_law(path)
    found = law_domain(law, path, domain, allow_code=settings.allow_code)
    found = None if found is None else with_table(found, "range" if rows is None else "test")
    named = isinstance(model, str | Path)
    loaded = load_model(model, found, allow_code=settings.allow_code) if named else model
    plan = planned(law, found, constrained=settings.constrained, allow_code=settings.allow_code)
    own = as_domain_model(loaded, plan.domain)
    if not isinstance(own.made_of, bytes):
        raise InputError(f"{own.name}: is not a network; only laws on networks are exported.")
    if rows is not None and plan.domain.inputs is None:
        raise InputError(f"{path}: its domain has no `inputs`, so there are no rows.")
    return path, plan, own


def _key(laws_on: Sequence[tuple[Path, LawPlan, Model]], options: Sequence[Any]) -> str:
    """A hash of what the instances are about: laws, domains, networks and options."""
    parts: list[Any] = [__version__, *options]
    for path, plan, model in laws_on:
        domain, layout = plan.domain, plan.domain.layout
        features = None if layout is None else layout.features
        about = [path.stem, plan.law.text, domain.name, domain.classes, domain.constraints, features]
        assert isinstance(model.made_of, bytes)  # as `_law_on` requires it
        parts.append([*about, sha256(model.made_of)])
    return sha256("\n".join(map(repr, parts)).encode())


def _network(model: Model) -> tuple[Network, bytes]:
    assert isinstance(model.made_of, bytes)  # as `_law_on` requires it
    content = uncompressed(model.made_of, file=model.name)
    return read_onnx(content, name=model.name), content


# `ask_law`: laws decided by a verifier, through the product of copies of the network


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
    domain: str | Path | None = None,
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
        around = [Tolerance(Fraction(str(each)), tuple(free)) for each in tolerances]
        place = Path(folder) / "laws"
        exported = _exported(
            laws, place, model, domain, rows, around, Version.ONE, settings, labelled=False
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
        words = "" if record.witness is None else _violation(asked, record.witness)
        answer = LawAnswer.VIOLATED if words else LawAnswer.OPEN
        reason = "" if words else "its counterexample is not a case that violates the law"
    return AskedLaw(asked.place, record.verifier, answer, words, reason, record.wall_seconds)


def _violation(asked: AskedInstance, witness: Point) -> str:
    """A violation at, or next to, a point of the product, in words; empty where there is none."""
    question, closer = asked.stated.question, asked.stated.closer
    assert isinstance(closer, NetworkCloser)  # only laws on networks are exported
    if len(witness) != 1 + max(k for parts in asked.inputs for k in parts):
        return ""
    columns = [sum((witness[k] for k in parts), Fraction(0)) for parts in asked.inputs]
    replay = CaseReplay(asked.plan, asked.model, question, closer.reach.decided)
    for case in cases_near(question, columns):
        if (
            case in asked.zone
            and exactly_violated(question, closer.reach, case) is True
            and replay.violates(case)
        ):
            return replay.violation(case).words
    return ""
