"""The append-only journal of a campaign: one JSON object per line, and state is its replay.

Every line has ``schema`` and ``event``: ``started`` (job), ``finished`` (record), ``resumed`` (a process
opened a journal that others had written before). A line counts once it is on the disk with its end; a
process that is killed while writing leaves a torn piece, which the next one closes with a newline and a
``resumed`` event. So a piece that is no JSON is tolerated at the end and right before ``resumed``;
anywhere else it is damage, and is reported.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dokimos.campaigns.records import RunRecord, Termination
from dokimos.core.errors import InputError, Place, UnreadableFile
from dokimos.execution.limits import Limits
from dokimos.properties.model import Point
from dokimos.suites.answers import Answer

SCHEMA = 1


class Journal:
    """The journal at `path`, open for appending by this process alone. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._failed: OSError | None = None
        self._finished = {record.job for record in read_journal(path)}
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise _cannot_write(path, error) from error
        size = os.fstat(self._descriptor).st_size
        if size:
            whole = os.pread(self._descriptor, 1, size - 1) == b"\n"
            self._append({"event": "resumed"}, after=b"" if whole else b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    @property
    def finished(self) -> frozenset[str]:
        """The ids of all finished jobs."""
        return frozenset(self._finished)

    def started(self, job: str, at: str) -> None:
        """Note that a job is about to run."""
        self._append({"event": "started", "job": job, "at": at})

    def finish(self, record: RunRecord, *, worker: str | None = None) -> None:
        """Note a finished run, and a cluster's worker that did it; once this returns, it is on the disk."""
        done_by = {} if worker is None else {"worker": worker}
        self._append({"event": "finished", **done_by, "record": record_to_json(record)})
        with self._lock:
            self._finished.add(record.job)

    def _append(self, event: dict[str, Any], *, after: bytes = b"") -> None:
        line = after + json.dumps({"schema": SCHEMA, **event}).encode() + b"\n"
        with self._lock:
            if self._failed is not None:
                # A piece of a line may be there: whatever followed it now would be lost with it.
                raise _cannot_write(self._path, self._failed)
            try:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._descriptor, view) :]
                os.fsync(self._descriptor)
            except OSError as error:
                self._failed = error
                raise _cannot_write(self._path, error) from error
            except BaseException:
                self._failed = OSError(errno.EINTR, os.strerror(errno.EINTR))
                raise


def _cannot_write(path: Path, error: OSError) -> InputError:
    return InputError(
        f"The journal {path} cannot be written: {error.strerror}; nothing recorded is lost: make room and "
        "run the same command again."
    )


@dataclass(frozen=True)
class History:
    """What a journal tells: the finished runs, and what the process that wrote last has been doing.

    `started` are the jobs that this process began, in order, with the time as it wrote it;
    `finished_since` are the records it wrote itself.
    """

    records: tuple[RunRecord, ...]
    started: Mapping[str, str]
    finished_since: tuple[RunRecord, ...]


def read_journal(path: Path) -> tuple[RunRecord, ...]:
    """The finished runs of a journal, in the order in which they finished; none where there is no file.

    A job that was recorded twice counts once, as first recorded.
    """
    return read_history(path).records


def read_history(path: Path) -> History:
    """All that a journal tells; it may be read while another process writes it."""
    records: dict[str, RunRecord] = {}
    started: dict[str, str] = {}
    since: list[RunRecord] = []
    for line, event in _events(path):
        try:
            if event["event"] == "resumed":
                started, since = {}, []
            elif event["event"] == "started":
                started[str(event.get("job"))] = str(event.get("at"))
            else:
                record = record_from_json(event["record"])
                records.setdefault(record.job, record)
                since.append(record)
        except (KeyError, TypeError, ValueError, ZeroDivisionError, InputError) as error:
            raise _damaged(path, line) from error
    return History(tuple(records.values()), started, tuple(since))


def _events(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnreadableFile(path, f"the journal cannot be read: {error.strerror}.") from error
    torn: int | None = None
    for number, content in enumerate(lines, start=1):
        if not content:
            continue
        event = _parse(content)
        if event is None:
            torn = torn or number
            continue
        if event.get("schema") != SCHEMA:
            raise UnreadableFile(
                Place(str(path), number),
                f"this journal has schema {event.get('schema')!r}, and this version of Dokimos reads "
                f"{SCHEMA}; use the version that wrote it.",
            )
        if torn is not None and event.get("event") != "resumed":
            raise _damaged(path, torn)
        torn = None
        if event.get("event") not in ("started", "finished", "resumed"):
            raise _damaged(path, number)
        yield number, event


def _parse(content: bytes) -> dict[str, Any] | None:
    """The object on a line; None where there is none."""
    try:
        event = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _damaged(path: Path, line: int) -> UnreadableFile:
    return UnreadableFile(
        Place(str(path), line),
        "this line of the journal is damaged; remove it to have that run done again, or use another "
        "folder.",
    )


def record_to_json(record: RunRecord) -> dict[str, Any]:
    """A record as plain JSON; the witness as exact fractions."""
    return {
        **asdict(record),
        "answer": record.answer.value,
        "termination": record.termination.value,
        "witness": _point_to_json(record.witness),
        "outputs": _point_to_json(record.outputs),
    }


def record_from_json(data: dict[str, Any]) -> RunRecord:
    """The record that `record_to_json` wrote; KeyError, TypeError or ValueError where it is not one."""
    limits = data.get("limits")
    return RunRecord(
        **{
            **data,
            "answer": Answer(data["answer"]),
            "termination": Termination(data["termination"]),
            "witness": _point_from_json(data["witness"]),
            "outputs": _point_from_json(data.get("outputs")),
            "limits": None if limits is None else Limits(**limits),
        }
    )


def _point_to_json(point: Point | None) -> list[str] | None:
    return None if point is None else [str(x) for x in point]


def _point_from_json(data: list[str] | None) -> Point | None:
    return None if data is None else tuple(Fraction(x) for x in data)
