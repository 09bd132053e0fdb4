"""The scripted verifier, run as a real process under limits: every behaviour ends in the right answer."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import psutil
import pytest

from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.instance import Label
from dokimos.verifiers.adapters.built_in import Scripted
from dokimos.verifiers.base import Query, Verifier
from dokimos.verifiers.catalogue import VERIFIERS, catalogue, installed
from dokimos.verifiers.execution.limits import Limits
from dokimos.verifiers.execution.process import run_limited
from dokimos.verifiers.script_guard import allowed_environment
from tests.scripting import instance, script

ONES = (Fraction(1), Fraction(1))


def ask(
    verifier: Verifier, folder: Path, *, label: Label = Label.SAT, limits: Limits | None = None
) -> VerifierAnswer:
    limits = limits or Limits(wall_seconds=30, memory_bytes=256 << 20)
    given = instance(folder / "suite", "one", label=label, witness=ONES if label is Label.SAT else None)
    work = folder / "work"
    work.mkdir()
    query = Query(
        name="one",
        network_file=given.network_path,
        property_file=given.property_path,
        folder=work,
        wall_seconds=limits.wall_seconds,
        memory_bytes=limits.memory_bytes,
    )
    invocation = verifier.command(query)
    outcome = run_limited(
        invocation.command,
        limits=limits,
        log=folder / "log",
        cwd=work,
        environment={**allowed_environment(), **invocation.environment},
    )
    return verifier.answer(outcome, query, folder / "log")


def behave(folder: Path, behaviour: str, **entry: Any) -> Scripted:
    return Scripted(script(folder / "script.json", default={"behaviour": behaviour, **entry}))


@pytest.mark.parametrize(
    ("behaviour", "label", "answer", "witness"),
    [
        ("right", Label.SAT, Answer.SAT, ONES),
        ("right", Label.UNSAT, Answer.UNSAT, None),
        ("wrong", Label.SAT, Answer.UNSAT, None),
        ("wrong", Label.UNSAT, Answer.SAT, (0, 0)),
        ("bogus-witness", Label.SAT, Answer.SAT, (0, 0)),
        ("outside-witness", Label.SAT, Answer.SAT, (10**6, 10**6)),
        ("no-witness", Label.SAT, Answer.SAT, None),
    ],
)
def test_answers(
    tmp_path: Path, behaviour: str, label: Label, answer: Answer, witness: tuple[int, ...] | None
) -> None:
    given = ask(behave(tmp_path, behaviour), tmp_path, label=label)
    assert (given.answer, given.witness) == (answer, witness)


def test_slow_is_a_timeout_though_it_would_have_answered(tmp_path: Path) -> None:
    given = ask(behave(tmp_path, "slow", seconds=20), tmp_path, limits=Limits(wall_seconds=0.4))
    assert (given.answer, given.detail) == (Answer.TIMEOUT, "stopped after 0.4 s")


def test_a_crash_that_says_unsat_is_an_error_with_its_log(tmp_path: Path) -> None:
    given = ask(behave(tmp_path, "crash"), tmp_path)
    assert (given.answer, given.witness) == (Answer.ERROR, None)
    assert given.detail == "exit code 3: the property is safe: unsat"


def test_a_crash_by_signal_is_an_error(tmp_path: Path) -> None:
    given = ask(behave(tmp_path, "crash", signal=11), tmp_path)
    assert given.answer is Answer.ERROR
    assert given.detail.startswith("ended abnormally (SIGSEGV): ")


@pytest.mark.parametrize("detached", [False, True])
def test_hanging_with_a_child_leaves_no_process(tmp_path: Path, detached: bool) -> None:
    pids = tmp_path / "pids"
    verifier = behave(tmp_path, "hang", detached=detached, pids=str(pids))
    given = ask(verifier, tmp_path, limits=Limits(wall_seconds=3))
    assert given.answer is Answer.TIMEOUT
    processes = [int(line) for line in pids.read_text().split()]
    assert len(processes) == 2
    assert not any(psutil.pid_exists(pid) for pid in processes)


def test_flooding_still_answers(tmp_path: Path) -> None:
    limits = Limits(wall_seconds=30, log_bytes=100_000)
    assert ask(behave(tmp_path, "flood", megabytes=20), tmp_path, limits=limits).answer is Answer.SAT
    assert (tmp_path / "log").stat().st_size < 101_000


def test_taking_too_much_memory_is_memout(tmp_path: Path) -> None:
    limits = Limits(wall_seconds=30, memory_bytes=128 << 20)
    assert ask(behave(tmp_path, "memory"), tmp_path, limits=limits).answer is Answer.MEMOUT


@pytest.mark.parametrize("behaviour", ["garbage", "partial"])
def test_an_unreadable_result_is_an_error(tmp_path: Path, behaviour: str) -> None:
    given = ask(behave(tmp_path, behaviour), tmp_path)
    assert given.answer is Answer.ERROR
    assert given.detail.startswith("no readable answer (")


def test_what_does_not_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/does/not/exist")
    verifier = behave(tmp_path, "right")
    command = verifier.command(
        Query(
            name="one",
            network_file=tmp_path,
            property_file=tmp_path,
            folder=tmp_path,
            wall_seconds=1,
            memory_bytes=1,
        )
    )
    monkeypatch.undo()
    outcome = run_limited(
        command.command, limits=Limits(wall_seconds=5), log=tmp_path / "log", cwd=tmp_path, environment={}
    )
    query = Query(
        name="one",
        network_file=tmp_path,
        property_file=tmp_path,
        folder=tmp_path,
        wall_seconds=1,
        memory_bytes=1,
    )
    given = verifier.answer(outcome, query, tmp_path / "log")
    assert given.answer is Answer.ERROR
    assert given.detail.startswith("not started: ")


def test_each_instance_may_have_its_own_behaviour(tmp_path: Path) -> None:
    path = script(
        tmp_path / "s.json",
        default={"behaviour": "garbage"},
        instances={"one": {"behaviour": "says", "answer": "unknown", "detail": "tired"}},
        executions=str(tmp_path / "runs"),
    )
    assert ask(Scripted(path), tmp_path) == VerifierAnswer(Answer.UNKNOWN, detail="tired")
    assert (tmp_path / "runs").read_text() == "one\n"


def test_the_script_is_part_of_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Scripted()
    monkeypatch.delenv("DOKIMOS_SCRIPT", raising=False)
    before = plain.version()
    path = script(tmp_path / "s.json", default={"behaviour": "wrong"})
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(path))
    assert plain.script == path
    assert plain.version() not in (before, None)
    path.unlink()
    assert plain.version() is None
    with pytest.raises(InputError, match="cannot be installed from here"):
        plain.install(lambda _: None)


def test_the_catalogue_says_how_to_get_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    monkeypatch.delenv("DOKIMOS_SCRIPT", raising=False)
    rows = {row.name: row for row in catalogue()}
    assert set(rows) == set(VERIFIERS)
    assert not rows["marabou"].is_installed
    assert "dokimos verifiers install marabou" in rows["marabou"].how_to_get
    assert rows["scripted"].is_installed
    assert installed("scripted") is VERIFIERS["scripted"]
    with pytest.raises(VerifierUnavailable, match="marabou is not installed; to get it"):
        installed("marabou")
    with pytest.raises(InputError, match="did you mean 'marabou'"):
        installed("maraboo")
