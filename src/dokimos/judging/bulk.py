"""Many instances judged in several processes, and a campaign judged while it grows."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from dokimos.campaigns.journal import RunRecord, read_fraction
from dokimos.campaigns.manifest import Manifest, PublishedSource, read_manifest, require_what_was_run
from dokimos.campaigns.state import Glance, State, glance
from dokimos.core import strict_json
from dokimos.core.errors import DokimosError, InputError
from dokimos.core.files import append_line, code_key, home
from dokimos.core.parallel import each
from dokimos.core.readable import Brief
from dokimos.core.typed_values import convert
from dokimos.judging.judge_instances import (
    JudgedInstance,
    certificates,
    judge_all,
    judge_instance,
    settled,
    unjudged,
)
from dokimos.judging.label_checks import (
    LabelCheck,
    LabelChecker,
    LabelStanding,
    failed_label_in_words,
    nobody_checks,
)
from dokimos.judging.rules import RuleSet
from dokimos.judging.verdicts import Judgement, checked_labels
from dokimos.suites.entry import SuiteEntry, exists, read_content
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import sha256

# What is done of long work, one line for each part: the same call after an interruption goes on from it


@dataclass(frozen=True)
class Kept:
    """Results kept in Dokimos' home: `about` is a folder there, `folder` what they are about.

    A key is a hash of all that a result depends on. A home that cannot be written to costs only time.
    """

    about: str
    folder: Path

    @property
    def path(self) -> Path:
        """The file that has them."""
        return home() / self.about / f"{sha256(str(self.folder.resolve()).encode())}.jsonl"

    def read(self) -> dict[str, Any]:
        """The results, by key. An incomplete last line is skipped, and terminated."""
        if not exists(self.path):
            return {}
        found: dict[str, Any] = {}
        content = read_content(self.path)
        for line in content.splitlines():
            try:
                document = strict_json.parse(line, file=self.path, nan=True)
            except InputError:
                continue
            if isinstance(document, dict) and self.about in document:
                found[str(document.get("key"))] = document[self.about]
        if content and not content.endswith(b"\n"):
            self._append("")
        return found

    def add(self, key: str, result: Any) -> None:
        """Keep a result, which is plain JSON."""
        self._append(json.dumps({"key": key, self.about: result}))

    def _append(self, line: str) -> None:
        with contextlib.suppress(OSError, InputError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            append_line(self.path, line, what="what is kept in Dokimos' home")


# Many instances judged in several processes, each stored as soon as it is done


_WHAT = "the kept judgements"
#: The folder of kept judgements in Dokimos' home.
JUDGED = "judged"


@dataclass(frozen=True)
class JudgingTask:
    """The runs on one instance, to be judged together.

    `folder` is their campaign's, which has the certificates that verifiers gave; `source` says where the
    results come from, if others published them: which verifiers get no marks, and their overheads.
    """

    entry: SuiteEntry
    runs: tuple[RunRecord, ...]
    rules: tuple[RuleSet, ...]
    folder: Path
    source: PublishedSource | None = None

    @property
    def key(self) -> str:
        """A hash of everything the verdicts depend on."""
        truth = self.entry.truth_path
        proofs = [truth] if exists(truth) else certificates(self.runs, [self.folder])
        parts = (
            code_key(),
            self.entry.network_sha256,
            self.entry.property_sha256,
            *(sha256(read_content(proof)) for proof in proofs),
            repr(self.rules),
            repr(self._source),
            strict_json.write(self.runs, indent=None),
        )
        return sha256("\n".join(parts).encode())

    @property
    def _source(self) -> PublishedSource | None:
        """The source with the overheads of these tools only: other results may join the campaign."""
        if self.source is None:
            return None
        own = {run.verifier for run in self.runs}
        overheads = {tool: seconds for tool, seconds in self.source.overheads.items() if tool in own}
        return replace(self.source, overheads=overheads)


def judge_tasks(
    tasks: Sequence[JudgingTask],
    *,
    folder: Path,
    jobs: int,
    judged: Callable[[int, int, str], None] = lambda _done, _total, _name: None,
) -> Iterator[tuple[JudgingTask, tuple[Judgement, ...]]]:
    """The verdicts on each of `tasks`, as `jobs` processes finish them; without reproduce commands.

    `folder` is their campaign's, by which kept judgements are found. `judged` is called after each task
    with the name of the instance; and first, if some were kept from before, with their number.
    """
    store = Kept(JUDGED, folder)
    kept, keys = store.read(), [task.key for task in tasks]
    done = 0
    todo = []
    for task, key in zip(tasks, keys, strict=True):
        found = _restored(kept[key], task) if key in kept else None
        if found is None:
            todo.append((task, key))
            continue
        done += 1
        yield task, found
    if done:
        judged(done, len(tasks), "kept from before")
    for index, verdicts in each(_judge, [task for task, _ in todo], jobs=jobs, lost=_lost):
        task, key = todo[index]
        done += 1
        if not any(j.label_check is not None and j.label_check.is_fault for j in verdicts):
            store.add(key, [_plain(j) for j in verdicts])
        judged(done, len(tasks), f"{task.runs[0].suite}/{task.entry.name}")
        yield task, verdicts


def _lost(task: JudgingTask) -> tuple[Judgement, ...]:
    return tuple(unjudged(task.runs, "judging was killed, perhaps for lack of memory", task.rules))


def _judge(task: JudgingTask) -> tuple[Judgement, ...]:
    """The verdicts; of published answers, what cannot be judged does not keep the others from it."""
    try:
        return _judged(task)
    except DokimosError as error:
        if task.source is None:
            raise
        return tuple(unjudged(task.runs, f"it cannot be judged: {error}", task.rules))


def _judged(task: JudgingTask) -> tuple[Judgement, ...]:
    check_label = LabelChecker()
    instance = settled(task.entry, task.runs, [task.folder], check_label)
    return tuple(
        judge_instance(
            instance,
            instance.read_truth(),
            task.runs,
            lambda _run: "",
            task.rules,
            check_label=partial(check_label, instance),
            not_scored=() if task.source is None else task.source.not_scored,
            overheads={} if task.source is None else task.source.overheads,
        )
    )


def _plain(judgement: Judgement) -> Any:
    """A judgement as JSON, without the witness, which the journal has."""
    return strict_json.plain(replace(judgement, record=_light(judgement.record)))


def _light(record: RunRecord) -> RunRecord:
    return replace(record, witness=None, outputs=None)


def _restored(documents: Any, task: JudgingTask) -> tuple[Judgement, ...] | None:
    """The judgements that were kept; None if they are not of these runs, or cannot be read."""
    try:
        found = convert(
            documents,
            tuple[Judgement, ...],
            file=_WHAT,
            what="judgements",
            hooks={Fraction: read_fraction},
        )
    except InputError:
        return None
    if [one.record for one in found] != [_light(run) for run in task.runs]:
        return None
    return tuple(replace(one, record=run) for one, run in zip(found, task.runs, strict=True))


# Where the suites of a campaign are now, and whether they are still what was run


def locate(manifest: Manifest, moved: Sequence[Path]) -> dict[str, Path]:
    """Where each suite of a campaign is now, by name. A suite that has moved is recognised by its name, or
    by being the only one."""
    known = {suite.name: Path(suite.folder) for suite in manifest.suites}
    for place in moved:
        name = place.absolute().name
        if len(known) == len(moved) == 1:
            name = next(iter(known))
        elif name not in known:
            raise InputError(f"{place}: the campaign has no suite {name!r}; it has {', '.join(known)}.")
        known[name] = place
    for place in known.values():
        if not place.exists():
            raise InputError(
                f"{place}: the campaign's suite is no longer there; give its new place in `suites`."
            )
    return known


def locate_all(manifests: Sequence[Manifest], moved: Sequence[Path]) -> list[dict[str, Path]]:
    """Where the suites of all campaigns are now; each campaign takes its own suites from `moved`."""
    if len(manifests) == 1:
        return [locate(manifests[0], moved)]
    names = {suite.name for manifest in manifests for suite in manifest.suites}
    for place in moved:
        if place.absolute().name not in names:
            raise InputError(f"{place}: no campaign has this suite; they have {', '.join(sorted(names))}.")
    return [
        locate(m, [p for p in moved if p.absolute().name in {suite.name for suite in m.suites}])
        for m in manifests
    ]


# Judging a campaign while it grows: only new runs are judged


class IncrementalJudge:
    """A judge that remembers its judgements. An instance is judged again when its runs have changed, since
    a new witness may settle earlier answers.

    `folder` is the campaign's: a certificate that a verifier left there may also settle an instance.
    """

    def __init__(
        self,
        suites: Mapping[str, Sequence[JudgedInstance]],
        *,
        check_label: Callable[[JudgedInstance], LabelCheck] = nobody_checks,
        folder: Path | None = None,
    ) -> None:
        self._check_label = check_label
        self._folders = () if folder is None else (folder,)
        self._suites = {suite: {i.name: i for i in instances} for suite, instances in suites.items()}
        self._seen: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._judged: dict[tuple[str, str], tuple[Judgement, ...]] = {}
        self.problems: dict[tuple[str, str], str] = {}

    def judge(self, records: Sequence[RunRecord], *, at_most_seconds: float | None = None) -> bool:
        """Judge the records so far; returns whether all of them are judged, or the time ran out before.

        What cannot be judged, and labels that fail, are in `problems`, by suite and instance.
        """
        began = time.monotonic()
        groups: dict[tuple[str, str], list[RunRecord]] = {}
        for record in records:
            groups.setdefault((record.suite, record.instance), []).append(record)
        for key in self._seen.keys() - groups.keys():  # all its runs were set aside
            del self._seen[key]
            self._judged.pop(key, None)
            self.problems.pop(key, None)
        for key, group in groups.items():
            seen = [(record.job, record.started_at) for record in group]
            if self._seen.get(key) == seen:
                continue
            if at_most_seconds is not None and time.monotonic() - began > at_most_seconds:
                return False
            self._seen[key] = seen
            self._judge(key, group)
        return True

    def _judge(self, key: tuple[str, str], group: Sequence[RunRecord]) -> None:
        suite, name = key
        known = self._suites.get(suite, {}).get(name)
        try:
            instances = [] if known is None else [settled(known, group, self._folders, self._check_label)]
            self._judged[key] = judge_all(
                group,
                {suite: instances},
                reproduce=lambda _: "",
                check_label=self._check_label,
            )
            self.problems.pop(key, None)
            if failed := checked_labels(self._judged[key], LabelStanding.FAILED):
                self.problems[key] = failed_label_in_words(*key, failed[key])
        except DokimosError as error:
            self._judged.pop(key, None)
            self.problems[key] = str(error)

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """All judgements so far."""
        return tuple(judgement for group in self._judged.values() for judgement in group)


@dataclass(frozen=True, repr=False)
class WatchedCampaign(Brief):
    """A campaign at one moment: its progress, the verdicts so far, and remarks on what is not judged.

    `is_all_judged` says whether no recorded run is left to be judged at the next look.
    """

    glance: Glance
    judgements: tuple[Judgement, ...]
    remarks: tuple[str, ...]
    is_all_judged: bool = True

    @property
    def is_over(self) -> bool:
        """Whether the campaign is complete."""
        return self.glance.state is not State.RUNNING and self.is_all_judged


class CampaignWatcher:
    """Watches the campaign in a folder; it only reads.

    If its suites are not found (and `suites` does not say where they are), answers are not judged, and a
    remark says so.
    """

    def __init__(self, folder: Path, *, suites: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._problem = ""
        manifest = read_manifest(folder / "manifest.json")
        try:
            where = locate(manifest, suites)
            entries = {name: read_suite(place).entries for name, place in where.items()}
            require_what_was_run(manifest.instances, entries)
            self._judge = IncrementalJudge(entries, check_label=LabelChecker(), folder=folder)
        except InputError as error:
            if suites:
                raise
            self._problem = f"answers are not judged: {error}"
            self._judge = IncrementalJudge({})

    def look(self, *, at_most_seconds: float | None = None) -> WatchedCampaign:
        """The campaign now; judging what is new takes about `at_most_seconds` at most."""
        seen = glance(self._folder, datetime.now(UTC))
        if self._problem:
            return WatchedCampaign(seen, (), (self._problem,))
        is_all_judged = self._judge.judge(seen.records, at_most_seconds=at_most_seconds)
        judgements, remarks = self._judge.judgements, [*self._judge.problems.values()]
        if not is_all_judged:
            remarks.append(f"{len(judgements)} of {len(seen.records)} answers judged so far")
        return WatchedCampaign(seen, judgements, tuple(remarks), is_all_judged)
