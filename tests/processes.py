"""Which tests share a process, where they run in several.

Tests of one file do: what it makes once is made once. Those that measure limits, start clusters or drive a
browser do: they would disturb each other.

With `--share FOLDER`, processes share all tests: each takes the next files that no other has taken,
collects them and runs them, until none is left. So no test is collected twice, and none waits for a process
that is busy while another is not. What is taken is noted in the folder, which is empty at first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
#: Tests in these folders and files would disturb each other.
ALONE = (
    "campaigns/",
    "cli/test_end_to_end.py",
    "verifiers/execution/",
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
#: Tests in these files look at the same pair of each family.
PAIRS = ("contracts/test_constructions.py", "contracts/test_profiles.py")
#: Tests in these files look at the imports of all sources, which are read once.
SOURCES = ("laws/test_rooms.py", "test_house.py", "test_imports.py", "test_names.py")
#: These take longest, and come first, so that no process has to wait for another one's at the end.
FIRST = (
    *ALONE,
    *TOGETHER,
    *SOURCES,
    "constructions/",
    "contracts/",
    "difficulty/explain/test_false_findings.py",
    "examples/",
    "test_adding.py",
)
#: So many files that do not come first are taken at once.
_FILES_AT_ONCE = 4


def place_of(item: pytest.Item) -> str:
    """The file of a test, as seen from the folder of all tests."""
    return _place(item.path)


def _place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_in(part: str | None, path: Path) -> bool:
    """Whether a file or folder belongs to a part of the tests; if none is named, all do."""
    if part is None or path.suffix != ".py" or not path.is_relative_to(ROOT):
        return True
    return _place(path).startswith(ALONE) == (part == "alone")


def _order_of(place: str) -> int:
    """How many folders and files of `FIRST` come before this one."""
    return next((number for number, first in enumerate(FIRST) if place.startswith(first)), len(FIRST))


def _kept_together(place: str) -> str:
    """What the files have in common that one process takes together with this one."""
    return next((kept[0] for kept in (ALONE, TOGETHER, PAIRS, SOURCES) if place.startswith(kept)), place)


def shares(files: Iterable[Path]) -> list[list[Path]]:
    """Those files that one process takes at once, in the order of taking."""
    groups: dict[str, list[Path]] = {}
    for path in sorted(files, key=lambda path: (_order_of(_place(path)), path)):
        groups.setdefault(_kept_together(_place(path)), []).append(path)
    first = [paths for place, paths in groups.items() if place.startswith(FIRST)]
    others = [path for place, paths in groups.items() if not place.startswith(FIRST) for path in paths]
    return first + [others[at : at + _FILES_AT_ONCE] for at in range(0, len(others), _FILES_AT_ONCE)]


class SharedFiles:
    """A plug-in for a process that shares the tests with others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, pytest.Module] = {}
        self._is_taking = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """What is in a file is collected when it is taken, not before."""
        if self._is_taking or not isinstance(collector, pytest.Module):
            return None
        self._files[collector.path] = collector
        return pytest.CollectReport(collector.nodeid, "passed", None, [])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take tests and run them until none is left."""
        self._is_taking = True
        with_the_next = pairwise(chain(self._taken(session), [None]))
        for session.testscollected, (item, following) in enumerate(with_the_next, start=1):
            assert item is not None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail or session.shouldstop:
                raise session.Interrupted(session.shouldfail or session.shouldstop)
        return True

    def _taken(self, session: pytest.Session) -> Iterator[pytest.Item]:
        """The tests of this process. The next one is collected while the one before it still has to run."""
        for number, files in enumerate(shares(self._files)):
            try:
                (self._folder / f"{number}.taken").touch(exist_ok=False)
            except FileExistsError:
                continue
            items = [item for path in files for item in session.genitems(self._files[path])]
            session.config.hook.pytest_collection_modifyitems(
                session=session, config=session.config, items=items
            )
            yield from items


def check_marks(item: pytest.Item, place: str) -> None:
    """A test that says by its mark that it disturbs others is where such tests are."""
    marks = sorted(ALONE_MARKS & {mark.name for mark in item.iter_markers()})
    if marks and not place.startswith(ALONE):
        raise pytest.UsageError(
            f"{item.nodeid} has the mark {marks[0]}: add its file to ALONE in {__file__}"
        )
