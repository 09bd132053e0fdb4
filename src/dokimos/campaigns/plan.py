"""What a campaign is going to run, and in which order."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from dokimos.errors import InputError
from dokimos.execution.limits import Limits


class CampaignInstance(Protocol):
    """What a campaign needs to know of an instance; it never sees the truth."""

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


@dataclass(frozen=True)
class Tool:
    """A verifier as the plan knows it."""

    name: str
    version: str


@dataclass(frozen=True)
class Job:
    """One run to be done: `tool` on `instance`, for the `repeat`-th time (from 0).

    `id` is a hash of everything that may change the answer: the contents of both files, the verifier and
    its version, the limits, and the repetition. Where a suite holds the same contents under several names,
    their count so far keeps the ids apart.
    """

    id: str
    instance: CampaignInstance
    tool: Tool
    repeat: int


def plan(
    instances: Sequence[CampaignInstance], tools: Sequence[Tool], *, limits: Limits, repeat: int
) -> tuple[Job, ...]:
    """All jobs, interleaved so that stopping anywhere leaves a fair comparison.

    Repetitions come one after the other; within one, families take turns, so that none is left for the
    end; each instance is given to all tools before the next one, and the tool that goes first rotates.
    """
    if repeat < 1:
        raise InputError(f"The number of repetitions must be at least 1, not {repeat}.")
    for what, names in (("instance", [i.name for i in instances]), ("verifier", [t.name for t in tools])):
        if doubled := [name for name, count in Counter(names).items() if count > 1]:
            raise InputError(f"The {what} {doubled[0]!r} is there twice; give each of them once.")
    occurrence = _occurrences(instances)
    jobs = []
    for round_number in range(repeat):
        for k, instance in enumerate(_families_take_turns(instances)):
            first = (k + round_number) % len(tools) if tools else 0
            for tool in (*tools[first:], *tools[:first]):
                identity = job_id(
                    instance, tool, limits=limits, repeat=round_number, occurrence=occurrence[instance.name]
                )
                jobs.append(Job(identity, instance, tool, round_number))
    return tuple(jobs)


def job_id(
    instance: CampaignInstance, tool: Tool, *, limits: Limits, repeat: int, occurrence: int = 0
) -> str:
    """The identity of one run, in 24 hexadecimal digits."""
    content = {
        "network": instance.network_sha256,
        "property": instance.property_sha256,
        "occurrence": occurrence,
        "verifier": [tool.name, tool.version],
        "limits": [limits.wall_seconds, limits.memory_bytes, limits.threads],
        "repeat": repeat,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def _occurrences(instances: Sequence[CampaignInstance]) -> dict[str, int]:
    seen: Counter[tuple[str, str]] = Counter()
    numbers = {}
    for instance in instances:
        content = (instance.network_sha256, instance.property_sha256)
        numbers[instance.name] = seen[content]
        seen[content] += 1
    return numbers


def _families_take_turns(instances: Sequence[CampaignInstance]) -> list[CampaignInstance]:
    families: dict[str, list[CampaignInstance]] = {}
    for instance in instances:
        families.setdefault(instance.family, []).append(instance)
    rounds = zip_longest(*families.values())
    return [instance for turn in rounds for instance in turn if instance is not None]
