"""Laws as instances for any verifier, and what its answers on these say of the laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.inputs import uncompressed
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.language.syntax import Law
from dokimos.laws.law_sources import DomainSource, LawSource, law_domain, laws_in
from dokimos.laws.models.lookup import as_domain_model, given_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.law_suites import AskedInstance, LawWriter, SuiteWriter
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.rechecking import planned, state_law
from dokimos.laws.proving.results import VerifySettings
from dokimos.laws.proving.row_zones import CaseReplay, Tolerance, cases_near
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.folder import Suite
from dokimos.suites.instance import sha256
from dokimos.suites.vnnlib.model import Point
from dokimos.suites.vnnlib.writer import Version


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


def write_instances(
    laws: LawSource,
    out: Path,
    *,
    model: Any,
    domain: DomainSource | None,
    rows: int | None,
    around: Sequence[Tolerance],
    version: Version,
    settings: VerifySettings,
    labelled: bool = True,
    progress: ProgressCallback[str] = ignore,
) -> ExportedLaws:
    """Write laws on a network as a suite: see `dokimos.export_law`; labels are found only if `labelled`."""
    seconds = settings.seconds if labelled and version is Version.ONE else None

    def tell(done: int, total: int, note: str) -> None:
        progress(ProgressUpdate("exporting", done, total, note, note))

    laws_on = [_law_on(path, law, model, domain, rows, settings) for path, law in laws_in(laws)]
    key = _key(laws_on, [rows, around, version, settings.constrained])
    writer = SuiteWriter(out, version, seconds, key)
    writer.require_new_or_unfinished()
    is_interrupted = False
    try:
        for number, (path, plan, own) in enumerate(laws_on, 1):
            network, content = _network(own)
            try:
                law_writer = LawWriter(writer, plan, own, state_law(plan, own), network, content)
                if rows is None:
                    tell(number, len(laws_on), f"{path.stem}: {law_writer.add_whole(path.stem, settings)}")
                else:
                    law_writer.add_rows(path.stem, rows, around, settings, tell)
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
    path: Path,
    law: Law,
    model: Any,
    domain: DomainSource | None,
    rows: int | None,
    settings: VerifySettings,
) -> tuple[Path, LawPlan, Model]:
    """A law that is read, and the network that it is about. Raises what reading them raises."""
    found = law_domain(law, path, domain, allow_code=settings.allow_code)
    found = None if found is None else with_table(found, "range" if rows is None else "test")
    loaded = given_model(model, found, allow_code=settings.allow_code)
    plan = planned(law, found, constrained=settings.constrained, allow_code=settings.allow_code)
    own = as_domain_model(loaded, plan.domain)
    if not own.is_network:
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


def violation_at(asked: AskedInstance, witness: Point) -> str:
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
