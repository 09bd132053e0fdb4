"""Laws as instances for any verifier, and what its answers on these say of the laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos import __version__
from dokimos.checker.lemmas.zones import Zone
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.inputs import uncompressed
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.engine.runtimes.sessions import Replayer
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import call_domain
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.pools import as_records, data_of
from dokimos.laws.language.syntax import Law
from dokimos.laws.law_sources import DomainSource, LawSource, law_domain, laws_in
from dokimos.laws.models.lookup import as_domain_model, given_model
from dokimos.laws.models.same_decisions import CASES, are_close, expect_same_decisions
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.copies import ProductInstance, product_instance
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.relational import relational_property, without_strict
from dokimos.laws.proving.results import VerifySettings
from dokimos.laws.proving.row_zones import Tolerance, cases_near, row_numbers
from dokimos.laws.proving.stated_laws import StatedLaw, planned, state_law
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.folder import Suite, instance_name, read_suite
from dokimos.suites.instance import sha256
from dokimos.suites.lower import lower
from dokimos.suites.suite_files import write_rows
from dokimos.suites.vnnlib.model import Point
from dokimos.suites.vnnlib.writer import Version, write_vnnlib1, write_vnnlib2

_TIMEOUT_SECONDS = 60.0
FAMILY = "laws"


@dataclass(frozen=True)
class AskedInstance:
    """An instance by its name: `place` in words, and what it asks."""

    name: str
    place: str
    stated: StatedLaw
    zone: Zone
    inputs: tuple[tuple[int, ...], ...]

    def violation_at(self, witness: Point) -> str:
        """A violation at, or next to, a point of the product, in words; empty where there is none."""
        if len(witness) != 1 + max(k for parts in self.inputs for k in parts):
            return ""
        columns = [sum((witness[k] for k in parts), Fraction(0)) for parts in self.inputs]
        for case in cases_near(self.stated.question, columns):
            if case in self.zone and self.stated.confirms(case):
                return self.stated.replay.violation(case).words
        return ""


@dataclass(frozen=True, repr=False)
class ExportedLaws(Brief):
    """The suite that was written, and of each law or row that has no instance, why."""

    suite: Suite
    asked: tuple[AskedInstance, ...]
    left_out: tuple[str, ...]


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
    progress: ProgressCallback[str] = ignore,
) -> ExportedLaws:
    """Write laws on a network as a suite, once all is made: see `dokimos.export_law`. Raises InputError."""
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out} already exists; choose a new folder for the suite.")
    laws_on = [_law_on(path, law, model, domain, rows, settings) for path, law in laws_in(laws)]
    made = _Instances(version)
    for number, (path, plan, own) in enumerate(laws_on, 1):
        assert isinstance(own.made_of, bytes)  # as `_law_on` requires it
        content = uncompressed(own.made_of, file=own.name)
        network = read_onnx(content, name=own.name)
        try:
            stated = state_law(plan, own)
            for name, zone in _zones(path.stem, stated, rows, around):
                made.add(name, zone, stated, network, content)
                progress(ProgressUpdate("exporting", number, len(laws_on), name, name))
        except Refusal as refusal:
            made.left_out.append(f"{path.stem}: {refusal}")
    if not made.rows:
        raise InputError(f"None of these laws can be exported: {'; '.join(made.left_out[:3])}.")
    for place, text in made.files.items():
        write_whole(out / place, text)
    recipe = {"laws": sorted(made.families), "vnnlib": version.value}
    write_rows(out, made.rows, made.families, recipe=recipe, version=__version__)
    return ExportedLaws(read_suite(out), tuple(made.asked), tuple(made.left_out))


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


def _zones(
    law: str, stated: StatedLaw, rows: int | None, around: Sequence[Tolerance]
) -> Iterator[tuple[str, Zone | None]]:
    """The sets of cases that are asked about, by name: the whole one, or those around the first rows."""
    question, domain = stated.question, stated.plan.domain
    if rows is None:
        yield law, question.zone
        return
    assert domain.inputs is not None  # as `_law_on` requires it
    given = call_domain(domain.inputs, domain, "inputs")
    data = as_records(given, domain.layout, domain.name)[:rows].tolist()
    for tolerance in around:
        for index, row in enumerate(data):
            name = f"{law}-{index}-{float(100 * tolerance.share):g}".replace(".", "_")
            yield name, tolerance.over(question, row_numbers(question.layout, row))


@dataclass
class _Instances:
    """The suite so far: its files, the rows of its table, and what has no instance."""

    version: Version
    files: dict[str, bytes] = field(default_factory=dict)
    rows: list[tuple[str, str, float]] = field(default_factory=list)
    families: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    asked: list[AskedInstance] = field(default_factory=list)
    _networks: dict[str, str] = field(default_factory=dict)

    def add(
        self, name: str, zone: Zone | None, stated: StatedLaw, network: Network, content: bytes
    ) -> None:
        """The instance of a zone; None is that of a row outside the domain. Raises Refusal, InputError."""
        asked = None if zone is None else relational_property(stated.question, zone, network)
        if zone is None or asked is None:
            why = "the row is outside the domain" if zone is None else "there is no case"
            self.left_out.append(f"{name}: {why}")
            return
        law = stated.question.law.rsplit("/", 1)[-1]
        comment = f"{law}: sat iff some case violates it, over the reals"
        own = f"vnnlib/{name}.vnnlib"
        if self.version is Version.TWO:
            place = self._network_place("model", content)
            self.files[own] = write_vnnlib2(asked, comment=comment).encode()
            named = ", ".join(f"('{each.name}', '{place}')" for each in asked.networks)
            self.rows.append((f'"[{named}]"', own, _TIMEOUT_SECONDS))
            self.families[instance_name(place, f"{name}.vnnlib")] = FAMILY
            return
        lowered = lower(without_strict(asked), {each.name: content for each in asked.networks})
        made = product_instance(network, lowered)
        if sha256(made.network) not in self._networks:
            _expect_faithful(made, name, stated, network)
        place = self._network_place(name, made.network)
        self.files[own] = write_vnnlib1(made.property, comment=f"{comment}; ties count").encode()
        self.rows.append((place, own, _TIMEOUT_SECONDS))
        instance = instance_name(place, own)
        self.families[instance] = FAMILY
        self.asked.append(AskedInstance(instance, name, stated, zone, made.inputs))

    def _network_place(self, name: str, content: bytes) -> str:
        """Where a network is, which is written once."""
        place = self._networks.setdefault(sha256(content), f"onnx/{name}.onnx")
        self.files[place] = content
        return place


def _expect_faithful(made: ProductInstance, name: str, stated: StatedLaw, network: Network) -> None:
    """Compare the copies with the model itself, on the data and in the box. Raises InputError."""
    width, classes = network.input_size, network.output_size
    copies = len(made.inputs) // width
    run = Replayer(made.network, name=name)

    def scores(points: NDArray[Any]) -> NDArray[Any]:
        return run(points.astype(np.float32))[:, : copies * classes].reshape(len(points), copies, classes)

    def own_scores(points: NDArray[Any]) -> NDArray[Any]:
        given = made.columns(points.astype(np.float32).astype(np.float64)).reshape(-1, width)
        return np.asarray(stated.model.scores(given)).reshape(len(points), copies, classes)

    boxes = [case.box for case in made.property.cases]
    rng = np.random.default_rng(0)
    ends = [np.array([[float(end) for end in side] for side in (box.lower, box.upper)]) for box in boxes]
    drawn = np.stack([ends[k] for k in rng.integers(0, len(ends), CASES)])
    points = drawn[:, 0] + rng.random((CASES, len(boxes[0].lower))) * (drawn[:, 1] - drawn[:, 0])
    data = data_of(stated.plan.domain)
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
        what=f"{name}: the product of {copies} copies of {stated.model.name}",
        layout=None,
        is_rounding=lambda row: are_close(own_scores(row), scores(row)),
    )


def _code(scores: NDArray[Any]) -> NDArray[Any]:
    """The decisions on all copies, as one number for each row."""
    decisions, classes = scores.argmax(axis=2), scores.shape[2]
    return np.asarray((decisions * classes ** np.arange(decisions.shape[1])).sum(axis=1))
