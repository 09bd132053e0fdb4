"""Turns of guided training: one run is trained a few phases further, in this process or in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.parallel import each
from dokimos_studies.laws.guided_records import Arm, GuidedRecords, PhaseRecord
from dokimos_studies.laws.lander_bugs import StatePools
from dokimos_studies.laws.lander_guided import GuidedRun, GuidedSettings

#: How many phases of a run are trained before other runs take their turn.
PHASES_IN_TURN = 5


@dataclass(frozen=True)
class Turn:
    """A run, the phase up to which to train it, and how many of its phases have records in `data`."""

    seed: int
    arm: Arm
    goal: int
    known: int
    data: Path
    folder: Path
    settings: GuidedSettings
    states: StatePools


def records_left(folder: Path, settings: GuidedSettings) -> GuidedRecords:
    """The records that a run in another process leaves in its folder, each before its checkpoint."""
    return GuidedRecords(folder / "records.json", settings.recipe)


def side_by_side(turns: list[Turn], *, jobs: int) -> Iterator[tuple[PhaseRecord, ...]]:
    """Train each run in a process of its own, `jobs` of them at a time; yields their records.

    The results are those of one process: each run has its own seeds, and uses one thread. If interrupted,
    `records_left` has the records of the phases that ended before.
    """
    for _, records in each(_train, turns, jobs=jobs):
        yield records


def train(turn: Turn, keep: Callable[[PhaseRecord], None]) -> None:
    """Train the run; `keep` gets each record before its checkpoint is written.

    Raises InputError if the training has got further than its records.
    """
    run = GuidedRun(turn.arm, turn.seed, folder=turn.folder, settings=turn.settings, states=turn.states)
    if turn.known < run.phase:
        raise InputError(
            f"{turn.folder}: its checkpoint is from phase {run.phase}, but {turn.data} does not have all "
            "its tests; remove the folder."
        )
    run.train(turn.goal, keep)


def _train(turn: Turn) -> tuple[PhaseRecord, ...]:
    left = records_left(turn.folder, turn.settings)
    made: list[PhaseRecord] = []

    def keep(record: PhaseRecord) -> None:
        left.add(record)
        made.append(record)

    train(turn, keep)
    return tuple(made)
