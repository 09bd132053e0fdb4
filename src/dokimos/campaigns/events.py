"""The events of a journal: one JSON object a line, with ``schema`` and the name of the event.

| event | fields | what it notes |
|---|---|---|
| ``started`` | job, at | a run is about to begin |
| ``finished`` | record, worker (on a cluster) | a run has ended: this is its record |
| ``set-aside`` | job, reason, at | its record no longer counts: the run is planned again |
| ``resumed`` | | a process opened a journal that others had written before |
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
#: Python reads no longer whole numbers from text.
_FRACTION = re.compile(r"(-?[0-9]{1,4300})(?:/([0-9]{1,4300}))?")


class Started(Struct, frozen=True, tag_field="event", tag="started"):
    """A run is about to begin. Only estimates use this, so that it need not make sense."""

    job: Any = None
    at: Any = None
    schema: Literal[1] = SCHEMA


class Finished(
    Struct, frozen=True, kw_only=True, tag_field="event", tag="finished", forbid_unknown_fields=True
):
    """A run has ended; `worker` did it, on a cluster."""

    worker: str | UnsetType = UNSET
    record: RunRecord
    schema: Literal[1] = SCHEMA


class SetAside(Struct, frozen=True, tag_field="event", tag="set-aside", forbid_unknown_fields=True):
    """What was recorded of a job so far no longer counts; `reason` says why, `at` when that was decided."""

    job: str
    reason: str
    at: str
    schema: Literal[1] = SCHEMA


class Resumed(Struct, frozen=True, tag_field="event", tag="resumed", forbid_unknown_fields=True):
    """Another process writes from here on."""

    schema: Literal[1] = SCHEMA


Event = Started | Finished | SetAside | Resumed


def event_line(event: Event) -> bytes:
    """The line of an event, with its end."""
    document = strict_json.plain(event)
    return json.dumps({"schema": document.pop("schema"), **document}).encode() + b"\n"


#: How every line begins.
_HEAD = b'{"schema": 1, "event": "'


def may_be_torn(line: bytes) -> bool:
    """Whether what is no JSON may be the start of an event; a loss of power may leave zeros behind it."""
    written = line.rstrip(b"\0")
    return written.startswith(_HEAD) or _HEAD.startswith(written)


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line; None where there is none, as on a line that was never completed."""
    try:
        document = strict_json.parse(line, file="")
    except UnreadableFile:
        return None
    return document if isinstance(document, dict) else None


def to_event(document: dict[str, Any], *, file: str | Path | Place) -> Event:
    """The event that a line's object is. Raises UnreadableFile."""
    event: Event = strict_json.convert(
        document,
        Event,  # type: ignore[arg-type]  # a union is no class
        file=file,
        what=_WHAT,
        hooks={Fraction: read_fraction},
    )
    if not isinstance(event, Started):
        require_known_keys(document, Event, file=file, what=_WHAT)
    return event


def read_fraction(value: Any) -> Fraction:
    """An exact number as `str` writes it. ValueError for any other text, such as 1e999999999."""
    written = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    if written is None:
        raise ValueError(f"{str(value)[:40]!r} is not a fraction")
    return Fraction(int(written[1]), int(written[2] or 1))
