"""Suites from a model and data: PGD-filtered properties, plain balls, and radii in the style of OVAL21."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dokimos import __version__
from dokimos.constructions.data.brackets import Bracket, Style, Wishes, asked_at, brackets, prove_at
from dokimos.constructions.data.data_set import Classifier, DataSet, Records
from dokimos.core.errors import InputError, InvalidProof
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.engine.outcome import accepted_truth
from dokimos.suites.entry import exists, read_content
from dokimos.suites.folder import Suite, instance_name, read_suite, read_suite_file
from dokimos.suites.instance import Certificate, Instance, Label, Truth, sha256
from dokimos.suites.suite_files import PartialSuite, dump_truth
from dokimos.suites.vnnlib.writer import Version, write_vnnlib1, write_vnnlib2

_log = logging.getLogger("dokimos")
#: How many records are attacked at a time.
_AT_ONCE = 16


@dataclass(frozen=True)
class RecordOutcome:
    """The outcome for one record: the names and labels of its instances, or why it has none.

    `proven` and `broken` are the radii of its bracket, if one was searched for; `easy` says that root
    bounds prove an instance at once.
    """

    record: str
    instances: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    proven: float | None = None
    broken: float | None = None
    easy: bool = False

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> RecordOutcome:
        """The outcome as a journal or a recipe has it."""
        instances = tuple((str(name), str(label)) for name, label in line["instances"])
        return cls(**{**line, "instances": instances})


def make_suite(
    classifier: Classifier,
    data: DataSet,
    folder: Path,
    wishes: Wishes,
    progress: Callable[[RecordOutcome, int], None] = lambda outcome, kept: None,
) -> tuple[Suite, tuple[RecordOutcome, ...]]:
    """Choose records, radii and labels, and write the suite; return it and the outcome of each record.

    Records are drawn without replacement, by the seed, until enough are kept. If interrupted, the same
    call continues where it stopped.
    """
    classifier.require_fit(data)
    recipe = _recipe(classifier, data, wishes)
    partial = PartialSuite(folder, recipe, __version__)
    partial.write(f"onnx/{classifier.name}.onnx", classifier.content)
    outcomes = [RecordOutcome.read(line) for line in partial.done]
    kept = sum(bool(outcome.instances) for outcome in outcomes)
    for outcome in outcomes:
        progress(outcome, kept)
    maker = _Maker(classifier, data, wishes, partial)
    order = np.random.default_rng(wishes.seed).permutation(len(data))
    place = len(outcomes)
    while kept < wishes.count and place < len(order):
        # In fixed groups, so that interruptions do not change which records are chosen.
        group = order[place - place % _AT_ONCE : place - place % _AT_ONCE + _AT_ONCE]
        for outcome in maker.outcomes(group, skip=place % _AT_ONCE):
            partial.add(asdict(outcome))
            outcomes.append(outcome)
            place += 1
            kept += bool(outcome.instances)
            progress(outcome, kept)
            if kept == wishes.count:
                break
    if not kept:
        raise InputError(
            f"No record of {data.source} gives an instance: {_commonest(outcomes)}; change the radius, "
            "give more data, or leave out `labelled_only` or `drop_easy`."
        )
    if kept < wishes.count:
        _log.warning("%s: only %d records give an instance.", data.source, kept)
    _finish(partial, classifier, wishes, outcomes)
    return read_suite(folder), tuple(outcomes)


def _recipe(classifier: Classifier, data: DataSet, wishes: Wishes) -> dict[str, Any]:
    given = asdict(wishes)
    return {
        "properties": wishes.style.value,
        "model": classifier.name,
        "model_sha256": sha256(classifier.content),
        "data": data.source,
        "data_sha256": sha256(data.records.tobytes() + data.labels.tobytes()),
        "normalisation": asdict(classifier.normalisation),
        **{key: value for key, value in given.items() if key not in ("style", "version")},
        "vnnlib": wishes.version.value,
    }


def join_suites(suites: Sequence[Suite], folder: Path) -> Suite:
    """One suite of the instances of several, each about a network of its own; names and proofs stay."""
    partial = PartialSuite(folder, {"joined": [suite.folder.name for suite in suites]}, __version__)
    rows: list[tuple[str, str, float]] = []
    families: dict[str, str] = {}
    recipes = {}
    for suite in suites:
        made = read_suite_file(suite.folder)
        recipes[suite.folder.name] = {} if made is None else made.recipe
        for entry in suite:
            network = f"onnx/{entry.network_path.name}"
            asked = f"vnnlib/{suite.folder.name}/{entry.property_path.name}"
            partial.write(network, read_content(entry.network_path))
            partial.write(asked, read_content(entry.property_path))
            if exists(entry.truth_path):
                partial.write(f"truth/{entry.name}.json", read_content(entry.truth_path))
            rows.append((network, asked, entry.timeout_seconds))
            families[entry.name] = entry.family
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    partial.finish([rows[k] for k in order], families, {"parts": recipes})
    return read_suite(folder)


def _word(text: str) -> str:
    """A text in a form that can be part of a file name."""
    return re.sub(r"[^\w.+-]+", "-", text.removesuffix(".npz").removesuffix(".csv"))


def _commonest(outcomes: list[RecordOutcome]) -> str:
    reasons = [outcome.reason for outcome in outcomes if outcome.reason]
    return max(set(reasons), key=reasons.count) if reasons else "it has no records"


def _finish(
    partial: PartialSuite, classifier: Classifier, wishes: Wishes, outcomes: list[RecordOutcome]
) -> None:
    names = [name for outcome in outcomes for name, _ in outcome.instances]
    order = np.random.default_rng([wishes.seed, 1]).permutation(len(names))
    stem = f"{classifier.name}__"
    rows = [
        (
            f"onnx/{classifier.name}.onnx",
            f"vnnlib/{names[k].removeprefix(stem)}.vnnlib",
            wishes.timeout_seconds,
        )
        for k in order
    ]
    families = dict.fromkeys(names, wishes.style.value)
    partial.finish(rows, families, {"records": [asdict(outcome) for outcome in outcomes]})


class _Maker:
    """Makes the instances of groups of records."""

    def __init__(
        self, classifier: Classifier, data: DataSet, wishes: Wishes, partial: PartialSuite
    ) -> None:
        self._classifier, self._data, self._wishes, self._partial = classifier, data, wishes, partial

    def outcomes(self, places: Any, *, skip: int) -> Iterator[RecordOutcome]:
        """The outcomes of the records at these places, after the first `skip`."""
        group = self._data.chosen(places)
        rng = np.random.default_rng([self._wishes.seed, int(places[0])])
        right = self._classifier.is_right(group)
        resists = np.ones(len(group), dtype=np.bool_)
        if self._wishes.style is Style.PGD:
            from dokimos.engine.attacks.row_target import attack_rows

            budget = Budget(restarts=self._wishes.restarts, steps=self._wishes.steps)
            ends = self._classifier.boxes(group, self._wishes.radii[0])
            network = self._classifier.network
            resists = ~attack_rows(ATTACKS["pgd"], network, *ends, group.labels, budget, rng).broken
        usable = np.flatnonzero(right & resists)
        found: Iterator[Bracket] = iter(())
        if (usable >= skip).any() and (self._wishes.style is Style.OVAL or self._wishes.twins):
            past, chosen = int((usable < skip).sum()), group.chosen(usable)
            found = brackets(self._classifier, chosen, self._wishes.effort, rng, skip=past)
        for k in range(skip, len(group)):
            one = group.chosen([k])
            if not right[k]:
                yield RecordOutcome(one.names[0], reason="it is not classified correctly")
            elif not resists[k]:
                yield RecordOutcome(one.names[0], reason="an attack breaks it")
            elif self._wishes.style is Style.OVAL or self._wishes.twins:
                yield self._with_bracket(one, next(found))
            else:
                yield self._at_fixed_radii(one, rng)

    def _with_bracket(self, one: DataSet, bracket: Bracket) -> RecordOutcome:
        """Make instances at a radius between the proven and the broken one, or at both."""
        known = RecordOutcome(one.names[0], proven=bracket.proven, broken=bracket.broken)
        if bracket.degenerate:
            return replace(known, reason=bracket.degenerate)
        assert bracket.broken is not None
        if self._wishes.twins:
            made = [
                self._instance(one, bracket.proven, certificate=bracket.certificate),
                self._instance(one, bracket.broken, witness=bracket.witness),
            ]
            if any(each is None or not each[1] for each in made):
                return replace(known, reason="a label that was found does not hold exactly")
        else:
            between = bracket.between(*self._wishes.weights)
            certificate = bracket.certificate if between <= bracket.proven else None
            witness = bracket.witness if between >= bracket.broken else None
            made = [self._instance(one, between, certificate=certificate, witness=witness)]
        kept = tuple(each for each in made if each is not None)
        return replace(known, instances=kept, reason="" if kept else "it has no label")

    def _at_fixed_radii(self, one: DataSet, rng: np.random.Generator) -> RecordOutcome:
        """Make an instance at each of the radii that were asked for."""
        from dokimos.engine.attacks.row_target import attack_rows

        kept, easy = [], False
        for radius in self._wishes.radii:
            certificate = prove_at(self._classifier, one, radius, steps=self._wishes.effort.slope_steps)
            easy = easy or certificate is not None
            if certificate is not None and self._wishes.drop_easy:
                continue
            witness = None
            if certificate is None and self._wishes.style is Style.RADIUS:
                budget = Budget(restarts=self._wishes.restarts, steps=self._wishes.steps)
                ends = self._classifier.boxes(one, radius)
                network = self._classifier.network
                reached = attack_rows(ATTACKS["pgd"], network, *ends, one.labels, budget, rng)
                witness = reached.points[0] if reached.broken[0] else None
            made = self._instance(one, radius, certificate=certificate, witness=witness)
            kept += [] if made is None else [made]
        reason = "" if kept else ("root bounds prove it" if easy else "it has no label")
        return RecordOutcome(one.names[0], tuple(kept), reason, easy=easy)

    def _instance(
        self,
        one: DataSet,
        radius: float,
        *,
        certificate: Certificate | None = None,
        witness: Records | None = None,
    ) -> tuple[str, str] | None:
        """Write an instance; return its name and label, which may be "", or None if it needs a label."""
        classifier, wishes = self._classifier, self._wishes
        asked = asked_at(classifier, one, radius)
        about = f"{one.source}, record {one.names[0]}, class {one.labels[0]}, radius {radius!r}"
        write = write_vnnlib1 if wishes.version is Version.ONE else write_vnnlib2
        stem = f"{_word(one.source)}_{_word(one.names[0])}_eps_{radius:.7g}"
        instance = Instance(
            name=instance_name(f"{classifier.name}.onnx", f"{stem}.vnnlib"),
            network_file=classifier.content,
            property_file=write(asked, comment=about).encode(),
            timeout_seconds=wishes.timeout_seconds,
        )
        truth = self._truth(instance, certificate, witness)
        if truth is None and wishes.labelled_only:
            return None
        self._partial.write(f"vnnlib/{stem}.vnnlib", instance.property_file)
        if truth is not None:
            origin = {"record": one.names[0], "data": one.source, "radius": repr(radius)}
            self._partial.write(f"truth/{instance.name}.json", dump_truth(truth, origin=origin))
        return instance.name, "" if truth is None else truth.label.value

    def _truth(
        self, instance: Instance, certificate: Certificate | None, witness: Records | None
    ) -> Truth | None:
        """The checked label that the certificate or the witness proves; None if neither proves one."""
        try:
            if certificate is not None:
                return accepted_truth(instance, certificate, Label.UNSAT)
            if witness is not None:
                point = tuple(map(Fraction, witness.tolist()))
                return accepted_truth(instance, Certificate("witness"), Label.SAT, point)
        except InvalidProof as error:
            _log.info("%s: %s", instance.name, error)
        return None
