"""All instances and runs as one compact JSON document, which the page holds once and its script reads.

Texts stand in a pool and are referred to by number, as most of them stand in many runs; in commands and
names of logs the instance's own name is cut out for the same reason. `instances.js` is the reader.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dokimos.difficulty.components import describe, symbol
from dokimos.reports.sections.instances.rows import CampaignRows, InstanceRow, RunRow
from dokimos.suites.profile_file import COMPONENTS, Measurement

NAME = "\0"
"""Stands for the instance's name in a command."""

_DIGITS = 7


def payload(rows: CampaignRows) -> str:
    """The document, safe to stand in a script element of HTML."""
    pool = _TextPool()
    extras = list(dict.fromkeys(name for i in rows.instances for name in i.extras))
    verifiers = rows.verifiers
    numbers = {instance.name: k for k, instance in enumerate(rows.instances)}
    document = {
        "several": any(i.name != i.own_name for i in rows.instances),
        "verifiers": verifiers,
        "components": [[name, symbol(name), describe(name)] for name in COMPONENTS],
        "extras": [[name, describe(name)] for name in extras],
        "instances": [_instance(i, extras, pool) for i in rows.instances],
        "runs": [_run(r, numbers[r.instance], verifiers.index(r.verifier), pool) for r in rows.runs],
        "pool": pool.texts,
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _harmless(text)


class _TextPool:
    """Texts, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        return list(self._numbers)


def _instance(row: InstanceRow, extras: Sequence[str], pool: _TextPool) -> list[Any]:
    label = row.label.value if row.label else ""
    return [
        row.own_name,
        pool(row.family),
        pool(row.suite),
        pool(label),
        pool(row.certificate),
        [[pool(name), value] for name, value in row.parameters],
        _measurements(row.components, COMPONENTS, pool),
        _measurements(row.extras, extras, pool),
        pool(row.problem),
        pool(_knobs_of(row)),
    ]


def _knobs_of(row: InstanceRow) -> str:
    """The title without the family, which it begins with."""
    return row.title.removeprefix(f"{row.family}, ")


def _measurements(found: Mapping[str, Measurement], names: Sequence[str], pool: _TextPool) -> list[Any]:
    """For each name: null (not measured), a number, or one of both and the text that qualifies it."""
    return [None if name not in found else _measurement(found[name], pool) for name in names]


def _measurement(found: Measurement, pool: _TextPool) -> Any:
    value = None if found.value is None else float(f"{found.value:.{_DIGITS}g}")
    return [value, pool(found.note)] if found.note else value


def _run(row: RunRow, instance: int, verifier: int, pool: _TextPool) -> list[Any]:
    return [
        instance,
        verifier,
        row.repeat,
        pool(row.answer.value),
        pool(row.verdict.value),
        pool(row.outcome.value),
        round(row.wall_seconds, 4),
        round(row.cpu_seconds, 4),
        row.peak_memory_bytes,
        pool(row.termination),
        pool(row.reason),
        pool(row.detail),
        pool(row.log),
        pool(row.log_tail),
        pool(row.reproduce.replace(row.own_name, NAME)),
        row.anchor,
    ]


def _harmless(text: str) -> str:
    """JSON text that no HTML parser and no JavaScript engine can take for anything else."""
    for character in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
