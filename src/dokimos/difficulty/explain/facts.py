"""What is known of the instances of a suite beside their labels: knobs and profiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from dokimos.campaigns.manifest import ManifestInstance
from dokimos.core.errors import UnreadableFile
from dokimos.difficulty.explain.rows import Missing
from dokimos.difficulty.profiles import FOLDER, Profile, load_profile
from dokimos.suites.folder import SuiteEntry, read_suite, read_text
from dokimos.suites.truth_file import load_json


@dataclass(frozen=True)
class Facts:
    """One instance of a suite: its place there, the knobs that made it, and its profile.

    `made_by` has every parameter of its origin, also those that are no numbers. `profile` is None where
    `problem` says why.
    """

    network_sha256: str
    property_sha256: str
    position: int
    made_by: Mapping[str, Any]
    profile: Profile | None
    problem: str = ""

    @property
    def knobs(self) -> dict[str, float]:
        """The parameters that are numbers."""
        return {name: float(value) for name, value in self.made_by.items() if _is_number(value)}

    @property
    def variant(self) -> str:
        """The parameters that are none, spelt."""
        return ", ".join(
            f"{name}: {value}" for name, value in self.made_by.items() if not _is_number(value)
        )


def read_facts(folder: Path, instances: Sequence[ManifestInstance]) -> dict[str, Facts]:
    """The facts about those instances, as they were run, of the suite in `folder`, by name.

    A profile counts only if it was measured on the very files that were run.
    """
    entries = {entry.name: (k, entry) for k, entry in enumerate(read_suite(folder).entries)}
    found = {}
    for instance in instances:
        if instance.name not in entries:
            raise UnreadableFile(folder, f"it has no instance {instance.name!r}, which was run")
        position, entry = entries[instance.name]
        profile, problem = _profile(folder / FOLDER / f"{instance.name}.json", instance)
        found[instance.name] = Facts(
            network_sha256=instance.network_sha256,
            property_sha256=instance.property_sha256,
            position=position,
            made_by=_parameters(entry),
            profile=profile,
            problem=problem,
        )
    return found


def missing_profiles(suite: str, folder: Path, facts: Mapping[str, Facts]) -> tuple[Missing, ...]:
    """Which instances have no usable profile, by reason, with the command that makes one."""
    by_reason: dict[str, list[str]] = {}
    for name, fact in facts.items():
        if fact.profile is None:
            by_reason.setdefault(fact.problem, []).append(name)
    remedy = f"dokimos profile {quote(str(folder))}"
    return tuple(
        Missing(suite, reason, tuple(names), remedy) for reason, names in sorted(by_reason.items())
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _profile(path: Path, instance: ManifestInstance) -> tuple[Profile | None, str]:
    if not path.exists():
        return None, "there is no profile"
    try:
        profile = load_profile(path)
    except UnreadableFile as error:
        return None, f"the profile cannot be read: {error.reason}"
    measured = (profile.network_sha256, profile.property_sha256)
    if measured != (instance.network_sha256, instance.property_sha256):
        return None, "the profile was measured on other files than were run"
    return profile, ""


def _parameters(entry: SuiteEntry) -> Mapping[str, Any]:
    """The parameters in an instance's truth file; none where there is no such file or origin."""
    if not entry.truth_path.exists():
        return {}
    document = load_json(read_text(entry.truth_path), file=str(entry.truth_path))
    origin = document.get("origin") if isinstance(document, dict) else None
    parameters = origin.get("parameters") if isinstance(origin, dict) else None
    return parameters if isinstance(parameters, dict) else {}
