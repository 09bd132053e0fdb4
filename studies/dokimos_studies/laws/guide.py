"""`dokimos-studies law-guide`: policies trained with and without the violations that tests find."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, only_one, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos_studies.command_line import on_stderr, positive
from dokimos_studies.laws.guided_page import figure, markdown
from dokimos_studies.laws.guided_records import Arm, GuidedRecords, PhaseRecord
from dokimos_studies.laws.guided_table import paired_runs

if TYPE_CHECKING:
    from dokimos_studies.laws.guided_turns import Turn
    from dokimos_studies.laws.lander_bugs import StatePools
    from dokimos_studies.laws.lander_guided import GuidedSettings


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
    jobs: int = 1,
    settings: GuidedSettings | None = None,
    progress: ProgressCallback[None] = ignore,
) -> GuidedComparison:
    """Train policies for LunarLander with and without guidance by violations: `dokimos-studies law-guide`.

    For each of `seeds` seeds, both kinds of training run for at least `steps` steps, in whole phases.
    Writes `out`.md, `out`.svg and `out`.json after each phase, and checkpoints and policies to the folder
    `out`-runs. If interrupted (Ctrl-C), the same call continues where it stopped; with more steps or seeds,
    it adds to what is there. With `jobs`, so many trainings run at the same time, with the same results.
    """
    from dokimos_studies.laws.guided_turns import side_by_side, train
    from dokimos_studies.laws.lander_bugs import fuzzed_states
    from dokimos_studies.laws.lander_guided import GuidedSettings

    if seeds < 1 or steps < 1 or jobs < 1:
        raise InputError("A training needs at least one step, one seed and one job.")
    chosen = settings or GuidedSettings()
    base = Path(out)
    expect_writable(base.with_name(f"{base.name}.md"), what="comparison", example="law-guide")
    with only_one(base.with_name(f".{base.name}.lock"), doing=f"trains for {base}"):
        phases = math.ceil(steps / chosen.phase_steps)
        files = _Files(base, chosen, seeds, phases, progress)
        is_interrupted = False
        try:
            states = fuzzed_states(chosen.states)
            files.gather()
            for asked in _rounds(seeds, phases, at_once=max(1, jobs // 2)):
                turns = [files.turn(*each, states) for each in asked]
                if jobs == 1:
                    for turn in turns:
                        train(turn, files.keep)
                    continue
                for records in side_by_side([each for each in turns if each.known < each.goal], jobs=jobs):
                    for record in records:
                        files.keep(record)
        except KeyboardInterrupt:
            is_interrupted = True
            files.gather()
        files.write_page()
    return GuidedComparison(files.page, files.data, files.figure, files.count, files.asked, is_interrupted)


def _rounds(seeds: int, phases: int, *, at_once: int) -> Iterator[list[tuple[int, Arm, int]]]:
    """Which runs to train next, and up to which phase; those of a round do not wait for each other.

    The two runs of a seed take turns, so that pairs can be compared before they are finished.
    """
    from dokimos_studies.laws.guided_turns import PHASES_IN_TURN

    for first in range(0, seeds, at_once):
        group = range(first, min(first + at_once, seeds))
        for goal in range(PHASES_IN_TURN, phases + PHASES_IN_TURN, PHASES_IN_TURN):
            yield [(seed, arm, min(goal, phases)) for seed in group for arm in Arm]


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
        self._runs = base.with_name(f"{base.name}-runs")
        self.runs = [(seed, arm) for seed in range(seeds) for arm in Arm]
        self.asked = len(self.runs) * phases
        self._settings, self._seeds, self._phases, self._progress = settings, seeds, phases, progress
        self._records = GuidedRecords(self.data, settings.recipe)

    @property
    def count(self) -> int:
        """How many of the tests that were asked for are done."""
        return sum(min(self._phases, len(self._records.run(seed, arm))) for seed, arm in self.runs)

    def folder(self, seed: int, arm: Arm) -> Path:
        """Where a run has its checkpoint and its policies."""
        return self._runs / f"seed-{seed}-{arm.value}"

    def gather(self) -> None:
        """Take over the records that runs in other processes have left when they were interrupted."""
        from dokimos_studies.laws.guided_turns import records_left

        for seed, arm in self.runs:
            left = records_left(self.folder(seed, arm), self._settings).run(seed, arm)
            for record in left[len(self._records.run(seed, arm)) :]:
                self._records.add(record)

    def turn(self, seed: int, arm: Arm, goal: int, states: StatePools) -> Turn:
        """The next turn of a run."""
        from dokimos_studies.laws.guided_turns import Turn

        known = len(self._records.run(seed, arm))
        return Turn(seed, arm, goal, known, self.data, self.folder(seed, arm), self._settings, states)

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


def main() -> int:
    """Train and compare, and write the page, its figure and its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("law-guide"), help="NAME for NAME.md, .svg and .json"
    )
    parser.add_argument(
        "--seeds", type=positive, default=5, help="pairs of trainings, each of another seed"
    )
    parser.add_argument(
        "--steps", type=positive, default=300_000, help="of each, in whole phases of 10,240"
    )
    parser.add_argument("--jobs", type=positive, default=1, help="trainings at the same time")
    given = parser.parse_args()
    found = guide_training(
        out=given.out, seeds=given.seeds, steps=given.steps, jobs=given.jobs, progress=on_stderr
    )
    print(
        f"{found.page}: {found.tests:,} tests of {found.asked:,} asked for; the numbers are in {found.data}"
    )
    return 130 if found.is_interrupted else 0
