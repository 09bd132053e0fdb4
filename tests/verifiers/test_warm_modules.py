"""Modules that work in processes of their own, one query after another; labels are the queries here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from dokimos.judging import label_process
from dokimos.verifiers import environments
from dokimos.verifiers.environments import ask_module
from dokimos.verifiers.execution.limits import Limits, Outcome, Termination

LIMITS = Limits(wall_seconds=60)


def below() -> list[psutil.Process]:
    """The processes that check labels for this one."""
    found = psutil.Process().children(recursive=True)
    return [p for p in found if p.cmdline()[1:4] == ["-P", "-m", label_process.__name__]]


def ask(folder: Path, number: int, *, limits: Limits = LIMITS) -> Outcome:
    """Check a label whose files are missing."""
    query = folder / str(number)
    words = (str(query / "result.json"), "name", *(f"{query}/{name}" for name in ("n", "p", "t")))
    return ask_module(label_process.__name__, *words, limits=limits, folder=query)


def test_one_process_works_until_it_ends_and_then_another(tmp_path: Path) -> None:
    before = below()
    assert ask(tmp_path, 1).exit_code == 0
    (first,) = set(below()) - set(before) or set(before)
    assert ask(tmp_path, 2).exit_code == 0
    assert first in below()
    assert all((tmp_path / number / "result.json").exists() for number in "12")
    first.kill()
    assert ask(tmp_path, 3).exit_code == 0
    assert (tmp_path / "3" / "result.json").exists()
    assert first not in below()


def test_a_limit_is_that_of_the_query(tmp_path: Path) -> None:
    outcome = ask(tmp_path, 1, limits=Limits(wall_seconds=60, cpu_seconds=0.01))
    assert outcome.termination is Termination.CPU_LIMIT
    assert ask(tmp_path, 2).exit_code == 0


def test_the_process_ends_with_the_one_that_asks_and_leaves_nothing(tmp_path: Path) -> None:
    asks = (
        "import sys\nfrom pathlib import Path\nfrom tests.verifiers.test_warm_modules import ask, below\n"
        "print(ask(Path(sys.argv[1]), 1).exit_code, below()[0].pid)"
    )
    (tmp_path / "queries").mkdir()
    (tmp_path / "temporary").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", asks, tmp_path / "queries"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True,
        text=True,
        check=True,
    )
    code, pid = done.stdout.split()
    assert code == "0"
    assert not psutil.pid_exists(int(pid))
    assert not list((tmp_path / "temporary").glob("dokimos-*"))


@pytest.mark.parametrize(
    ("ended", "code", "is_odd"),
    [
        (Termination.EXITED, 0, False),
        (Termination.EXITED, 1, True),
        (Termination.SIGNALLED, None, True),
        (Termination.MEMORY_LIMIT, None, True),
        (Termination.CPU_LIMIT, None, False),
        (Termination.WALL_LIMIT, None, False),
    ],
)
def test_another_process_is_asked_where_earlier_queries_may_be_the_cause(
    ended: Termination, code: int | None, is_odd: bool
) -> None:
    outcome = Outcome(ended, code, wall_seconds=1.0, cpu_seconds=1.0, peak_memory_bytes=1)
    assert environments._is_odd(outcome) is is_odd
