"""Processes that are killed (kill -9) at any moment: nothing lost, nothing twice, nobody left behind.

`STAGES` has a line for each process that may die. A command that makes a folder, and continues
where it stopped, takes one line: `making(...)` with its arguments.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psutil
import pytest

import dokimos
from dokimos.campaigns.campaign import read_campaign
from dokimos.suites.entry import load_truth
from dokimos.verifiers.adapters.built_in import Scripted
from tests.campaigns.test_campaign import executions, run, saying, start_process, suite

INSTANCES = 6
#: How many kills of each stage, all stages together, under `slow`.
KILLS = 200
WAIT_SECONDS = 120.0
LABEL = ("label", "--jobs", "2", "--budget", "60s")
UNLABELLED = ("generate", "exclusive-pairs", "--count", "2", "--inputs", "6", "--pairs", "2", "--out")
#: A run of about two seconds, in two processes.
GENERATE = ("generate", "exclusive-pairs", "--count", "6", "--inputs", "40", "--jobs", "2", "--out")
#: Two points and small layers: half of its few seconds is the start of torch.
SMALL = ("--arch", "mlp4", "--input", "10", "--points", "2", "--scale", "0.04")
TRAIN = (
    "hide",
    "--tier",
    "trained",
    *SMALL,
    "--epochs",
    "200",
    "--filter",
    "none",
    "--prove",
    "1s",
    "--out",
)
LOCK = ("hide", *SMALL, "--out")

Victim = Callable[[psutil.Process, random.Random], psutil.Process | None]
"""Chooses whom to kill of the process that was started and all below it; None where there is nobody yet."""


@dataclass(frozen=True)
class Stage:
    """A process to kill: how to start what it belongs to, which one it is, and what must be true after.

    `prepare` is called once in an empty folder, `done` is what is finished so far, and `finish` completes
    the work after all kills and checks its result.
    """

    prepare: Callable[[Path], None]
    start: Callable[[Path], subprocess.Popen[bytes]]
    victim: Victim
    done: Callable[[Path], list[str]]
    finish: Callable[[Path, list[str]], None]
    #: A kill comes no later than this after the start.
    seconds: float = 3.0


def itself(process: psutil.Process, rng: random.Random) -> psutil.Process | None:
    return process


def child(process: psutil.Process, rng: random.Random) -> psutil.Process | None:
    """One of its children: a supervisor of `run`, a worker of `generate`."""
    return rng.choice(process.children() or [None])


def grandchild(process: psutil.Process, rng: random.Random) -> psutil.Process | None:
    """A verifier, below its supervisor."""
    found = [each for one in process.children() for each in one.children()]
    return rng.choice(found or [None])


def lowest(process: psutil.Process, rng: random.Random) -> psutil.Process | None:
    """One below which there is nobody: what does the work in the end."""
    found = [each for each in process.children(recursive=True) if not each.children()]
    return rng.choice(found or [None])


# Campaigns


def prepare_campaign(folder: Path) -> None:
    saying(folder, default={"behaviour": "slow", "seconds": 0.05, "label": "unsat"})
    suite(folder, INSTANCES)


def start_campaign(folder: Path) -> subprocess.Popen[bytes]:
    return start_process(folder, INSTANCES, 2)


def recorded(folder: Path) -> list[str]:
    there = (folder / "out" / "manifest.json").exists()
    return [record.job for record in read_campaign(folder / "out").records] if there else []


def finish_campaign(folder: Path, before: list[str]) -> None:
    ran = executions(folder)
    names = {record.instance for record in read_campaign(folder / "out").records} if before else set()
    campaign = run(folder, suite(folder, INSTANCES), [Scripted(folder / "script.json")])
    assert [record.job for record in campaign.records][: len(before)] == before
    assert sorted(record.instance for record in campaign.records) == [f"i{k}" for k in range(INSTANCES)]
    assert all(executions(folder)[name] == ran[name] for name in names)


def campaign(victim: Victim) -> Stage:
    return Stage(prepare_campaign, start_campaign, victim, recorded, finish_campaign)


# Commands that make a folder


def command(arguments: tuple[str, ...], folder: Path) -> subprocess.Popen[bytes]:
    paths = [str(Path(dokimos.__file__).parents[1])]
    return subprocess.Popen(
        [sys.executable, "-m", "dokimos", *arguments, str(folder / "made")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )


def pieces(folder: Path) -> list[str]:
    """What is finished so far, as its own journal says; all of it once the folder is there."""
    if (folder / "made").exists():
        return ["all"]
    journals = [path.read_text() for path in folder.glob(".made.*/done.jsonl")]
    return [line for text in journals for line in text.splitlines(True) if line.endswith("\n")]


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def epochs(folder: Path) -> list[str]:
    """The epochs of training that are kept, all of it once the folder is there."""
    if (folder / "made").exists():
        return ["all"]
    import torch

    kept = [torch.load(path, weights_only=True) for path in folder.glob(".made.*/checkpoint.pt")]
    return [f"epoch {k + 1}" for state in kept for k in range(state["numbers"][0])]


def making(
    victim: Victim,
    *arguments: str,
    done: Callable[[Path], list[str]] = pieces,
    seconds: float = 3.0,
) -> Stage:
    """A command that writes a folder whose name is its last argument."""

    def finish(folder: Path, before: list[str]) -> None:
        (folder / "undisturbed").mkdir()
        for place in (folder, folder / "undisturbed"):
            process = command(arguments, place)
            _, said = process.communicate(timeout=WAIT_SECONDS)
            assert process.returncode == 0, said.decode()
        assert contents(folder / "made") == contents(folder / "undisturbed" / "made")
        assert not list(folder.glob(".made.*")), "nothing half-made is left"

    def start(folder: Path) -> subprocess.Popen[bytes]:
        return command(arguments, folder)

    return Stage(lambda folder: None, start, victim, done, finish, seconds)


# Labels for files that have none


def prepare_labels(folder: Path) -> None:
    """A suite without its labels, which are kept aside."""
    generated = command(UNLABELLED, folder)
    _, said = generated.communicate(timeout=WAIT_SECONDS)
    assert generated.returncode == 0, said.decode()
    (folder / "made" / "truth").rename(folder / "known")


def truths(folder: Path) -> list[str]:
    """The labels so far, oldest first, with their contents."""
    files = sorted((folder / "made" / "truth").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    return [f"{path.name} {sha256(path.read_bytes()).hexdigest()}" for path in files]


def finish_labels(folder: Path, before: list[str]) -> None:
    """Whatever was killed, the same command again finds every label, and tries no instance in vain."""
    process = command(LABEL, folder)
    _, said = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0, said.decode()
    assert truths(folder)[: len(before)] == before
    for known in (folder / "known").glob("*.json"):
        found = load_truth((folder / "made" / "truth" / known.name).read_text(), file=known.name)
        assert found.label is load_truth(known.read_text(), file=known.name).label
    assert not list((folder / "made").glob("open/*")), "what was killed is kept as tried"
    assert dokimos.check(folder / "made", jobs=1).is_proven


def labelling(victim: Victim) -> Stage:
    return Stage(prepare_labels, lambda folder: command(LABEL, folder), victim, truths, finish_labels, 8.0)


STAGES: dict[str, Stage] = {
    "the runner": campaign(itself),
    "a supervisor": campaign(child),
    "a verifier": campaign(lowest),
    "generate": making(itself, *GENERATE),
    "a worker of generate": making(child, *GENERATE),
    "hide, training": making(itself, *TRAIN, done=epochs, seconds=9.0),
    "hide, locking": making(itself, *LOCK, seconds=9.0),
    "label": labelling(itself),
    "a worker of label": labelling(child),
    "a search of label": labelling(lowest),
}


def strangers(folder: Path) -> Iterator[psutil.Process]:
    """The processes that still work for what is in a folder."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = [*process.cmdline(), process.environ().get("TMPDIR", "")]
            is_alive = process.status() != psutil.STATUS_ZOMBIE
            if is_alive and process.pid != os.getpid() and any(str(folder) in word for word in words):
                yield process


def below(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """All processes below the one that was started."""
    with suppress(psutil.Error):
        return psutil.Process(process.pid).children(recursive=True)
    return []


def kill_once(stage: Stage, folder: Path, seconds: float, rng: random.Random) -> bool:
    """Start, wait, kill; whether there was anybody to kill. Nobody may be left behind."""
    process = stage.start(folder)
    time.sleep(seconds)
    others = below(process)
    found = None
    with suppress(psutil.Error):
        found = stage.victim(psutil.Process(process.pid), rng) if process.poll() is None else None
        if found is not None:
            found.kill()
    process.communicate(timeout=WAIT_SECONDS)
    deadline = time.monotonic() + WAIT_SECONDS
    while left := [each for each in others if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)
    assert not list(strangers(folder))
    return found is not None


def survive(stage: Stage, folder: Path, kills: int, seed: int) -> None:
    """Kill that process so many times, at random moments, then finish the work."""
    rng = random.Random(seed)
    stage.prepare(folder)
    done: list[str] = []
    for _ in range(kills):
        kill_once(stage, folder, rng.uniform(0.3, stage.seconds), rng)
        now = stage.done(folder)
        assert now[: len(done)] == done or now == ["all"], "what was finished is lost"
        done = now
    stage.finish(folder, done)


@pytest.mark.parametrize("name", ["a supervisor", "generate"])
def test_killed_once_it_loses_nothing(tmp_path: Path, name: str) -> None:
    survive(STAGES[name], tmp_path, 1, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("seed", range(-(-KILLS // (4 * len(STAGES)))))
def test_killed_again_and_again_it_loses_nothing(tmp_path: Path, name: str, seed: int) -> None:
    survive(STAGES[name], tmp_path, 4, seed=seed)
