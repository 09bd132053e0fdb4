"""What a campaign was: written before the first run, compared before every resumption."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from dokimos import __version__
from dokimos.campaigns.plan import CampaignInstance, Tool
from dokimos.errors import InputError, UnreadableFile
from dokimos.execution.limits import Limits

SCHEMA = 1


@dataclass(frozen=True)
class Machine:
    """The computer that ran it, as far as it matters for times."""

    system: str
    processor: str
    cores: int
    memory_bytes: int
    python: str


@dataclass(frozen=True)
class ManifestInstance:
    """An instance by name and content."""

    name: str
    family: str
    network_sha256: str
    property_sha256: str


@dataclass(frozen=True)
class Manifest:
    """Everything that was fixed when the campaign began."""

    created_at: str
    dokimos_version: str
    machine: Machine
    suite: str
    instances: tuple[ManifestInstance, ...]
    verifiers: tuple[Tool, ...]
    limits: Limits
    repeat: int


def describe(
    suite: Path,
    instances: Sequence[CampaignInstance],
    tools: Sequence[Tool],
    *,
    limits: Limits,
    repeat: int,
) -> Manifest:
    """The manifest of a campaign that begins now."""
    return Manifest(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        dokimos_version=__version__,
        machine=this_machine(),
        suite=str(suite.absolute()),
        instances=_by_content(instances),
        verifiers=tuple(tools),
        limits=limits,
        repeat=repeat,
    )


def this_machine() -> Machine:
    """The computer we are on."""
    return Machine(
        system=platform.platform(),
        processor=_processor(),
        cores=psutil.cpu_count() or 1,
        memory_bytes=int(psutil.virtual_memory().total),
        python=platform.python_version(),
    )


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def merge(old: Manifest, new: Manifest, folder: Path) -> Manifest:
    """The manifest of the resumed campaign; InputError says what changed where it may not.

    A campaign may gain verifiers and repetitions, and its suite may have been moved; its instances, its
    limits and the versions of its verifiers are what its runs have in common.
    """
    changes = []
    if old.limits != new.limits:
        before, after = asdict(old.limits), asdict(new.limits)
        changes += [f"{k} was {before[k]} and is {after[k]}" for k in before if before[k] != after[k]]
    changes += _changed_instances(old.instances, new.instances)
    versions = {tool.name: tool.version for tool in old.verifiers}
    for tool in new.verifiers:
        if (before_version := versions.get(tool.name, tool.version)) != tool.version:
            changes.append(f"{tool.name} was version {before_version} and is {tool.version}")
    if changes:
        raise InputError(
            f"The campaign in {folder} was begun differently: {'; '.join(changes)}; "
            "run as it was begun, or choose another folder."
        )
    gained = tuple(tool for tool in new.verifiers if tool.name not in versions)
    return replace(
        old,
        suite=new.suite,
        verifiers=(*old.verifiers, *gained),
        repeat=max(old.repeat, new.repeat),
    )


def require_same_instances(manifest: Manifest, instances: Sequence[CampaignInstance]) -> None:
    """Make sure that `instances` are what was run; InputError says which are not."""
    if changes := _changed_instances(manifest.instances, _by_content(instances)):
        raise InputError(
            f"The suite {manifest.suite} is not the one that was run: {'; '.join(changes)}; restore it, or "
            "run it again into another folder."
        )


def _by_content(instances: Sequence[CampaignInstance]) -> tuple[ManifestInstance, ...]:
    return tuple(ManifestInstance(i.name, i.family, i.network_sha256, i.property_sha256) for i in instances)


def _changed_instances(old: tuple[ManifestInstance, ...], new: tuple[ManifestInstance, ...]) -> list[str]:
    before = {i.name: i for i in old}
    after = {i.name: i for i in new}
    changes = []
    for what, names in (
        ("gone", before.keys() - after.keys()),
        ("new", after.keys() - before.keys()),
        ("changed", {n for n in before.keys() & after.keys() if before[n] != after[n]}),
    ):
        if names:
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            changes.append(f"instance {min(names)}{others} is {what}")
    return changes


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write it whole or not at all."""
    draft = path.with_name(path.name + ".part")
    with draft.open("w", encoding="utf-8") as file:
        json.dump({"schema": SCHEMA, **asdict(manifest)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def read_manifest(path: Path) -> Manifest:
    """The manifest at `path`; UnreadableFile where there is none."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if (schema := data.pop("schema", None)) != SCHEMA:
            raise UnreadableFile(path, f"this manifest has schema {schema!r}, not {SCHEMA}.")
        return Manifest(
            **{
                **data,
                "machine": Machine(**data["machine"]),
                "instances": tuple(ManifestInstance(**i) for i in data["instances"]),
                "verifiers": tuple(Tool(**t) for t in data["verifiers"]),
                "limits": Limits(**data["limits"]),
            }
        )
    except FileNotFoundError as error:
        raise UnreadableFile(path, "there is no campaign here; begin one with `dokimos run`.") from error
    except OSError as error:
        raise UnreadableFile(path, f"it cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnreadableFile(path, "it is no manifest of a campaign; choose another folder.") from error
