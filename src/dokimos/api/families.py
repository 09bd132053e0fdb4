"""Suites that are made: from families, by recipes, or with hidden counterexamples; and attacks on them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dokimos.api.suites import SuiteSource, read_suite
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.base import Construction
from dokimos.constructions.draft import Knob, knobs_of
from dokimos.constructions.generation import GeneratedInstance, generate_suite, is_suite_of
from dokimos.constructions.hiding.plants import HideSettings as HideSettings
from dokimos.constructions.hiding.plants import parse_shape as parse_shape
from dokimos.constructions.hiding.plants import soundness_settings
from dokimos.constructions.recipes import (
    GenerateSettings,
    Recipe,
    family_recipe,
    find_recipe,
    shipped_recipe,
    valid_seed,
)
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.core.files import write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief, unknown_name
from dokimos.engine.attacks import ATTACKS
from dokimos.judging.survivors import (
    AttackOutcome,
    AttackRate,
    AttackTask,
    SurvivorCurve,
    attack_all,
    hidden_instances,
    rates,
    survivor_curves,
)
from dokimos.suites.folder import HIDE_REPORT, Suite, shipped_names
from dokimos.suites.instance import Label


@dataclass(frozen=True, repr=False)
class GeneratedSuite(Brief):
    """A suite, and what this call made for it; nothing if exactly this suite `was_there` already."""

    suite: Suite
    made: tuple[GeneratedInstance, ...]
    was_there: bool


@dataclass(frozen=True)
class Family:
    """A family of instances: what makes it hard, and the knobs that it takes."""

    name: str
    summary: str
    knobs: tuple[Knob, ...]
    theorem: str = ""
    """Why the labels hold, in a few sentences."""


@dataclass(frozen=True)
class ShippedSuite:
    """A suite that ships with the package, by name."""

    name: str
    instances: int
    families: tuple[str, ...]
    timeout_seconds: float
    about: str


def generate(
    *,
    out: str | Path,
    family: str | None = None,
    suite: str | Path | Recipe | None = None,
    knobs: Mapping[str, Any] | None = None,
    seed: int | None = None,
    count: int | None = None,
    settings: GenerateSettings | None = None,
    jobs: int | None = None,
    progress: ProgressCallback[GeneratedInstance] = ignore,
) -> GeneratedSuite:
    """Make instances with proven labels, of one family or a whole suite: `dokimos generate`.

    `out` is the folder to write, new or empty. Give either a `family`, with its `knobs`, a `seed`, the
    number of instances (each with its twin) and more `settings`; or a `suite`, a shipped suite or a recipe
    (.toml), which fixes all of these itself; another `seed` makes other draws of it. If interrupted, the
    same call continues where it stopped.

    >>> made = dokimos.generate(out="pairs", family="exclusive-pairs", knobs={"inputs": 20, "pairs": 2})
    >>> sorted(entry.read_truth().label.value for entry in made.suite.entries)
    ['sat', 'unsat']
    >>> dokimos.generate(out="pairs", family="exclusive-pairs", knobs={"inputs": 20, "pairs": 2}).was_there
    True
    """
    chosen = settings or GenerateSettings()
    if (family is None) == (suite is None):
        raise InputError("Give either a family or `suite`; see `dokimos families` and `dokimos suites`.")
    if suite is not None:
        own: dict[str, Any] = {"count": count, "disguise": chosen.disguise, "lock": chosen.lock}
        own |= {"timeout_seconds": chosen.timeout_seconds}
        own |= {"labels": len(chosen.labels) == 1}
        named = [f"knob {name}" for name in knobs or {}]
        named += [f"`{name}`" for name, value in own.items() if value]
        if named:
            raise InputError(f"A suite takes no {named[0]}; change its recipe instead.")
        recipe = find_recipe(suite)
        if seed is not None:
            recipe = recipe.drawn_again(valid_seed(seed))
    else:
        assert family is not None
        recipe = family_recipe(family, knobs or {}, seed, count, chosen)
    folder = Path(out)
    was_there = is_suite_of(folder, recipe)
    all_made: list[GeneratedInstance] = []

    def step(made: GeneratedInstance) -> None:
        all_made.append(made)
        at = f" at draw {made.draws}" if made.draws > 1 else ""
        cost = f" ({made.cost} with its twin)" if made.draws else ""
        note = f"{made.name}: {made.label}, proven{at}{cost}"
        progress(ProgressUpdate("proving", len(all_made), recipe.size, note, made))

    written = generate_suite(recipe, folder, jobs=jobs, plugin_proofs=chosen.plugin_proofs, progress=step)
    return GeneratedSuite(written, tuple(all_made), was_there)


def list_families() -> tuple[Family, ...]:
    """List the families of instances that can be generated, each with its knobs: `dokimos families`.

    >>> next(family for family in dokimos.list_families() if family.name == "exclusive-pairs").knobs[0].name
    'inputs'
    """
    return tuple(_family(name, construction) for name, construction in CONSTRUCTIONS.items())


def find_family(name: str) -> Family:
    """Find the family of that name: `dokimos families NAME`. Raises InputError if there is none.

    >>> [knob.name for knob in dokimos.find_family("paired-bias").knobs][:2]
    ['size', 'depth']
    """
    return _family(name, CONSTRUCTIONS[name])


def _family(name: str, construction: Construction[Any]) -> Family:
    theorem = inspect.getdoc(type(construction)) or ""
    return Family(name, construction.summary, knobs_of(construction.knobs_class), theorem)


def list_suites() -> tuple[ShippedSuite, ...]:
    """List the shipped suites; functions that take a suite also take these names: `dokimos suites`.

    >>> "quick" in [suite.name for suite in dokimos.list_suites()]
    True
    """
    return tuple(map(_shipped, shipped_names()))


def _shipped(name: str) -> ShippedSuite:
    recipe = shipped_recipe(name)
    families = tuple(sorted({draw.family for draw in recipe.draws}))
    return ShippedSuite(name, recipe.size, families, recipe.timeout_seconds, recipe.about)


# `attack`: searches any suite for counterexamples


@dataclass(frozen=True, repr=False)
class AttackedSuite(Brief):
    """A suite, and the outcome of each attack on each instance."""

    suite: Suite
    budget_seconds: float
    outcomes: tuple[AttackOutcome, ...]

    @property
    def rates(self) -> tuple[AttackRate, ...]:
        """How many counterexamples each attack found, family by family."""
        return rates(self.outcomes)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The instances, of those not proven `unsat`, on which every attack failed."""
        return tuple(name for name, is_hidden in self.is_hidden.items() if is_hidden)

    @property
    def is_hidden(self) -> dict[str, bool]:
        """For each instance that is not proven `unsat`: whether every attack failed on it."""
        return hidden_instances(self.outcomes)

    @property
    def refuted(self) -> tuple[AttackOutcome, ...]:
        """Counterexamples on instances whose label is `unsat`: these labels are wrong."""
        return tuple(one for one in self.outcomes if one.is_found and one.label == Label.UNSAT.value)


def attack(
    suite: SuiteSource,
    attacks: Sequence[str] = (),
    *,
    budget_seconds: float = 1.0,
    seed: int = 0,
    include_unsat: bool = False,
    out: str | Path | None = None,
    jobs: int = 1,
    progress: ProgressCallback[AttackOutcome] = ignore,
) -> AttackedSuite:
    """Search the instances of a suite for counterexamples: `dokimos attack`.

    Each of `attacks` (default: all) has `budget_seconds` of CPU time for each instance. A counterexample
    counts once it is replayed in exact arithmetic. Instances that are proven `unsat` are left out unless
    `include_unsat`. If the folder `out` is given, every outcome is written there as soon as it is found, so
    that the same call continues where it stopped, and `attacks.csv` lists them all.

    >>> attacked = dokimos.attack("tiny", ["units-leaky", "pgd-leaky"], budget_seconds=5)
    >>> [(one.label, one.attack, one.is_found) for one in attacked.outcomes]
    [('sat', 'units-leaky', True), ('sat', 'pgd-leaky', True)]
    """
    if not 0 < budget_seconds < 1e6:
        raise InputError("The budget of an attack must be a positive number of seconds below a million.")
    names = list(dict.fromkeys(attacks)) or sorted(ATTACKS)
    for name in names:
        ATTACKS[name]  # raises InputError, with the nearest name, if it does not exist
    found = read_suite(suite)
    wanted = [entry for entry in found.entries if include_unsat or not _is_unsat(entry.read_truth())]
    if not wanted:
        raise InputError(
            f"{found.folder}: every instance is labelled unsat, so there is nothing to find; give "
            "`include_unsat` to attack them anyway."
        )
    tasks = [AttackTask(entry, name, budget_seconds, seed) for entry in wanted for name in names]

    def report(done: int, outcome: AttackOutcome) -> None:
        what = outcome.reason or (f"found in {outcome.seconds:.2g} s" if outcome.is_found else "not found")
        note = f"{outcome.instance}: {outcome.attack}: {what}"
        progress(ProgressUpdate("attacking", done, len(tasks), note, outcome))

    folder = None if out is None else Path(out)
    outcomes = attack_all(tasks, folder=folder, jobs=jobs, progress=report)
    if folder is not None:
        from dokimos.core.tables import table

        columns = ("instance", "family", "label", "attack", "found", "seconds", "least_margin", "reason")
        rows = table("attacks", columns, (_cells(one) for one in outcomes))
        write_whole(folder / "attacks.csv", rows.csv(), what="the table of attacks")
    return AttackedSuite(found, budget_seconds, outcomes)


def _is_unsat(truth: object) -> bool:
    return getattr(truth, "label", None) is Label.UNSAT


def _cells(one: AttackOutcome) -> tuple[object, ...]:
    found = "yes" if one.is_found else "no"
    seconds = f"{one.seconds:.3f}"
    return (
        *(one.instance, one.family, one.label, one.attack, found),
        *(seconds, one.least_margin, one.reason),
    )


#: The attacks that training and its filter use; an assessment leaves them out.
USED_IN_TRAINING = ("pgd",)
SURVIVOR_PAGE = "survivors.html"


@dataclass(frozen=True, repr=False)
class HiddenSuite(Brief):
    """A suite with hidden counterexamples, and the outcome for each planted point."""

    suite: Suite
    report: Mapping[str, Any]
    was_there: bool = False


@dataclass(frozen=True, repr=False)
class Assessment(Brief):
    """How many counterexamples survive each attack, as a function of its CPU time."""

    attacked: AttackedSuite
    curves: tuple[SurvivorCurve, ...]


def hide(
    settings: HideSettings | None = None, *, out: str | Path, progress: ProgressCallback[None] = ignore
) -> HiddenSuite:
    """Make a suite with hidden counterexamples: `dokimos hide`.

    With the tier `lock`, each point gives three instances that share a base: the base alone, proven robust;
    the base with a parity lock that no input opens; and the base with a lock that opens in one cell. With
    the tier `trained`, one network is trained to hide a counterexample at each planted point, as in
    SoundnessBench. If interrupted, the same call continues where it stopped; the same settings give the
    same files.

    >>> small = dokimos.HideSettings(architecture="mlp4", input_shape=(10,), points=1, scale=0.05)
    >>> hidden = dokimos.hide(small, out="hidden")
    >>> sorted(entry.read_truth().label.value for entry in hidden.suite.entries)
    ['sat', 'unsat', 'unsat']
    """
    from dokimos.constructions.hiding.labelled import hidden_suite

    suite, report = hidden_suite(settings or HideSettings(), Path(out), progress)
    return HiddenSuite(suite, report or {}, was_there=report is None)


@dataclass(frozen=True)
class SoundnessRow:
    """The result of one setting of SoundnessBench.

    `proven` counts counterexamples that are proven, and with locks their bases, which are proven robust;
    `hidden` those that the filter of the tier `trained` has not found. `reason` says why none is planted.
    """

    name: str
    planted: int
    proven: int
    hidden: int | None
    reason: str = ""


def hide_soundness(
    settings: HideSettings | None = None,
    *,
    out: str | Path,
    only: Sequence[str] = (),
    progress: ProgressCallback[None] = ignore,
) -> tuple[SoundnessRow, ...]:
    """Make the settings of SoundnessBench, each in its own folder in `out`: `dokimos hide --soundness`.

    `only` names the settings to make (default: all 26, or with the tier `lock` the 24 without the
    transformer). Settings that are done already are not made again.

    >>> dokimos.hide_soundness(out="soundness", only=["cnn9"])
    Traceback (most recent call last):
    dokimos.core.errors.InputError: Unknown setting 'cnn9'; known: ...
    """
    known = soundness_settings(settings or HideSettings())
    for name in only:
        if name not in known:
            raise unknown_name("setting", name, known)
    rows = []
    for name in [each for each in known if not only or each in only]:
        try:
            made = hide(known[name], out=Path(out) / name, progress=progress)
        except ConstructionFailed as failed:
            rows.append(SoundnessRow(name, 0, 0, None, str(failed)))
            continue
        report = made.report or _kept_report(made.suite)
        proven = sum(each.get("base_proven", each.get("proven")) for each in report["points"])
        rows.append(SoundnessRow(name, report["planted"], proven, report.get("hidden")))
    return tuple(rows)


def assess_hiding(
    suite: SuiteSource,
    attacks: Sequence[str] = (),
    *,
    budget_seconds: float = 10.0,
    seed: int = 0,
    out: str | Path | None = None,
    jobs: int = 1,
    progress: ProgressCallback[Any] = ignore,
) -> Assessment:
    """Measure how many counterexamples survive attacks that training did not use: `dokimos hide --assess`.

    If the folder `out` is given, outcomes are written there as soon as they are found, and `survivors.html`
    shows the curves.

    >>> assessed = dokimos.assess_hiding("tiny", ["units-leaky", "square"], budget_seconds=1)
    >>> [(curve.attack, curve.survivors[1]) for curve in assessed.curves][0]
    ('units-leaky', 0)
    """
    names = list(attacks) or [name for name in sorted(ATTACKS) if name not in USED_IN_TRAINING]
    found = attack(
        suite, names, budget_seconds=budget_seconds, seed=seed, out=out, jobs=jobs, progress=progress
    )
    curves = survivor_curves(found.outcomes, budget_seconds=budget_seconds)
    if out is not None:
        from dokimos.reports.page import AssessedSuite, write_survivor_page

        about = AssessedSuite(found.suite.folder.name, budget_seconds, len(set(names)))
        write_survivor_page(curves, about, Path(out) / SURVIVOR_PAGE)
    return Assessment(found, curves)


def _kept_report(suite: Suite) -> Mapping[str, Any]:
    from dokimos.core import strict_json
    from dokimos.core.files import read_whole

    path = suite.folder / HIDE_REPORT
    found: Mapping[str, Any] = strict_json.parse(read_whole(path), file=path)
    return found
