"""The same function in several processes: what comes back, and what goes wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest

from dokimos.core.errors import DokimosError
from dokimos.core.files import reading_at_most
from dokimos.core.inputs import ALLOWED
from dokimos.core.parallel import each


def _double(number: int) -> int:
    return 2 * number


def _fail(number: int) -> int:
    raise ValueError(f"no {number}")


def _killed(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def _killed_at_three(number: int) -> int:
    return _killed(number) if number == 3 else number


def _most(_: int) -> int:
    return ALLOWED.get()


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_result_comes_with_the_index_of_its_item(jobs: int) -> None:
    assert sorted(each(_double, [3, 1, 2], jobs=jobs)) == [(0, 6), (1, 2), (2, 4)]


def test_threads_may_ask_for_processes_at_the_same_time() -> None:
    """The name of the program that asks is given back, and an error ends the processes of its own call."""
    program = sys.modules["__main__"]

    def ask(number: int) -> list[tuple[int, int]] | str:
        try:
            return sorted(each(_fail if number == 3 else _double, [number, number], jobs=2))
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ask, range(4)))
    assert found == [[(0, 0), (1, 0)], [(0, 2), (1, 2)], [(0, 4), (1, 4)], "no 3"]
    assert sys.modules["__main__"] is program


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_out(jobs: int) -> None:
    with pytest.raises(ValueError, match="no"):
        list(each(_fail, [3, 1], jobs=jobs))


def test_a_killed_process_is_one_sentence() -> None:
    with pytest.raises(DokimosError, match=r"was killed.*fewer `jobs`"):
        list(each(_killed, [3, 1], jobs=2))


def test_what_was_not_killed_is_done_all_the_same() -> None:
    found = dict(each(_killed, [3, 1, 2], jobs=2, lost=lambda item: -item))
    assert found == {0: -3, 1: -1, 2: -2}
    assert dict(each(_killed_at_three, [3, 1, 2], jobs=2, lost=lambda item: -item)) == {0: -3, 1: 1, 2: 2}


def test_processes_know_how_large_files_may_be() -> None:
    with reading_at_most(12345):
        assert [most for _, most in each(_most, [1, 2], jobs=2)] == [12345, 12345]


def _place(_: int) -> tuple[str, str | None, str | None]:
    return str(Path.cwd()), os.environ.get("DOKIMOS_HOME"), os.environ.get("OPENBLAS_NUM_THREADS")


def test_processes_work_in_the_folder_and_the_environment_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the server that they are forked from is older than both."""
    list(each(_double, [1, 2], jobs=2))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("DOKIMOS_HOME", name)
        found = [place for _, place in each(_place, [1, 2], jobs=2)]
        assert {place[:2] for place in found} == {(str(tmp_path / name), name)}


PLAIN_SCRIPT = """
from fractions import Fraction
from dokimos.core.parallel import each

print(sorted(each(Fraction.limit_denominator, [Fraction(1, 3), Fraction(1, 2)], jobs=2)))
"""


@pytest.mark.parametrize("from_file", [True, False])
def test_a_plain_script_or_standard_input_may_call_us(tmp_path: Path, from_file: bool) -> None:
    """The processes do not run the script again: it has no `if __name__ == "__main__"`, or no file."""
    script = tmp_path / "plain.py"
    script.write_text(PLAIN_SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *([str(script)] if from_file else ["-"])],
        input="" if from_file else PLAIN_SCRIPT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[(0, Fraction(1, 3)), (1, Fraction(1, 2))]\n", "")


def test_no_process_imports_what_lies_in_the_folder(tmp_path: Path) -> None:
    """Python looks there first, where it is not told not to: for `struct` as for numpy."""
    (folder := tmp_path / "folder").mkdir()
    for name in ("struct", "json", "numpy", "msgspec"):
        (folder / f"{name}.py").write_text("raise SystemExit('this is of the folder')")
    program = tmp_path / "program.py"
    program.write_text("from dokimos.core.parallel import each\nprint(sorted(each(abs, [-1, -2], jobs=2)))")
    command = [sys.executable, str(program)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[(0, 1), (1, 2)]\n", "")


def _parent(_: int) -> int:
    return os.getppid()


def test_all_processes_are_forked_from_one_that_has_loaded_what_we_have() -> None:
    first = {parent for _, parent in each(partial(_parent), [1, 2], jobs=2)}
    assert {parent for _, parent in each(_parent, [1, 2, 3], jobs=3)} == first
    assert os.getpid() not in first


KILLED = """
import os, signal, time
from dokimos.core.errors import DokimosError
from dokimos.core.parallel import each

def slow(seconds):
    time.sleep(seconds)
    return os.getppid() if seconds else 0

if __name__ == "__main__":
    [(_, server), _] = each(slow, [0.001, 0.001], jobs=2)
    found = each(slow, [0.0, 60.0], jobs=2)
    assert next(found) == (0, 0)
    os.kill(server, signal.SIGKILL)
    try:
        next(found)
    except DokimosError as error:
        print(error)
    print(sorted(each(slow, [0.0, 0.0], jobs=2)))
"""


def test_a_killed_server_is_one_sentence_and_the_next_call_has_another(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert re.search(r"was killed.*fewer `jobs`", said)
    assert said.endswith("[(0, 0), (1, 0)]\n")


ALONE = """
import sys, time
from dokimos.core.parallel import each

if __name__ == "__main__":
    for _ in each(time.sleep, [0.1, 600, 600], jobs=2):
        print("begun", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_a_process_that_is_ended(tmp_path: Path, number: int) -> None:
    script = tmp_path / "alone.py"
    script.write_text(ALONE)
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        below = psutil.Process(process.pid).children(recursive=True)
        assert len(below) >= 3
        process.send_signal(number)
        process.wait(60)
    deadline = time.monotonic() + 60
    while any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in below):
        assert time.monotonic() < deadline
        time.sleep(0.02)


INTERRUPTING = """
import os, signal
if os.getpid() != int(os.environ["MAIN"]):  # while a new process loads what it will call
    os.killpg(os.getpgrp(), signal.SIGINT)

def same(item):
    return item
"""
INTERRUPTED = """
import os
os.environ["MAIN"] = str(os.getpid())
from dokimos.core.parallel import each
from interrupting import same
try:
    for _ in each(same, list(range(8)), jobs=2):
        pass
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_while_processes_start_prints_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "interrupting.py").write_text(INTERRUPTING)
    (tmp_path / "program.py").write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n")


def test_numpy_uses_one_thread_even_if_a_program_has_loaded_it_for_all_cores() -> None:
    """And as many as before, when the work is done."""
    program = (
        "import numpy, sys, threadpoolctl\n"
        "from dokimos.core.parallel import each\n"
        "threads = lambda _: [pool['num_threads'] for pool in threadpoolctl.threadpool_info()]\n"
        "print(threads(0), *dict(each(threads, [0], jobs=1)).values(), threads(0))\n"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "3", "OMP_NUM_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    before, meanwhile, after = done.stdout.split()
    assert meanwhile == "[1]"
    assert after == before


def test_commands_and_their_processes_use_one_thread_whatever_is_set() -> None:
    program = (
        "import os, sys\n"
        "from dokimos.cli import main\n"
        "sys.argv = ['dokimos', '--version']\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print(os.environ['OPENBLAS_NUM_THREADS'])\n"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == "1"
