"""Runs one process tree under limits: starts it, watches it, and ends it as a whole.

A small supervisor process (`shepherd.py`) between us and the command makes the tree inescapable on Linux.
The usage of the tree is counted by a control group or sampled (`usage.py`). On systems without subreapers
(macOS), every process seen while sampling is remembered, and the session and a mark in the environment find
the others (`strays.py`). If we are killed, the shepherd ends the tree at once; if we are stopped, it does
so soon after the wall-clock limit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dokimos.core.errors import InputError
from dokimos.verifiers.execution.limits import Limits, Outcome, Room, Termination
from dokimos.verifiers.execution.usage import (
    MARK,
    SAMPLE_SECONDS,
    BoundedLog,
    ControlGroup,
    Usage,
    is_out_of_cpu_time,
    new_group,
    sweep,
    usage,
)

_SHEPHERD = Path(__file__).with_name("shepherd.py")
_BARE_PYTHON = (sys.executable, "-I", "-S")
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


class Sink(Protocol):
    """Takes what a tree prints: a `BoundedLog`, or anything with the same method."""

    def write(self, chunk: bytes) -> None:
        """Add a piece of output. Raises OSError if it cannot be kept."""


class Cancel(Protocol):
    """Says whether the caller has given up: a `threading.Event`, or anything with the same method."""

    def is_set(self) -> bool:
        """Whether to end the run; called at least 20 times a second, so it must be quick."""


def run_limited(
    command: Sequence[str],
    *,
    limits: Limits,
    log: Path,
    cwd: Path,
    environment: Mapping[str, str],
    cancel: Cancel | None = None,
    room: Room | None = None,
) -> Outcome:
    """Run `command` to its end or to its first limit; when this returns or raises, its tree is gone.

    The run ends with the direct child: any processes that it leaves behind are killed. Standard output and
    error go to `log`, bounded by `limits.log_bytes`; the child's standard input is empty. Numerical
    libraries are asked to use `limits.threads` threads. SIGKILL is used at once: no run gets time beyond
    its limit.

    Once `cancel` is set, the tree is ended and Cancelled is raised. The tree is shut into `room`, if one is
    given; where the system refuses that, the command is not started, and the outcome says why.

    Raises InputError if the log cannot be written (disk full, folder missing).
    """
    with (
        log_errors(log),
        BoundedLog(log, limit_bytes=limits.log_bytes) as sink,
        group_for(limits) as group,
    ):
        tree = WatchedTree(limits, sink, cancel or threading.Event(), group, usage(limits, group))
        started = tree.running(
            command, cwd=cwd, environment=environment, cpu_seconds=limits.cpu_seconds, room=room
        )
        with started:
            limit = tree.until_end_or_limit()
        return tree.outcome(limit)


@contextlib.contextmanager
def log_errors(log: Path) -> Iterator[None]:
    """Turn an OSError into an InputError that says why the log cannot be written."""
    try:
        yield
    except OSError as error:
        remedy = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check that folder"
        raise InputError(
            f"The log {log} cannot be written: {error.strerror}; {remedy} and resume."
        ) from error


@contextlib.contextmanager
def group_for(limits: Limits) -> Iterator[ControlGroup | None]:
    """A control group for the duration of a run, or None."""
    group = new_group(limits)
    try:
        yield group
    finally:
        if group is not None:
            group.remove()


@dataclass
class WatchedTree:
    """The parent's side of one process tree: of one run, or of a warm worker with many queries.

    `begun_at` is when its time starts to count, by the monotonic clock (default: when it is started).
    """

    limits: Limits
    sink: Sink
    cancel: Cancel
    group: ControlGroup | None
    usage: Usage
    begun_at: float | None = None
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    reports: dict[str, float] = field(default_factory=dict)
    failure: str | None = None
    pending: bytes = b""
    log_error: OSError | None = None
    _shepherd: subprocess.Popen[bytes] | None = None
    _report: int = -1
    _output: int = -1

    @contextlib.contextmanager
    def running(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        cpu_seconds: float | None,
        wall_seconds: float | None = None,
        room: Room | None = None,
    ) -> Iterator[None]:
        """The tree runs inside this context; afterwards it is gone, whatever happened.

        The shepherd ends it on its own soon after `wall_seconds` (default: the limit), and the kernel ends
        a process in it that takes more than `cpu_seconds`. Raises OSError if the log could not be written.
        """
        words = [] if self.group is None else [f"join:{path}" for path in self.group.entrances]
        limits = (str(wall_seconds or self.limits.wall_seconds), str(cpu_seconds or 0.0))
        threads = dict.fromkeys(_THREAD_VARIABLES, str(self.limits.threads))
        self._report, report_write = os.pipe()
        self._output, output_write = os.pipe()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, self._report)
            stack.callback(os.close, self._output)
            if room is not None:
                scratch = tempfile.mkdtemp(prefix="tmp-", dir=cwd.parent)
                stack.callback(shutil.rmtree, scratch, ignore_errors=True)
                Path(scratch).chmod(0o1777)
                words += room.words(command, environment, cwd=cwd, scratch=Path(scratch))
            try:
                self._shepherd = subprocess.Popen(
                    [*_BARE_PYTHON, str(_SHEPHERD), str(report_write), *limits, *words, "--", *command],
                    stdin=subprocess.PIPE,
                    stdout=output_write,
                    stderr=output_write,
                    pass_fds=(report_write,),
                    cwd=cwd,
                    env={**environment, **threads, MARK: self.mark},
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(f"No process can be started in {cwd}: {error.strerror}.") from error
            finally:
                os.close(report_write)
                os.close(output_write)
            try:
                yield
            finally:
                self._end(self._shepherd)
        if self.log_error is not None:
            raise self.log_error

    @property
    def root(self) -> int:
        """The id of the process whose descendants are the tree."""
        assert self._shepherd is not None
        return int(self.reports.get("root", self._shepherd.pid))

    def until_end_or_limit(self, *, reply: int | None = None) -> Termination | None:
        """Watch until the shepherd reports the end (returns None) or a limit is reached (returns which).

        If a descriptor `reply` is given, also returns None as soon as it can be read. The shepherd's report
        is read first: if we were held up (by a busy machine, or Ctrl-Z), a command that ended in time is
        not a timeout.
        """
        begun = time.monotonic()
        next_sample = begun
        with selectors.DefaultSelector() as selector:
            for descriptor in (self._report, self._output, *([] if reply is None else [reply])):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                if self.cancel.is_set():
                    raise Cancelled
                now = time.monotonic()
                since = self.begun_at or self.reports.get("started", begun + 1.0)
                deadline = since + self.limits.wall_seconds
                if now >= next_sample:
                    if limit := self.usage.reached(self.root):
                        return limit
                    next_sample = time.monotonic() + SAMPLE_SECONDS
                wait = max(0.0, min(deadline, next_sample) - time.monotonic())
                ready = {key.fd for key, _ in selector.select(wait)}
                if self._report in ready and (not self._read_report(self._report) or self.has_ended):
                    return None
                if self._output in ready and not self._read_output(self._output):
                    selector.unregister(self._output)
                if reply in ready or self.log_error is not None:
                    return None
                if now >= deadline:
                    return Termination.WALL_LIMIT

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended, though processes that it left behind may not have."""
        return "ended" in self.reports or self.failure is not None

    @property
    def is_over(self) -> bool:
        """Whether the shepherd has sent its last report."""
        return "over" in self.reports or self.failure is not None

    def _read_report(self, report: int) -> bool:
        """Read the shepherd's report; False once it has closed its end."""
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
        """Read a piece of output; False at its end. A full disk must not keep the tree alive."""
        chunk = os.read(output, _CHUNK_BYTES)
        if self.log_error is None:
            try:
                self.sink.write(chunk)
            except OSError as error:
                self.log_error = error
        return bool(chunk)

    def _end(self, shepherd: subprocess.Popen[bytes]) -> None:
        """End the tree, make sure that it has ended, and read the rest of its output."""
        report = self._report
        assert shepherd.stdin is not None
        shepherd.stdin.close()
        shepherd.send_signal(signal.SIGCONT)  # in case the command has stopped it
        deadline = time.monotonic() + _ENDING_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(report, selectors.EVENT_READ)
            while not self.is_over and time.monotonic() < deadline:
                if selector.select(SAMPLE_SECONDS) and not self._read_report(report):
                    break
                self.drain()
        if not self.is_over:
            shepherd.kill()
        shepherd.wait()
        if not self.reports.get("whole"):
            sweep(self.usage.members, mark=self.mark, session=self.reports.get("session"))
        self.drain()

    def drain(self) -> None:
        """Read all output that has been written so far."""
        os.set_blocking(self._output, False)
        with contextlib.suppress(BlockingIOError):
            while self._read_output(self._output):
                pass

    def outcome(self, limit: Termination | None) -> Outcome:
        """The outcome of a tree that is gone, and had reached `limit`."""
        reports = self.reports
        if self.failure is not None:
            return Outcome(Termination.NOT_STARTED, None, 0.0, 0.0, 0, self.failure)
        started = self.begun_at or reports.get("started")
        ended = reports.get("ended", time.monotonic())
        wall_seconds = max(0.0, ended - started) if started is not None else 0.0
        status = int(reports["status"]) if "status" in reports else None
        exit_code: int | None = None
        detail = ""
        if limit is None and wall_seconds > self.limits.wall_seconds:
            limit = Termination.WALL_LIMIT
        used = self.usage.in_all(
            cpu_seconds=reports.get("cpu_seconds"), largest_bytes=int(reports.get("largest_bytes", 0))
        )
        if used.is_out_of_memory and (limit is None or used.comes_first):
            limit = Termination.MEMORY_LIMIT
        if limit is None and is_out_of_cpu_time(self.limits, used.cpu_seconds):
            limit = Termination.CPU_LIMIT
        if limit is not None:
            termination = limit
        elif status is None:
            termination, detail = Termination.SIGNALLED, "its supervisor was killed"
        elif (
            self.limits.cpu_seconds is not None
            and os.WIFSIGNALED(status)
            and os.WTERMSIG(status) == signal.SIGXCPU
        ):
            termination = Termination.CPU_LIMIT
        elif os.WIFSIGNALED(status):
            termination, detail = Termination.SIGNALLED, signal_name(os.WTERMSIG(status))
        else:
            termination, exit_code = Termination.EXITED, os.waitstatus_to_exitcode(status)
        return Outcome(
            termination,
            exit_code,
            wall_seconds,
            used.cpu_seconds,
            used.peak_bytes,
            detail,
            self.means(is_whole=bool(reports.get("whole"))),
        )

    def means(self, *, is_whole: bool) -> str:
        """How limits were enforced, for the record; `is_whole`: the system kept the tree together."""
        tree = "subreaper" if is_whole else "process group and sweep"
        return f"process tree held by {tree}; wall clock watched; {self.usage.means()}"


def signal_name(number: int) -> str:
    """The name of a signal, or its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
