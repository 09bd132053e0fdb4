"""What a campaign will run, and in which order."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
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
