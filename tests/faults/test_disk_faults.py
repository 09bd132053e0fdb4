"""The n-th write, fsync or rename fails, for every n: nothing that was reported as done is lost."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dokimos.campaigns.journal import Journal, read_journal
from dokimos.campaigns.manifest import describe, read_manifest, write_manifest
from dokimos.campaigns.plan import CampaignSuite, Tool
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.core.files import only_one, write_whole
from dokimos.judging.baselines import read_baseline, renew_baseline, write_baseline
from dokimos.judging.gate import pass_gate
from dokimos.judging.verdicts import Verdict
from tests.campaigns.test_journal import numbered
from tests.judging.test_gate import judged, run
from tests.scripting import instance

CALLS = ("write", "fsync", "replace")


@dataclass
class Disk:
    """Counts the calls that change a disk; the one with the number `fails` does not succeed.

    A failing write first writes half of what it was given, as a full disk does. After it nothing succeeds
    if `stays_broken`: that is what a process sees that is about to lose its power.
    """

    fails: int = -1
    stays_broken: bool = False
    done: list[str] = field(default_factory=list)

    @contextmanager
    def mounted(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with monkeypatch.context() as patched:
            for name in CALLS:
                patched.setattr(os, name, self._watched(name, getattr(os, name)))
            yield

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any, **more: Any) -> Any:
            number = len(self.done)
            place = given[1] if name == "replace" else Path(f"/proc/self/fd/{given[0]}").readlink()
            self.done.append(f"{name} {Path(place).name}")
            if number == self.fails or (self.stays_broken and 0 <= self.fails < number):
                if name == "write":
                    call(given[0], bytes(given[1])[: len(given[1]) // 2])
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return call(*given, **more)

        return watched


Faults = Callable[[Callable[[], None]], Iterator[int]]


@pytest.fixture(params=[False, True], ids=["once", "from then on"])
def fault_after_fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Does work again and again, each time with the next call failing, until it succeeds.

    Yields after each failure; work that does not notice one fails the test.
    """

    def faults(work: Callable[[], None]) -> Iterator[int]:
        for number in count():
            disk = Disk(number, request.param)
            with disk.mounted(monkeypatch):
                try:
                    work()
                except InputError as error:
                    assert "cannot be written" in str(error)
                else:
                    assert len(disk.done) <= number, f"{disk.done[number]} failed unnoticed"
                    return
            yield number

    return faults


def manifests(folder: Path) -> tuple[Any, Any]:
    made = []
    for name in ("one", "two"):
        suites = [CampaignSuite(folder / name, (instance(folder / name, "i"),))]
        made.append(describe(suites, [Tool("mine", "1")], RunSettings()))
    return made[0], made[1]


def test_a_manifest_is_the_old_or_the_new_one(tmp_path: Path, fault_after_fault: Faults) -> None:
    old, new = manifests(tmp_path)
    path = tmp_path / "campaign" / "manifest.json"
    write_manifest(old, path)
    seen = []
    for number in fault_after_fault(lambda: write_manifest(new, path)):
        seen.append(number)
        assert read_manifest(path) in (old, new)
        assert [each.name for each in path.parent.iterdir()] == ["manifest.json"]
        write_manifest(old, path)
    assert len(seen) >= 4
    assert read_manifest(path) == new


def test_a_truth_file_is_whole_or_missing(tmp_path: Path, fault_after_fault: Faults) -> None:
    path = tmp_path / "truth" / "i.json"
    content = b"0123456789" * 1000
    work = lambda: write_whole(path, content, what="the truth file", durable=True)  # noqa: E731
    for _ in fault_after_fault(work):
        found = list(path.parent.iterdir())
        assert found in ([], [path])
        assert all(each.read_bytes() == content for each in found)
        path.unlink(missing_ok=True)
    assert path.read_bytes() == content


def test_a_baseline_is_the_old_or_the_new_one(tmp_path: Path, fault_after_fault: Faults) -> None:
    path = tmp_path / "baseline.json"
    old, new = (pass_gate(judged(run(name, Verdict.CORRECT))) for name in "ab")
    write_baseline(path, old.runs, before=None)
    before = path.read_bytes()
    for _ in fault_after_fault(lambda: renew_baseline(path, new.runs)):
        names = {each.instance for each in read_baseline(path).runs}
        assert names in ({"a"}, {"a", "b"})
        assert {each.name for each in tmp_path.iterdir()} == {"baseline.json"}
        path.write_bytes(before)
    assert {each.instance for each in read_baseline(path).runs} == {"a", "b"}


def test_a_journal_keeps_every_run_that_it_has_reported(tmp_path: Path, fault_after_fault: Faults) -> None:
    path = tmp_path / "journal.jsonl"
    reported: list[str] = []

    def work() -> None:
        with Journal(path) as journal:
            for number in range(4):
                if numbered(number).job not in journal.finished:
                    journal.finish(numbered(number))
                    reported.append(numbered(number).job)

    number = 0
    for number in fault_after_fault(work):
        recorded = [record.job for record in read_journal(path)]
        assert set(reported) <= set(recorded)
        assert len(recorded) == len(set(recorded))
        if number % 2:  # otherwise it goes on where it was stopped
            path.unlink()
            reported.clear()
    assert len(read_journal(path)) == 4
    assert number >= 6


def test_what_must_survive_is_on_disk_before_and_after_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a disk that reorders writes could keep the name without the content, or neither."""
    disk = Disk()
    with disk.mounted(monkeypatch):
        write_whole(tmp_path / "file", b"content", durable=True)
        with Journal(tmp_path / "journal") as journal:
            journal.finish(numbered(0))
    kinds = [call.split()[0] for call in disk.done]
    assert kinds == ["write", "fsync", "replace", "fsync", "fsync", "write", "fsync"]
    assert disk.done[2:5] == ["replace file", f"fsync {tmp_path.name}", f"fsync {tmp_path.name}"]
    assert disk.done[5:] == ["write journal", "fsync journal"]


def test_gates_that_update_one_baseline_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    names = [f"i{k}" for k in range(12)]
    outcomes = [pass_gate(judged(run(name, Verdict.CORRECT))) for name in names]
    gates = [threading.Thread(target=renew_baseline, args=(path, each.runs)) for each in outcomes]
    for gate in gates:
        gate.start()
    for gate in gates:
        gate.join()
    assert {each.instance for each in read_baseline(path).runs} == set(names)
    assert [each.name for each in tmp_path.iterdir()] == ["baseline.json"]


def test_a_gate_waits_for_one_that_updates_the_same_baseline(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    first, second = (pass_gate(judged(run(name, Verdict.CORRECT))) for name in "ab")
    waiting = threading.Thread(target=renew_baseline, args=(path, second.runs))
    with only_one(tmp_path / ".baseline.json.lock", doing="updates it"):
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        write_baseline(path, first.runs, before=None)
    waiting.join()
    assert {each.instance for each in read_baseline(path).runs} == {"a", "b"}
