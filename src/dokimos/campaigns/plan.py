"""What a campaign will run, in which order, and which machine may run what next."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.suites.instance import Answer
from dokimos.verifiers.execution.limits import Limits


class CampaignInstance(Protocol):
    """What a campaign needs to know about an instance; it never sees the label."""

    @property
    def name(self) -> str:
        """Its name, unique in the suite."""

    @property
    def family(self) -> str:
        """Which family it belongs to."""

    @property
    def network_path(self) -> Path:
        """Its network's file."""

    @property
    def property_path(self) -> Path:
        """Its property's file."""

    @property
    def network_sha256(self) -> str:
        """The hash of the network's file."""

    @property
    def property_sha256(self) -> str:
        """The hash of the property's file."""

    @property
    def timeout_seconds(self) -> float:
        """The time limit that its suite gives a verifier."""


@dataclass(frozen=True)
class CampaignSuite:
    """A suite to run: its folder, and the instances to run.

    `name` is its name in records (default: the name of its folder).
    """

    folder: Path
    instances: tuple[CampaignInstance, ...]
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.folder.absolute().name)


@dataclass(frozen=True)
class Tool:
    """A verifier as the plan knows it; `called_as` is the value for --verifier, if that is not its name."""

    name: str
    version: str
    called_as: str = ""

    @property
    def given(self) -> str:
        """The value for --verifier."""
        return self.called_as or self.name


@dataclass(frozen=True)
class Job:
    """One run to do: `tool` on `instance` of `suite`, for the `repeat`-th time (from 0).

    `id` is a hash of everything that may change the answer: the contents of both files, the verifier and
    its version, the limits, and the repetition. If the same contents occur under several names or in
    several suites, a counter, in the order of suites and names, makes the ids distinct.
    """

    id: str
    suite: str
    instance: CampaignInstance
    tool: Tool
    repeat: int
    limits: Limits


def plan(
    suites: Sequence[CampaignSuite],
    tools: Sequence[Tool],
    settings: RunSettings,
    *,
    in_given_order: bool = False,
) -> tuple[Job, ...]:
    """All jobs, interleaved so that stopping anywhere leaves a fair comparison.

    Repetitions come one after the other. Within a repetition, families take turns, so that none is left for
    the end; each instance is given to all tools before the next one, and the tool that goes first rotates.
    With `in_given_order`, instances come in the order of their suites, which take turns, each with all its
    repetitions: for a budget, of which the first instances use what they need.
    """
    _require_distinct("suite", [suite.name for suite in suites])
    for suite in suites:
        _require_distinct("instance", [instance.name for instance in suite.instances])
    _require_distinct("verifier", [tool.name for tool in tools])
    occurrence = _occurrences(suites)
    turns = list(enumerate(_take_turns(suites, by_family=not in_given_order)))
    rounds = range(settings.repeat)
    if in_given_order:
        order = [(turn, number) for turn in turns for number in rounds]
    else:
        order = [(turn, number) for number in rounds for turn in turns]
    jobs = []
    for (k, (suite_name, instance)), round_number in order:
        first = (k + round_number) % len(tools) if tools else 0
        limits = settings.limits(instance.timeout_seconds)
        for tool in (*tools[first:], *tools[:first]):
            identity = job_id(
                instance,
                tool,
                limits=limits,
                repeat=round_number,
                occurrence=occurrence[suite_name, instance.name],
            )
            jobs.append(Job(identity, suite_name, instance, tool, round_number, limits))
    return tuple(jobs)


def _require_distinct(what: str, names: Sequence[str]) -> None:
    if doubled := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"The {what} {doubled[0]!r} is given twice; give each only once.")


def job_id(
    instance: CampaignInstance, tool: Tool, *, limits: Limits, repeat: int, occurrence: int = 0
) -> str:
    """The id of one run, 24 hexadecimal digits."""
    kept = [limits.wall_seconds, limits.memory_bytes, limits.threads]
    content = {
        "network": instance.network_sha256,
        "property": instance.property_sha256,
        "occurrence": occurrence,
        "verifier": [tool.name, tool.version],
        "limits": kept if limits.cpu_seconds is None else [*kept, limits.cpu_seconds],
        "repeat": repeat,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def _occurrences(suites: Sequence[CampaignSuite]) -> dict[tuple[str, str], int]:
    """The counter of each instance's contents, in the order of names, whatever the order of the suites."""
    seen: Counter[tuple[str, str]] = Counter()
    numbers = {}
    for suite in sorted(suites, key=lambda suite: suite.name):
        for instance in sorted(suite.instances, key=lambda instance: instance.name):
            content = (instance.network_sha256, instance.property_sha256)
            numbers[suite.name, instance.name] = seen[content]
            seen[content] += 1
    return numbers


def _take_turns(suites: Sequence[CampaignSuite], *, by_family: bool) -> list[tuple[str, CampaignInstance]]:
    """All instances; suites take turns, or the families of each."""
    groups: dict[tuple[str, str], list[tuple[str, CampaignInstance]]] = {}
    for suite in suites:
        for instance in suite.instances:
            family = instance.family if by_family else ""
            groups.setdefault((suite.name, family), []).append((suite.name, instance))
    rounds = zip_longest(*groups.values())
    return [pair for turn in rounds for pair in turn if pair is not None]


# What a campaign runs next: its jobs in order, some again without the tool's attack, and a budget


@dataclass
class _Line:
    """Jobs that share a budget: `left` are those to begin, `followers` those that go before them.

    `reserved` has what runs under way may use at most.
    """

    left: deque[Job]
    room_seconds: float
    followers: deque[Job] = field(default_factory=deque)
    used_seconds: float = 0.0
    reserved: dict[str, float] = field(default_factory=dict)


class Agenda:
    """The jobs of a campaign, given out one by one.

    `follower` has the jobs that follow, by the id of those that they follow. `records` are the runs that
    are recorded already, by job: they are not given out, and their times count. `room_seconds` is the
    budget of each verifier, None if there is none.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        follower: Mapping[str, Job],
        records: Mapping[str, RunRecord],
        room_seconds: float | None = None,
    ) -> None:
        self._follower, self._records = follower, records
        self._line_of: dict[str, _Line] = {}
        groups: dict[str, list[Job]] = {}
        for job in jobs:
            groups.setdefault("" if room_seconds is None else job.tool.name, []).append(job)
        room = math.inf if room_seconds is None else room_seconds
        self._lines = deque(_Line(deque(own), room) for own in groups.values())
        #: All jobs that may be given out or are recorded.
        self.possible = (*jobs, *follower.values())
        #: The jobs that belong to the campaign so far, recorded or given out, and those given out.
        self.due: set[str] = set()
        self.given: set[str] = set()
        known = [job.id for job in jobs]
        known += [own.id for job in jobs if (own := self._following(records.get(job.id))) is not None]
        #: How many of the runs are recorded, and how many there will be, as far as is known now.
        self.recorded, self.total = sum(job in records for job in known), len(known)

    def next(self) -> Job | None:
        """The next job to begin; None if there is none, or none before another run has ended."""
        for _ in range(len(self._lines)):
            line = self._lines[0]
            self._lines.rotate(-1)
            if (job := self._next(line)) is not None:
                self._line_of[job.id] = line
                self.given.add(job.id)
                return job
        return None

    def ended(self, record: RunRecord) -> None:
        """A job that was given out has ended."""
        line = self._line_of.pop(record.job)
        line.reserved.pop(record.job)
        self.total += self._following(record) is not None
        self._count(line, record)

    def _next(self, line: _Line) -> Job | None:
        while line.followers or line.left:
            is_follower = bool(line.followers)
            queue = line.followers if is_follower else line.left
            job = queue[0]
            if (record := self._records.get(job.id)) is not None:
                queue.popleft()
                self.due.add(job.id)
                self._count(line, record)
                continue
            seconds = job.limits.wall_seconds * (2 if job.id in self._follower else 1)
            taken = line.used_seconds + sum(line.reserved.values())
            if not is_follower and taken + seconds > line.room_seconds:
                if not line.reserved:
                    line.left.clear()
                return None
            queue.popleft()
            self.due.add(job.id)
            line.reserved[job.id] = seconds
            return job
        return None

    def _count(self, line: _Line, record: RunRecord) -> None:
        line.used_seconds += record.wall_seconds
        if (follower := self._following(record)) is not None:
            line.followers.append(follower)

    def _following(self, record: RunRecord | None) -> Job | None:
        """The job that follows a run, after its answer."""
        if record is None or record.answer is not Answer.SAT:
            return None
        return self._follower.get(record.job)
