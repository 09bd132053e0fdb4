"""The instances of laws, as they are written: one for each set of cases, with its label if one is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos import __version__
from dokimos.checker.check import check
from dokimos.checker.lemmas.zones import Zone
from dokimos.core import strict_json
from dokimos.core.errors import DokimosError, InputError
from dokimos.core.files import read_whole, write_whole
from dokimos.engine.outcome import SearchEffort, accepted_truth
from dokimos.laws.domain.definition import call_domain
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.pools import as_records, data_of
from dokimos.laws.models.same_decisions import CASES, are_close, expect_same_decisions
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.product_layers import ProductInstance, product_instance
from dokimos.laws.proving.rechecking import StatedLaw
from dokimos.laws.proving.relational import relational_property, without_strict
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_deciding import verify_rows
from dokimos.laws.proving.row_zones import Tolerance, row_numbers
from dokimos.laws.proving.searching import ExactCase
from dokimos.laws.proving.verifying import verify_law
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.runtimes.sessions import Replayer
from dokimos.suites.entry import SuiteForm, load_truth
from dokimos.suites.folder import Suite, instance_name, read_suite
from dokimos.suites.instance import Certificate, Instance, Label, sha256
from dokimos.suites.lower import lower
from dokimos.suites.suite_files import dump_truth, write_rows
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.writer import Version, write_vnnlib1, write_vnnlib2

_TIMEOUT_SECONDS = 60.0
FAMILY = "laws"
#: In the recipe of an interrupted suite: what it is the beginning of.
_UNFINISHED = "unfinished"
#: So many rows are decided at a time: what is lost when interrupted.
_TOGETHER = 20
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

    `seconds` are for the search for a proof of each instance, None for no search. `key` stands for
    everything that the instances depend on: an unfinished suite with the same key is continued.
    """

    folder: Path
    version: Version
    seconds: float | None
    key: str
    rows: list[tuple[str, str, float]] = field(default_factory=list)
    families: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    open_ones: list[str] = field(default_factory=list)
    sat: int = 0
    unsat: int = 0
    asked: list[AskedInstance] = field(default_factory=list)
    _networks: dict[str, str] = field(default_factory=dict)

    def require_new_or_unfinished(self) -> None:
        """Raises InputError if there is anything in the folder but the beginning of the same suite."""
        if not self.folder.exists() or not any(self.folder.iterdir()):
            return
        index = self.folder / "suite.json"
        begun = None
        if index.exists():
            form = strict_json.read(read_whole(index), SuiteForm, file=index, what="the suite's own file")
            begun = form.recipe.get(_UNFINISHED)
        if begun is None:
            raise InputError(f"{self.folder} already exists; choose a new folder for the suite.")
        if begun != self.key:
            raise InputError(
                f"{self.folder} is the beginning of another suite: a law, the network or an option was "
                "different; choose a new folder."
            )

    def known_label(self, instance: Instance) -> Label | None:
        """The label that an instance got before an interruption, if the checker accepts it."""
        place = self.folder / "truth" / f"{instance.name}.json"
        if self.seconds is None or not place.exists():
            return None
        try:
            truth = load_truth(read_whole(place).decode(), file=str(place))
            check(instance, truth)
        except (DokimosError, UnicodeDecodeError):
            return None
        if truth.label is Label.SAT:
            self.sat += 1
        else:
            self.unsat += 1
        return truth.label

    def label(self, instance: Instance, made: ProductInstance, decided: Decided) -> str:
        """Label an instance: `sat` by the columns of a violation, else `unsat` by a proof that is found.

        Returns the label, or a word for having none.
        """
        import_module("dokimos.engine.branch_and_bound")  # loads torch, which is no time of the search
        from dokimos.engine.linear import LinearSearch

        assert self.seconds is not None  # only then is a label looked for
        answer, columns = decided
        why = f"a proof was not found in {self.seconds:g} s"
        try:
            if columns is not None:
                self._label(instance, Certificate("witness"), made.point(columns))
                self.sat += 1
                return "sat"
            product = read_onnx(made.network, name=instance.name)
            found = LinearSearch(product, made.property, SearchEffort(self.seconds)).run()
            if found.data is not None:
                self._label(instance, Certificate("linear", found.data))
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

    def is_new(self, content: bytes) -> bool:
        """Whether no network with this content was written before."""
        return sha256(content) not in self._networks

    def network_place(self, name: str, content: bytes) -> str:
        """Where a network is, which is written if it is new."""
        key = sha256(content)
        if key not in self._networks:
            self._networks[key] = f"onnx/{name}.onnx"
            write_whole(self.folder / self._networks[key], content, what="the network")
        return self._networks[key]

    def write_index(self, *, is_finished: bool) -> Suite:
        """Write the index, and return the suite."""
        recipe = {"laws": sorted(self.families), "vnnlib": self.version.value}
        if not is_finished:
            recipe[_UNFINISHED] = self.key
        write_rows(self.folder, self.rows, self.families, recipe=recipe, version=__version__)
        return read_suite(self.folder)


def _code(scores: NDArray[Any]) -> NDArray[Any]:
    """The decisions on all copies, as one number for each row."""
    decisions, classes = scores.argmax(axis=2), scores.shape[2]
    return np.asarray((decisions * classes ** np.arange(decisions.shape[1])).sum(axis=1))


@dataclass(frozen=True)
class _Made:
    """An instance without a label, and the product network that it is made of."""

    instance: Instance
    product: ProductInstance


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
        made = self._made(name, self.stated.question.zone)
        if isinstance(made, str):
            return made
        whole = verify_law(self.plan.law, model=self.model, domain=self.plan.domain, settings=settings)
        return self._labelled(made, whole.answer, whole.case)

    def add_rows(
        self,
        law: str,
        rows: int,
        tolerances: Sequence[Tolerance],
        settings: VerifySettings,
        tell: Callable[[int, int, str], None],
    ) -> None:
        """Write the instances around the first rows; `tell` hears what becomes of each."""
        domain = self.plan.domain
        assert domain.inputs is not None  # only then there are rows
        given = call_domain(domain.inputs, domain, "inputs")
        data = as_records(given, domain.layout, domain.name)[:rows].tolist()
        for tolerance in tolerances:
            place = f"{law} ± {tolerance.words}"
            for start in range(0, len(data), _TOGETHER):
                together = data[start : start + _TOGETHER]
                for index, what in self._add_together(law, start, together, tolerance, settings):
                    tell(index + 1, len(data), f"{place}: {what}")

    def _add_together(
        self, law: str, start: int, rows: list[list[float]], tolerance: Tolerance, settings: VerifySettings
    ) -> Iterator[tuple[int, str]]:
        """Write the instances around some rows; yields the number of each, and what became of it."""
        question = self.stated.question
        undecided: dict[int, _Made] = {}
        for index, row in enumerate(rows, start):
            name = f"{law}-{index}-{float(100 * tolerance.share):g}".replace(".", "_")
            zone = tolerance.over(question, row_numbers(question.layout, row))
            if zone is None:
                self.writer.left_out.append(f"{name}: the row is outside the domain")
                continue
            made = self._made(name, zone)
            if isinstance(made, str):
                yield index, made
            else:
                undecided[index] = made
        if undecided:
            asked = [rows[index - start] for index in undecided]
            decided = verify_rows(
                self.plan.law,
                asked,
                tolerance,
                model=self.model,
                domain=self.plan.domain,
                settings=settings,
            )
            known = {each.row: each for each in decided.rows}
            for number, (index, made) in enumerate(undecided.items()):
                own = known.get(number)
                answer, case = (None, None) if own is None else (own.answer, own.case)
                yield index, self._labelled(made, answer, case)

    def _made(self, name: str, zone: Zone) -> _Made | str:
        """Write the instance of a zone; says what became of it where no label is to be looked for."""
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
        if writer.is_new(made.network):
            self._expect_faithful(made, name)
        text = write_vnnlib1(made.property, comment=f"{comment}; ties count").encode()
        place = writer.network_place(name, made.network)
        write_whole(writer.folder / "vnnlib" / f"{name}.vnnlib", text, what="the property")
        row = (place, f"vnnlib/{name}.vnnlib", _TIMEOUT_SECONDS)
        own = instance_name(row[0], row[1])
        writer.rows.append(row)
        writer.families[own] = FAMILY
        writer.asked.append(AskedInstance(own, name, self.plan, self.model, self.stated, zone, made.inputs))
        if writer.seconds is None:
            return "written"
        instance = Instance(own, made.network, text)
        known = writer.known_label(instance)
        return _Made(instance, made) if known is None else known.value

    def _expect_faithful(self, made: ProductInstance, name: str) -> None:
        """Compare the copies with the model itself, on the data and in the box. Raises InputError."""
        width, classes = self.network.input_size, self.network.output_size
        copies = len(made.inputs) // width
        run = Replayer(made.network, name=name)

        def scores(points: NDArray[Any]) -> NDArray[Any]:
            return run(points.astype(np.float32))[:, : copies * classes].reshape(
                len(points), copies, classes
            )

        def own_scores(points: NDArray[Any]) -> NDArray[Any]:
            given = made.columns(points.astype(np.float32).astype(np.float64)).reshape(-1, width)
            return np.asarray(self.model.scores(given)).reshape(len(points), copies, classes)

        boxes = [case.box for case in made.property.cases]
        rng = np.random.default_rng(0)
        ends = [
            np.array([[float(end) for end in side] for side in (box.lower, box.upper)]) for box in boxes
        ]
        drawn = np.stack([ends[k] for k in rng.integers(0, len(ends), CASES)])
        points = drawn[:, 0] + rng.random((CASES, len(boxes[0].lower))) * (drawn[:, 1] - drawn[:, 0])
        data = data_of(self.plan.domain)
        if data is not None:
            data = data[np.isfinite(data).all(axis=1)]
            rows, data = data, np.zeros((len(data), len(boxes[0].lower)))
            for column, parts in enumerate(made.inputs):
                if len(parts) == 1:  # the others are differences: 0, where all copies get the same record
                    data[:, parts[0]] = rows[:, column % width]
        expect_same_decisions(
            lambda rows: _code(own_scores(rows)),
            lambda rows: _code(scores(rows)),
            data,
            points,
            what=f"{name}: the product of {copies} copies of {self.model.name}",
            layout=None,
            is_rounding=lambda row: are_close(own_scores(row), scores(row)),
        )

    def _labelled(self, made: _Made, answer: LawAnswer | None, case: ExactCase | None) -> str:
        """Label an instance; with `case`, by this violation."""
        columns, question = None, self.stated.question
        if case is not None:
            columns = [Fraction(c) for r in question.records for c in question.exact_columns(r, case)]
        return self.writer.label(made.instance, made.product, (answer, columns))
