from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest

import dokimos
from dokimos.core.errors import InputError
from dokimos.verifiers.execution import process, usage
from dokimos.verifiers.execution.limits import Limits, Outcome, Termination
from dokimos.verifiers.execution.process import Cancelled, run_limited, signal_name
from dokimos.verifiers.execution.usage import end_strays

GENEROUS = Limits(wall_seconds=60, memory_bytes=1 << 30)
SAMPLED, GROUPED = "sampled", "by a control group"


@pytest.fixture(autouse=True, params=[SAMPLED, GROUPED])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By which means limits are kept: everything here holds for both."""
    if request.param == SAMPLED:
        monkeypatch.setattr(process, "new_group", lambda _: None)
    elif not has_groups():
        pytest.skip("no control groups here: they need BenchExec, and the right to make them")
    return str(request.param)


def has_groups() -> bool:
    group = usage.new_group(GENEROUS)
    if group is not None:
        group.remove()
    return group is not None


def run(command: list[str], folder: Path, limits: Limits = GENEROUS, **rest: object) -> Outcome:
    cancel = rest.get("cancel")
    assert cancel is None or isinstance(cancel, threading.Event)
    return run_limited(
        command,
        limits=limits,
        log=folder / "log",
        cwd=folder,
        environment=dict(os.environ),
        cancel=cancel,
    )


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


#: Starts a double-forked grandchild in a session of its own, with SIGTERM ignored and no environment.
DETACH = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    os.execve(sys.executable, [sys.executable, "-c", '''
import os, time
open("grandchild.part", "w").write(str(os.getpid()))
os.rename("grandchild.part", "grandchild")
time.sleep(3600)'''], {})
while not os.path.exists("grandchild"):
    time.sleep(0.01)
"""


def grandchild(folder: Path) -> int:
    return int((folder / "grandchild").read_text())


def test_exit_code_and_output(tmp_path: Path) -> None:
    outcome = run(["sh", "-c", "echo out; echo err >&2; exit 7"], tmp_path)
    assert (outcome.termination, outcome.exit_code) == (Termination.EXITED, 7)
    assert (tmp_path / "log").read_bytes() == b"out\nerr\n"
    assert 0 < outcome.wall_seconds < 60
    assert outcome.peak_memory_bytes > 0


def test_signal(tmp_path: Path) -> None:
    outcome = run(["sh", "-c", "kill -SEGV $$"], tmp_path)
    assert (outcome.termination, outcome.exit_code) == (Termination.SIGNALLED, None)
    assert outcome.detail == "SIGSEGV"
    assert signal_name(200) == "signal 200"


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    outcome = run(["/does/not/exist"], tmp_path)
    assert outcome.termination is Termination.NOT_STARTED
    assert "No such file" in outcome.detail


def test_the_wall_limit_ends_what_ignores_sigterm(tmp_path: Path) -> None:
    outcome = run(
        python("import signal\nsignal.signal(15, signal.SIG_IGN)\nwhile True: pass"),
        tmp_path,
        Limits(wall_seconds=0.5),
    )
    assert outcome.termination is Termination.WALL_LIMIT
    assert outcome.exit_code is None
    assert outcome.wall_seconds >= 0.5
    assert outcome.cpu_seconds > 0.01  # on a busy machine it does not get more


def test_a_detached_grandchild_does_not_survive_the_limit(tmp_path: Path) -> None:
    outcome = run(python(DETACH + "time.sleep(3600)"), tmp_path, Limits(wall_seconds=3))
    assert outcome.termination is Termination.WALL_LIMIT
    assert not is_alive(grandchild(tmp_path))


def test_a_detached_grandchild_does_not_survive_a_normal_end(tmp_path: Path) -> None:
    outcome = run(python(DETACH), tmp_path)
    assert (outcome.termination, outcome.exit_code) == (Termination.EXITED, 0)
    assert not is_alive(grandchild(tmp_path))


def test_cpu_time_includes_children_that_were_never_waited_for(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass\nopen('done', 'w')\ntime.sleep(60)"
    code = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {busy!r}])\n"
        "while not os.path.exists('done'): time.sleep(0.05)\n"
        "time.sleep(0.5)"  # in which a sample is taken
    )
    outcome = run(python(code), tmp_path, Limits(wall_seconds=60))
    assert outcome.termination is Termination.EXITED
    assert outcome.cpu_seconds >= 0.5


BURN = "import time\nwhile time.process_time() < {0}: pass\n"


def test_the_cpu_limit_is_the_trees(tmp_path: Path, means: str) -> None:
    # Three children in turn, none of which takes as much as the limit; the parent only waits.
    child = f"subprocess.run([sys.executable, '-c', {BURN.format(0.4)!r}])"
    code = f"import subprocess, sys\nfor _ in range(3): {child}"
    outcome = run(python(code), tmp_path, Limits(wall_seconds=60, cpu_seconds=0.6))
    assert outcome.termination is Termination.CPU_LIMIT
    assert outcome.cpu_seconds > 0.6
    assert ("CPU time sampled" in outcome.enforced_by) == (means == SAMPLED)
    assert ("counted by a control group" in outcome.enforced_by) == (means == GROUPED)


def test_a_process_that_ended_beyond_its_cpu_limit_does_not_count(tmp_path: Path) -> None:
    outcome = run(python(BURN.format(0.3)), tmp_path, Limits(wall_seconds=60, cpu_seconds=0.2))
    assert outcome.termination is Termination.CPU_LIMIT
    enough = run(python("pass"), tmp_path, Limits(wall_seconds=60, cpu_seconds=20))
    assert enough.termination is Termination.EXITED


def test_the_kernels_own_cpu_limit_is_the_cpu_limit(tmp_path: Path) -> None:
    # On a busy machine the kernel counts more than we see, and ends a process before we do.
    command = python("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)")
    limited = run(command, tmp_path, Limits(wall_seconds=60, cpu_seconds=20))
    assert limited.termination is Termination.CPU_LIMIT
    assert run(command, tmp_path, Limits(wall_seconds=60)).termination is Termination.SIGNALLED


def test_cpu_time_is_known_of_a_killed_process_with_threads(tmp_path: Path) -> None:
    # The last thread to die gives the memory back; the first one is a zombie until then.
    code = (
        "import hashlib, threading, time\n"
        "held = b'x' * 400_000_000\n"
        "def work(): hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2**30)\n"
        "for _ in range(8): threading.Thread(target=work).start()\n"
        "time.sleep(3600)"
    )
    for _ in range(2):
        assert run(python(code), tmp_path, Limits(wall_seconds=1.5)).cpu_seconds > 0.1


def test_memory_is_summed_over_the_tree(tmp_path: Path) -> None:
    hold = "import time; x = b'x' * 60_000_000; time.sleep(3600)"
    start = f"subprocess.Popen([sys.executable, '-c', {hold!r}])"
    code = f"import subprocess, sys, time\nfor _ in range(3): {start}"
    outcome = run(
        python(code + "\ntime.sleep(3600)"), tmp_path, Limits(wall_seconds=60, memory_bytes=150 << 20)
    )
    assert outcome.termination is Termination.MEMORY_LIMIT
    # The kernel grants no more than the limit; samples see what was taken beyond it.
    assert outcome.peak_memory_bytes > 149 << 20


def test_memory_that_is_taken_at_once_is_noticed(tmp_path: Path, means: str) -> None:
    """A control group sees what comes and goes between two samples."""
    code = "x = b'x' * 300_000_000"
    outcome = run(python(code), tmp_path, Limits(wall_seconds=60, memory_bytes=150 << 20))
    if means == GROUPED:
        assert outcome.termination is Termination.MEMORY_LIMIT
        assert outcome.exit_code is None
        assert outcome.peak_memory_bytes < 200 << 20
    else:  # seen at the end, where no sample saw it
        assert outcome.termination is Termination.MEMORY_LIMIT
        assert outcome.peak_memory_bytes > 150 << 20


def test_a_child_killed_for_memory_ends_the_run(tmp_path: Path) -> None:
    child = "x = b'x' * 300_000_000\nimport time\ntime.sleep(3600)"
    code = (
        f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {child!r}])\ntime.sleep(3600)"
    )
    outcome = run(python(code), tmp_path, Limits(wall_seconds=60, memory_bytes=150 << 20))
    assert outcome.termination is Termination.MEMORY_LIMIT


def test_flooding_is_cut_and_does_not_stop_the_verifier(tmp_path: Path) -> None:
    code = "import sys\nfor i in range(300000): print('line', i)\nprint('the end')\nsys.exit(5)"
    outcome = run(python(code), tmp_path, Limits(wall_seconds=60, log_bytes=10_000))
    assert (outcome.termination, outcome.exit_code) == (Termination.EXITED, 5)
    log = (tmp_path / "log").read_bytes()
    assert len(log) < 10_200
    assert log.startswith(b"line 0\n")
    assert log.endswith(b"the end\n")
    assert b"bytes of output left out here]" in log


def test_threads_are_pinned_and_stdin_is_empty(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['OMP_NUM_THREADS'], repr(sys.stdin.read()))"
    run(python(code), tmp_path, Limits(wall_seconds=60, threads=3))
    assert (tmp_path / "log").read_text() == "3 ''\n"


def test_a_cancelled_run_leaves_nothing(tmp_path: Path) -> None:
    cancel = threading.Event()

    def when_it_runs() -> None:
        while not (tmp_path / "grandchild").exists():
            time.sleep(0.01)
        cancel.set()

    watcher = threading.Thread(target=when_it_runs)
    watcher.start()
    with pytest.raises(Cancelled):
        run(python(DETACH + "time.sleep(3600)"), tmp_path, cancel=cancel)
    watcher.join()
    assert not is_alive(grandchild(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_tree_ends_when_we_are_ended(tmp_path: Path, number: int) -> None:
    parent = in_a_process(python(DETACH + "time.sleep(3600)"), tmp_path, 60)
    pid = grandchild(tmp_path)
    assert is_alive(pid)
    parent.send_signal(number)
    parent.communicate(timeout=30)
    assert parent.returncode != 0
    deadline = time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(pid)


def test_a_killed_supervisor_is_noticed_and_its_tree_swept(tmp_path: Path) -> None:
    code = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(3600)"
    outcome = run(python("import os; open('pid', 'w').write(str(os.getpid()))\n" + code), tmp_path)
    assert outcome.termination is Termination.SIGNALLED
    assert outcome.exit_code is None
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_child_without_our_mark_does_not_outlive_its_supervisor(tmp_path: Path) -> None:
    code = (
        "import os, signal, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'], env={})\n"
        "open('grandchild', 'w').write(str(child.pid))\n"
        "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(3600)"
    )
    assert run(python(code), tmp_path).termination is Termination.SIGNALLED
    assert not is_alive(grandchild(tmp_path))


def test_what_outlives_us_and_our_supervisor_is_ended_by_the_next(tmp_path: Path) -> None:
    """The command itself dies with its supervisor; its children are found by their folder."""
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'])\n"
        "open('part', 'w').write(f'{os.getppid()} {os.getpid()} {child.pid}')\n"
        "os.rename('part', 'grandchild')\ntime.sleep(3600)"
    )
    parent = in_a_process(python(code), tmp_path, 60)
    supervisor, command, child = map(int, (tmp_path / "grandchild").read_text().split())
    parent.send_signal(signal.SIGSTOP)
    for pid in (supervisor, parent.pid):
        os.kill(pid, signal.SIGKILL)
    parent.communicate(timeout=30)
    deadline = time.monotonic() + 30
    while is_alive(command) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(command)
    assert is_alive(child)
    end_strays(tmp_path / "elsewhere")
    assert is_alive(child)
    end_strays(tmp_path)
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(child)


def test_a_stopped_supervisor_is_woken(tmp_path: Path) -> None:
    code = "import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(3600)"
    outcome = run(python(code), tmp_path, Limits(wall_seconds=0.5))
    assert outcome.termination is Termination.WALL_LIMIT
    assert outcome.wall_seconds < 20


@pytest.mark.parametrize("own_session", [False, True])
def test_processes_that_fork_and_end_do_not_get_away(tmp_path: Path, own_session: bool) -> None:
    """Each is gone before anybody who has read its number can signal it."""
    mark = uuid.uuid4().hex
    code = f"import os  # {mark}\nwhile True:\n    if os.fork(): os._exit(0)\n"
    outcome = run(python(code + ("    os.setsid()" if own_session else "")), tmp_path)
    assert (outcome.termination, outcome.exit_code) == (Termination.EXITED, 0)
    left = [p for p in psutil.process_iter(["cmdline"]) if any(mark in w for w in p.info["cmdline"] or ())]
    assert not left


OURSELVES = (
    "import os, sys\nfrom pathlib import Path\n"
    "from dokimos.verifiers.execution.process import run_limited\n"
    "from dokimos.verifiers.execution.limits import Limits\n"
    "print(run_limited(sys.argv[2:], limits=Limits(wall_seconds=float(sys.argv[1])), log=Path('log'),"
    " cwd=Path('.'), environment=dict(os.environ)).termination.value)"
)


def in_a_process(command: list[str], folder: Path, wall_seconds: float) -> subprocess.Popen[str]:
    """`run_limited` in a process of its own, once its command has written the file `grandchild`."""
    parent = subprocess.Popen(
        [*python(OURSELVES), str(wall_seconds), *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(dokimos.__file__).parents[1]), "TMPDIR": str(folder)},
    )
    deadline = time.monotonic() + 30
    while not (folder / "grandchild").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return parent


def test_what_ended_in_time_while_we_were_stopped_is_no_timeout(tmp_path: Path) -> None:
    code = "import time\nopen('grandchild', 'w')\ntime.sleep(0.3)"
    parent = in_a_process(python(code), tmp_path, 1.5)
    parent.send_signal(signal.SIGSTOP)
    time.sleep(1.7)
    parent.send_signal(signal.SIGCONT)
    assert parent.communicate(timeout=30)[0].strip() == Termination.EXITED.value


def test_the_limit_is_kept_while_we_are_stopped(tmp_path: Path) -> None:
    parent = in_a_process(python(DETACH + "time.sleep(3600)"), tmp_path, 1)
    parent.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + 30
    while is_alive(grandchild(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(grandchild(tmp_path))
    parent.send_signal(signal.SIGCONT)
    assert parent.communicate(timeout=30)[0].strip() == Termination.WALL_LIMIT.value


def test_without_subreapers_the_mark_finds_what_got_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Path(process.__file__).with_name("shepherd.py").read_text()
    assert 'sys.platform.startswith("linux")' in ours
    shepherd = tmp_path / "shepherd.py"
    shepherd.write_text(ours.replace('sys.platform.startswith("linux")', "False"))
    monkeypatch.setattr(process, "_SHEPHERD", shepherd)
    keeps_environment = DETACH.replace("], {})", "], os.environ)")
    assert keeps_environment != DETACH
    outcome = run(python(keeps_environment), tmp_path)
    assert (outcome.termination, outcome.exit_code) == (Termination.EXITED, 0)
    assert not is_alive(grandchild(tmp_path))


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"):
        run_limited(["true"], limits=GENEROUS, log=tmp_path / "no" / "log", cwd=tmp_path, environment={})


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No process can be started"):
        run_limited(["true"], limits=GENEROUS, log=tmp_path / "log", cwd=tmp_path / "no", environment={})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_ends_the_tree_and_is_one_sentence(tmp_path: Path) -> None:
    command = python(DETACH + "print('x', flush=True)\ntime.sleep(3600)")
    with pytest.raises(InputError, match="No space left on device; free some space"):
        run_limited(
            command, limits=GENEROUS, log=Path("/dev/full"), cwd=tmp_path, environment=dict(os.environ)
        )
    assert not is_alive(grandchild(tmp_path))
    assert Path("/dev/full").is_char_device()


def test_limits_may_be_beyond_all_measure(tmp_path: Path) -> None:
    outcome = run(python("pass"), tmp_path, Limits(wall_seconds=1e300, cpu_seconds=1e300))
    assert (outcome.termination, outcome.exit_code) == (Termination.EXITED, 0)


@pytest.mark.parametrize("bad", [{"wall_seconds": 0}, {"wall_seconds": float("nan")}])
def test_impossible_time_limits_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match="not a positive number of seconds"):
        Limits(**bad)  # type: ignore[arg-type]


def test_impossible_memory_limits_are_refused() -> None:
    with pytest.raises(InputError, match="memory_bytes = 0"):
        Limits(wall_seconds=1, memory_bytes=0)
