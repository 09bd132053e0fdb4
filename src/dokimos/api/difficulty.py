"""`profile`: what makes instances hard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dokimos.api.suites import SuiteSource, read_suite
from dokimos.constructions.generation import with_seeds
from dokimos.constructions.recipes import Draw, Recipe
from dokimos.core.errors import InputError, packages_missing
from dokimos.core.inputs import contained
from dokimos.core.parallel import default_jobs
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.difficulty.profiling import MeasuredProfile, ProfileTask, measure_all
from dokimos.suites.facts import FOLDER, ProfileSettings
from dokimos.suites.folder import instance_name, pair_suite

if TYPE_CHECKING:
    from dokimos.difficulty.design import TriedKnobs


#: Fewer instances than this are measured in one process, which is faster than starting others.
WORTH_PROCESSES = 16


@dataclass(frozen=True, repr=False)
class ProfiledSuite(Brief):
    """The folder of the profiles, and the outcome for each instance, in the order of the suite."""

    folder: Path
    outcomes: tuple[MeasuredProfile, ...]

    @property
    def failed(self) -> tuple[MeasuredProfile, ...]:
        """The instances that could not be measured."""
        return tuple(outcome for outcome in self.outcomes if outcome.profile is None)


def profile(
    suite: SuiteSource,
    property: str | Path | None = None,
    *,
    out: str | Path | None = None,
    settings: ProfileSettings | None = None,
    more: bool = False,
    jobs: int | None = None,
    progress: ProgressCallback[MeasuredProfile] = ignore,
) -> ProfiledSuite:
    """Measure the difficulty profile of each instance: `dokimos profile`.

    Takes a suite, or a network and its `property`. Profiles are written to `out`, or to the suite's own
    folder of profiles. An existing profile of the same files and settings is kept. With `more`, they also
    have components that take seconds for each instance: margins bracketed by proof, the number of linear
    regions, the size of the smallest proof found, and the components that the paper left out.

    >>> profiled = dokimos.profile("tiny")
    >>> len(profiled.outcomes), profiled.failed
    (2, ())
    >>> sorted(profiled.outcomes[0].profile.components)
    ['gradient_dimension', 'ibp_gap', 'margin', 'regions', 'unstable']
    """
    chosen = ProfileSettings() if settings is None else settings
    tasks = [replace(task, more=more) for task in _tasks(suite, property, chosen, out)]
    processes = jobs or (default_jobs() if len(tasks) >= WORTH_PROCESSES else 1)
    outcomes: dict[str, MeasuredProfile] = {}
    for outcome in measure_all(tasks, jobs=processes):
        outcomes[outcome.name] = outcome
        note = f"{outcome.name}: {_in_words(outcome)}"
        progress(ProgressUpdate("profiling", len(outcomes), len(tasks), note, outcome))
    return ProfiledSuite(tasks[0].out, tuple(outcomes[task.name] for task in tasks))


def _tasks(
    suite: SuiteSource, property: str | Path | None, settings: ProfileSettings, out: str | Path | None
) -> list[ProfileTask]:
    if property is not None:
        network, asked = Path(str(suite)), Path(property)
        name = instance_name(network.name, asked.name)
        folder = pair_suite(network, asked).folder / FOLDER if out is None else Path(out)
        return [ProfileTask(name, network, asked, settings, folder)]
    if str(suite).endswith((".onnx", ".onnx.gz")):
        raise InputError(
            f"{suite} is a network; give its property as well: dokimos profile NETWORK PROPERTY."
        )
    found = read_suite(suite)
    folder = contained(found.folder, FOLDER) if out is None else Path(out)
    return [ProfileTask(e.name, e.network_path, e.property_path, settings, folder) for e in found.entries]


def _in_words(outcome: MeasuredProfile) -> str:
    if outcome.profile is None:
        return "FAILED"
    return "already measured" if outcome.was_there else "measured"


# `design`: the knobs of a family for an instance with a wanted profile


@dataclass(frozen=True)
class DesignedKnobs:
    """Knobs with which `generate` makes an instance of the wanted profile, or the nearest that was found.

    `measured` has the components that were asked for; `comparison` compares them with what was wanted.
    """

    family: str
    knobs: Mapping[str, Any]
    measured: Mapping[str, float | None]
    is_met: bool
    tries: int
    comparison: str
    is_out_of_time: bool


def design(
    family: str,
    profile: str,
    *,
    within: str = "10%",
    knobs: Mapping[str, Any] | None = None,
    seed: int = 0,
    tries: int = 150,
    seconds: float = 300.0,
    progress: ProgressCallback[TriedKnobs] = ignore,
) -> DesignedKnobs:
    """Search the knobs of a family for an instance with a profile: `dokimos generate FAMILY --profile`.

    `profile` names components with their values, by symbol or name, such as "U=0.9,G_IBP=1e3,d_eff=20";
    `within` says how near is near enough. `knobs` stay as given. The same arguments find the same knobs,
    unless `seconds` of CPU time end the search. `generate` with these knobs and the same seed makes the
    instance.

    >>> found = dokimos.design("dials", "U=0.5,G_IBP=20", knobs={"inputs": 24, "pairs": 8}, tries=60)
    >>> found.is_met
    True
    """
    from dokimos.difficulty.design import parse_profile

    wanted = parse_profile(profile, within)
    if tries < 1 or not seconds > 0:
        raise InputError(f"A search needs at least 1 try and some time, not {tries} and {seconds:g} s.")
    if find_spec("torch") is None:
        raise packages_missing("Profiles need torch", "gradients")
    from dokimos.difficulty.design import design as search

    (draw,) = with_seeds(Recipe("", seed, 60.0, (Draw(family),))).draws
    assert draw.seed is not None

    def step(count: int, tried: TriedKnobs) -> None:
        note = wanted.compared(tried.measured) if tried.measured else "no instance"
        progress(ProgressUpdate("searching", count, tries, note, tried))

    found = search(
        family,
        wanted,
        fixed=knobs or {},
        seed=seed,
        draw_seed=draw.seed,
        tries=tries,
        seconds=seconds,
        progress=step,
    )
    return DesignedKnobs(
        family=family,
        knobs=found.best.knobs,
        measured=found.best.measured,
        is_met=found.is_met,
        tries=found.tries,
        comparison=wanted.compared(found.best.measured),
        is_out_of_time=found.is_out_of_time,
    )
