"""The instances of laws, as they are written: one for each set of cases, with its label if one is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from dokimos import __version__
from dokimos.core.errors import DokimosError
from dokimos.core.files import write_whole
from dokimos.laws.domain.definition import call_domain
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.engine.pools import as_records
from dokimos.laws.models.model import Model
from dokimos.laws.proving.product_layers import ProductInstance, product_instance
from dokimos.laws.proving.rechecking import StatedLaw
from dokimos.laws.proving.relational import relational_property, without_strict
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_deciding import RowDecision, verify_rows
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
#: What `law verify` says about a set of cases; of a violated one, the columns of a case.
Decided = tuple[LawAnswer | None, Sequence[Fraction] | None]


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


@dataclass
class SuiteWriter:
    """The suite so far: networks by their content, the rows of its table, and what has no instance.

    `seconds` are for the search for a proof of each instance, None for no search.
    """

    folder: Path
    version: Version
    seconds: float | None
    rows: list[tuple[str, str, float]] = field(default_factory=list)
    families: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    open_ones: list[str] = field(default_factory=list)
    sat: int = 0
    unsat: int = 0
    asked: list[AskedInstance] = field(default_factory=list)
    _networks: dict[str, str] = field(default_factory=dict)

    def label(self, instance: Instance, made: ProductInstance, decided: Decided) -> str:
        """Label an instance: `sat` by the columns of a violation, else `unsat` by a proof that is found.

        Returns the label, or a word for having none.
        """
        if self.seconds is None:
            return "written"
        answer, columns = decided
        why = f"a proof was not found in {self.seconds:g} s"
        try:
            if columns is not None:
                self._label(instance, Certificate("witness"), made.point(columns))
                self.sat += 1
                return "sat"
            product = read_onnx(made.network, name=instance.name)
            data = prove_in_pairs(product, made.property, seconds=self.seconds)
            if data is not None:
                self._label(instance, Certificate("paired-relus", data))
                self.unsat += 1
                return "unsat"
        except DokimosError as error:
            why = str(error).rstrip(".")
        if answer is LawAnswer.PROVEN:
            why = f"proven for every case; for numbers and mixtures between the cases, {why}"
        elif answer is LawAnswer.OPEN:
            why = f"a violation was not found in {self.seconds:g} s; {why}"
        self.open_ones.append(f"{instance.name}: {why}")
        return "open"

    def _label(self, instance: Instance, certificate: Certificate, point: Point | None = None) -> None:
        """Write the label down. Raises DokimosError if the checker does not accept it."""
        label = Label.UNSAT if point is None else Label.SAT
        truth = accepted_truth(instance, certificate, label, point)
        text = dump_truth(truth, origin={"labelled_by": "law export"})
        write_whole(self.folder / "truth" / f"{instance.name}.json", text, what="the truth file")

    def add_two(self, name: str, asked: Property, content: bytes, comment: str) -> None:
        """Write an instance in VNN-LIB 2.0."""
        place = self.network_place("model", content)
        text = write_vnnlib2(asked, comment=comment)
        write_whole(self.folder / "vnnlib" / f"{name}.vnnlib", text.encode(), what="the property")
        named = ", ".join(f"('{each.name}', '{place}')" for each in asked.networks)
        self.rows.append((f'"[{named}]"', f"vnnlib/{name}.vnnlib", _TIMEOUT_SECONDS))
        self.families[instance_name(place, f"{name}.vnnlib")] = FAMILY

    def network_place(self, name: str, content: bytes) -> str:
        """Where a network is, which is written if it is new."""
        key = sha256(content)
        if key not in self._networks:
            self._networks[key] = f"onnx/{name}.onnx"
            write_whole(self.folder / self._networks[key], content, what="the network")
        return self._networks[key]

    def write_index(self) -> Suite:
        """Write the index, and return the suite."""
        recipe = {"laws": sorted(self.families), "vnnlib": self.version.value}
        write_rows(self.folder, self.rows, self.families, recipe=recipe, version=__version__)
        return read_suite(self.folder)


@dataclass(frozen=True)
class LawWriter:
    """Writes the instances of one law on one model."""

    writer: SuiteWriter
    plan: LawPlan
    model: Model
    stated: StatedLaw
    network: Network
    content: bytes

    def add_whole(self, name: str, settings: VerifySettings) -> str:
        """Write the instance about the whole domain; returns what became of it, in a word or two."""
        answer, case = None, None
        if self.writer.seconds is not None:
            whole = verify_law(self.plan.law, model=self.model, domain=self.plan.domain, settings=settings)
            answer, case = whole.answer, whole.case
        return self._add(name, self.stated.question.zone, answer, case)

    def add_rows(
        self,
        law: str,
        rows: int,
        tolerances: Sequence[Tolerance],
        settings: VerifySettings,
        tell: Callable[[int, int, str], None],
    ) -> None:
        """Write the instances around the first rows; `tell` hears what becomes of each."""
        domain, question = self.plan.domain, self.stated.question
        assert domain.inputs is not None  # only then there are rows
        given = call_domain(domain.inputs, domain, "inputs")
        data = as_records(given, domain.layout, domain.name)[:rows].tolist()
        for tolerance in tolerances:
            place, known = f"{law} ± {tolerance.words}", dict[int, RowDecision]()
            if self.writer.seconds is not None:
                decided = verify_rows(
                    self.plan.law, data, tolerance, model=self.model, domain=domain, settings=settings
                )
                known = {each.row: each for each in decided.rows}
            for index, row in enumerate(data):
                name = f"{law}-{index}-{float(100 * tolerance.share):g}".replace(".", "_")
                zone = tolerance.over(question, row_numbers(question.layout, row))
                if zone is None:
                    self.writer.left_out.append(f"{name}: the row is outside the domain")
                    continue
                own = known.get(index)
                answer, case = (None, None) if own is None else (own.answer, own.case)
                tell(index + 1, len(data), f"{place}: {self._add(name, zone, answer, case)}")

    def _add(self, name: str, zone: Zone, answer: LawAnswer | None, case: ExactCase | None) -> str:
        """Write the instance of a zone; with `case`, a violation in it, also its label."""
        writer, question = self.writer, self.stated.question
        asked = relational_property(question, zone, self.network)
        if asked is None:
            writer.left_out.append(f"{name}: there is no case")
            return "left out, there is no case"
        comment = f"{question.law.rsplit('/', 1)[-1]}: sat iff some case violates it, over the reals"
        if writer.version is Version.TWO:
            writer.add_two(name, asked, self.content, comment)
            return "written"
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
        return writer.label(Instance(own, made.network, text), made, (answer, columns))
