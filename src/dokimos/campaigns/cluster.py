"""Runs the same jobs on the workers of a Dask cluster; only this process writes the journal.

Workers need not share a file system with this process. A file is sent as the result of a task that is named
by the file's hash: Dask moves it once to each worker that needs it, keeps it there while jobs for it are
left, and sends it again if the only worker that held it is lost. The runs of a lost worker are repeated on
another one.

Results come back as bytes, which the journal's own strict reader decodes: a record counts, and anything is
written, only if it names the job, suite, instance, verifier and version that were sent. A fault in a worker
is an error of its job.

A worker ends a run when its result is no longer wanted (after Ctrl-C, or when this process was killed).
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from dokimos import __version__
from dokimos.campaigns.job import (
    JobTask,
    failed_record,
    log_path,
    now,
    perform,
    planned_content,
    proof_beside,
    proof_path,
    remove_folder,
    require_version,
    task_of,
)
from dokimos.campaigns.journal import Finished, Journal, RunRecord, event_line, parse_line, to_event
from dokimos.campaigns.plan import Agenda, Job, Tool
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import (
    DokimosError,
    InputError,
    UnreadableFile,
    VerifierUnavailable,
    packages_missing,
)
from dokimos.core.files import write_whole
from dokimos.verifiers.base import Verifier

_CONNECTING_SECONDS = 10
_WORKERS_SECONDS = 60
_RECOUNT_SECONDS = 1.0


class _Returned(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a worker sends back, packed: the line of the journal, or the reason why there is none.

    A `problem` concerns all runs there, such as another version of the verifier (`is_unavailable`); a
    `fault` only this one.
    """

    line: bytes = b""
    log: bytes = b""
    proof: bytes = b""
    problem: str = ""
    is_unavailable: bool = False
    fault: str = ""


@dataclass
class ClusterRunner:
    """Runs jobs on the workers of the scheduler that the settings name, and records them here."""

    verifiers: Mapping[Tool, Verifier]
    out: Path
    journal: Journal
    settings: RunSettings
    _files: dict[str, Any] = field(default_factory=dict)

    def run_all(self, agenda: Agenda) -> Generator[RunRecord, None, None]:
        """Run all jobs, started in order; yields records as they finish."""
        first = agenda.next()
        if first is None:
            return
        with _connected(self.settings.dask or "") as client:
            yield from self._run_all(client, agenda, first)

    def _run_all(self, client: Any, agenda: Agenda, first: Job) -> Generator[RunRecord, None, None]:
        from distributed import as_completed

        campaign = uuid.uuid4().hex[:12]
        needed = Counter(sha for job in agenda.possible for sha in _hashes(job))
        capacity = _Capacity(client)
        begun: Job | None = first
        running: dict[Any, Job] = {}
        finished = as_completed(loop=client.loop)
        try:
            while True:
                while len(running) < capacity.now() and (job := begun or agenda.next()) is not None:
                    begun = None
                    future = self._submit(client, job, campaign)
                    running[future] = job
                    finished.add(future)
                if not running:
                    return
                future = next(finished)
                job = running.pop(future)
                finished_run, returned = self._accept(future, job)
                for sha in _hashes(job):
                    needed[sha] -= 1
                    if not needed[sha]:
                        self._files.pop(sha, None)
                write_whole(log_path(self.out, job.id), returned.log, what="the log")
                if returned.proof:
                    write_whole(proof_path(self.out, job.id), returned.proof, what="the proof")
                self.journal.finish(finished_run.record, worker=finished_run.worker or None)
                agenda.ended(finished_run.record)
                yield finished_run.record
        finally:
            with contextlib.suppress(Exception):
                client.cancel(list(running), force=True)
            self._files.clear()

    def _accept(self, future: Any, job: Job) -> tuple[Finished, _Returned]:
        """The line for the journal, and what came with it. Raises InputError if it is of no use."""
        task = task_of(job, self.settings)
        returned = _result(future, self.settings.dask or "")
        if returned.problem:
            raise (VerifierUnavailable if returned.is_unavailable else InputError)(returned.problem)
        if returned.fault:
            record = failed_record(task, f"the worker failed: {returned.fault}")
            return Finished(record=record), returned
        what = f"The result of {job.tool.name} on {job.instance.name}"
        document = parse_line(returned.line)
        try:
            if document is None:
                raise UnreadableFile("", "it is no JSON object")
            event = to_event(document, file="")
        except UnreadableFile as error:
            raise _unusable(f"{what} is no record ({error.reason})") from None
        if not isinstance(event, Finished):
            raise _unusable(f"{what} is no record")
        record = event.record
        sent = {
            "job": task.job,
            "suite": task.suite,
            "instance": task.instance,
            "verifier": task.tool.name,
            "verifier_version": task.tool.version,
            "repeat": task.repeat,
        }
        for name, value in sent.items():
            if (got := getattr(record, name)) != value:
                raise _unusable(f"{what} names another {name.replace('_', ' ')} ({str(got)[:80]!r})")
        return event, returned

    def _submit(self, client: Any, job: Job, campaign: str) -> Any:
        from distributed.protocol.pickle import dumps

        paths = job.instance.network_path, job.instance.property_path
        for path, sha in zip(paths, _hashes(job), strict=True):
            if sha not in self._files:
                content = planned_content(path, sha)
                self._files[sha] = client.submit(_file, content, key=f"dokimos-file-{sha}")
        self.journal.started(job.id, now())
        return client.submit(
            _perform_on_worker,
            task_of(job, self.settings),
            dumps(self.verifiers[job.tool]),
            __version__,
            *(self._files[sha] for sha in _hashes(job)),
            key=f"dokimos-run-{campaign}-{job.id}",
            pure=False,
        )


def _hashes(job: Job) -> tuple[str, str]:
    return job.instance.network_sha256, job.instance.property_sha256


class _Capacity:
    """How many jobs may be submitted at once: those that run, and as many waiting to follow them."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._asked = float("-inf")
        self._threads = 0

    def now(self) -> int:
        """The number for the present workers, which may come and go."""
        if time.monotonic() >= self._asked + _RECOUNT_SECONDS:
            self._threads = sum(self._client.nthreads().values())
            self._asked = time.monotonic()
        return 2 * max(1, self._threads)


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Connect to the cluster, which must have at least one worker."""
    try:
        from distributed import Client
    except ImportError:
        raise packages_missing("Running on a cluster needs dask.distributed", "cluster") from None
    if not re.fullmatch(r"\S+://\S+|\S+:\d+", address):
        raise InputError(
            f"{address!r} is not the address of a Dask scheduler; write it like tcp://host:8786."
        )
    try:
        client = Client(address, timeout=_CONNECTING_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"No Dask scheduler answers at {address}; check the address.") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except TimeoutError as error:
            raise InputError(
                f"The Dask scheduler at {address} has no workers; start some: dask worker {address}."
            ) from error
        yield client


def _unusable(what: str) -> InputError:
    return InputError(
        f"{what}; nothing of it was written, and a worker of this cluster cannot be trusted: check "
        "the workers and resume."
    )


def _result(future: Any, address: str) -> _Returned:
    """What a worker returned. Raises InputError with one sentence if the cluster failed."""
    from distributed import KilledWorker

    try:
        packed = future.result()
    except KilledWorker as error:
        raise InputError(
            f"A run lost its worker too often (the last was {error.last_worker}); check the workers "
            "and resume."
        ) from error
    except CancelledError as error:
        raise InputError(f"The Dask scheduler at {address} is gone; start it again and resume.") from error
    except ImportError as error:
        raise InputError(
            f"A worker lacks a module ({error.name}); install Dokimos {__version__} on all of them."
        ) from error
    except Exception as error:
        if not (isinstance(error, RuntimeError) and "deserialization" in str(error)):
            return _Returned(fault=_in_words(error))
        raise InputError(
            f"The Dask scheduler at {address} cannot import the tasks; install Dokimos {__version__} "
            "on its machine as well."
        ) from error
    try:
        return msgspec.msgpack.decode(packed, type=_Returned)
    except (msgspec.MsgspecError, TypeError) as error:
        raise _unusable(f"What a worker returned is no result of a run ({str(error)[:200]})") from None


def _in_words(error: Exception) -> str:
    """An exception in one line, of bounded length."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]


def _file(content: bytes) -> bytes:
    """The task whose result is the file's content."""
    return content


def _perform_on_worker(
    task: JobTask, pickled: bytes, version: str, network: bytes, property_: bytes
) -> bytes:
    """Do one run on a worker; returns a packed `_Returned`, and raises nothing.

    The verifier is pickled, because the scheduler may be unable to import it.
    """
    try:
        returned = _perform(task, pickled, version, network, property_)
    except DokimosError as error:
        returned = _Returned(problem=str(error), is_unavailable=isinstance(error, VerifierUnavailable))
    except Exception as error:  # whatever it is, the other runs go on
        returned = _Returned(fault=_in_words(error))
    return msgspec.msgpack.encode(returned)


def _perform(task: JobTask, pickled: bytes, version: str, network: bytes, property_: bytes) -> _Returned:
    from distributed import get_worker

    worker = get_worker()
    where = f"the worker {worker.address}"
    if version != __version__:
        raise InputError(
            f"Dokimos on {where} is version {__version__}, not {version}; install the same version."
        )
    verifier = _unpickled(pickled, task.tool, where)
    require_version(verifier, task.tool, where=where)
    task.settings.require_variables(where=where)
    work = Path(tempfile.mkdtemp(prefix="dokimos-", dir=worker.local_directory))
    try:
        log = work / "log"
        record = perform(
            task,
            verifier,
            network=network,
            property_=property_,
            work=work,
            log=log,
            cancel=_NobodyWaits(worker),
        )
        proof = proof_beside(log)
        found = proof.read_bytes() if proof.exists() else b""
        line = event_line(Finished(worker=worker.address, record=record))
        return _Returned(line=line, log=log.read_bytes(), proof=found)
    finally:
        remove_folder(work)


def _unpickled(pickled: bytes, tool: Tool, where: str) -> Verifier:
    from distributed.protocol.pickle import loads

    try:
        verifier: Verifier = loads(pickled)
    except (ImportError, AttributeError) as error:
        raise VerifierUnavailable(
            f"The verifier {tool.name} cannot be imported on {where} ({error}); install the same "
            "version there."
        ) from error
    return verifier


class _NobodyWaits:
    """Is set once the scheduler no longer wants the current task, or its worker is closing."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self._key = worker.get_current_task()

    def is_set(self) -> bool:
        """Whether the result of the run is no longer wanted."""
        task = self._worker.state.tasks.get(self._key)
        closing = self._worker.status.name in ("closing", "closed", "failed")
        return closing or task is None or task.state in ("cancelled", "released", "forgotten")
