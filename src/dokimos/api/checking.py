"""`check`: proves labels again and cross-checks networks. `core_only` loads only the trusted core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dokimos.core.errors import InputError
from dokimos.core.parallel import Cost, default_jobs, each, measured
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.core.records import Table, record_of
from dokimos.judging.checked_entry import CheckedEntry, check_entry, fault
from dokimos.suites.entry import SuiteEntry, exists
from dokimos.suites.folder import Suite, find_suite, read_suite_file, unlabelled_on_purpose

if TYPE_CHECKING:
    from dokimos.constructions.generation import GeneratedInstance
    from dokimos.runtimes.cross_check import CrossCheck


# Look up a suite: the suite itself, its folder, or the name of a shipped suite


SuiteSource = str | Path | Suite
"""A suite: its folder, the name of a shipped one, or the suite itself."""


def read_suite(
    suite: SuiteSource, *, make: bool = True, progress: ProgressCallback[GeneratedInstance] = ignore
) -> Suite:
    """Read the suite in a folder, or the shipped suite of that name.

    A shipped suite is generated into the cache the first time, which takes a while. Raises InputError if
    there is no such suite, if it cannot be read, or if it is not in the cache yet and `make` is false.

    >>> suite = dokimos.read_suite("tiny")
    >>> [(entry.family, entry.read_truth().label.value) for entry in suite]
    [('exclusive-pairs', 'unsat'), ('exclusive-pairs', 'sat')]
    >>> len(suite), suite.entry(suite.entries[0].name).timeout_seconds
    (2, 60.0)
    """
    if isinstance(suite, Suite):
        return suite
    done = 0

    def generate(name: str) -> Suite:
        from dokimos.constructions.generation import shipped_suite

        def step(made: GeneratedInstance) -> None:
            nonlocal done
            done += 1
            progress(
                ProgressUpdate(f"making {name}", done, None, f"{made.name}: {made.label}, proven", made)
            )

        return shipped_suite(name, progress=step)

    return find_suite(str(suite), make=generate if make else None)


#: Fewer instances than this are checked in one process, which is faster than starting others.
WORTH_PROCESSES = 24


@dataclass(frozen=True, repr=False)
class CheckedSuite(Brief, Table):
    """A suite, and what the checker says about each of its labels, in the order of its entries.

    `cross_checks` has, by name, the result of the comparison with runtimes for each proven label: a label
    that a runtime contradicts does not count as proven. It is empty with `core_only`. `unlabelled` names
    the instances that have no truth file and need none, because Dokimos did not make the suite, the suite
    has no labels at all, or they were left without one on purpose; they are not among the entries.
    """

    suite: Suite
    entries: tuple[CheckedEntry, ...]
    cross_checks: Mapping[str, CrossCheck] = field(default_factory=dict)
    unlabelled: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[CheckedEntry, ...]:
        """The entries whose label is not proven."""
        return tuple(entry for entry in self.entries if not entry.is_proven)

    @property
    def is_proven(self) -> bool:
        """Whether every label is proven."""
        return not self.failed

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each label."""
        return [
            record_of(one, "name", "family", "label", "kind", "is_proven", "problem")
            for one in self.entries
        ]


def check(
    suite: SuiteSource,
    *,
    jobs: int | None = None,
    core_only: bool = False,
    plugin_proofs: bool = False,
    progress: ProgressCallback[CheckedEntry] = ignore,
) -> CheckedSuite:
    """Prove every label of a suite again, from its files alone: `dokimos check`.

    The result says why a label is not proven. Each network is also cross-checked: what onnxruntime computes
    at a few points must agree with the exact value, up to rounding, or the label is refused. With
    `core_only`, only the trusted core is loaded, nothing is cross-checked, and a shipped suite must be in
    the cache already; with `plugin_proofs`, kinds of proof that other packages add are trusted as well. An
    instance without a label is not checked and does not count as a failure, unless Dokimos made the suite
    with labels and this instance's truth file is missing.

    >>> checked = dokimos.check("tiny")
    >>> checked.is_proven, len(checked.entries)
    (True, 2)
    >>> [(entry.label, entry.kind) for entry in checked.entries]
    [('unsat', 'slopes-and-splits'), ('sat', 'witness')]
    >>> [compared.runtime for compared in checked.cross_checks.values()]
    ['onnxruntime', 'onnxruntime']
    """
    if core_only and plugin_proofs:
        raise InputError(
            "The trusted core has no plug-ins; give either `core_only` or `plugin_proofs`, not both."
        )
    found = read_suite(suite, make=not core_only)
    unlabelled = _unlabelled(found)
    labelled = [entry for entry in found.entries if entry.name not in unlabelled]
    count = len(labelled)
    processes = jobs or (default_jobs() if count >= WORTH_PROCESSES else 1)
    checked: dict[int, CheckedEntry] = {}
    cross_checks: dict[str, CrossCheck] = {}
    checker = check_entry if core_only else _plugin_checker(trusted=plugin_proofs)
    work = partial(_check_one, checker, compare=not core_only)
    for index, ((one, compared), cost) in each(partial(_costed, work), labelled, jobs=processes):
        checked[index] = one
        if compared is not None:
            cross_checks[one.name] = compared
        note = f"{one.name}: {one.label}, proven ({cost})" if one.is_proven else f"{one.name}: NOT PROVEN"
        progress(ProgressUpdate("checking", len(checked), count, note, one))
    entries = tuple(checked[index] for index in range(count))
    return CheckedSuite(found, entries, cross_checks, tuple(unlabelled))


def _costed(
    work: Callable[[SuiteEntry], tuple[CheckedEntry, CrossCheck | None]], entry: SuiteEntry
) -> tuple[tuple[CheckedEntry, CrossCheck | None], Cost]:
    return measured(partial(work, entry))


def _unlabelled(suite: Suite) -> dict[str, None]:
    """The names of the instances that have no label and need none."""
    missing = dict.fromkeys(entry.name for entry in suite.entries if not exists(entry.truth_path))
    is_ours = read_suite_file(suite.folder) is not None
    if not is_ours or len(missing) == len(suite.entries):
        return missing
    return dict.fromkeys(name for name in missing if name in unlabelled_on_purpose(suite.folder))


def _check_one(
    checker: Callable[[SuiteEntry], CheckedEntry], entry: SuiteEntry, *, compare: bool
) -> tuple[CheckedEntry, CrossCheck | None]:
    """What the checker says about an entry, and, if it is proven, the comparison with runtimes."""
    checked = checker(entry)
    if not compare or not checked.is_proven:
        return checked, None
    from dokimos.runtimes.cross_check import cross_check

    truth = entry.read_truth()
    assert truth is not None
    try:
        compared = cross_check(entry.read_instance(), truth)
    except Exception as error:  # a bug, which must not hide the other entries
        return replace(checked, problem=fault(error), is_fault=True), None
    return replace(checked, problem=compared.contradiction), compared


def _plugin_checker(*, trusted: bool) -> Callable[[SuiteEntry], CheckedEntry]:
    """The function that checks one entry and knows about plug-ins, unlike the trusted core."""
    from dokimos.judging.checked_entry import check_entry_naming_plugins, check_entry_with_plugins

    return check_entry_with_plugins if trusted else check_entry_naming_plugins
