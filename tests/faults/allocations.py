"""Lets the n-th allocation of memory fail, for every n: `python -m tests.faults.allocations KIND STEP`.

KIND is what is written: journal, manifest, truth or baseline. For every STEP-th allocation a process is
forked in which it fails, once or from then on. Whatever becomes of that process, what it had reported as
done must be on disk, and what is there must be readable. Prints what is not so, and at last how many were
tried.
"""

from __future__ import annotations

import _testcapi
import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dokimos.campaigns.journal import Journal, read_journal
from dokimos.campaigns.manifest import read_manifest, write_manifest
from dokimos.core.errors import DokimosError
from dokimos.core.files import write_whole
from dokimos.judging.baselines import read_baseline, renew_baseline, write_baseline
from dokimos.judging.gate import pass_gate
from dokimos.judging.verdicts import Verdict
from tests.campaigns.test_journal import numbered
from tests.faults.test_disk_faults import manifests
from tests.judging.test_gate import judged, run

Work = Callable[[Path, Callable[[str], None]], None]
Look = Callable[[Path, list[str]], bool]
CONTENT = b"0123456789" * 1000
#: A process that has not ended by then is killed, which loses nothing either.
SECONDS = 5


def journal() -> tuple[Work, Look, Callable[[Path], None]]:
    records = [numbered(k) for k in range(3)]

    def prepare(folder: Path) -> None:
        with Journal(folder / "journal.jsonl") as written:
            written.finish(records[0])

    def work(folder: Path, report: Callable[[str], None]) -> None:
        with Journal(folder / "journal.jsonl") as written:
            for record in records[1:]:
                written.finish(record)
                report(record.job)

    def look(folder: Path, reported: list[str]) -> bool:
        jobs = [record.job for record in read_journal(folder / "journal.jsonl")]
        return {records[0].job, *reported} <= set(jobs) and len(jobs) == len(set(jobs))

    return work, look, prepare


def manifest() -> tuple[Work, Look, Callable[[Path], None]]:
    old, new = manifests(Path(tempfile.mkdtemp(prefix="dokimos-faults-")))

    def work(folder: Path, report: Callable[[str], None]) -> None:
        write_manifest(new, folder / "manifest.json")
        report("new")

    def look(folder: Path, reported: list[str]) -> bool:
        return read_manifest(folder / "manifest.json") in ((new,) if reported else (old, new))

    return work, look, lambda folder: write_manifest(old, folder / "manifest.json")


def truth() -> tuple[Work, Look, Callable[[Path], None]]:
    def work(folder: Path, report: Callable[[str], None]) -> None:
        write_whole(folder / "i.json", CONTENT, what="the truth file", durable=True)
        report("written")

    def look(folder: Path, reported: list[str]) -> bool:
        there = (folder / "i.json").exists()
        return (there or not reported) and (not there or (folder / "i.json").read_bytes() == CONTENT)

    return work, look, lambda folder: None


def baseline() -> tuple[Work, Look, Callable[[Path], None]]:
    old, new = (pass_gate(judged(run(name, Verdict.CORRECT))) for name in "ab")

    def work(folder: Path, report: Callable[[str], None]) -> None:
        renew_baseline(folder / "baseline.json", new.runs)
        report("b")

    def look(folder: Path, reported: list[str]) -> bool:
        names = {each.instance for each in read_baseline(folder / "baseline.json").runs}
        return names in (({"a", "b"},) if reported else ({"a"}, {"a", "b"}))

    return work, look, lambda folder: write_baseline(folder / "baseline.json", old.runs, before=None)


KINDS = {"journal": journal, "manifest": manifest, "truth": truth, "baseline": baseline}


def attempt(folder: Path, work: Work, first: int, last: int) -> tuple[int, list[str]]:
    """The status of a process in which allocations `first` to `last` fail, and its reports.

    If `last` is 0, all later ones fail.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(SECONDS)  # without a handler: it ends the process
        _testcapi.set_nomemory(first, last)
        try:
            work(folder, lambda name: void(os.write(writing, name.encode() + b"\n")))
            code = 0
        except (MemoryError, DokimosError, OSError):
            code = 1
        finally:
            _testcapi.remove_mem_hooks()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        reported = pipe.read().split()
    return os.waitpid(pid, 0)[1], reported


def void(_: int) -> None:
    return None


def main(kind: str, step: int) -> None:
    work, look, prepare = KINDS[kind]()
    base = Path(tempfile.mkdtemp(prefix="dokimos-faults-"))

    def fresh() -> Path:
        shutil.rmtree(base / "now", ignore_errors=True)
        (base / "now").mkdir()
        prepare(base / "now")
        return base / "now"

    work(fresh(), lambda name: None)  # what is imported and kept at first is not counted
    gc.disable()
    most = 1
    while attempt(fresh(), work, most, 0)[0] != 0:
        most *= 2
    tried, wrong, hung = 0, 0, 0
    for number in range(0, most, step):
        for last in (number + 1, 0):
            folder = fresh()
            status, reported = attempt(folder, work, number, last)
            tried += 1
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
                hung += 1
                print(f"allocation {number}{'' if last else ' and all later ones'}: it does not end")
            if not look(folder, reported):
                wrong += 1
                print(f"allocation {number}{'' if last else ' and all later ones'}: reported {reported}")
    shutil.rmtree(base)
    print(json.dumps({"tried": tried, "wrong": wrong, "hung": hung, "allocations": most}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
