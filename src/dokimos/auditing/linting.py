"""Applies every rule to every file of a benchmark, in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dokimos.auditing.registry import (
    BENCHMARK_RULES,
    INSTANCE_RULES,
    NETWORK_RULES,
    PROPERTY_RULES,
    PUBLISHED_RULES,
)
from dokimos.auditing.subjects import (
    BenchmarkTable,
    InstancePair,
    NetworkFile,
    PropertyFile,
    PublishedRuns,
    read_table,
)
from dokimos.campaigns.campaign import Campaign
from dokimos.campaigns.records import RunRecord
from dokimos.core.errors import DokimosError
from dokimos.core.parallel import each
from dokimos.properties.lowering import is_plain
from dokimos.suites.file_findings import LintFinding
from dokimos.suites.folder import instance_names
from dokimos.suites.lowered_files import lowered_files


@dataclass(frozen=True)
class LintTask:
    """One network with one property, and which of the two have not been examined yet.

    An instance with several networks has a task for each of them; the first task examines the whole
    instance: `together` has the files of its networks by name.
    """

    network: Path | None
    property: Path | None
    folder: Path
    network_is_new: bool
    property_is_new: bool
    together: tuple[tuple[str, Path], ...]


def lint_benchmark(
    folder: Path, *, jobs: int, linted: Callable[[int, int, str], None] = lambda _d, _t, _n: None
) -> tuple[LintFinding, ...]:
    """What the rules find in a benchmark, in the order of its table. UnreadableFile if there is none."""
    table = read_table(folder)
    place = str(folder / table.table)
    found = [one for rule in BENCHMARK_RULES for one in rule.findings(table, place)]
    tasks = list(_tasks(table))
    by_task: dict[int, list[LintFinding]] = {}
    for index, own in each(_lint, tasks, jobs=jobs):
        by_task[index] = own
        asked = tasks[index].property or tasks[index].network
        linted(len(by_task), len(tasks), asked.name if asked else "")
    return (*found, *(one for index in sorted(by_task) for one in by_task[index]))


def lint_published(campaign: Campaign) -> tuple[LintFinding, ...]:
    """What the rules find in the time limits of a campaign made from published results."""
    places: dict[tuple[str, str], tuple[str, int | None]] = {}
    for suite in campaign.manifest.suites:
        table = read_table(Path(suite.folder))
        names = instance_names([(row.networks[0], row.property) for row in table.listed])
        for name, row in zip(names, table.listed, strict=True):
            places.setdefault((suite.name, name), (str(table.folder / table.table), row.line))
    by_instance: dict[tuple[str, str], list[RunRecord]] = {}
    for run in campaign.records:
        by_instance.setdefault((run.suite, run.instance), []).append(run)
    found: list[LintFinding] = []
    for instance in campaign.manifest.instances:
        runs = by_instance.get((instance.suite, instance.name))
        if runs and instance.timeout_seconds is not None:
            file, line = places.get((instance.suite, instance.name), (instance.suite, None))
            subject = PublishedRuns(instance.timeout_seconds, tuple(runs))
            own = [one for rule in PUBLISHED_RULES for one in rule.findings(subject, file)]
            found += [replace(one, line=line) for one in own]
    return tuple(found)


def _tasks(table: BenchmarkTable) -> Iterator[LintTask]:
    seen: set[Path] = set()
    pairs: set[tuple[Path | None, Path | None]] = set()
    for row in table.listed:
        asked = table.path(row.property)
        paths = [table.path(name) for name in row.networks]
        named = [(name, path) for name, path in zip(row.names or ("",), paths, strict=True) if path]
        together = tuple(named) if len(named) == len(paths) else ()
        for network in paths:
            if (network, asked) in pairs:
                continue
            pairs.add((network, asked))
            yield LintTask(
                network,
                asked,
                table.folder,
                network_is_new=network is not None and network not in seen,
                property_is_new=asked is not None and asked not in seen,
                together=together,
            )
            together = ()
            seen |= {path for path in (network, asked) if path is not None}


def _lint(task: LintTask) -> list[LintFinding]:
    found: list[LintFinding] = []
    network = None if task.network is None else NetworkFile(task.network)
    asked = None if task.property is None else PropertyFile(task.property, task.folder)
    if network is not None and task.network_is_new:
        found += [one for rule in NETWORK_RULES for one in rule.findings(network, str(task.network))]
    if asked is not None and task.property_is_new:
        found += [one for rule in PROPERTY_RULES for one in rule.findings(asked, str(task.property))]
    if asked is not None and task.together and (both := _whole(task, asked)) is not None:
        own = [one for rule in INSTANCE_RULES for one in rule.findings(both, str(task.property))]
        networks = " and ".join(dict.fromkeys(path.name for _, path in task.together))
        place = str(task.network) if len(task.together) == 1 else ""
        found += [replace(one, reason=f"with {networks}: {one.reason}", network=place) for one in own]
    return found


def _whole(task: LintTask, asked: PropertyFile) -> InstancePair | None:
    """The instance as two files; if it has several networks or products of variables, it is lowered."""
    if asked.problem is not None:
        return None
    if is_plain(asked.property):
        ((_, network),) = task.together[:1]
        return InstancePair(NetworkFile(network), asked) if len(task.together) == 1 else None
    signatures = [signature.name for signature in asked.property.networks]
    names = [name or signature for (name, _), signature in zip(task.together, signatures, strict=False)]
    networks = {name: path for name, (_, path) in zip(names, task.together, strict=True)}
    try:
        network, lowered = lowered_files(networks, asked.path, stem="lowered")
    except DokimosError:
        return None
    return InstancePair(NetworkFile(network), PropertyFile(lowered, asked.folder))
