"""The append-only journal of a campaign: one JSON object per line; replaying it gives the state.

`events.py` lists the events. A line counts once it is on disk with its newline. A process that is killed
while writing leaves an incomplete line, which the next process closes with a newline and a ``resumed``
event. So a line that starts like an event but is not JSON is tolerated at the end and right before
``resumed``; anything else is damage and is reported. Nothing is ever removed: a run that is not to count is
set aside by its own event.
"""

from __future__ import annotations

import errno
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, Struct, UnsetType

from dokimos.core import strict_json
from dokimos.core.documents import Count, require_known_keys
from dokimos.core.errors import InputError, Place, UnreadableFile
from dokimos.core.files import contained, sync_folder
from dokimos.core.strict_json import MOST_BYTES
from dokimos.core.typed_values import convert
from dokimos.suites.answers import Answer
from dokimos.suites.vnnlib.model import Point
from dokimos.verifiers.execution.limits import Limits, Termination

# One finished run, as stored in the journal


Seconds = Annotated[float, Meta(ge=0, le=1e12)]
"""A time in seconds, as read from a file: finite and not negative."""


@dataclass(frozen=True)
class RunRecord:
    """What happened when one verifier was run once on one instance.

    `outputs` are the network's outputs at the witness according to the verifier, if it gives them. `limits`
    are those of this run, and `enforced_by` says how they were enforced; published runs have neither.
    `variables` are the names, never the values, of the user's environment variables that the verifier got,
    and `pass_env` those that `--pass-env` named. `guard` says how it was isolated, and what kept its own
    scripts from harm; `trust_scripts`: the user wanted neither (`--trust`). `warm` is the number of this
    query among those of a process that stays warm (from 1); 0 if the process was started for this query
    only. `prepare_seconds` is what preparing the tool took apart from the run, as in competitions.
    """

    job: str
    suite: str
    instance: str
    family: str
    verifier: str
    verifier_version: str
    repeat: Count
    answer: Answer
    witness: Point | None
    detail: str
    termination: Termination
    exit_code: int | None
    wall_seconds: Seconds
    cpu_seconds: Seconds
    peak_memory_bytes: Count
    log: str
    started_at: str
    outputs: Point | None = None
    limits: Limits | None = None
    enforced_by: str = ""
    variables: tuple[str, ...] = ()
    guard: str = ""
    warm: Count = 0
    pass_env: tuple[str, ...] = ()
    trust_scripts: bool = False
    prepare_seconds: Seconds = 0.0


# The events of a journal: one JSON object per line, with ``schema`` and the name of the event


SCHEMA: Literal[1] = 1
_WHAT = "an event of a journal"
#: Python does not parse whole numbers with more digits than this.
_FRACTION = re.compile(r"(-?[0-9]{1,4300})(?:/([0-9]{1,4300}))?")


class Started(Struct, frozen=True, tag_field="event", tag="started"):
    """A run is about to start. Only estimates use this, so its fields are not validated."""

    job: Any = None
    at: Any = None
    schema: Literal[1] = SCHEMA


class Finished(
    Struct, frozen=True, kw_only=True, tag_field="event", tag="finished", forbid_unknown_fields=True
):
    """A run has ended; `worker` is the one that did it, on a cluster."""

    worker: str | UnsetType = UNSET
    record: RunRecord
    schema: Literal[1] = SCHEMA


class SetAside(Struct, frozen=True, tag_field="event", tag="set-aside", forbid_unknown_fields=True):
    """Earlier records of a job no longer count; `reason` says why, `at` when that was decided."""

    job: str
    reason: str
    at: str
    schema: Literal[1] = SCHEMA


class Resumed(Struct, frozen=True, tag_field="event", tag="resumed", forbid_unknown_fields=True):
    """From here on, another process writes."""

    schema: Literal[1] = SCHEMA


Event = Started | Finished | SetAside | Resumed


def event_line(event: Event) -> bytes:
    """The line of an event, including its newline."""
    document = strict_json.plain(event)
    return json.dumps({"schema": document.pop("schema"), **document}).encode() + b"\n"


#: What every line begins with.
_HEAD = b'{"schema": 1, "event": "'


def may_be_torn(line: bytes) -> bool:
    """Whether a line that is not JSON may be a torn event; a power loss may leave zeros after it."""
    written = line.rstrip(b"\0")
    return written.startswith(_HEAD) or _HEAD.startswith(written)


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line; None if there is none, for example because the line is incomplete."""
    try:
        document = strict_json.parse(line, file="")
    except UnreadableFile:
        return None
    return document if isinstance(document, dict) else None


def to_event(document: dict[str, Any], *, file: str | Path | Place) -> Event:
    """Convert the object on a line to an event. Raises UnreadableFile."""
    event: Event = convert(
        document,
        Event,  # type: ignore[arg-type]  # a union is not a class
        file=file,
        what=_WHAT,
        hooks={Fraction: read_fraction},
    )
    if not isinstance(event, Started):
        require_known_keys(document, Event, file=file, what=_WHAT)
    return event


def read_fraction(value: Any) -> Fraction:
    """Read an exact number as `str` writes it. Raises ValueError for other text, such as 1e999999999."""
    if isinstance(value, str) and len(value) <= _SHORT:
        return _short_fraction(value)
    return _fraction(value)


def _fraction(value: Any) -> Fraction:
    written = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    if written is None:
        raise ValueError(f"{str(value)[:40]!r} is not a fraction")
    return Fraction(int(written[1]), int(written[2] or 1))


#: A verifier that is run again gives the same witness: the last numbers of so many letters are kept.
_SHORT = 40
_short_fraction = lru_cache(maxsize=1 << 14)(_fraction)


class Journal:
    """The journal at `path`, open for appending by this process only. It is thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._failed: OSError | None = None
        self._finished = {record.job for record in read_journal(path)}
        is_new = not path.exists()
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            if is_new:
                sync_folder(path.parent)
        except OSError as error:
            raise _cannot_write(path, error) from error
        size = os.fstat(self._descriptor).st_size
        if size:
            whole = os.pread(self._descriptor, 1, size - 1) == b"\n"
            self._append(Resumed(), after=b"" if whole else b"\n")

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
        """Record that a job is about to run."""
        self._append(Started(job, at))

    def finish(self, record: RunRecord, *, worker: str | None = None) -> None:
        """Record a finished run, and the cluster's worker that did it; on return, it is on disk."""
        self._append(Finished(worker=UNSET if worker is None else worker, record=record))
        with self._lock:
            self._finished.add(record.job)

    def finish_all(self, records: Iterable[RunRecord]) -> None:
        """Record runs that are known already, all at once; on return, they are on disk."""
        known = list(records)
        if known:
            self._append(*(Finished(record=record) for record in known))
            with self._lock:
                self._finished.update(record.job for record in known)

    def set_aside(self, job: str, *, reason: str, at: str) -> None:
        """Record that earlier records of a job do not count: it is to be run again."""
        self._append(SetAside(job, reason, at))
        with self._lock:
            self._finished.discard(job)

    def _append(self, *events: Event, after: bytes = b"") -> None:
        line = after + b"".join(map(event_line, events))
        with self._lock:
            if self._failed is not None:
                # Part of a line may have been written: anything appended to it now would be lost with it.
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
        f"The journal {path} cannot be written: {error.strerror}; nothing recorded is lost; make room "
        "and run the same command again."
    )


@dataclass(frozen=True)
class History:
    """The contents of a journal: the finished runs, and what the process that wrote last did.

    `started` are the jobs that this process started, in order, with the time that it wrote;
    `finished_since` are the records that it wrote.
    """

    records: tuple[RunRecord, ...]
    started: Mapping[str, str]
    finished_since: tuple[RunRecord, ...]


def read_journal(path: Path) -> tuple[RunRecord, ...]:
    """The finished runs of a journal, in the order in which they finished; none if there is no file.

    If a job was recorded twice, the first record counts; if it was set aside, the first record after that.
    """
    return read_history(path).records


def read_history(path: Path) -> History:
    """Read a whole journal; another process may be writing it."""
    records: dict[str, RunRecord] = {}
    started: dict[str, str] = {}
    numbers = count()
    since: dict[int, RunRecord] = {}  # by number, in order; `written` has those of each job
    written: dict[str, list[int]] = {}
    for event in _events(path):
        match event:
            case Resumed():
                started, since, written = {}, {}, {}
            case Started():
                started[str(event.job)] = str(event.at)
            case SetAside():
                records.pop(event.job, None)
                started.pop(event.job, None)
                for number in written.pop(event.job, ()):
                    del since[number]
            case Finished():
                records.setdefault(event.record.job, event.record)
                number = next(numbers)
                since[number] = event.record
                written.setdefault(event.record.job, []).append(number)
    return History(tuple(records.values()), started, tuple(since.values()))


def _events(path: Path) -> Iterator[Event]:
    torn: int | None = None
    for number, content in enumerate(_lines(path), start=1):
        place = Place(str(path), number)
        document = parse_line(content)
        if document is None:
            if content and not may_be_torn(content):
                raise _damaged(place, "no JSON")
            torn = torn or (number if content else None)
            continue
        if (schema := document.get("schema")) != SCHEMA:
            named = schema if isinstance(schema, int | str | None) else "of another kind"
            raise UnreadableFile(
                place,
                f"this journal has schema {str(named)[:40]}, but this version of Dokimos reads "
                f"{SCHEMA}; use the version that wrote it.",
            )
        if torn is not None and document.get("event") != "resumed":
            raise _damaged(Place(str(path), torn), "no JSON")
        torn = None
        try:
            yield to_event(document, file=place)
        except UnreadableFile as error:
            raise _damaged(place, error.reason) from error


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a journal without their newlines, one at a time; none if there is no file."""
    try:
        with os.fdopen(os.open(contained(path.parent, path.name), os.O_RDONLY), "rb") as file:
            while line := file.readline(MOST_BYTES + 1):
                if len(line) > MOST_BYTES:
                    raise UnreadableFile(path, f"a line of the journal holds more than {MOST_BYTES} bytes.")
                yield line.removesuffix(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnreadableFile(path, f"the journal cannot be read: {error.strerror}.") from error


def _damaged(place: Place, why: str) -> UnreadableFile:
    return UnreadableFile(
        place,
        f"this line of the journal is damaged ({why}); remove it to repeat that run, or use another "
        "folder.",
    )
