"""Campaigns that are interrupted, killed, starved of disk and robbed of logs, at any moment, repeatedly.

Whatever happens: nothing recorded is lost, nothing recorded runs again, an error is one sentence, and
running the same campaign once more finishes it. Most of this plays the scripted verifier in this process,
where every write and every run is a moment at which something may happen; the rest ends real processes.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.campaigns import job as performing
from dokimos.campaigns import journal
from dokimos.campaigns.campaign import Progress, read_campaign, run_campaign
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core import files
from dokimos.core.errors import InputError
from dokimos.verifiers.adapters.built_in import Scripted
from dokimos.verifiers.execution.limits import Outcome, Termination
from tests.campaigns.test_campaign import executions, finished, run, saying, start_process, suite
from tests.scripting import instance, script

COUNT = 5


class Trouble(Enum):
    FULL_DISK = "full disk"
    INTERRUPT = "Ctrl-C"
    POWER_CUT = "power cut"
    LOGS_GONE = "logs deleted"


class PowerCut(BaseException):
    """Stands for the end of the process at this very moment."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, at which moment of a session, and how many bytes of a write still get through."""

    trouble: Trouble
    moment: int
    bytes_written: int


@dataclass
class World:
    """The disk and the processes of one session, and the fault that it meets."""

    folder: Path
    fault: Fault | None
    runs: Counter[str]
    moments: int = 0
    struck: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def moment(self) -> bool:
        """Whether the fault is there now; a full disk stays full, and a dead process dead."""
        with self.lock:
            self.moments += 1
            if self.fault is None or self.moments < self.fault.moment:
                return False
            first, self.struck = not self.struck, True
        if self.fault.trouble is Trouble.LOGS_GONE:
            if first:
                shutil.rmtree(self.folder / "out" / "logs", ignore_errors=True)
            return False
        return first or self.fault.trouble is not Trouble.INTERRUPT

    def strike(self) -> None:
        assert self.fault is not None
        if self.fault.trouble is Trouble.FULL_DISK:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise KeyboardInterrupt if self.fault.trouble is Trouble.INTERRUPT else PowerCut

    def write(self, descriptor: int, content: bytes | memoryview) -> int:
        if self.moment():
            assert self.fault is not None
            os.write(descriptor, bytes(content)[: self.fault.bytes_written])
            self.strike()
        return os.write(descriptor, content)

    def fsync(self, descriptor: int) -> None:
        if self.moment():
            self.strike()

    def run_limited(self, command: Sequence[str], *, log: Path, **_: Any) -> Outcome:
        """The scripted verifier, without a process."""
        if self.moment():
            self.strike()
        with self.lock:
            self.runs[command[command.index("--instance") + 1]] += 1
        log.write_bytes(b"said unsat\n")
        answer = {"schema": 1, "answer": "unsat", "witness": None, "detail": ""}
        Path(command[-1]).write_text(json.dumps(answer))
        if self.moment():
            self.strike()
        return Outcome(Termination.EXITED, 0, 0.1, 0.1, 1)


@contextmanager
def living_in(world: World) -> Iterator[None]:
    disk = SimpleNamespace(**{name: getattr(os, name) for name in dir(os) if not name.startswith("__")})
    disk.write, disk.fsync = world.write, world.fsync
    with (
        mock.patch.object(journal, "os", disk),
        mock.patch.object(files, "os", disk),
        mock.patch.object(performing, "run_limited", world.run_limited),
    ):
        yield


FAULTS = st.builds(
    Fault,
    trouble=st.sampled_from(Trouble),
    moment=st.integers(1, 40),
    bytes_written=st.integers(0, 400),
)


def session(world: World, suites: list[CampaignSuite], jobs: int, told: set[str]) -> None:
    """One attempt at the campaign; whatever ends it is what the fault brings, in one sentence."""
    verifier = Scripted(world.folder / "script.json")

    def note(progress: Progress) -> None:
        told.add(progress.record.instance)

    with living_in(world):
        try:
            run_campaign(
                suites,
                [verifier],
                settings=RunSettings(timeout_seconds=30, jobs=jobs),
                out=world.folder / "out",
                progress=note,
            )
        except InputError as error:
            # Of several threads another than the one that was struck may be the first to be heard.
            assert world.struck, str(error)
            assert "\n" not in str(error)
            assert "run the same command again" in str(error)
        except KeyboardInterrupt:
            assert world.fault is not None
            assert world.fault.trouble is Trouble.INTERRUPT
        except PowerCut:
            assert world.fault is not None
            assert world.fault.trouble is Trouble.POWER_CUT


def survive(faults: Sequence[Fault], jobs: int) -> None:
    """Meet the faults one after the other, then finish."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        instances = [instance(folder / "suite", f"i{k}") for k in range(COUNT)]
        suites = [CampaignSuite(folder / "suite", tuple(instances))]
        script(folder / "script.json", default={"behaviour": "says", "answer": "unsat"})
        runs: Counter[str] = Counter()
        told: set[str] = set()
        before: tuple[Any, ...] = ()
        for fault in (*faults, None):
            done = {record.instance for record in before}
            runs_before = Counter(runs)
            session(World(folder, fault, runs), suites, jobs, told)
            written = folder / "out" / "manifest.json"
            records = read_campaign(folder / "out").records if written.exists() else ()
            assert records[: len(before)] == before
            assert told <= {record.instance for record in records}
            assert all(runs[name] == runs_before[name] for name in done)
            before = records
        assert sorted(record.instance for record in before) == [f"i{k}" for k in range(COUNT)]
        assert sum(runs.values()) <= COUNT + jobs * len(faults)


@settings(deadline=None, max_examples=60)
@given(faults=st.lists(FAULTS, min_size=1, max_size=4), jobs=st.integers(1, 3))
def test_whatever_happens_a_campaign_survives(faults: list[Fault], jobs: int) -> None:
    survive(faults, jobs)


@pytest.mark.slow
@settings(deadline=None, max_examples=3000)
@given(faults=st.lists(FAULTS, min_size=1, max_size=8), jobs=st.integers(1, 4))
def test_whatever_happens_a_campaign_survives_at_length(faults: list[Fault], jobs: int) -> None:
    survive(faults, jobs)


def end_for_real(folder: Path, number: int, moments: Sequence[float], jobs: int) -> None:
    """End real processes of a campaign with a signal, each after a while; then finish."""
    count = 6
    saying(folder, default={"behaviour": "slow", "seconds": 0.02, "label": "unsat"})
    before: tuple[Any, ...] = ()
    for seconds in moments:
        sessions_done = finished(folder)
        process = start_process(folder, count, jobs)
        deadline = time.monotonic() + 60
        # The interpreter's own start is not what is tried here.
        while process.poll() is None and not (folder / "out" / "lock").exists():
            assert time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep(seconds)
        process.send_signal(number)
        process.wait(timeout=30)
        written = folder / "out" / "manifest.json"
        records = read_campaign(folder / "out").records if written.exists() else ()
        assert records[: len(before)] == before
        assert len(records) >= sessions_done
        before = records
        for log in (folder / "out" / "logs").glob("*"):
            log.unlink()
    started = executions(folder)
    campaign = run(folder, suite(folder, count), [Scripted(folder / "script.json")])
    assert campaign.records[: len(before)] == before
    assert sorted(r.instance for r in campaign.records) == [f"i{k}" for k in range(count)]
    for name in (record.instance for record in before):
        assert executions(folder)[name] == started[name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_real_process_ended_at_any_moment_loses_nothing(tmp_path: Path, number: int) -> None:
    end_for_real(tmp_path, number, (0.0, 0.12, 0.31), jobs=2)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    number=st.sampled_from([signal.SIGINT, signal.SIGKILL]),
    moments=st.lists(st.floats(0.0, 0.8), min_size=1, max_size=4),
    jobs=st.integers(1, 3),
)
def test_real_processes_ended_at_any_moment_lose_nothing(
    number: int, moments: list[float], jobs: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        end_for_real(Path(name), number, moments, jobs)
