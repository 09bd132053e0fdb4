"""Processes that share the tests: every file is taken once, and what belongs together by one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import PAIRS, ROOT, SOURCES, TOGETHER, SharedFiles, is_in, shares

FILES = sorted(ROOT.rglob("test_*.py"))


@pytest.mark.parametrize("part", [None, "alone", "others"])
def test_every_file_is_in_one_share(part: str | None) -> None:
    files = [path for path in FILES if is_in(part, path)]
    assert sorted(path for share in shares(files) for path in share) == files


def test_files_that_share_what_they_make_are_taken_together() -> None:
    found = [[path.relative_to(ROOT).as_posix() for path in share] for share in shares(FILES)]
    for together in (TOGETHER, PAIRS, SOURCES):
        assert sum(set(together) <= set(share) for share in found) == 1


def test_the_same_files_are_taken_in_the_same_order_by_every_process() -> None:
    assert shares(reversed(FILES)) == shares(FILES)


def test_what_another_process_has_taken_is_left_to_it(tmp_path: Path) -> None:
    number = len(shares(FILES)) - 1
    for taken in range(number):
        (tmp_path / f"{taken}.taken").touch()
    session = _Session()
    plugin = SharedFiles(tmp_path)
    plugin._files = {path: path for path in FILES}  # type: ignore[misc]
    assert list(plugin._taken(session)) == shares(FILES)[number]  # type: ignore[arg-type, comparison-overlap]
    assert list(plugin._taken(session)) == []  # type: ignore[arg-type]


class _Session:
    """A session in which every file is a test."""

    def __init__(self) -> None:
        self.config = self.hook = self

    def genitems(self, path: Path) -> list[Path]:
        return [path]

    def pytest_collection_modifyitems(self, **_: object) -> None:
        """Nothing is left out."""
