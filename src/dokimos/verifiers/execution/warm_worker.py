"""A process that stays warm and answers one query after another, each under the limits of a run.

Starting a verifier may take longer than answering a small query. A warm worker is started once, in its own
tree under a shepherd like any run, and gets its queries as lines of JSON through one named pipe; it replies
through another. `verifiers/runners/warm_queries.py` is the other side.

Earlier queries must not influence an answer. So a worker is discarded, and its whole tree ended, after a
limit, a crash, an exit code other than 0 (unless a fork answered), an invalid reply, processes left behind,
or memory growth. If something odd happens to a worker that had earlier queries, a new worker gets the same
query, and its answer counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from dokimos.verifiers.execution.limits import Limits, Outcome, Room, Termination
from dokimos.verifiers.execution.process import Cancel, WatchedTree, group_for, log_errors
from dokimos.verifiers.execution.usage import BoundedLog, at_rest, usage

#: The fraction of its memory limit by which a worker may have grown since it was first idle.
GROWTH_SHARE = 0.25
#: How many seconds a worker may live: in effect, without a limit.
_LIFE_SECONDS = 1e9
_LONGEST_REPLY = 64
_NO_REPLY = "it ended without a reply"


@dataclass(frozen=True)
class WarmStart:
    """How to start a worker, and the limits for each of its queries."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    limits: Limits
    room: Room | None = None

    @classmethod
    def of(
        cls,
        command: tuple[str, ...],
        environment: Mapping[str, str],
        limits: Limits,
        room: Room | None = None,
    ) -> Self:
        """Make one from these arguments, with the variables in a form that can be compared."""
        return cls(command, tuple(sorted(environment.items())), limits, room)


class WarmWorker:
    """One worker. Only one thread may use it at a time; `end` must be called."""

    def __init__(self, start: WarmStart, *, work: Path) -> None:
        self.start = start
        self.asked = 0
        #: Whether it may get another query.
        self.is_fit = True
        #: Whether a fork of it answers each query: then none can be the cause of what the next one gets.
        self.forks = False
        self._tree: WatchedTree | None = None
        self._rest: tuple[int, int] | None = None
        self._running = contextlib.ExitStack()
        self._folder = Path(tempfile.mkdtemp(prefix="warm-", dir=work))
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            #: Where output that belongs to no query goes.
            self._nowhere = stack.enter_context(BoundedLog(Path(os.devnull), limit_bytes=2))
            self._queries, self._replies = (self._pipe(name, stack) for name in ("queries", "replies"))
            self._stack = stack.pop_all()

    def _pipe(self, name: str, stack: contextlib.ExitStack) -> int:
        """A named pipe, opened for reading and writing, so that no open or read of ours blocks."""
        os.mkfifo(self._folder / name, 0o600)
        descriptor = os.open(self._folder / name, os.O_RDWR | os.O_NONBLOCK)
        stack.callback(os.close, descriptor)
        return descriptor

    def ask(self, arguments: Sequence[str], *, folder: Path, log: Path, cancel: Cancel) -> Outcome:
        """Let the worker answer the query in `arguments`, in `folder`; otherwise like `run_limited`.

        The time of the first query includes the start. The exit code is what the worker reports that a
        separate process would have exited with.
        """
        self.asked += 1
        self.is_fit = False  # until it has shown that it is
        with log_errors(log), BoundedLog(log, limit_bytes=self.start.limits.log_bytes) as sink:
            tree = self._begun(sink, cancel)
            try:
                self._send(arguments, folder)
                limit = tree.until_end_or_limit(reply=self._replies)
                ended = time.monotonic()
                code = self._reply() if limit is None and not tree.has_ended else None
                if code is not None:
                    tree.drain()
                    outcome = self._answered(tree, code, ended)
                else:
                    self._running.close()  # this reads the rest of the output
                    outcome = _without_reply(tree.outcome(limit))
                    self.end()
            except BaseException:
                self.end()
                raise
            finally:
                tree.sink = self._nowhere
        return replace(outcome, enforced_by=f"{outcome.enforced_by}; a warm worker")

    def _begun(self, sink: BoundedLog, cancel: Cancel) -> WatchedTree:
        """The tree, started if necessary, whose output goes to `sink` from now on."""
        tree = self._tree
        if tree is None:
            return self._started(sink, cancel)
        tree.drain()
        tree.sink, tree.cancel, tree.begun_at = sink, cancel, time.monotonic()
        tree.usage.begin_again(tree.root)
        return tree

    def _started(self, sink: BoundedLog, cancel: Cancel) -> WatchedTree:
        """Start the process, whose first query is already in the pipe."""
        limits = self.start.limits
        group = self._stack.enter_context(group_for(limits))
        tree = WatchedTree(limits, sink, cancel, group, usage(limits, group))
        pipes = (str(self._folder / "queries"), str(self._folder / "replies"))
        self._running.enter_context(
            tree.running(
                (*self.start.command, "--queries", *pipes),
                cwd=self._folder,
                environment={**dict(self.start.environment), "TMPDIR": str(self._folder)},
                cpu_seconds=None,  # the kernel would count all queries together; we watch each one
                wall_seconds=_LIFE_SECONDS,
                room=self.start.room,
            )
        )
        self._tree = tree
        return tree

    def _send(self, arguments: Sequence[str], folder: Path) -> None:
        query = {"number": self.asked, "arguments": list(arguments), "folder": str(folder)}
        view = memoryview(json.dumps(query).encode() + b"\n")
        while view:
            view = view[os.write(self._queries, view) :]

    def _reply(self) -> int | None:
        """The exit code in the reply to this query; None if the reply is not valid."""
        reply = os.read(self._replies, _LONGEST_REPLY)
        words = reply.removesuffix(b"\n").split(b" ")
        if not reply.endswith(b"\n") or words[0] != str(self.asked).encode() or len(words) < 2:
            return None
        self.forks = words[2:] == [b"forked"]
        if len(words) > 2 and not self.forks:
            return None
        return int(words[1]) if words[1].isdigit() else None

    def _answered(self, tree: WatchedTree, code: int, ended: float) -> Outcome:
        limits = self.start.limits
        begun = tree.begun_at or tree.reports.get("started", ended)
        used = tree.usage.so_far(tree.root)
        rest = at_rest(tree.root)
        before = self._rest = self._rest or rest
        grown = rest[0] - before[0] > GROWTH_SHARE * limits.memory_bytes
        self.is_fit = (code == 0 or self.forks) and rest[1] == before[1] == 1 and not grown
        is_late = ended - begun > limits.wall_seconds
        if is_late or not self.is_fit:
            self.end()
        return Outcome(
            Termination.WALL_LIMIT if is_late else Termination.EXITED,
            None if is_late else code,
            ended - begun,
            used.cpu_seconds,
            used.peak_bytes,
            enforced_by=tree.means(is_whole=sys.platform.startswith("linux")),
        )

    def end(self) -> None:
        """End its tree; it takes no more queries. Raises OSError if the log cannot be written."""
        self.is_fit = False
        with self._stack:
            self._running.close()


class WarmWorkers:
    """The workers of a campaign. A worker answers one query at a time, always with the same `WarmStart`.

    At most `most` idle workers are kept; `end` ends them all.
    """

    def __init__(self, work: Path, *, most: int) -> None:
        self._work = work
        self._most = most
        self._idle: list[WarmWorker] = []
        self._lock = threading.Lock()

    def ask(
        self,
        start: WarmStart,
        arguments: Sequence[str],
        *,
        folder: Path,
        log: Path,
        cancel: Cancel,
        is_odd: Callable[[Outcome], bool],
    ) -> tuple[Outcome, int]:
        """The outcome of a query, and how many queries its worker has had, with this one.

        A worker whose outcome `is_odd` gets no more queries. If it had earlier queries, they may be the
        cause: `folder` is emptied, and a new worker gets the query.
        """
        worker = self._take(start)
        while True:
            outcome = worker.ask(arguments, folder=folder, log=log, cancel=cancel)
            odd = is_odd(outcome) and not (worker.forks and worker.is_fit)
            if not odd:
                self._give_back(worker)
            else:
                worker.end()
            if not odd or worker.asked == 1:
                return outcome, worker.asked
            _empty(folder)
            worker = WarmWorker(start, work=self._work)

    def _take(self, start: WarmStart) -> WarmWorker:
        with self._lock:
            for worker in self._idle:
                if worker.start == start:
                    self._idle.remove(worker)
                    return worker
        return WarmWorker(start, work=self._work)

    def _give_back(self, worker: WarmWorker) -> None:
        too_many: list[WarmWorker] = []
        with self._lock:
            if worker.is_fit:
                self._idle.append(worker)
                too_many, self._idle = self._idle[: -self._most], self._idle[-self._most :]
        for old in too_many:
            old.end()

    def end(self) -> None:
        """End all idle workers."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()


def _without_reply(outcome: Outcome) -> Outcome:
    """The outcome as a failure: a process that exits normally without a reply has failed."""
    if outcome.termination is not Termination.EXITED:
        return outcome
    return replace(outcome, termination=Termination.SIGNALLED, exit_code=None, detail=_NO_REPLY)


def _empty(folder: Path) -> None:
    """Remove the contents of a folder."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
