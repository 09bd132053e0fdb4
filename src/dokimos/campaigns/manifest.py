"""What a campaign consists of: written before the first run, and compared whenever it is resumed."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from dokimos import __version__
from dokimos.campaigns import no_campaign
from dokimos.campaigns.journal import Seconds
from dokimos.campaigns.plan import CampaignInstance, CampaignSuite, Tool
from dokimos.campaigns.settings import RunSettings
from dokimos.core import strict_json
from dokimos.core.documents import Count, require_known_keys
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import contained, read_regular, write_whole
from dokimos.core.typed_values import convert
from dokimos.suites.entry import read_content
from dokimos.suites.folder import instances_table, read_suite_file
from dokimos.suites.instance import sha256
from dokimos.verifiers.execution.limits import Limits

SCHEMA = 2


@dataclass(frozen=True)
class Machine:
    """The computer that ran the campaign, as far as it matters for times."""

    system: str
    processor: str
    cores: Count
    memory_bytes: Count
    python: str


@dataclass(frozen=True)
class ManifestSuite:
    """A suite: its name, its folder, its version, and the seed it was drawn with, if known.

    A different list of instances is a different version, and the instances that Dokimos makes are named
    after their contents. A campaign itself has no randomness: the order of its runs follows from what is
    run.
    """

    name: str
    folder: str
    seed: int | None = None
    version: str = ""


@dataclass(frozen=True)
class ManifestInstance:
    """An instance: its name, hashes, and the time limit of its suite, if that was the one used."""

    suite: str
    name: str
    family: str
    network_sha256: str
    property_sha256: str
    timeout_seconds: Seconds | None


@dataclass(frozen=True)
class PublishedSource:
    """The source of the published results that a campaign was made from, and the tools not scored there.

    `year` is that of the competition, if the results say. `overheads` are the seconds of the shortest
    decided run of each tool, over all that was published: the first competitions took them off.
    """

    folder: str
    not_scored: tuple[str, ...] = ()
    year: int | None = None
    overheads: dict[str, Seconds] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """Everything that was fixed when the campaign started.

    `own_timeouts`: whether every instance had the time limit of its suite, instead of that in `limits`.
    `published` is the source of runs that others published; None for runs of our own. `runs` says how many
    runs the verifiers have that were not to run on every instance: written when the last one has ended.
    `prepare_seconds` and `grace_seconds` are those of the settings.
    """

    created_at: str
    dokimos_version: str
    machine: Machine
    suites: tuple[ManifestSuite, ...]
    instances: tuple[ManifestInstance, ...]
    verifiers: tuple[Tool, ...]
    limits: Limits
    own_timeouts: bool
    repeat: Count
    published: PublishedSource | None = None
    runs: dict[str, Count] = field(default_factory=dict)
    prepare_seconds: Seconds | None = None
    grace_seconds: Seconds = 0.0

    def planned(self, tool: Tool) -> int:
        """How many runs a verifier has when the campaign is finished."""
        return self.runs.get(tool.name, len(self.instances) * self.repeat)

    @property
    def settings(self) -> RunSettings:
        """The settings that decide what its runs are; what changes only where they run is not recorded."""
        return RunSettings(
            timeout_seconds=None if self.own_timeouts else self.limits.wall_seconds,
            memory_bytes=self.limits.memory_bytes,
            cpu_seconds=self.limits.cpu_seconds,
            threads=self.limits.threads,
            repeat=self.repeat,
            prepare_seconds=self.prepare_seconds,
            grace_seconds=self.grace_seconds,
        )


def describe(
    suites: Sequence[CampaignSuite],
    tools: Sequence[Tool],
    settings: RunSettings,
) -> Manifest:
    """The manifest of a campaign that starts now."""
    longest = max((i.timeout_seconds for suite in suites for i in suite.instances), default=1.0)
    return Manifest(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        dokimos_version=__version__,
        machine=this_machine(),
        suites=tuple(
            ManifestSuite(
                suite.name, str(suite.folder.absolute()), _seed(suite.folder), suite_version(suite.folder)
            )
            for suite in suites
        ),
        instances=_by_content(suites, own_timeouts=settings.own_timeouts),
        verifiers=tuple(tools),
        limits=settings.limits(longest),
        own_timeouts=settings.own_timeouts,
        repeat=settings.repeat,
        prepare_seconds=settings.prepare_seconds,
        grace_seconds=settings.grace_seconds,
    )


def _seed(folder: Path) -> int | None:
    made = read_suite_file(folder)
    seed = None if made is None else made.recipe.get("seed")
    return seed if type(seed) is int else None


def suite_version(folder: Path) -> str:
    """The first digits of the SHA-256 of the suite's list of instances; empty if it has none."""
    try:
        return sha256(read_content(instances_table(folder)))[:8]
    except (OSError, UnreadableFile):
        return ""


def this_machine() -> Machine:
    """The present computer."""
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
    """The manifest of the resumed campaign. Raises InputError if something changed that must not change.

    A campaign may gain verifiers and repetitions, and its suites may have moved; its instances, its limits
    and the versions of its verifiers must stay the same.
    """
    changes = []
    if old.own_timeouts != new.own_timeouts:
        one, other = (_times(manifest) for manifest in (old, new))
        changes.append(f"the time of each run was {one} and would be {other}")
        # The consequences of that need not be listed as well.
        new = replace(
            new,
            limits=replace(new.limits, wall_seconds=old.limits.wall_seconds),
            instances=_with_times_of(new.instances, old.instances),
        )
    before, after = (
        {**asdict(one.limits), "prepare_seconds": one.prepare_seconds, "grace_seconds": one.grace_seconds}
        for one in (old, new)
    )
    changes += [
        f"{k} was {_plain(before[k])} and is {_plain(after[k])}" for k in before if before[k] != after[k]
    ]
    changes += _changed_instances(old.instances, new.instances)
    versions = {tool.name: tool.version for tool in old.verifiers}
    for tool in new.verifiers:
        if (before_version := versions.get(tool.name, tool.version)) != tool.version:
            changes.append(f"{tool.name} was version {before_version} and is {tool.version}")
    if changes:
        raise InputError(
            f"The campaign in {folder} was started differently: {'; '.join(changes)}; run it as it "
            "was started, give `again` if a verifier has changed, or choose another folder for `out`."
        )
    gained = tuple(tool for tool in new.verifiers if tool.name not in versions)
    return replace(
        old,
        suites=new.suites,
        verifiers=(*old.verifiers, *gained),
        repeat=max(old.repeat, new.repeat),
    )


def _times(manifest: Manifest) -> str:
    return "its suite's own time" if manifest.own_timeouts else f"{manifest.limits.wall_seconds:g} s"


def _with_times_of(
    instances: tuple[ManifestInstance, ...], others: tuple[ManifestInstance, ...]
) -> tuple[ManifestInstance, ...]:
    times = {(other.suite, other.name): other.timeout_seconds for other in others}
    return tuple(
        replace(i, timeout_seconds=times.get((i.suite, i.name), i.timeout_seconds)) for i in instances
    )


def require_what_was_run(
    instances: Iterable[ManifestInstance], suites: Mapping[str, Sequence[CampaignInstance]]
) -> None:
    """Raise UnreadableFile if the files of these instances in `suites` are not those that were run.

    An answer must not be judged by another question. Missing files are skipped.
    """
    here = {(suite, i.name): i for suite, known in suites.items() for i in known}
    for instance in instances:
        found = here.get((instance.suite, instance.name))
        if found is None:
            continue
        files = (found.network_path, found.network_sha256), (found.property_path, found.property_sha256)
        ran = instance.network_sha256, instance.property_sha256
        for (path, found_sha256), expected in zip(files, ran, strict=True):
            if found_sha256 != expected:
                raise UnreadableFile(
                    path,
                    "it is not the file that was run; restore it, or give the suite's folder in `suites`.",
                )


def _by_content(suites: Sequence[CampaignSuite], *, own_timeouts: bool) -> tuple[ManifestInstance, ...]:
    return tuple(
        ManifestInstance(
            suite=suite.name,
            name=i.name,
            family=i.family,
            network_sha256=i.network_sha256,
            property_sha256=i.property_sha256,
            timeout_seconds=i.timeout_seconds if own_timeouts else None,
        )
        for suite in suites
        for i in suite.instances
    )


def _changed_instances(old: tuple[ManifestInstance, ...], new: tuple[ManifestInstance, ...]) -> list[str]:
    several = len({i.suite for i in (*old, *new)}) > 1
    before = {f"{i.suite}/{i.name}" if several else i.name: i for i in old}
    after = {f"{i.suite}/{i.name}" if several else i.name: i for i in new}
    changes = []
    for what, names in (
        ("gone", before.keys() - after.keys()),
        ("new", after.keys() - before.keys()),
        ("changed", {n for n in before.keys() & after.keys() if before[n] != after[n]}),
    ):
        if names:
            others = f" and {len(names) - 1} more are" if len(names) > 1 else " is"
            changes.append(f"instance {min(names)}{others} {what}")
    return changes


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write the manifest completely or not at all."""
    written = strict_json.plain(manifest)
    # What older versions do not know is left out where it says nothing.
    for name, nothing in (("runs", {}), ("prepare_seconds", None), ("grace_seconds", 0.0)):
        if written.get(name, nothing) == nothing:
            written.pop(name, None)
    write_whole(
        path,
        strict_json.write({"schema": SCHEMA, **written}),
        what="the manifest",
        durable=True,
    )


def read_manifest(path: Path) -> Manifest:
    """Read the manifest at `path`. Raises UnreadableFile if there is none."""
    try:
        content = read_regular(contained(path.parent, path.name), most_bytes=strict_json.MOST_BYTES)
    except FileNotFoundError as error:
        raise no_campaign(path) from error
    except OSError as error:
        raise UnreadableFile(path, f"it cannot be read: {error.strerror}.") from error
    document = strict_json.parse(content, file=path)
    if isinstance(document, dict) and (schema := document.pop("schema", None)) != SCHEMA:
        named = schema if isinstance(schema, int | str | None) else "of another kind"
        raise UnreadableFile(
            path,
            f"this manifest has schema {str(named)[:40]}, not {SCHEMA}; use the version that wrote it.",
        )
    what = "the manifest of a campaign: choose another folder"
    manifest = convert(document, Manifest, file=path, what=what)
    require_known_keys(document, Manifest, file=path, what=what)
    suites = {suite.name for suite in manifest.suites}
    if strangers := [i for i in manifest.instances if i.suite not in suites]:
        reason = f"its instance {strangers[0].name!r} belongs to no suite of the campaign"
        raise UnreadableFile(path, f"{reason}; this is not {what}")
    return manifest


def _plain(limit: float | None) -> str:
    return "none" if limit is None else f"{limit:.15g}"
