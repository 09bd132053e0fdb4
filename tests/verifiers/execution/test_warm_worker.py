"""A process that stays: the limits of a run for each query, and no trace of one query in the next."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from dokimos.verifiers.execution import process
from dokimos.verifiers.execution.limits import Limits, Outcome, Termination
from dokimos.verifiers.execution.process import Cancelled
from dokimos.verifiers.execution.warm_worker import WarmStart, WarmWorker, WarmWorkers
from dokimos.verifiers.runners import warm_queries

LIMITS = Limits(wall_seconds=30, memory_bytes=1 << 30)
#: Does what its arguments say; it remembers how often it was asked, as no runner should.
RUNNER = f"""
import os, sys, tempfile, threading, time
sys.path.insert(0, {str(Path(warm_queries.__file__).parent)!r})
from warm_queries import serve
asked, held = [], []

def main():
    asked.append(sys.argv[1:])
    what, *rest = sys.argv[1:]
    with open("result", "w") as file:
        file.write(f"{{os.getpid()}} {{os.getcwd()}} {{tempfile.gettempdir()}}")
    print("asked", what, flush=True)
    if what == "exit":
        sys.exit(int(rest[0]))
    if what == "die" or (what == "die-later" and len(asked) > 1):
        os._exit(int(rest[0]) if rest else 9)
    if what == "raise":
        raise ValueError("a bug of the tool")
    if what == "hang":
        time.sleep(3600)
    if what == "child" and os.fork() == 0:
        os.setsid()
        time.sleep(3600)
    if what == "grow":
        held.append(b"x" * int(rest[0]))
    if what == "compute":
        until = time.process_time() + float(rest[0])
        while time.process_time() < until:
            pass
    if what == "late":
        threading.Timer(0.1, lambda: print("too late", flush=True)).start()

serve(main)
"""


@pytest.fixture(params=["sampled", "by a control group"])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By which means limits are kept; where there are no groups, both are the same."""
    if request.param == "sampled":
        monkeypatch.setattr(process, "new_group", lambda _: None)


@pytest.fixture
def start(tmp_path: Path) -> WarmStart:
    runner = tmp_path / "runner.py"
    runner.write_text(RUNNER)
    environment = {"PATH": os.environ["PATH"]}
    return WarmStart.of((sys.executable, "-I", "-S", str(runner)), environment, LIMITS)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[WarmWorker]]:
    workers: list[WarmWorker] = []
    yield workers
    for worker in workers:
        worker.end()


def ask(
    worker: WarmWorker, folder: Path, *arguments: str, cancel: threading.Event | None = None
) -> Outcome:
    folder.mkdir(exist_ok=True)
    log = folder.with_suffix(".log")
    return worker.ask(arguments, folder=folder, log=log, cancel=cancel or threading.Event())


def worker_of(start: WarmStart, made: list[WarmWorker], tmp_path: Path, **limits: float) -> WarmWorker:
    made.append(WarmWorker(replace(start, limits=replace(LIMITS, **limits)), work=tmp_path))
    return made[-1]


def result(folder: Path) -> list[str]:
    return (folder / "result").read_text().split()


def is_gone(pid: str) -> bool:
    return not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE


def test_one_process_answers_each_query_in_a_folder_of_its_own(
    start: WarmStart, made: list[WarmWorker], tmp_path: Path
) -> None:
    worker = worker_of(start, made, tmp_path)
    folders = [tmp_path / name for name in ("one", "two", "three")]
    outcomes = [ask(worker, folder, "late" if k == 1 else "answer") for k, folder in enumerate(folders)]
    assert [(o.termination, o.exit_code) for o in outcomes] == [(Termination.EXITED, 0)] * 3
    assert all(o.enforced_by.endswith("; a warm worker") for o in outcomes)
    (pid,) = {result(folder)[0] for folder in folders}
    assert [result(folder)[1:] for folder in folders] == [[str(folder)] * 2 for folder in folders]
    assert (tmp_path / "one.log").read_text() == "asked answer\n"
    assert (tmp_path / "two.log").read_text() == "asked late\n"
    assert (tmp_path / "three.log").read_text().endswith("asked answer\n")
    assert worker.asked == 3 and worker.is_fit
    worker.end()
    assert is_gone(pid)
    assert not list(tmp_path.glob("warm-*"))


@pytest.mark.parametrize(
    ("words", "termination", "code"),
    [
        (("exit", "3"), Termination.EXITED, 3),
        (("raise",), Termination.EXITED, 1),
        (("die", "9"), Termination.SIGNALLED, None),
        (("die", "0"), Termination.SIGNALLED, None),
    ],
)
def test_after_anything_odd_it_is_not_asked_again(
    start: WarmStart,
    made: list[WarmWorker],
    tmp_path: Path,
    words: tuple[str, ...],
    termination: Termination,
    code: int | None,
) -> None:
    """One that dies has not replied: whatever it left with, that is no answer."""
    worker = worker_of(start, made, tmp_path)
    assert ask(worker, tmp_path / "first", "answer").exit_code == 0
    outcome = ask(worker, tmp_path / "second", *words)
    assert (outcome.termination, outcome.exit_code) == (termination, code)
    assert outcome.detail == ("it ended without a reply" if words[0] == "die" else "")
    assert not worker.is_fit
    assert is_gone(result(tmp_path / "first")[0])


def test_time_is_counted_for_each_query(start: WarmStart, made: list[WarmWorker], tmp_path: Path) -> None:
    worker = worker_of(start, made, tmp_path, wall_seconds=3.0)
    assert ask(worker, tmp_path / "first", "answer").exit_code == 0
    outcome = ask(worker, tmp_path / "second", "hang")
    assert outcome.termination is Termination.WALL_LIMIT
    assert outcome.wall_seconds >= 3.0
    assert not worker.is_fit
    assert is_gone(result(tmp_path / "first")[0])


@pytest.mark.usefixtures("means")
def test_cpu_time_is_counted_for_each_query(
    start: WarmStart, made: list[WarmWorker], tmp_path: Path
) -> None:
    worker = worker_of(start, made, tmp_path, cpu_seconds=0.5)
    for name in ("first", "second", "third"):
        outcome = ask(worker, tmp_path / name, "compute", "0.2")
        assert outcome.termination is Termination.EXITED
        assert 0.15 < outcome.cpu_seconds < 0.5
    assert ask(worker, tmp_path / "last", "compute", "60").termination is Termination.CPU_LIMIT
    assert not worker.is_fit


def test_what_it_left_behind_ends_with_it(start: WarmStart, made: list[WarmWorker], tmp_path: Path) -> None:
    worker = worker_of(start, made, tmp_path)
    assert ask(worker, tmp_path / "first", "answer").exit_code == 0
    (process_,) = psutil.Process(int(result(tmp_path / "first")[0])).parents()[:1]
    assert ask(worker, tmp_path / "second", "child").exit_code == 0
    assert not worker.is_fit
    assert not psutil.pid_exists(process_.pid)


@pytest.mark.usefixtures("means")
def test_memory_that_has_grown_does_not_stay(
    start: WarmStart, made: list[WarmWorker], tmp_path: Path
) -> None:
    worker = worker_of(start, made, tmp_path, memory_bytes=200_000_000)
    assert ask(worker, tmp_path / "first", "answer").exit_code == 0
    assert ask(worker, tmp_path / "second", "grow", "20000000").exit_code == 0
    assert worker.is_fit
    assert ask(worker, tmp_path / "third", "grow", "60000000").exit_code == 0
    assert not worker.is_fit
    too_much = worker_of(start, made, tmp_path, memory_bytes=200_000_000)
    outcome = ask(too_much, tmp_path / "fourth", "grow", "400000000")
    assert outcome.termination is Termination.MEMORY_LIMIT


def test_a_cancelled_query_leaves_nothing(start: WarmStart, made: list[WarmWorker], tmp_path: Path) -> None:
    worker = worker_of(start, made, tmp_path)
    assert ask(worker, tmp_path / "first", "answer").exit_code == 0
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        ask(worker, tmp_path / "second", "hang", cancel=cancel)
    assert is_gone(result(tmp_path / "first")[0])


def pool_ask(pool: WarmWorkers, start: WarmStart, folder: Path, *words: str) -> tuple[Outcome, int]:
    folder.mkdir(exist_ok=True)
    return pool.ask(
        start,
        words,
        folder=folder,
        log=folder.with_suffix(".log"),
        cancel=threading.Event(),
        is_odd=lambda outcome: outcome.exit_code != 0,
    )


def test_what_may_come_from_earlier_queries_is_asked_again_of_a_new_process(
    start: WarmStart, tmp_path: Path
) -> None:
    pool = WarmWorkers(tmp_path, most=1)
    try:
        assert pool_ask(pool, start, tmp_path / "a", "answer")[1] == 1
        assert pool_ask(pool, start, tmp_path / "b", "answer")[1] == 2
        (tmp_path / "c" / "kept").mkdir(parents=True)
        outcome, asked = pool_ask(pool, start, tmp_path / "c", "die-later")
        assert (outcome.exit_code, asked) == (0, 1)
        assert not (tmp_path / "c" / "kept").exists(), "the new one finds an empty folder"
        assert result(tmp_path / "c")[0] != result(tmp_path / "b")[0]
        outcome, asked = pool_ask(pool, start, tmp_path / "d", "die")
        assert (outcome.termination, asked) == (Termination.SIGNALLED, 1), "a new one dies, too"
    finally:
        pool.end()


def test_there_is_one_worker_for_each_set_of_limits_and_few_are_kept(
    start: WarmStart, tmp_path: Path
) -> None:
    longer = replace(start, limits=replace(LIMITS, wall_seconds=40))
    pool = WarmWorkers(tmp_path, most=1)
    try:
        pool_ask(pool, start, tmp_path / "a", "answer")
        assert pool_ask(pool, longer, tmp_path / "b", "answer")[1] == 1
        assert is_gone(result(tmp_path / "a")[0]), "one is kept, and the last"
        assert pool_ask(pool, longer, tmp_path / "c", "answer")[1] == 2
    finally:
        pool.end()
    assert is_gone(result(tmp_path / "c")[0])


def test_a_worker_that_talks_out_of_turn_is_not_believed(
    start: WarmStart, made: list[WarmWorker], tmp_path: Path
) -> None:
    """A reply to another query, or anything else that stands in the pipe."""
    for number, said in enumerate((b"7 0\n", b"1 0\n1 0\n", b"unsat\n", b"1 -3\n", b"1 0")):
        worker = worker_of(start, made, tmp_path)
        (pipe,) = tmp_path.glob("warm-*/replies")
        descriptor = os.open(pipe, os.O_RDWR)
        os.write(descriptor, said)
        os.close(descriptor)
        outcome = ask(worker, tmp_path / f"asked-{number}", "hang")
        assert outcome.termination is Termination.SIGNALLED
        assert not worker.is_fit
