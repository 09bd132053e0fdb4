"""Applies every rule to every file of a benchmark, in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from dokimos import __version__
from dokimos.campaigns.campaign import Campaign
from dokimos.campaigns.journal import RunRecord
from dokimos.core import strict_json
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import code_key
from dokimos.core.inputs import ALLOWED
from dokimos.core.parallel import each
from dokimos.core.typed_values import convert
from dokimos.judging.audit import file_rules, instance_rules, property_rules
from dokimos.judging.audit.file_rules import AnyRule, LintRule
from dokimos.judging.audit.subjects import (
    BenchmarkTable,
    InstancePair,
    NetworkFile,
    PropertyFile,
    PublishedCategory,
    PublishedRuns,
    read_table,
)
from dokimos.judging.bulk import Kept
from dokimos.judging.checked_entry import fault
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.verdicts import Judgement
from dokimos.suites.folder import LintFinding, LintSeverity, instance_names
from dokimos.suites.instance import sha256
from dokimos.suites.lower import is_plain, lowered_files

T = TypeVar("T")

# All rules, by their kind of subject; add a new rule here


BENCHMARK_RULES: tuple[LintRule[BenchmarkTable], ...] = (
    file_rules.BAD_ROW,
    file_rules.NO_INSTANCES,
    file_rules.MISSING_FILE,
    file_rules.FILE_ELSEWHERE,
    file_rules.LARGE_FILE,
    file_rules.UNREADABLE_FILE,
    file_rules.LISTED_TWICE,
    file_rules.SAME_CONTENT,
)
PROPERTY_RULES: tuple[LintRule[PropertyFile], ...] = (
    file_rules.DAMAGED_PROPERTY,
    file_rules.INFIX,
    file_rules.OLD_VERSION,
    file_rules.PRODUCTS,
    property_rules.EMPTY_BOX,
    property_rules.POINT_BOX,
    property_rules.VACUOUS,
    property_rules.DEAD_DISJUNCT,
    property_rules.TRIVIAL,
    property_rules.UNCONSTRAINED_OUTPUT,
    property_rules.REPEATED_DISJUNCT,
    property_rules.FLOAT32_ROUNDING,
    property_rules.FLOAT32_OVERFLOW,
)
NETWORK_RULES: tuple[LintRule[NetworkFile], ...] = (
    file_rules.DAMAGED_NETWORK,
    file_rules.RUNTIME_REFUSES,
    file_rules.NOT_READ,
    file_rules.UNREAD_OPERATORS,
)
INSTANCE_RULES: tuple[LintRule[InstancePair], ...] = (
    instance_rules.DOES_NOT_FIT,
    instance_rules.RUNTIME_DIFFERS,
    instance_rules.CONSTANT_OUTPUT,
    instance_rules.EASY_SAT,
    instance_rules.EASY_UNSAT,
)
PUBLISHED_RULES: tuple[LintRule[PublishedRuns], ...] = (instance_rules.TIME_NOT_NEEDED,)
CATEGORY_RULES: tuple[LintRule[PublishedCategory], ...] = (
    instance_rules.ONE_SIDED,
    instance_rules.RUNTIME_DECIDES,
)
#: Published results that cannot be read, and those on files that are missing or unreadable.
UNREAD_RESULTS: AnyRule = LintRule(
    "unread-results",
    "published results, or counterexamples, that cannot be read",
    LintSeverity.ERROR,
    "restore them; the other results are judged",
    lambda _: (),
)
NOT_JUDGED: AnyRule = LintRule(
    "not-judged",
    "published answers on instances that are not listed, or whose files are missing or unreadable",
    LintSeverity.WARNING,
    "get the files and run the same command again",
    lambda _: (),
)

#: What becomes of a rule that breaks off by an error that is not one of ours: the others go on.
FAULT: AnyRule = LintRule(
    "fault",
    "a fault of Dokimos, which ends one rule on one file",
    LintSeverity.ERROR,
    "please report it; the other rules and files were examined",
    lambda _: (),
)

#: The rules whose findings on an instance settle whether it is `sat` or `unsat`, by their names.
SETTLING_RULES = frozenset(
    rule.name
    for rule in (
        instance_rules.EASY_SAT,
        instance_rules.EASY_UNSAT,
        property_rules.EMPTY_BOX,
        property_rules.POINT_BOX,
        property_rules.TRIVIAL,
        property_rules.VACUOUS,
    )
)
LINT_RULES: tuple[AnyRule, ...] = (
    *BENCHMARK_RULES,
    *PROPERTY_RULES,
    *NETWORK_RULES,
    *INSTANCE_RULES,
    *PUBLISHED_RULES,
    *CATEGORY_RULES,
    UNREAD_RESULTS,
    NOT_JUDGED,
    FAULT,
)


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
    """What the rules find in a benchmark, in the order of its table.

    Whatever is missing or unreadable is a finding; the other files are examined. What an earlier
    call found in the same files is kept.
    """
    try:
        table = read_table(folder)
    except UnreadableFile as error:
        rule = file_rules.UNREADABLE_FILE
        where = LintFinding(rule.name, rule.severity, str(error.place), None, error.reason, rule.remedy)
        return (where,)
    place = str(folder / table.table)
    found = [one for rule in BENCHMARK_RULES for one in _findings(rule, table, place)]
    tasks = list(_tasks(table))
    by_task = dict(_kept_or_linted(table, tasks, jobs, linted))
    whole = [by_task[k] for k, task in enumerate(tasks) if task.together]
    found += _findings(instance_rules.ALL_SETTLED, whole, place)
    return (*found, *(one for index in sorted(by_task) for one in by_task[index]))


def _kept_or_linted(
    table: BenchmarkTable, tasks: Sequence[LintTask], jobs: int, linted: Callable[[int, int, str], None]
) -> Iterator[tuple[int, list[LintFinding]]]:
    """What is found in each task, by its number; what an earlier audit found in the same files is kept."""
    store = Kept("linted", table.folder)
    known, keys = store.read(), _keys(table, tasks)
    kept = {k: found for k, key in enumerate(keys) if (found := _restored(known.get(key))) is not None}
    yield from kept.items()
    if kept:
        linted(len(kept), len(tasks), "kept from before")
    todo = [k for k in range(len(tasks)) if k not in kept]
    for done, (place, own) in enumerate(each(_lint, [tasks[k] for k in todo], jobs=jobs, lost=_lost), 1):
        index = todo[place]
        if not {one.rule for one in own} & {FAULT.name, file_rules.LARGE_FILE.name}:
            store.add(keys[index], [strict_json.plain(one) for one in own])
        asked = tasks[index].property or tasks[index].network
        linted(len(kept) + done, len(tasks), asked.name if asked else "")
        yield index, own


def _keys(table: BenchmarkTable, tasks: Sequence[LintTask]) -> list[str]:
    """Hashes of all that is found in a task: the code, installed tools, the names and contents of files."""
    always = repr((code_key(), sorted(file_rules.unread_by_installed().items()), ALLOWED.get()))
    contents = {table.path(name): content for name, content in table.hashes.items()}
    files = [(task.network, task.property, *(path for _, path in task.together)) for task in tasks]
    return [
        sha256(repr((always, task, [contents.get(path) for path in own])).encode())
        for task, own in zip(tasks, files, strict=True)
    ]


def _restored(document: Any) -> list[LintFinding] | None:
    """Findings that were kept; None if there are none to read."""
    try:
        kept = convert(document, tuple[LintFinding, ...], file="what was found before", what="findings")
    except InputError:
        return None
    return list(kept)


def _lost(task: LintTask) -> list[LintFinding]:
    """What is said of an instance whose process was killed, even alone: it needs more memory."""
    rule = file_rules.LARGE_FILE
    reason = "its examination was killed, perhaps for lack of memory"
    return [
        LintFinding(rule.name, rule.severity, str(task.network or task.property), None, reason, rule.remedy)
    ]


def _findings(rule: LintRule[T], subject: T, file: str) -> list[LintFinding]:
    try:
        return rule.findings(subject, file)
    except Exception as error:  # a bug, which must not hide the other findings
        reason = f"{fault(error)} (rule {rule.name})"
        return [LintFinding(FAULT.name, FAULT.severity, file, None, reason, FAULT.remedy)]


def lint_published(judged: JudgedCampaigns) -> tuple[LintFinding, ...]:
    """What the rules find in published results: in time limits and in whole benchmarks."""
    limits = (one for own in judged.campaigns for one in _limits(own.campaign))
    categories: dict[str, list[Judgement]] = {}
    for judgement in judged.judgements:
        categories.setdefault(judgement.record.suite, []).append(judgement)
    folders = {suite: place for own in judged.campaigns for suite, place in own.folders.items()}
    whole = (
        one
        for suite, judgements in categories.items()
        for rule in CATEGORY_RULES
        for one in _findings(rule, PublishedCategory(tuple(judgements)), str(folders[suite]))
    )
    return (*limits, *whole)


def _limits(campaign: Campaign) -> tuple[LintFinding, ...]:
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
            own = [one for rule in PUBLISHED_RULES for one in _findings(rule, subject, file)]
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
        found += [one for rule in NETWORK_RULES for one in _findings(rule, network, str(task.network))]
    if asked is not None and task.property_is_new:
        found += [one for rule in PROPERTY_RULES for one in _findings(rule, asked, str(task.property))]
    try:
        both = None if asked is None or not task.together else _whole(task, asked, network)
    except InputError as error:
        rule = instance_rules.DOES_NOT_FIT
        reason = str(error).rstrip(".")
        found.append(LintFinding(rule.name, rule.severity, str(task.property), None, reason, rule.remedy))
        return found
    if both is not None:
        own = [one for rule in INSTANCE_RULES for one in _findings(rule, both, str(task.property))]
        networks = " and ".join(dict.fromkeys(path.name for _, path in task.together))
        place = str(task.network) if len(task.together) == 1 else ""
        found += [replace(one, reason=f"with {networks}: {one.reason}", network=place) for one in own]
    return found


def _whole(task: LintTask, asked: PropertyFile, first: NetworkFile | None) -> InstancePair | None:
    """The instance as two files; if it has several networks or products of variables, it is lowered.

    None if the property cannot be read; raises InputError if the files do not fit together.
    """
    if asked.problem is not None or first is None:
        return None
    if is_plain(asked.property):
        if len(task.together) > 1:
            raise InputError(f"the row has {len(task.together)} networks, the property is about one")
        return InstancePair(first, asked)
    signatures = [signature.name for signature in asked.property.networks]
    names = [name or signature for (name, _), signature in zip(task.together, signatures, strict=False)]
    networks = {name: path for name, (_, path) in zip(names, task.together, strict=True)}
    network, lowered = lowered_files(networks, asked.path, stem="lowered")
    return InstancePair(NetworkFile(network), PropertyFile(lowered, asked.folder))


# Findings as SARIF 2.1.0, which code hosts and editors show next to the files


def sarif(findings: Sequence[LintFinding]) -> str:
    """The text of a SARIF log with one run."""
    rules = [
        {
            "id": rule.name,
            "shortDescription": {"text": rule.about},
            "help": {"text": rule.remedy},
            "defaultConfiguration": {"level": rule.severity.value},
        }
        for rule in LINT_RULES
    ]
    return strict_json.write(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": {"name": "dokimos", "version": __version__, "rules": rules}},
                    "results": [_result(one) for one in findings],
                }
            ],
        }
    )


def _result(finding: LintFinding) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(Path(finding.file).as_posix())}}
    if finding.line is not None:
        physical["region"] = {"startLine": finding.line}
    return {
        "ruleId": finding.rule,
        "level": finding.severity.value,
        "message": {"text": f"{finding.reason}; {finding.remedy}."},
        "locations": [{"physicalLocation": physical}],
    }
