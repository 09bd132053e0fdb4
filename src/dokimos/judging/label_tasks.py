"""One instance of a suite, labelled in its own process under limits, and the record of it.

A label goes to the suite's `truth/`. An instance that stays open is recorded in `open/<instance>.json`,
with the budget that was spent on it and the search as it was, which goes on from there with more time.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.files import contained, write_whole
from dokimos.core.strict_json import read, write
from dokimos.judging import label_one
from dokimos.judging.label_one import OpenForm, ProcessFinding, read_open_form
from dokimos.suites.entry import SuiteEntry, exists, load_truth
from dokimos.suites.instance import Semantics, Truth
from dokimos.verifiers.environments import ask_module
from dokimos.verifiers.execution.limits import Limits, Termination

OPEN_FOLDER = "open"
#: What checking a proof may take on top of the budget for finding it.
_GRACE_SECONDS = 30.0
#: Seconds by the clock for each second of the budget, which is CPU time: other work slows a machine down.
_CLOCK_SECONDS = 20.0


@dataclass(frozen=True)
class LabelTask:
    """An instance to label, and how long to search."""

    folder: Path
    entry: SuiteEntry
    budget_seconds: float


@dataclass(frozen=True)
class LabelOutcome:
    """What is now known of one instance.

    `label` is empty if the instance is open; then `reason` says why. `kind` is that of its proof, `by` what
    found it, `margin` by how much it is proven over the reals. `nearest` and `bound` are those of
    `LabelFinding`. `was_there`: the result is an earlier one. `is_unreadable`: one of its files cannot be
    read. `is_fault`: a fault of Dokimos ended the search.
    """

    name: str
    family: str
    label: str = ""
    kind: str = ""
    by: str = ""
    margin: float | None = None
    reason: str = ""
    nearest: float | None = None
    bound: float | None = None
    was_there: bool = False
    is_unreadable: bool = False
    is_fault: bool = False


def label_instance(task: LabelTask) -> LabelOutcome:
    """Label one instance, unless it has a label or was already tried for as long."""
    entry = task.entry
    try:
        if exists(entry.truth_path):
            return _labelled(entry, entry.read_truth(), was_there=True)
        kept = read_open(task.folder, entry)
        if kept is not None and kept.budget_seconds >= task.budget_seconds:
            return LabelOutcome(
                entry.name,
                entry.family,
                reason=kept.reason,
                nearest=kept.nearest,
                bound=kept.bound,
                was_there=True,
            )
        found = _search(task, kept)
        if found.truth:
            write_whole(entry.truth_path, found.truth, what="the truth file", durable=True)
            _open_path(task.folder, entry.name).unlink(missing_ok=True)
            return _labelled(entry, load_truth(found.truth, file=str(entry.truth_path)), by=found.by)
        if found.is_over and not found.is_unreadable:
            _keep_open(task, found)
    except InputError as error:
        return LabelOutcome(entry.name, entry.family, reason=str(error), is_unreadable=True)
    return LabelOutcome(
        entry.name,
        entry.family,
        reason=found.reason,
        nearest=found.nearest,
        bound=found.bound,
        is_unreadable=found.is_unreadable,
        is_fault=found.is_fault,
    )


def read_open(folder: Path, entry: SuiteEntry) -> OpenForm | None:
    """The record of an open instance, if it is about the same files and version."""
    path = _open_path(folder, entry.name)
    if not exists(path):
        return None
    kept = read_open_form(path)
    mine = (entry.network_sha256, entry.property_sha256, __version__)
    return kept if (kept.network_sha256, kept.property_sha256, kept.dokimos) == mine else None


def _open_path(folder: Path, name: str) -> Path:
    return contained(folder, f"{OPEN_FOLDER}/{name}.json")


def _keep_open(task: LabelTask, found: ProcessFinding) -> None:
    """Record what was found, and what only earlier searches have, or this one before it was ended."""
    entry, kept = task.entry, read_open(task.folder, task.entry)
    found = found if kept is None else _with_earlier(found, kept)
    form = OpenForm(
        entry.network_sha256,
        entry.property_sha256,
        __version__,
        task.budget_seconds,
        found.reason,
        found.nearest,
        found.bound,
        found.search,
    )
    write_whole(_open_path(task.folder, entry.name), write(form), what="the record of an open instance")


def _with_earlier(found: ProcessFinding, kept: OpenForm) -> ProcessFinding:
    """A finding with what only an earlier one has."""
    margins = [margin for margin in (found.nearest, kept.nearest) if margin is not None]
    bounds = [bound for bound in (found.bound, kept.bound) if bound is not None]
    return replace(
        found,
        nearest=min(margins, default=None),
        bound=max(bounds, default=None),
        search=kept.search if found.search is None else found.search,
    )


def _labelled(
    entry: SuiteEntry, truth: Truth | None, *, by: str = "", was_there: bool = False
) -> LabelOutcome:
    assert truth is not None
    if (truth.network_sha256, truth.property_sha256) != (entry.network_sha256, entry.property_sha256):
        raise InputError(
            f"{entry.truth_path}: its label was proven for other files; remove the label to label these."
        )
    margin = truth.claim(Semantics.REAL).margin
    return LabelOutcome(
        entry.name,
        entry.family,
        label=truth.label.value,
        kind=truth.certificate.kind,
        by=by,
        margin=None if margin is None else float(margin),
        was_there=was_there,
    )


def _search(task: LabelTask, kept: OpenForm | None) -> ProcessFinding:
    """What the search finds in its own process, or had found by the time it was ended.

    One that goes on has what the budget is larger now. A search that is ended by its limits is over. One
    that was killed is not, and is tried again next time.
    """
    entry, budget = task.entry, task.budget_seconds
    record = _open_path(task.folder, entry.name)
    files = [str(path.absolute()) for path in (entry.network_path, entry.property_path, record)]
    if kept is None:  # what there may be is about other files, or of another version
        record.unlink(missing_ok=True)
    elif kept.search is not None:
        budget -= kept.budget_seconds
    with tempfile.TemporaryDirectory(prefix="dokimos-label-") as folder:
        result = Path(folder, "query", "result.json")
        outcome = ask_module(
            label_one.__name__,
            *(str(result), f"{budget:g}", entry.name, *files),
            limits=Limits(
                wall_seconds=_CLOCK_SECONDS * budget + _GRACE_SECONDS,
                cpu_seconds=2 * budget + _GRACE_SECONDS,
            ),
            folder=result.parent,
        )
        found = ProcessFinding()
        if exists(result):
            found = read(result.read_bytes(), ProcessFinding, file=result, what="a finding")
    if found.is_over or found.truth or found.is_fault:
        return found
    ended = {
        Termination.CPU_LIMIT: "CPU time ran out",
        Termination.WALL_LIMIT: "time ran out",
        Termination.MEMORY_LIMIT: "the search exceeded its memory limit",
    }
    why = ended.get(outcome.termination, "the search ended early")
    reason = "; ".join(filter(None, [found.reason, why]))
    is_over = outcome.termination in ended
    return ProcessFinding(reason=reason, nearest=found.nearest, bound=found.bound, is_over=is_over)
