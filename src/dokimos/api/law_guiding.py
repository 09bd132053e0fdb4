"""`guide_training`: compares policies trained with and without the violations that tests find."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole
from dokimos.core.locks import only_one
from dokimos.laws.studies.guided_page import figure, markdown
from dokimos.laws.studies.guided_records import Arm, GuidedRecords, PhaseRecord
from dokimos.laws.studies.guided_table import paired_runs

if TYPE_CHECKING:
    from dokimos.laws.studies.lander_guided import GuidedSettings

#: How many phases of one run are trained before the other run of the pair takes its turn.
_PHASES_IN_TURN = 5


@dataclass(frozen=True)
class GuidedComparison:
    """The files of a comparison, how many tests it has, and how many were asked for."""

    page: Path
    data: Path
    figure: Path
    tests: int
    asked: int
    is_interrupted: bool


def guide_training(
    *,
    out: str | Path = "law-guide",
    seeds: int = 5,
    steps: int = 300_000,
    settings: GuidedSettings | None = None,
    progress: ProgressCallback[None] = ignore,
) -> GuidedComparison:
    """Train policies for LunarLander with and without guidance by violations: `dokimos law guide`.

    For each of `seeds` seeds, both kinds of training run for at least `steps` steps, in whole phases.
    Writes `out`.md, `out`.svg and `out`.json after each phase, and checkpoints and policies to the folder
    `out`-runs. If interrupted (Ctrl-C), the same call continues where it stopped; with more steps or seeds,
    it adds to what is there.

    >>> dokimos.guide_training(steps=0)
    Traceback (most recent call last):
    dokimos.core.errors.InputError: A training needs at least one step and one seed.
    """
    from dokimos.laws.studies.lander_bugs import fuzzed_states
    from dokimos.laws.studies.lander_guided import GuidedRun, GuidedSettings

    if seeds < 1 or steps < 1:
        raise InputError("A training needs at least one step and one seed.")
    chosen = settings or GuidedSettings()
    base = Path(out)
    expect_writable(base.with_name(f"{base.name}.md"), what="comparison", example="law-guide")
    with only_one(base.with_name(f".{base.name}.lock"), doing=f"trains for {base}"):
        phases = math.ceil(steps / chosen.phase_steps)
        files = _Files(base, chosen, seeds, phases, progress)
        is_interrupted = False
        try:
            states = fuzzed_states(chosen.states)
            for seed, arm, goal in _stages(seeds, phases):
                folder = base.with_name(f"{base.name}-runs") / f"seed-{seed}-{arm.value}"
                run = GuidedRun(arm, seed, folder=folder, settings=chosen, states=states)
                files.expect_records_of(run.phase, seed, arm, folder)
                run.train(goal, files.keep)
        except KeyboardInterrupt:
            is_interrupted = True
        files.write_page()
    return GuidedComparison(files.page, files.data, files.figure, files.count, files.asked, is_interrupted)


def _stages(seeds: int, phases: int) -> Iterator[tuple[int, Arm, int]]:
    """Which run to train next, and up to which phase.

    The two runs of a seed take turns, so that pairs can be compared before they are finished.
    """
    for seed in range(seeds):
        for goal in range(_PHASES_IN_TURN, phases + _PHASES_IN_TURN, _PHASES_IN_TURN):
            for arm in Arm:
                yield seed, arm, min(goal, phases)


class _Files:
    """A comparison in progress: its files are rewritten after each phase."""

    def __init__(
        self,
        base: Path,
        settings: GuidedSettings,
        seeds: int,
        phases: int,
        progress: ProgressCallback[None],
    ) -> None:
        """Read the records, if there are any. Raises InputError, UnreadableFile."""
        self.page, self.data, self.figure = (
            base.with_name(f"{base.name}.{suffix}") for suffix in ("md", "json", "svg")
        )
        self.runs = [(seed, arm) for seed in range(seeds) for arm in Arm]
        self.asked = len(self.runs) * phases
        self._settings, self._seeds, self._phases, self._progress = settings, seeds, phases, progress
        self._records = GuidedRecords(self.data, settings.recipe)

    @property
    def count(self) -> int:
        """How many of the tests that were asked for are done."""
        return sum(min(self._phases, len(self._records.run(seed, arm))) for seed, arm in self.runs)

    def expect_records_of(self, phase: int, seed: int, arm: Arm, folder: Path) -> None:
        """Raise InputError if a training has got further than its records."""
        if len(self._records.run(seed, arm)) < phase:
            known = f"{self.data} does not have all its tests"
            raise InputError(
                f"{folder}: its checkpoint is from phase {phase}, but {known}; remove the folder."
            )

    def keep(self, record: PhaseRecord) -> None:
        """Save one more record, and report it."""
        self._records.add(record)
        self.write_page()
        bugs = f"{record.held_out} of {self._settings.states} held-out states violate"
        note = f"seed {record.seed} {record.arm.value}, {record.steps:,} steps: {bugs}, "
        note += f"reward {record.reward:.0f}"
        self._progress(ProgressUpdate("guide", self.count, self.asked, note, None))

    def write_page(self) -> None:
        """Write the page and its figure, with the records so far."""
        pairs = paired_runs(self._records)
        if pairs:
            write_whole(self.figure, figure(pairs), make_folder=False)
        shown = markdown(
            self._records,
            pairs,
            figure=self.figure.name,
            seeds=self._seeds,
            steps=self._phases * self._settings.phase_steps,
            phases=self._phases,
        )
        write_whole(self.page, shown, make_folder=False)
