"""A campaign seen from outside while another process runs it: reads its files, and locks nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from statistics import fmean

import psutil

from dokimos.campaigns.journal import History, read_history
from dokimos.campaigns.manifest import Manifest, read_manifest
from dokimos.campaigns.records import RunRecord


class State(Enum):
    """Whether there is more to come. `STOPPED`: there is more to do, and nobody here does it."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Glance:
    """A campaign at one moment.

    `planned` says how many runs each verifier has in all. `seconds_left` is an estimate; None where
    there is nothing to base it on, or nobody runs it.
    """

    state: State
    planned: dict[str, int]
    records: tuple[RunRecord, ...]
    running: int
    seconds_left: float | None

    @property
    def total(self) -> int:
        """How many runs there are when it is finished."""
        return sum(self.planned.values())


def glance(folder: Path, now: datetime) -> Glance:
    """The campaign in `folder` at this moment; UnreadableFile where there is none."""
    manifest = read_manifest(folder / "manifest.json")
    history = read_history(folder / "journal.jsonl")
    planned = {tool.name: len(manifest.instances) * manifest.repeat for tool in manifest.verifiers}
    if manifest.published is not None:  # nobody runs what is missing there
        recorded = Counter(record.verifier for record in history.records)
        planned = {tool.name: recorded[tool.name] for tool in manifest.verifiers}
    if len(history.records) >= sum(planned.values()):
        state = State.FINISHED
    else:
        state = State.RUNNING if _is_held(folder / "lock") else State.STOPPED
    is_running = state is State.RUNNING
    return Glance(
        state=state,
        planned=planned,
        records=history.records,
        running=len(_unfinished(history)) if is_running else 0,
        seconds_left=seconds_left(manifest, history, now) if is_running else None,
    )


def seconds_left(manifest: Manifest, history: History, now: datetime) -> float | None:
    """How long the rest will take, judging by what the runs so far took.

    A run to come is taken to last as long as that verifier's runs on that family did on average (or all its
    runs, or all runs, where there are none of those). As many seconds of runs will pass in a second as
    have since the process began: so several at a time, and what lies between them, are counted.
    """
    if not history.records or not history.started:
        return None
    begun = _age(min(history.started.values()), now)
    ages = [_age(history.started[job], now) for job in _unfinished(history)]
    worked = sum(record.wall_seconds for record in history.finished_since) + sum(ages)
    speed = worked / begun if begun > 0 and worked > 0 else 1.0
    work = sum(_expected(manifest, history.records)) - sum(ages)
    return max(work, 0.0) / speed


def _expected(manifest: Manifest, records: Sequence[RunRecord]) -> Iterator[float]:
    """The seconds that the runs to come are expected to last, by instance and verifier."""
    times: dict[tuple[str, ...], list[float]] = {}
    for record in records:
        for key in ((record.verifier, record.family), (record.verifier,), ()):
            times.setdefault(key, []).append(record.wall_seconds)
    means = {key: fmean(seconds) for key, seconds in times.items()}
    done = Counter((record.suite, record.instance, record.verifier) for record in records)
    for instance in manifest.instances:
        for tool in manifest.verifiers:
            left = manifest.repeat - done[instance.suite, instance.name, tool.name]
            keys = ((tool.name, instance.family), (tool.name,), ())
            expected = next(means[key] for key in keys if key in means)
            yield expected * max(left, 0)


def _unfinished(history: History) -> list[str]:
    finished = {record.job for record in history.records}
    return [job for job in history.started if job not in finished]


def _age(moment: str, now: datetime) -> float:
    """How long ago that was; not at all where it is no time."""
    try:
        return max((now - datetime.fromisoformat(moment)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0


def _is_held(lock: Path) -> bool:
    """Whether the process that last took the lock is still there (and is not a later one of its number)."""
    try:
        number = int(lock.read_text(encoding="ascii").removeprefix("process "))
        process = psutil.Process(number)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return float(process.create_time()) <= lock.stat().st_mtime + 1
    except (OSError, ValueError, psutil.Error):
        return False
