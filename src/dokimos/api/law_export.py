"""`export_law`: laws as instances for any verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from dokimos import __version__
from dokimos.api.laws import LawSource, law_domain, law_files
from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.errors import DokimosError, InputError, InvalidProof
from dokimos.core.files import write_whole
from dokimos.core.gzipped import uncompressed
from dokimos.laws.domain.definition import call_domain
from dokimos.laws.domain.tables import with_table
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.engine.pools import as_records
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.models.model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.product_layers import ProductInstance, product_instance
from dokimos.laws.proving.rechecking import StatedLaw, planned, state_law
from dokimos.laws.proving.relational import relational_property, without_strict
from dokimos.laws.proving.results import VerifySettings
from dokimos.laws.proving.row_deciding import verify_rows
from dokimos.laws.proving.row_zones import Tolerance, row_numbers
from dokimos.laws.proving.searching import ExactCase
from dokimos.laws.proving.verifying import verify_law
from dokimos.laws.proving.zones import Zone
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.properties.lowering import lower
from dokimos.properties.model import Point, Property
from dokimos.properties.writing import Version, write_vnnlib1, write_vnnlib2
from dokimos.provers.accepted_truth import accepted_truth
from dokimos.provers.paired_halving import prove_in_pairs
from dokimos.suites.folder import Suite, instance_name, read_suite
from dokimos.suites.instance import Certificate, Instance, Label, sha256
from dokimos.suites.writing import dump_truth, write_rows

_TIMEOUT_SECONDS = 60.0
FAMILY = "laws"


@dataclass(frozen=True)
class AskedInstance:
    """An instance by its name: the law it is about, `place` in words, and what it asks of which model."""

    name: str
    place: str
    plan: LawPlan
    model: Model
    stated: StatedLaw
    zone: Zone
    inputs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ExportedLaws:
    """The suite that was written; of each law or row that has no instance, why.

    `sat` have a witness, `unsat` a proof that the checker has accepted.
    """

    suite: Suite
    sat: int
    unsat: int
    asked: tuple[AskedInstance, ...]
    left_out: tuple[str, ...]


def export_law(
    laws: LawSource,
    *,
    out: str | Path,
    model: Any = None,
    domain: str | None = None,
    rows: int | None = None,
    tolerances: Sequence[float | Fraction] = (Fraction(1, 100),),
    free: Sequence[str] = (),
    version: Version = Version.ONE,
    settings: VerifySettings | None = None,
    labelled: bool = True,
    progress: ProgressCallback[str] = ignore,
) -> ExportedLaws:
    """Write laws on a network as a new suite of instances for any verifier: `dokimos law export`.

    An instance asks whether a law is violated in the whole domain, or around a row, `rows` of them for each
    tolerance. In VNN-LIB 1.0 it has one network, the product of as many copies as the law has records; in
    2.0 its property speaks of that many networks. In 1.0, a violation that is found in `settings.seconds`
    becomes the witness of a label `sat`, and a proof that is found in as many a label `unsat`; `label`
    looks for the other labels. Without `labelled`, nothing is looked for.

    >>> exported = dokimos.export_law("older.law", model="older.json", out="suite")
    Traceback (most recent call last):
    dokimos.core.errors.InputError: older.json: is not a network; only laws on networks are exported.
    """
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} already exists; choose a new folder for the suite.")
    chosen = VerifySettings(seconds=2.0) if settings is None else settings
    around = [Tolerance(Fraction(str(each)), tuple(free)) for each in tolerances]
    files = law_files(laws)
    writer = _Writer(folder, version, chosen.seconds if labelled and version is Version.ONE else None)
    for number, path in enumerate(files, 1):
        law = read_law(path)
        found = law_domain(law, path, domain, allow_code=chosen.allow_code)
        found = None if found is None else with_table(found)
        named = isinstance(model, str | Path)
        loaded = load_model(model, found, allow_code=chosen.allow_code) if named else model
        plan = planned(law, found, constrained=chosen.constrained, allow_code=chosen.allow_code)
        own = as_domain_model(loaded, plan.domain)
        network, content = _network(own)
        try:
            stated = state_law(plan, own)
            law_writer = _LawWriter(writer, plan, own, stated, network, content)
            if rows is None:
                whole = verify_law(law, model=loaded, domain=found, settings=chosen) if labelled else None
                law_writer.add(path.stem, stated.question.zone, None if whole is None else whole.case)
            else:
                if plan.domain.inputs is None:
                    raise InputError(f"{path}: its domain has no `inputs`, so there are no rows.")
                given = call_domain(plan.domain.inputs, plan.domain, "inputs")
                data = as_records(given, plan.domain.layout, plan.domain.name)[:rows].tolist()
                for tolerance in around:
                    cases = {}
                    if labelled:
                        decided = verify_rows(
                            law, data, tolerance, model=loaded, domain=found, settings=chosen
                        )
                        cases = {each.row: each.case for each in decided.rows}
                    for index, row in enumerate(data):
                        name = f"{path.stem}-{index}-{float(100 * tolerance.share):g}".replace(".", "_")
                        numbers = row_numbers(stated.question.layout, row)
                        zone = tolerance.over(stated.question, numbers)
                        if zone is None:
                            writer.left_out.append(f"{name}: the row is outside the domain")
                            continue
                        law_writer.add(name, zone, cases.get(index))
        except Refusal as refusal:
            writer.left_out.append(f"{path.stem}: {refusal}")
        progress(ProgressUpdate("exporting", number, len(files), str(path), path.stem))
    if not writer.rows:
        reasons = "; ".join(writer.left_out[:3])
        raise InputError(f"None of these laws can be exported: {reasons}.")
    return writer.written()


def _network(model: Model) -> tuple[Network, bytes]:
    if not isinstance(model.made_of, bytes):
        raise InputError(f"{model.name}: is not a network; only laws on networks are exported.")
    content = uncompressed(model.made_of, file=model.name)
    return read_onnx(content, name=model.name), content


@dataclass
class _Writer:
    """The suite so far: networks by their content, the rows of its table, and what has no instance.

    `seconds` are for the search for a proof of each instance, None for no search.
    """

    folder: Path
    version: Version
    seconds: float | None
    rows: list[tuple[str, str, float]] = field(default_factory=list)
    families: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    sat: int = 0
    unsat: int = 0
    asked: list[AskedInstance] = field(default_factory=list)
    _networks: dict[str, str] = field(default_factory=dict)

    def label(self, instance: Instance, made: ProductInstance, columns: Sequence[Fraction] | None) -> None:
        """Label an instance: `sat` by the columns of a violation, else `unsat` by a proof that is found."""
        if self.seconds is None:
            return
        if columns is not None:
            self.sat += self._label(instance, Certificate("witness"), made.point(columns))
            return
        try:
            product = read_onnx(made.network, name=instance.name)
            data = prove_in_pairs(product, made.property, seconds=self.seconds)
        except InvalidProof:
            return
        if data is not None:
            self.unsat += self._label(instance, Certificate("paired-relus", data))

    def _label(self, instance: Instance, certificate: Certificate, point: Point | None = None) -> bool:
        """Whether the checker accepts the label, which is written down then."""
        label = Label.UNSAT if point is None else Label.SAT
        try:
            truth = accepted_truth(instance, certificate, label, point)
        except (InvalidProof, DokimosError):
            return False
        text = dump_truth(truth, origin={"labelled_by": "law export"})
        write_whole(self.folder / "truth" / f"{instance.name}.json", text, what="the truth file")
        return True

    def add_two(self, name: str, asked: Property, content: bytes, comment: str) -> None:
        place = self.network_place("model", content)
        text = write_vnnlib2(asked, comment=comment)
        write_whole(self.folder / "vnnlib" / f"{name}.vnnlib", text.encode(), what="the property")
        named = ", ".join(f"('{each.name}', '{place}')" for each in asked.networks)
        self.rows.append((f'"[{named}]"', f"vnnlib/{name}.vnnlib", _TIMEOUT_SECONDS))
        self.families[instance_name(place, f"{name}.vnnlib")] = FAMILY

    def network_place(self, name: str, content: bytes) -> str:
        key = sha256(content)
        if key not in self._networks:
            self._networks[key] = f"onnx/{name}.onnx"
            write_whole(self.folder / self._networks[key], content, what="the network")
        return self._networks[key]

    def written(self) -> ExportedLaws:
        """Write the index, and return the suite."""
        recipe = {"laws": sorted(self.families), "vnnlib": self.version.value}
        write_rows(self.folder, self.rows, self.families, recipe=recipe, version=__version__)
        return ExportedLaws(
            read_suite(self.folder), self.sat, self.unsat, tuple(self.asked), tuple(self.left_out)
        )


@dataclass(frozen=True)
class _LawWriter:
    """Writes the instances of one law on one model."""

    writer: _Writer
    plan: LawPlan
    model: Model
    stated: StatedLaw
    network: Network
    content: bytes

    def add(self, name: str, zone: Zone, case: ExactCase | None) -> None:
        """Write the instance of a zone; with `case`, a violation in it, also its label."""
        writer, question = self.writer, self.stated.question
        asked = relational_property(question, zone, self.network)
        if asked is None:
            writer.left_out.append(f"{name}: there is no case")
            return
        comment = f"{question.law.rsplit('/', 1)[-1]}: sat iff some case violates it, over the reals"
        if writer.version is Version.TWO:
            writer.add_two(name, asked, self.content, comment)
            return
        lowered = lower(without_strict(asked), {each.name: self.content for each in asked.networks})
        made = product_instance(self.network, lowered)
        text = write_vnnlib1(made.property, comment=f"{comment}; ties count").encode()
        place = writer.network_place(name, made.network)
        write_whole(writer.folder / "vnnlib" / f"{name}.vnnlib", text, what="the property")
        row = (place, f"vnnlib/{name}.vnnlib", _TIMEOUT_SECONDS)
        own = instance_name(row[0], row[1])
        writer.rows.append(row)
        writer.families[own] = FAMILY
        writer.asked.append(AskedInstance(own, name, self.plan, self.model, self.stated, zone, made.inputs))
        columns = None
        if case is not None:
            columns = [Fraction(c) for r in question.records for c in question.exact_columns(r, case)]
        writer.label(Instance(own, made.network, text), made, columns)
