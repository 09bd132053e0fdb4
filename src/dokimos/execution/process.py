"""One process tree under limits: started, watched, ended as a whole.

A small supervisor process (`shepherd.py`) stands between us and the verifier and makes the tree
inescapable on Linux. Memory is limited, and CPU time counted, by a control group of the run's own where the
system allows that (`cgroups.py`), and otherwise sampled here with psutil over its descendants. Where the
system has no subreapers (macOS), every process seen while sampling is remembered, and the session and a
mark in the environment find those that were never seen. If we are killed ourselves, the shepherd ends the
tree at once; if we are stopped, it does so soon after the wall limit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil

from dokimos.core.errors import InputError
from dokimos.execution.cgroups import ControlGroup, new_group
from dokimos.execution.limits import Limits
from dokimos.execution.outcomes import Outcome, Termination
from dokimos.execution.output import BoundedLog

_SHEPHERD = Path(__file__).with_name("shepherd.py")
_BARE_PYTHON = (sys.executable, "-I", "-S")
_MARK = "DOKIMOS_RUN"
_SAMPLE_SECONDS = 0.05
_ENDING_SECONDS = 30.0
_CHUNK_BYTES = 1 << 18
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)


class Cancelled(Exception):
    """The run was ended because the caller gave up on it; there is no outcome."""


class Cancel(Protocol):
    """Says whether the caller has given up: a `threading.Event`, or anything that knows."""

    def is_set(self) -> bool:
        """Whether the run is to be ended; asked at least 20 times a second, so it must be quick."""


def run_limited(
    command: Sequence[str],
    *,
    limits: Limits,
    log: Path,
    cwd: Path,
    environment: Mapping[str, str],
    cancel: Cancel | None = None,
) -> Outcome:
    """Run `command` to its end or to its first limit; when this returns or raises, its tree is gone.

    The run ends with the direct child: whatever that leaves behind is killed. Standard output and error go
    to `log`, bounded by `limits.log_bytes`; the child's standard input is empty. Numerical libraries are
    told to use `limits.threads` threads. SIGKILL is used at once: a verifier gets no time beyond its limit.

    Once `cancel` is set the tree is ended and Cancelled is raised.

    Raises InputError where the log cannot be written (disk full, folder missing).
    """
    mark = uuid.uuid4().hex
    threads = dict.fromkeys(_THREAD_VARIABLES, str(limits.threads))
    try:
        with BoundedLog(log, limit_bytes=limits.log_bytes) as sink, _group(limits) as group:
            watch = _Watch(limits, sink, mark, cancel or threading.Event(), group)
            outcome = watch.run(command, cwd=cwd, environment={**environment, **threads, _MARK: mark})
            if watch.log_error is not None:
                raise watch.log_error
            return outcome
    except OSError as error:
        remedy = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check that folder"
        raise InputError(
            f"The log {log} cannot be written: {error.strerror}; {remedy} and resume."
        ) from error


@contextlib.contextmanager
def _group(limits: Limits) -> Iterator[ControlGroup | None]:
    """A control group for as long as a run takes, or None."""
    group = new_group(limits)
    try:
        yield group
    finally:
        if group is not None:
            group.remove()


@dataclass
class _Watch:
    """The parent's side of one run."""

    limits: Limits
    sink: BoundedLog
    mark: str
    cancel: Cancel
    group: ControlGroup | None
    peak_bytes: int = 0
    cpu_seconds: float = 0.0
    seen: dict[int, psutil.Process] = field(default_factory=dict)
    reports: dict[str, float] = field(default_factory=dict)
    failure: str | None = None
    pending: bytes = b""
    log_error: OSError | None = None

    def run(self, command: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> Outcome:
        entrances = [] if self.group is None else [str(path) for path in self.group.entrances]
        limits = (str(self.limits.wall_seconds), str(self.limits.cpu_seconds or 0.0))
        report_read, report_write = os.pipe()
        output_read, output_write = os.pipe()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, report_read)
            stack.callback(os.close, output_read)
            try:
                shepherd = subprocess.Popen(
                    [*_BARE_PYTHON, str(_SHEPHERD), str(report_write), *limits, *entrances, "--", *command],
                    stdin=subprocess.PIPE,
                    stdout=output_write,
                    stderr=output_write,
                    pass_fds=(report_write,),
                    cwd=cwd,
                    env=dict(environment),
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(f"No process can be started in {cwd}: {error.strerror}.") from error
            finally:
                os.close(report_write)
                os.close(output_write)
            try:
                limit = self._until_end_or_limit(shepherd, report_read, output_read)
            finally:
                self._end(shepherd, report_read, output_read)
        return self._outcome(limit)

    def _until_end_or_limit(
        self, shepherd: subprocess.Popen[bytes], report: int, output: int
    ) -> Termination | None:
        """Watch until the shepherd has reported the end (None) or a limit is reached (which one).

        What the shepherd has written by then comes first: where we were held up (by a full machine, or
        Ctrl-Z), a command that ended in time is no timeout.
        """
        begun = time.monotonic()
        next_sample = begun
        with selectors.DefaultSelector() as selector:
            selector.register(report, selectors.EVENT_READ)
            selector.register(output, selectors.EVENT_READ)
            while True:
                if self.cancel.is_set():
                    raise Cancelled
                now = time.monotonic()
                deadline = self.reports.get("started", begun + 1.0) + self.limits.wall_seconds
                if now >= next_sample:
                    if limit := self._sampled_limit(shepherd.pid):
                        return limit
                    next_sample = time.monotonic() + _SAMPLE_SECONDS
                wait = max(0.0, min(deadline, next_sample) - time.monotonic())
                for key, _ in selector.select(wait):
                    if key.fd == report and (not self._read_report(report) or self.has_ended):
                        return None
                    if key.fd == output and not self._read_output(output):
                        selector.unregister(output)
                if self.log_error is not None:
                    return None
                if now >= deadline:
                    return Termination.WALL_LIMIT

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended, though what it left behind may not have been."""
        return "ended" in self.reports or self.failure is not None

    @property
    def is_over(self) -> bool:
        """Whether the shepherd has said its last word."""
        return "over" in self.reports or self.failure is not None

    def _read_report(self, report: int) -> bool:
        """Take in what the shepherd wrote; False once it has closed its end."""
        chunk = os.read(report, 4096)
        *lines, self.pending = (self.pending + chunk).split(b"\n")
        for line in lines:
            name, _, value = line.decode(errors="replace").partition(" ")
            if name == "failed":
                self.failure = value
            else:
                self.reports[name] = float(value)
        return bool(chunk)

    def _read_output(self, output: int) -> bool:
        """Take a piece of output; False at its end. A full disk must not keep the tree alive."""
        chunk = os.read(output, _CHUNK_BYTES)
        if self.log_error is None:
            try:
                self.sink.write(chunk)
            except OSError as error:
                self.log_error = error
        return bool(chunk)

    def _sampled_limit(self, shepherd: int) -> Termination | None:
        """Take a sample; the limit that has been reached by it."""
        if self.group is not None:
            self.cpu_seconds = self.group.cpu_seconds()
            is_out_of_memory = self.group.is_out_of_memory()
        else:
            is_out_of_memory = self._sample(shepherd) > self.limits.memory_bytes
        if is_out_of_memory:
            return Termination.MEMORY_LIMIT
        return Termination.CPU_LIMIT if self._is_out_of_cpu_time(self.cpu_seconds) else None

    def _sample(self, shepherd: int) -> int:
        """The resident memory of the whole tree now; also notes its peak, CPU time and members.

        The CPU time of a process that has ended is found with whoever waited for it, the shepherd included.
        """
        resident, cpu = 0, 0.0
        try:
            root = psutil.Process(shepherd)
            members = root.children(recursive=True)
            ended = root.cpu_times()
            cpu += ended.children_user + ended.children_system
        except psutil.Error:
            return 0
        for member in members:
            with contextlib.suppress(psutil.Error), member.oneshot():
                resident += member.memory_info().rss
                times = member.cpu_times()
                cpu += times.user + times.system + times.children_user + times.children_system
            self.seen[member.pid] = member
        self.peak_bytes = max(self.peak_bytes, resident)
        self.cpu_seconds = max(self.cpu_seconds, cpu)
        return resident

    def _end(self, shepherd: subprocess.Popen[bytes], report: int, output: int) -> None:
        """Have the tree ended, make sure that it is, and take what output is left."""
        assert shepherd.stdin is not None
        shepherd.stdin.close()
        shepherd.send_signal(signal.SIGCONT)  # should the verifier have stopped it
        deadline = time.monotonic() + _ENDING_SECONDS
        os.set_blocking(output, False)
        with selectors.DefaultSelector() as selector:
            selector.register(report, selectors.EVENT_READ)
            while not self.is_over and time.monotonic() < deadline:
                if selector.select(_SAMPLE_SECONDS) and not self._read_report(report):
                    break
                self._drain(output)
        if not self.is_over:
            shepherd.kill()
        shepherd.wait()
        if not self.reports.get("whole"):
            self._sweep()
        self._drain(output)

    def _drain(self, output: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._read_output(output):
                pass

    def _sweep(self) -> None:
        """Kill every member seen while sampling, and all that have our mark or session, until none is."""
        deadline = time.monotonic() + _ENDING_SECONDS
        while (strays := self._strays()) and time.monotonic() < deadline:
            for process in strays:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(0.002)

    def _strays(self) -> list[psutil.Process]:
        strays = [process for process in self.seen.values() if _is_alive(process)]
        strays += [process for process in psutil.process_iter() if self._is_ours(process)]
        return strays

    def _is_ours(self, process: psutil.Process) -> bool:
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(process.pid) == self.reports.get("session") and _is_alive(process):
                return True
            return process.environ().get(_MARK) == self.mark and _is_alive(process)
        return False

    def _outcome(self, limit: Termination | None) -> Outcome:
        reports = self.reports
        if self.failure is not None:
            return Outcome(Termination.NOT_STARTED, None, 0.0, 0.0, 0, self.failure)
        started = reports.get("started")
        ended = reports.get("ended", time.monotonic())
        wall_seconds = max(0.0, ended - started) if started is not None else 0.0
        status = int(reports["status"]) if "status" in reports else None
        exit_code: int | None = None
        detail = ""
        if limit is None and wall_seconds > self.limits.wall_seconds:
            limit = Termination.WALL_LIMIT
        cpu_seconds = reports.get("cpu_seconds", self.cpu_seconds)
        if self.group is not None:
            cpu_seconds, self.peak_bytes = self.group.cpu_seconds(), self.group.peak_bytes()
            if self.group.is_out_of_memory():
                limit = Termination.MEMORY_LIMIT
        elif limit is None and reports.get("largest_bytes", 0) > self.limits.memory_bytes:
            limit = Termination.MEMORY_LIMIT  # between two samples
        if limit is None and self._is_out_of_cpu_time(cpu_seconds):
            limit = Termination.CPU_LIMIT
        if limit is not None:
            termination = limit
        elif status is None:
            termination, detail = Termination.SIGNALLED, "its supervisor was killed"
        elif os.WIFSIGNALED(status):
            termination, detail = Termination.SIGNALLED, signal_name(os.WTERMSIG(status))
        else:
            termination, exit_code = Termination.EXITED, os.waitstatus_to_exitcode(status)
        return Outcome(
            termination,
            exit_code,
            wall_seconds,
            cpu_seconds,
            max(self.peak_bytes, int(reports.get("largest_bytes", 0))),
            detail,
            self._means(),
        )

    def _is_out_of_cpu_time(self, cpu_seconds: float) -> bool:
        return self.limits.cpu_seconds is not None and cpu_seconds > self.limits.cpu_seconds

    def _means(self) -> str:
        """By which means the limits were kept, for the record."""
        tree = "subreaper" if self.reports.get("whole") else "process group and sweep"
        if self.group is not None:
            return f"process tree held by {tree}; wall clock watched; {self.group.means()}"
        sampled = f"sampled every {_SAMPLE_SECONDS:g} s"
        cpu = "" if self.limits.cpu_seconds is None else f"; CPU time {sampled} and by rlimit"
        return f"process tree held by {tree}; wall clock watched; resident memory {sampled}{cpu}"


def end_strays(folder: Path) -> None:
    """Kill what is left of runs in `folder`: those whose supervisor was killed together with us."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            if _MARK in environment and Path(environment.get("TMPDIR", "")).is_relative_to(folder):
                process.kill()


def _is_alive(process: psutil.Process) -> bool:
    """Whether it is this very process (not another with its number) that still runs."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def signal_name(number: int) -> str:
    """The name of a signal, or its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
