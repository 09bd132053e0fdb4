"""Which tests share a process, where they run in several.

Tests of one file do: what it makes once is made once. Those that measure limits, start clusters or drive a
browser do: they would disturb each other. xdist has marks for this; with this pytest they have no effect.
"""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parent
#: Tests in these folders and files would disturb each other.
ALONE = (
    "campaigns/",
    "cli/test_end_to_end.py",
    "execution/",
    "faults/",
    "laws/reporting/test_page_browser.py",
    "reports/test_browser.py",
    "test_site.py",
    "verifiers/adapters/test_marabou.py",
    "verifiers/test_real_verifiers.py",
)
#: They may also have a process of their own, beside those of the others: while they wait, the others work.
PARTS = ("alone", "others")
#: Tests with these marks are in such files only.
ALONE_MARKS = {"browser", "marabou", "verifiers"}
#: Tests in these files share the statements that take one of them seconds to prove.
TOGETHER = ("checker/test_damage.py", "checker/test_mutants.py", "contracts/test_certificates.py")
#: Tests in these files look at the imports of all sources, which are read once.
SOURCES = ("laws/test_rooms.py", "test_imports.py")
#: These take longest, and come first, so that no process has to wait for another one's at the end.
FIRST = (
    *ALONE,
    *TOGETHER,
    "constructions/",
    "contracts/",
    "difficulty/explain/test_false_findings.py",
    "examples/",
    "test_adding.py",
)


def place_of(item: pytest.Item) -> str:
    """The file of a test, as seen from the folder of all tests."""
    return item.path.relative_to(ROOT).as_posix()


def is_in(part: str | None, path: Path) -> bool:
    """Whether a file or folder belongs to a part of the tests; if none is named, all do."""
    if part is None or path.suffix != ".py" or not path.is_relative_to(ROOT):
        return True
    return path.relative_to(ROOT).as_posix().startswith(ALONE) == (part == "alone")


def load_backwards(part: str | None) -> None:
    """Import the test files from the last to the first; what cannot be is told by those who collect."""
    for path in sorted(ROOT.rglob("test_*.py"), reverse=True):
        if not is_in(part, path):
            continue
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def process_of(place: str) -> str:
    """What the tests that share a process with those of this file have in common."""
    if place.startswith(ALONE):
        return "alone"
    if place.startswith(SOURCES):
        return "sources"
    return "statements" if place.startswith(TOGETHER) else place


def order_of(place: str) -> int:
    """How many folders and files of `FIRST` come before this one."""
    return next((number for number, first in enumerate(FIRST) if place.startswith(first)), len(FIRST))


class SharedProcesses(LoadScopeScheduling):
    """Gives the tests of a process to one worker, in the order in which they were collected."""

    def schedule(self) -> None:
        self.config.option.loadscopereorder = False
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return process_of(nodeid.partition("::")[0].removeprefix("tests/"))


def check_marks(item: pytest.Item, place: str) -> None:
    """A test that says by its mark that it disturbs others is where such tests are."""
    marks = sorted(ALONE_MARKS & {mark.name for mark in item.iter_markers()})
    if marks and not place.startswith(ALONE):
        raise pytest.UsageError(
            f"{item.nodeid} has the mark {marks[0]}: add its file to ALONE in {__file__}"
        )
