"""Many instances judged in several processes, each stored as soon as it is done.

The judgements on an instance are one line of a file in Dokimos' home, under a key of everything they depend
on. So if interrupted, the same call continues where it stopped. The file is a cache, not a record: lines
that cannot be read are judged again. It is not in the campaign's folder, which others may have written:
judgements from elsewhere are not trusted.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from dokimos.campaigns.events import read_fraction
from dokimos.campaigns.manifest import PublishedSource
from dokimos.campaigns.records import RunRecord
from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.files import append_line
from dokimos.core.home import code_key, home
from dokimos.core.parallel import each
from dokimos.judging.judge_instances import judge_instance
from dokimos.judging.label_checks import LabelChecker
from dokimos.judging.rules import RuleSet
from dokimos.judging.settling import certificates, settled
from dokimos.judging.verdicts import Judgement
from dokimos.suites.entry import SuiteEntry, exists, read_content
from dokimos.suites.instance import sha256

_WHAT = "the kept judgements"


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
            repr(self.source),
            strict_json.write(self.runs, indent=None),
        )
        return sha256("\n".join(parts).encode())


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
    path = place_of(folder)
    kept, keys = _read(path), [task.key for task in tasks]
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
    for index, verdicts in each(_judge, [task for task, _ in todo], jobs=jobs):
        task, key = todo[index]
        done += 1
        _keep(path, json.dumps({"key": key, "judged": [_plain(j) for j in verdicts]}))
        judged(done, len(tasks), f"{task.runs[0].suite}/{task.entry.name}")
        yield task, verdicts


def place_of(folder: Path) -> Path:
    """Where the judgements on the campaign in `folder` are kept."""
    return home() / "judged" / f"{sha256(str(folder.resolve()).encode())}.jsonl"


def _keep(path: Path, line: str) -> None:
    with contextlib.suppress(OSError, InputError):  # a home that cannot be written to costs only time
        path.parent.mkdir(parents=True, exist_ok=True)
        append_line(path, line, what=_WHAT)


def _judge(task: JudgingTask) -> tuple[Judgement, ...]:
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


def _restored(documents: Sequence[Any], task: JudgingTask) -> tuple[Judgement, ...] | None:
    """The judgements that were kept; None if they are not of these runs, or cannot be read."""
    try:
        found = strict_json.convert(
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


def _read(path: Path) -> Mapping[str, Sequence[Any]]:
    """The kept judgements, by key. An incomplete last line is skipped, and terminated."""
    if not exists(path):
        return {}
    found: dict[str, Sequence[Any]] = {}
    content = read_content(path)
    for line in content.splitlines():
        try:
            document = strict_json.parse(line, file=path, nan=True)
        except InputError:
            continue
        if isinstance(document, dict) and isinstance(document.get("judged"), list):
            found[str(document.get("key"))] = document["judged"]
    if content and not content.endswith(b"\n"):
        _keep(path, "")
    return found
