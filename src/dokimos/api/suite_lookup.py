"""Look up a suite: the suite itself, its folder, or the name of a shipped suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.suites.finding import find_suite
from dokimos.suites.folder import Suite

if TYPE_CHECKING:
    from dokimos.constructions.generation import GeneratedInstance

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
