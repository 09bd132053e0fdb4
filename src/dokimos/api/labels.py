"""`check`: labels proven again. With `core_only`, nothing but the trusted core is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.api.suite_lookup import SuiteSource, read_suite
from dokimos.checker.entry import CheckedEntry, check_entry
from dokimos.core.errors import InputError
from dokimos.core.parallel import default_jobs, each
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import Suite

#: Fewer instances than this are checked faster in one process than it takes to start others.
WORTH_PROCESSES = 24


@dataclass(frozen=True)
class CheckedSuite:
    """A suite, and what the checker says of each of its entries, in their order."""

    suite: Suite
    entries: tuple[CheckedEntry, ...]

    @property
    def failed(self) -> tuple[CheckedEntry, ...]:
        """The entries whose label is not proven."""
        return tuple(entry for entry in self.entries if not entry.is_proven)

    @property
    def is_proven(self) -> bool:
        """Whether every label is proven."""
        return not self.failed


def check(
    suite: SuiteSource,
    *,
    jobs: int | None = None,
    core_only: bool = False,
    plugin_proofs: bool = False,
    progress: ProgressCallback[CheckedEntry] = ignore,
) -> CheckedSuite:
    """Prove every label of a suite again, from its files alone: `dokimos check`.

    A label that is not proven is in the result, with the reason. With `core_only` nothing but the trusted
    core is loaded, and a shipped suite must be in the cache already; with `plugin_proofs` kinds of proof
    that other packages add are trusted, too.

    >>> checked = dokimos.check("tiny")
    >>> checked.is_proven, len(checked.entries)
    (True, 2)
    >>> [(entry.label, entry.kind) for entry in checked.entries]
    [('unsat', 'slopes-and-splits'), ('sat', 'witness')]
    """
    if core_only and plugin_proofs:
        raise InputError("The trusted core has no plug-ins; give --core-only or --plugin-proofs.")
    found = read_suite(suite, make=not core_only)
    count = len(found.entries)
    processes = jobs or (default_jobs() if count >= WORTH_PROCESSES else 1)
    checked: dict[int, CheckedEntry] = {}
    checker = check_entry if core_only else _plugin_checker(trusted=plugin_proofs)
    for index, one in each(checker, found.entries, jobs=processes):
        checked[index] = one
        note = f"{one.name}: {one.label}, proven" if one.is_proven else f"{one.name}: NOT PROVEN"
        progress(ProgressUpdate("checking", len(checked), count, note, one))
    return CheckedSuite(found, tuple(checked[index] for index in range(count)))


def _plugin_checker(*, trusted: bool) -> Callable[[SuiteEntry], CheckedEntry]:
    """What checks one entry and knows of plug-ins, which the trusted core does not."""
    from dokimos.provers.plugin_kinds import check_entry_naming_plugins, check_entry_with_plugins

    return check_entry_with_plugins if trusted else check_entry_naming_plugins
