"""`profile`: what makes instances hard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dokimos.api.checking import SuiteSource, read_suite
from dokimos.core.errors import InputError
from dokimos.core.inputs import contained
from dokimos.core.parallel import default_jobs
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.difficulty.profiling import MeasuredProfile, ProfileTask, measure_all
from dokimos.suites.facts import FOLDER, ProfileSettings
from dokimos.suites.folder import instance_name, pair_suite

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
