"""Runs one job, from its two files to its record, on this or another machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import Job, Tool
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError, UnreadableFile, VerifierUnavailable
from dokimos.core.files import contained, read_regular, write_whole
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import read_content
from dokimos.suites.instance import sha256
from dokimos.verifiers.base import Invocation, Query, Verifier
from dokimos.verifiers.execution.limits import Limits, Outcome, Room, Termination
from dokimos.verifiers.execution.process import Cancel, run_limited
from dokimos.verifiers.execution.warm_worker import WarmStart, WarmWorkers
from dokimos.verifiers.result_file import in_vnnlib1
from dokimos.verifiers.script_guard import allowed_environment, names_of, room_for

#: A disk with less free space than this counts as full.
_FULL_BYTES = 1 << 16
#: After these answers a warm process is ended; if the query was not its first, a new process gets it.
_ODD = (Answer.ERROR, Answer.MEMOUT)
#: Proofs and bounds larger than this are not kept.
_MOST_PROOF_BYTES = 64 << 20


@dataclass(frozen=True)
class JobTask:
    """A job in a form that can be sent to another machine: everything except the contents of its files.

    `origin` is the path of the property in its suite, on the machine that planned the job.
    """

    job: str
    suite: str
    instance: str
    family: str
    tool: Tool
    repeat: int
    limits: Limits
    network_name: str
    property_name: str
    origin: Path
    settings: RunSettings = field(default_factory=RunSettings)


def task_of(job: Job, settings: RunSettings) -> JobTask:
    """The task for a job under these settings."""
    paths = job.instance.network_path, job.instance.property_path
    network_name, property_name = (path.name.removesuffix(".gz") for path in paths)
    return JobTask(
        job=job.id,
        suite=job.suite,
        instance=job.instance.name,
        family=job.instance.family,
        tool=job.tool,
        repeat=job.repeat,
        limits=job.limits,
        network_name=network_name,
        property_name=property_name,
        origin=job.instance.property_path.absolute(),
        settings=settings,
    )


def planned_content(path: Path, planned_sha256: str) -> bytes:
    """The content of a suite's file. Raises UnreadableFile if it has changed since it was planned."""
    content = read_content(path)
    if sha256(content) != planned_sha256:
        raise UnreadableFile(path, "it has changed since the campaign was planned; restore it and resume.")
    return content


def log_name(job: str) -> str:
    """The path of a job's log within the folder of its campaign."""
    return f"logs/{job}.log"


def log_path(folder: Path, job: str) -> Path:
    """The path of a job's log. Raises UnreadableFile if that is outside the campaign's folder.

    It is derived from the job's id alone: the path in a record is not to be trusted.
    """
    return contained(contained(folder, "logs"), f"{job}.log")


def proof_path(folder: Path, job: str) -> Path:
    """The path of the truth file that proves the `unsat` of a job, next to its log; it may not exist."""
    return proof_beside(log_path(folder, job))


def proof_beside(log: Path) -> Path:
    """The path of the proof of a run, from the path of its log."""
    return log.with_name(f"{log.stem}.proof.json")


def bounds_path(folder: Path, job: str) -> Path:
    """The path of the bounds that the verifier wrote with the `unsat` of a job; it may not exist."""
    return bounds_beside(log_path(folder, job))


def bounds_beside(log: Path) -> Path:
    """The path of the bounds of a run, from the path of its log."""
    return log.with_name(f"{log.stem}.bounds.npz")


def now() -> str:
    """The present time, in the format of records."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def require_version(verifier: Verifier, tool: Tool, *, where: str) -> None:
    """Raise InputError if the verifier on `where` is not of the version that was planned."""
    version = verifier.installed_version(where=where)
    if version != tool.version:
        raise VerifierUnavailable(
            f"The verifier {verifier.name} on {where} is version {version}, not {tool.version}; "
            "install the same version everywhere."
        )


def perform(
    task: JobTask,
    verifier: Verifier,
    *,
    network: bytes,
    property_: bytes,
    work: Path,
    log: Path,
    cancel: Cancel,
    workers: WarmWorkers | None = None,
) -> RunRecord:
    """Run `verifier` on the two files, in a new folder in `work`, and return the record.

    A verifier that does not read VNN-LIB 2.0 gets the property in 1.0; if it cannot be expressed in 1.0,
    nothing is run and the answer is `unsupported`.

    The verifier gets its own, read-only copies of the files; if it changes one anyway (as root can), the
    record says so. The folder is removed afterwards.

    Raises InputError if the verifier ended in an error and the disk is full: the full disk may be the
    cause. A proof and bounds that the verifier wrote with its `unsat` are kept next to the log.

    A verifier that stays warm is asked through one of `workers`; without workers, it is started like any
    other.
    """
    started_at = now()
    if not verifier.reads_vnnlib2:
        try:
            property_ = in_vnnlib1(property_, file=task.property_name)
        except InputError as problem:
            return _unsupported(task, str(problem), log, started_at)
    base = Path(tempfile.mkdtemp(prefix=f"{task.job[:8]}-", dir=work))
    try:
        folder = base / "run"
        folder.mkdir()
        copies = (
            _hand_out(base / "onnx", task.network_name, network),
            _hand_out(base / "vnnlib", task.property_name, property_),
        )
        passed = allowed_environment(verifier.variables, task.settings.pass_env)
        query = _query(task, *copies, folder)
        prepared = _prepared(task, verifier, query, passed, base / "prepare.log", cancel)
        query = replace(query, is_prepared=prepared is not None)
        invocation = verifier.command(query)
        invocation.write_files(folder)
        grace = task.settings.grace_seconds
        limits = replace(task.limits, wall_seconds=task.limits.wall_seconds + grace)
        room = room_for(verifier, invocation, limits, trust=task.settings.trust)
        warm = 0
        if prepared is not None and (prepared.termination, prepared.exit_code) != (Termination.EXITED, 0):
            outcome = replace(prepared, wall_seconds=0.0)
            answer = VerifierAnswer(Answer.ERROR, detail=_not_prepared(prepared))
            write_whole(log, "", what="the log")
        else:
            if workers is None or not verifier.is_warm:
                outcome = _run_cold(invocation, query, passed, limits, log, cancel, room)
            else:
                room = room and replace(room, writes=(*room.writes, work.absolute()))
                outcome, warm = _ask_warm(
                    workers, verifier, invocation, query, passed, limits, log, cancel, room
                )
            answer = verifier.answer(outcome, query, log)
        if prepared is not None:
            write_whole(log, (base / "prepare.log").read_bytes() + log.read_bytes(), what="the log")
        if answer.answer is Answer.ERROR and _is_full(base):
            raise InputError(
                f"The disk with {work} is full, so the error of {task.tool.name} on {task.instance} "
                "does not count; free some space and resume."
            )
        if answer.answer is Answer.UNSAT:
            _keep(query.certificate, proof_beside(log), what="the proof")
            _keep(query.bounds, bounds_beside(log), what="the bounds")
        answer = _with_remark(answer, zip(copies, (network, property_), strict=True))
    finally:
        remove_folder(base)
    record = _record(task, answer, outcome, started_at)
    return replace(
        record,
        variables=names_of(passed),
        guard="; ".join(filter(None, (room.means() if room else "", invocation.guard))),
        warm=warm,
        prepare_seconds=0.0 if prepared is None else prepared.wall_seconds,
        pass_env=task.settings.pass_env,
        trust_scripts=task.settings.trust,
    )


def _prepared(
    task: JobTask,
    verifier: Verifier,
    query: Query,
    passed: Mapping[str, str],
    log: Path,
    cancel: Cancel,
) -> Outcome | None:
    """How preparing the verifier went, under its own limit; None if it is a part of the run."""
    seconds = task.settings.prepare_seconds
    invocation = None if seconds is None else verifier.preparation(query)
    if seconds is None or invocation is None:
        return None
    limits = replace(task.limits, wall_seconds=seconds, cpu_seconds=None)
    room = room_for(verifier, invocation, limits, trust=task.settings.trust)
    invocation.write_files(query.folder)
    return _run_cold(invocation, query, passed, limits, log, cancel, room)


def _not_prepared(outcome: Outcome) -> str:
    if outcome.termination is Termination.EXITED:
        return f"its preparation exited with code {outcome.exit_code}"
    return f"its preparation was ended: {outcome.detail or outcome.termination.value}"


def _run_cold(
    invocation: Invocation,
    query: Query,
    passed: Mapping[str, str],
    limits: Limits,
    log: Path,
    cancel: Cancel,
    room: Room | None,
) -> Outcome:
    """Start a process for this query only."""
    return run_limited(
        invocation.command,
        limits=limits,
        log=log,
        cwd=query.folder,
        environment={**passed, "TMPDIR": str(query.folder), **invocation.environment},
        cancel=cancel,
        room=room,
    )


def _ask_warm(
    workers: WarmWorkers,
    verifier: Verifier,
    invocation: Invocation,
    query: Query,
    passed: Mapping[str, str],
    limits: Limits,
    log: Path,
    cancel: Cancel,
    room: Room | None,
) -> tuple[Outcome, int]:
    """Ask a process that stays warm; also returns how many queries it has had, with this one."""
    border = invocation.start_words
    return workers.ask(
        WarmStart.of(invocation.command[:border], {**passed, **invocation.environment}, limits, room),
        invocation.command[border:],
        folder=query.folder,
        log=log,
        cancel=cancel,
        is_odd=lambda outcome: verifier.answer(outcome, query, log).answer in _ODD,
    )


def _keep(written: Path, place: Path, *, what: str) -> None:
    """Keep a file that a verifier wrote, if it is a regular file in its folder and not too large."""
    try:
        content = read_regular(contained(written.parent, written.name), most_bytes=_MOST_PROOF_BYTES)
    except (OSError, InputError):
        return
    write_whole(place, content, what=what)


def _with_remark(answer: VerifierAnswer, copies: Iterable[tuple[Path, bytes]]) -> VerifierAnswer:
    """The answer, with a remark if the verifier changed its copies."""
    changed = [copy.name for copy, content in copies if not _is_unchanged(copy, content)]
    if not changed:
        return answer
    remark = f"it changed its copy of {' and '.join(changed)}"
    return replace(answer, detail="; ".join(filter(None, [answer.detail, remark])))


def _query(task: JobTask, network_file: Path, property_file: Path, folder: Path) -> Query:
    limits = task.limits
    return Query(
        name=task.instance,
        network_file=network_file,
        property_file=property_file,
        folder=folder,
        wall_seconds=limits.wall_seconds,
        memory_bytes=limits.memory_bytes,
        threads=limits.threads,
        cpu_seconds=limits.cpu_seconds,
        origin=task.origin,
        trust=task.settings.trust,
    )


def _unsupported(task: JobTask, why: str, log: Path, started_at: str) -> RunRecord:
    write_whole(log, f"Not run: {why}\n", what="the log")
    outcome = Outcome(Termination.NOT_STARTED, None, 0.0, 0.0, 0, why)
    return _record(task, VerifierAnswer(Answer.UNSUPPORTED, detail=why), outcome, started_at)


def failed_record(task: JobTask, why: str) -> RunRecord:
    """The record of a job that came to nothing where it was to run: an error of this job alone."""
    outcome = Outcome(Termination.NOT_STARTED, None, 0.0, 0.0, 0, why)
    return _record(task, VerifierAnswer(Answer.ERROR, detail=why), outcome, now())


def _record(task: JobTask, answer: VerifierAnswer, outcome: Outcome, started_at: str) -> RunRecord:
    return RunRecord(
        job=task.job,
        suite=task.suite,
        instance=task.instance,
        family=task.family,
        verifier=task.tool.name,
        verifier_version=task.tool.version,
        repeat=task.repeat,
        answer=answer.answer,
        witness=answer.witness,
        detail=answer.detail,
        termination=outcome.termination,
        exit_code=outcome.exit_code,
        wall_seconds=outcome.wall_seconds,
        cpu_seconds=outcome.cpu_seconds,
        peak_memory_bytes=outcome.peak_memory_bytes,
        log=log_name(task.job),
        started_at=started_at,
        outputs=answer.outputs,
        limits=task.limits,
        enforced_by=outcome.enforced_by,
    )


def remove_folder(folder: Path) -> None:
    """Remove a folder and everything in it, even what a verifier made read-only; never raises.

    A link is removed, not what it points to.
    """
    if folder.is_symlink():
        with contextlib.suppress(OSError):
            folder.unlink()
        return
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    for here, below, _ in os.walk(folder):
        for path in (Path(here, name) for name in below):
            with contextlib.suppress(OSError):
                if not path.is_symlink():
                    path.chmod(0o700)  # before the walk enters it
    shutil.rmtree(folder, ignore_errors=True)


def _is_full(folder: Path) -> bool:
    """Whether the disk of this folder is full."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < _FULL_BYTES or (disk.f_files > 0 and disk.f_favail == 0)


def _hand_out(folder: Path, name: str, content: bytes) -> Path:
    """Write a read-only copy into a new folder, and return its path."""
    folder.mkdir()
    copy = folder / name
    write_whole(copy, content, what="the copy for the verifier")
    copy.chmod(0o444)
    return copy


def _is_unchanged(copy: Path, content: bytes) -> bool:
    with contextlib.suppress(OSError, UnreadableFile):
        return not copy.is_symlink() and read_regular(copy, most_bytes=len(content)) == content
    return False
