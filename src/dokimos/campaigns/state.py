"""The state of a campaign that another process runs, from its files alone; takes no lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from statistics import fmean

import psutil

from dokimos.campaigns.journal import History, RunRecord, read_history
from dokimos.campaigns.manifest import Manifest, read_manifest


class State(Enum):
    """Whether a campaign is running. `STOPPED`: runs are left, but no process on this machine does them."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Glance:
    """A campaign at one moment.

    `planned` says how many runs each verifier has in total. `seconds_left` is an estimate; None if there is
    nothing to base it on, or the campaign is not running.
    """

    state: State
    planned: dict[str, int]
    records: tuple[RunRecord, ...]
    running: int
    seconds_left: float | None

    @property
    def total(self) -> int:
        """How many runs the finished campaign has."""
        return sum(self.planned.values())

    @property
    def in_words(self) -> str:
        """How many runs are done and left, and how long that will take."""
        done, to_go = len(self.records), self.total - len(self.records)
        share = f"{done} of {self.total} runs done"
        if self.state is State.FINISHED:
            return f"finished: {share}"
        if self.state is State.STOPPED:
            return (
                f"interrupted: {share}, {to_go} to go, and no process on this machine is running it; "
                "the same `dokimos run` command continues it"
            )
        if self.seconds_left is None:
            return f"running: {share}, {to_go} to go"
        return f"running: {share}, {to_go} to go, about {duration(self.seconds_left)} left"


def duration(value: float) -> str:
    """A remaining time, roughly."""
    if value < 90:
        return f"{max(round(value), 1)} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def glance(folder: Path, now: datetime) -> Glance:
    """The present state of the campaign in `folder`. Raises UnreadableFile if there is none."""
    manifest = read_manifest(folder / "manifest.json")
    history = read_history(folder / "journal.jsonl")
    planned = {tool.name: manifest.planned(tool) for tool in manifest.verifiers}
    if manifest.published is not None:  # missing runs of published results will never be done
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
    """An estimate of how long the rest will take, from the runs so far.

    A future run is assumed to take as long as that verifier's runs on that family took on average (or, if
    there are none, all its runs, or all runs). The number of run-seconds per second is assumed to stay what
    it has been since the process started, which accounts for parallel runs and for the time between runs.
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
    """The expected seconds of each future run, by instance and verifier."""
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
    """The seconds since that moment; 0 if it is not a valid time."""
    try:
        return max((now - datetime.fromisoformat(moment)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0


def _is_held(lock: Path) -> bool:
    """Whether the process that last took the lock still runs (and its id was not reused by another)."""
    try:
        number = int(lock.read_text(encoding="ascii").removeprefix("process "))
        process = psutil.Process(number)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return float(process.create_time()) <= lock.stat().st_mtime + 1
    except (OSError, ValueError, psutil.Error):
        return False
