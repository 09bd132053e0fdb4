"""Whole files are written in one place, so that a full disk names the file, whichever it is."""

from __future__ import annotations

import re
from pathlib import Path

import dokimos

SOURCE = Path(dokimos.__file__).parent
#: Programs that run in environments without Dokimos, what only tests use, and a switch of the kernel's.
ELSEWHERE = ("verifiers/runners/", "testing/", "core/files.py", "core/parallel.py")
_WRITES = re.compile(r"\.write_(bytes|text)\(")


def test_files_are_written_by_one_function() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if place.startswith(ELSEWHERE):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        found += [
            f"{place}:{number}"
            for number, line in enumerate(lines, start=1)
            if _WRITES.search(line) and ">>>" not in line
        ]
    assert found == []
