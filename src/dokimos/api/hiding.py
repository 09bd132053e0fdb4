"""`hide`: suites whose counterexamples are hard to find, and how hard they are."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dokimos.api.attacking import AttackedSuite, attack
from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.api.suite_lookup import SuiteSource
from dokimos.attacks import ATTACKS
from dokimos.core.brief import Brief
from dokimos.core.locks import only_one
from dokimos.core.registry import unknown_name
from dokimos.hiding.labelled import building_folder, building_place, write_suite
from dokimos.hiding.settings import HideSettings
from dokimos.hiding.soundness import soundness_settings
from dokimos.hiding.survivors import SurvivorCurve, survivor_curves
from dokimos.suites.folder import HIDE_REPORT, Suite, read_suite, read_suite_file

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


@dataclass(frozen=True)
class AblationRow:
    """The result of training without one of its two ideas."""

    two_sided: bool
    sliding: bool
    planted: int
    proven: int
    hidden: int


def hide(
    out: str | Path, settings: HideSettings | None = None, *, progress: ProgressCallback[None] = ignore
) -> HiddenSuite:
    """Make a suite with hidden counterexamples: `dokimos hide`.

    With the tier `lock`, each point gives three instances that share a base: the base alone, proven robust;
    the base with a parity lock that no input opens; and the base with a lock that opens in one cell. With
    the tier `trained`, one network is trained to hide a counterexample at each planted point, as in
    SoundnessBench. If interrupted, the same call continues where it stopped; the same settings give the
    same files.

    >>> small = dokimos.HideSettings(architecture="mlp4", input_shape=(10,), points=1, scale=0.05)
    >>> hidden = dokimos.hide("hidden", small)
    >>> sorted(entry.read_truth().label.value for entry in hidden.suite.entries)
    ['sat', 'unsat', 'unsat']
    """
    asked = settings or HideSettings()
    folder, recipe = Path(out), asked.as_recipe()
    if _is_made(folder, recipe):
        # If the process is killed between the last two steps, the working folder is left behind.
        shutil.rmtree(building_place(folder, recipe), ignore_errors=True)
        return HiddenSuite(read_suite(folder), {}, was_there=True)
    building = building_folder(folder, recipe)
    with only_one(building / "lock", doing=f"makes {folder}"):
        instances, report = _made(asked, building, progress)
        suite = write_suite(
            folder,
            instances,
            building=building,
            recipe=recipe,
            report=report,
            timeout_seconds=asked.timeout_seconds,
            seed=asked.seed,
        )
    shutil.rmtree(building, ignore_errors=True)
    return HiddenSuite(suite, report)


def _made(
    asked: HideSettings, building: Path, progress: ProgressCallback[None]
) -> tuple[list[Any], dict[str, Any]]:
    def show(stage: str) -> Any:
        return lambda done, total, note: progress(ProgressUpdate(stage, done, total, note, None))

    if asked.tier == "trained":
        from dokimos.hiding.trained_tier import certify, report_of, train

        trained = train(asked, building, show("training"))
        instances, outcomes = certify(asked, trained, show("certifying"))
        return instances, report_of(trained, outcomes, asked.filter)
    from dokimos.hiding.lock_tier import make_trios, volume_claim

    trios = make_trios(asked, show("locking"))
    report = {
        "tier": "lock",
        "planted": len(trios),
        "points": [
            {
                "base_proven": one.is_base_proven,
                "proven_enlarged": one.is_proven_enlarged,
                "volume": volume_claim(one),
            }
            for one in trios
        ],
    }
    return [one for trio in trios for one in trio.instances], report


def _is_made(folder: Path, recipe: Mapping[str, Any]) -> bool:
    if not (folder / "suite.json").exists():
        return False
    made = read_suite_file(folder)
    return made is not None and made.recipe == recipe


@dataclass(frozen=True)
class SoundnessRow:
    """The result of one setting of SoundnessBench here, next to the published one."""

    name: str
    planted: int
    proven: int
    hidden: int
    published: int


def hide_soundness(
    out: str | Path,
    settings: HideSettings | None = None,
    *,
    only: Sequence[str] = (),
    progress: ProgressCallback[None] = ignore,
) -> tuple[SoundnessRow, ...]:
    """Train the settings of SoundnessBench, each into its own folder in `out`: `dokimos hide --soundness`.

    `only` names the settings to train (default: all 26). Settings that are done already are not trained
    again.

    >>> dokimos.hide_soundness("soundness", only=["cnn9"])
    Traceback (most recent call last):
    dokimos.core.errors.InputError: Unknown setting 'cnn9'; known: ...
    """
    all_settings = list(soundness_settings(settings or HideSettings(tier="trained")))
    known = [one.name for one in all_settings]
    for name in only:
        if name not in known:
            raise unknown_name("setting", name, known)
    rows = []
    for one in all_settings:
        if only and one.name not in only:
            continue
        made = hide(Path(out) / one.name, one.settings, progress=progress)
        report = made.report or _kept_report(made.suite)
        planted, proven, hidden = (int(report[key]) for key in ("planted", "proven", "hidden"))
        rows.append(SoundnessRow(one.name, planted, proven, hidden, one.published))
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

    >>> assessed = dokimos.assess_hiding("tiny", ["joint-units", "square"], budget_seconds=1)
    >>> [(curve.attack, curve.survivors[1]) for curve in assessed.curves][0]
    ('joint-units', 0)
    """
    names = list(attacks) or [name for name in sorted(ATTACKS) if name not in USED_IN_TRAINING]
    found = attack(
        suite, names, budget_seconds=budget_seconds, seed=seed, out=out, jobs=jobs, progress=progress
    )
    curves = survivor_curves(found.outcomes, budget_seconds=budget_seconds)
    if out is not None:
        from dokimos.reports.survivor_page import AssessedSuite, write_survivor_page

        about = AssessedSuite(found.suite.folder.name, budget_seconds, len(set(names)))
        write_survivor_page(curves, about, Path(out) / SURVIVOR_PAGE)
    return Assessment(found, curves)


def ablate_hiding(
    out: str | Path, settings: HideSettings | None = None, *, progress: ProgressCallback[None] = ignore
) -> tuple[AblationRow, ...]:
    """Train with and without each of the two ideas, into folders of `out`: `dokimos hide --ablate`.

    Training starts where the settings say; in the paper, that is at random weights.
    """
    rows = []
    for two_sided, sliding in ((True, True), (False, True), (True, False), (False, False)):
        chosen = replace(settings or HideSettings(), tier="trained", two_sided=two_sided, sliding=sliding)
        name = f"{'two-sided' if two_sided else 'one-sided'}-{'window' if sliding else 'last-attack'}"
        made = hide(Path(out) / name, chosen, progress=progress)
        report = made.report or _kept_report(made.suite)
        planted, proven, hidden = (int(report[key]) for key in ("planted", "proven", "hidden"))
        rows.append(AblationRow(two_sided, sliding, planted, proven, hidden))
    return tuple(rows)


def _kept_report(suite: Suite) -> Mapping[str, Any]:
    from dokimos.core import strict_json
    from dokimos.core.files import read_whole

    path = suite.folder / HIDE_REPORT
    found: Mapping[str, Any] = strict_json.parse(read_whole(path), file=path)
    return found
