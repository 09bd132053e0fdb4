"""One job, from its two files to its record: the same here and on another machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from dokimos.campaigns.plan import Job, Tool
from dokimos.campaigns.records import RunRecord
from dokimos.core.containment import contained
from dokimos.core.errors import InputError, UnreadableFile, VerifierUnavailable
from dokimos.core.files import write_whole
from dokimos.core.regular_files import read_regular
from dokimos.execution.limits import Limits
from dokimos.execution.outcomes import Outcome, Termination
from dokimos.execution.process import Cancel, run_limited
from dokimos.execution.warm_worker import WarmStart, WarmWorkers
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import read_content
from dokimos.suites.instance import sha256
from dokimos.verifiers.base import Invocation, Query, Verifier
from dokimos.verifiers.permissions import Permissions, allowed_environment, names_of
from dokimos.verifiers.vnnlib1_files import in_vnnlib1

#: A disk with less room than this is full.
_FULL_BYTES = 1 << 16
#: After these answers a process does not stay, and where it had been asked before, a new one is asked.
_ODD = (Answer.ERROR, Answer.MEMOUT)
#: Larger proofs are not kept.
_MOST_PROOF_BYTES = 64 << 20


@dataclass(frozen=True)
class JobTask:
    """A job as it can be sent to another machine: everything but the contents of its files.

    `origin` is where the property lies in its suite, on the machine that planned the job.
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
    permissions: Permissions = field(default_factory=Permissions)


def task_of(job: Job, permissions: Permissions) -> JobTask:
    """The task of a job, whose verifier gets what is permitted."""
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
        permissions=permissions,
    )


def planned_content(path: Path, planned_sha256: str) -> bytes:
    """The content of a suite's file, which must be what it was when the campaign was planned."""
    content = read_content(path)
    if sha256(content) != planned_sha256:
        raise UnreadableFile(path, "it has changed since the campaign was planned; restore it and resume.")
    return content


def log_name(job: str) -> str:
    """Where a job's log lies in the folder of its campaign."""
    return f"logs/{job}.log"


def log_path(folder: Path, job: str) -> Path:
    """The log of a job in the folder of its campaign, by the job alone: what a record says of it may be
    anything. Raises UnreadableFile if that leads elsewhere."""
    return contained(contained(folder, "logs"), f"{job}.log")


def proof_path(folder: Path, job: str) -> Path:
    """The truth file by which the verifier of a job proves its `unsat`, beside its log, if it wrote one."""
    return proof_beside(log_path(folder, job))


def proof_beside(log: Path) -> Path:
    """Where the proof of a run lies whose log is there."""
    return log.with_name(f"{log.stem}.proof.json")


def now() -> str:
    """The time, as records have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def require_version(verifier: Verifier, tool: Tool, *, where: str) -> None:
    """Make sure that what would run `where` is the version that was planned."""
    version = verifier.installed_version(where=where)
    if version != tool.version:
        raise VerifierUnavailable(
            f"The verifier {verifier.name} on {where} is version {version}, not {tool.version}; "
            "install the same everywhere."
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
    """Run `verifier` on the two files, in a new folder in `work`, and say what happened.

    One that does not read VNN-LIB 2.0 gets the property in 1.0; where 1.0 cannot say it, nothing is run and
    the answer is `unsupported`.

    The verifier gets copies of its own, which it is not allowed to write to; where it has changed one all
    the same (as root may), the record says so. The folder is removed afterwards.

    Raises InputError if it ended in an error on a full disk: then there was no room for its answer, and
    it is not the verifier that failed. A proof that it wrote of its `unsat` is kept beside the log.

    A verifier that stays warm is asked by one of `workers`; without any, it is started as others are.
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
        query = _query(task, *copies, folder)
        invocation = verifier.command(query)
        passed = allowed_environment(verifier.variables, task.permissions.pass_env)
        if workers is None or not verifier.is_warm:
            outcome, warm = _run_cold(invocation, query, passed, task.limits, log, cancel), 0
        else:
            outcome, warm = _ask_warm(
                workers, verifier, invocation, query, passed, task.limits, log, cancel
            )
        answer = verifier.answer(outcome, query, log)
        if answer.answer is Answer.ERROR and _is_full(base):
            raise InputError(
                f"The disk with {work} is full, so that the error of {task.tool.name} on {task.instance} "
                "does not count; free some space and resume."
            )
        if answer.answer is Answer.UNSAT:
            _keep_proof(query.certificate, proof_beside(log))
        answer = _with_remark(answer, zip(copies, (network, property_), strict=True))
    finally:
        remove_folder(base)
    record = _record(task, answer, outcome, started_at)
    return replace(
        record,
        variables=names_of(passed),
        guard=invocation.guard,
        warm=warm,
        pass_env=task.permissions.pass_env,
        trust_scripts=task.permissions.trust_scripts,
    )


def _run_cold(
    invocation: Invocation,
    query: Query,
    passed: Mapping[str, str],
    limits: Limits,
    log: Path,
    cancel: Cancel,
) -> Outcome:
    """A process for this query alone."""
    return run_limited(
        invocation.command,
        limits=limits,
        log=log,
        cwd=query.folder,
        environment={**passed, "TMPDIR": str(query.folder), **invocation.environment},
        cancel=cancel,
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
) -> tuple[Outcome, int]:
    """A process that stays; the so many-th query of it was this."""
    border = invocation.start_words
    return workers.ask(
        WarmStart.of(invocation.command[:border], {**passed, **invocation.environment}, limits),
        invocation.command[border:],
        folder=query.folder,
        log=log,
        cancel=cancel,
        is_odd=lambda outcome: verifier.answer(outcome, query, log).answer in _ODD,
    )


def _keep_proof(written: Path, place: Path) -> None:
    """Keep what a verifier wrote, if that is a regular file of a size that can be read."""
    try:
        content = read_regular(written, most_bytes=_MOST_PROOF_BYTES)
    except (OSError, InputError):
        return
    write_whole(place, content, what="the proof")


def _with_remark(answer: VerifierAnswer, copies: Iterable[tuple[Path, bytes]]) -> VerifierAnswer:
    """The answer, with what the verifier did to its copies."""
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
        trust_scripts=task.permissions.trust_scripts,
    )


def _unsupported(task: JobTask, why: str, log: Path, started_at: str) -> RunRecord:
    write_whole(log, f"Not run: {why}\n", what="the log")
    outcome = Outcome(Termination.NOT_STARTED, None, 0.0, 0.0, 0, why)
    return _record(task, VerifierAnswer(Answer.UNSUPPORTED, detail=why), outcome, started_at)


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
    """Remove a folder with all that is in it, also what a verifier has locked; never raises.

    Of a link, the link alone.
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
                    path.chmod(0o700)  # before the walk goes into it
    shutil.rmtree(folder, ignore_errors=True)


def _is_full(folder: Path) -> bool:
    """Whether nothing more can be written there."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < _FULL_BYTES or (disk.f_files > 0 and disk.f_favail == 0)


def _hand_out(folder: Path, name: str, content: bytes) -> Path:
    """A copy in a new folder, not to be written to."""
    folder.mkdir()
    copy = folder / name
    write_whole(copy, content, what="the copy for the verifier")
    copy.chmod(0o444)
    return copy


def _is_unchanged(copy: Path, content: bytes) -> bool:
    with contextlib.suppress(OSError, UnreadableFile):
        return not copy.is_symlink() and read_regular(copy, most_bytes=len(content)) == content
    return False
