from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dokimos.campaigns.journal import Journal, read_history
from dokimos.campaigns.manifest import read_manifest
from dokimos.campaigns.state import Glance, State, duration, glance, seconds_left
from dokimos.core.errors import UnreadableFile
from dokimos.suites.answers import Answer
from tests.difficulty.explain.sample import Made, record, write_campaign, write_suite

RECORDS = tuple(record(f"i{k}", Answer.SAT, seconds=k + 1) for k in range(8))
RUNNING = Glance(State.RUNNING, {"marabou": 10, "reference": 10}, RECORDS, 1, 130.0)
START = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Four instances in two families, two verifiers, nothing done."""
    made = [Made(f"i{k}", family="ab"[k % 2]) for k in range(4)]
    suite = write_suite(tmp_path / "suite", made)
    return write_campaign(tmp_path / "run", suite, [], verifiers=["quick", "slow"])


def held(folder: Path) -> None:
    """As if this process ran the campaign."""
    (folder / "lock").write_text(f"process {os.getpid()}\n")


def test_a_campaign_is_running_while_its_process_lives(empty: Path) -> None:
    held(empty)
    seen = glance(empty, START)
    assert (seen.state, seen.planned, seen.total) == (State.RUNNING, {"quick": 4, "slow": 4}, 8)
    assert (seen.records, seen.seconds_left) == ((), None)


def test_a_campaign_whose_process_is_gone_is_broken_off(empty: Path) -> None:
    assert glance(empty, START).state is State.STOPPED, "there is no lock at all"
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    (empty / "lock").write_text(f"process {child.pid}\n")
    assert glance(empty, START).state is State.STOPPED
    (empty / "lock").write_text("nonsense")
    assert glance(empty, START).state is State.STOPPED


def test_a_later_process_of_the_same_number_is_another_one(empty: Path) -> None:
    held(empty)
    os.utime(empty / "lock", (1e9, 1e9))
    assert glance(empty, START).state is State.STOPPED


def test_a_campaign_with_all_runs_is_finished_whoever_lives(empty: Path) -> None:
    held(empty)
    with Journal(empty / "journal.jsonl") as journal:
        for verifier in ("quick", "slow"):
            for k in range(4):
                journal.finish(record(f"i{k}", Answer.UNSAT, verifier=verifier, family="ab"[k % 2]))
    seen = glance(empty, START)
    assert (seen.state, seen.running, seen.seconds_left) == (State.FINISHED, 0, None)


def journalled(folder: Path) -> None:
    """`quick` took 1 s on family a, `slow` 9 s; both on i0, one after the other; the next has begun."""
    with Journal(folder / "journal.jsonl") as journal:
        journal.started("q0", at(0))
        journal.finish(record("i0", Answer.UNSAT, verifier="quick", family="a", job="q0", seconds=1.0))
        journal.started("s0", at(1))
        journal.finish(record("i0", Answer.UNSAT, verifier="slow", family="a", job="s0", seconds=9.0))
        journal.started("q1", at(10))


def test_the_estimate_knows_verifiers_and_families(empty: Path) -> None:
    journalled(empty)
    manifest = read_manifest(empty / "manifest.json")
    history = read_history(empty / "journal.jsonl")
    # To come: three of 1 s and three of 9 s, one run at a time; half a second of one has passed.
    now = START + timedelta(seconds=10.5)
    assert seconds_left(manifest, history, now) == pytest.approx(3 * 1 + 3 * 9 - 0.5)
    held(empty)
    assert glance(empty, now).running == 1


def test_the_estimate_knows_that_several_run_at_a_time(empty: Path) -> None:
    journalled(empty)
    manifest = read_manifest(empty / "manifest.json")
    history = read_history(empty / "journal.jsonl")
    together = replace(history, started={"q0": at(0), "s0": at(0)})
    # Ten seconds of runs in five seconds.
    assert seconds_left(manifest, together, START + timedelta(seconds=5)) == pytest.approx(30 / 2)


def test_only_the_process_at_work_tells_the_speed(empty: Path) -> None:
    journalled(empty)
    with Journal(empty / "journal.jsonl") as journal:
        journal.started("q2", at(1000))
        history = read_history(empty / "journal.jsonl")
        assert dict(history.started) == {"q2": at(1000)}
        assert history.finished_since == ()
        assert len(history.records) == 2
    manifest = read_manifest(empty / "manifest.json")
    left = seconds_left(manifest, history, START + timedelta(seconds=1001))
    assert left == pytest.approx(30 - 1)


def test_half_a_line_at_the_end_is_not_there_yet(empty: Path) -> None:
    journalled(empty)
    with (empty / "journal.jsonl").open("a") as file:
        file.write('{"schema": 1, "event": "fini')
    assert len(glance(empty, START).records) == 2


@pytest.mark.parametrize("rest", [{}, {"job": "j"}, {"job": "j", "at": "soon"}, {"job": "j", "at": 3}])
def test_a_start_without_its_time_only_makes_the_estimate_worse(
    empty: Path, rest: dict[str, object]
) -> None:
    journalled(empty)
    held(empty)
    with (empty / "journal.jsonl").open("a") as file:
        file.write(json.dumps({"schema": 1, "event": "started", **rest}) + "\n")
    seen = glance(empty, START + timedelta(seconds=10))
    assert len(seen.records) == 2
    assert seen.seconds_left is not None and 0 < seen.seconds_left < 1000


def test_a_folder_without_a_campaign_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="there is no campaign here"):
        glance(tmp_path, START)


def test_the_line_says_how_it_stands() -> None:
    assert RUNNING.in_words == "running: 8 of 20 runs done, 12 to go, about 2 min left"
    unknown = Glance(State.RUNNING, {"marabou": 10}, (), 1, None)
    assert unknown.in_words == "running: 0 of 10 runs done, 10 to go"
    assert Glance(State.FINISHED, {"m": 8}, RECORDS, 0, None).in_words == "finished: 8 of 8 runs done"
    stopped = Glance(State.STOPPED, {"m": 9}, RECORDS, 0, None).in_words
    assert stopped.startswith("interrupted: 8 of 9 runs done, 1 to go")
    assert "`dokimos run`" in stopped


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (3600, "60 min"),
        (5400, "1 h 30 min"),
        (7260, "2 h 01 min"),
    ],
)
def test_a_duration_is_rough(seconds: float, words: str) -> None:
    assert duration(seconds) == words
