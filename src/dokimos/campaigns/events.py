"""The events of a journal: one JSON object per line, with ``schema`` and the name of the event.

| event | fields | what it notes |
|---|---|---|
| ``started`` | job, at | a run is about to start |
| ``finished`` | record, worker (on a cluster) | a run has ended: this is its record |
| ``set-aside`` | job, reason, at | its record no longer counts: the job is to be run again |
| ``resumed`` | | a process opened a journal that another one had written |
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from dokimos.campaigns.records import RunRecord
from dokimos.core import strict_json
from dokimos.core.errors import Place, UnreadableFile
from dokimos.core.known_keys import require_known_keys

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
    event: Event = strict_json.convert(
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
    written = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    if written is None:
        raise ValueError(f"{str(value)[:40]!r} is not a fraction")
    return Fraction(int(written[1]), int(written[2] or 1))
