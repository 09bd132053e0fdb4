"""All instances and runs as two compact JSON documents in the page, which its script reads.

The first has what the table shows, the second the rest, which the script parses only when it is needed, so
that a page with 50,000 runs is ready sooner. Both store a column for each field, since many small arrays
are slow to parse. Texts are kept in a pool and referred to by number, since most of them occur in many
runs; in commands, the instance's own name is replaced by a placeholder for the same reason. `instances.js`
is the reader.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dokimos.difficulty.components import describe, symbol
from dokimos.reports.sections.instances.rows import CampaignRows, InstanceRow, RunRow
from dokimos.suites.profile_file import COMPONENTS, Measurement

NAME = "\0"
"""The placeholder for the instance's name in a command."""

_DIGITS = 7


def payload(rows: CampaignRows) -> str:
    """What the table shows, safe to embed in a script element of HTML."""
    pool = _TextPool()
    runs, verifiers = _together(rows), rows.verifiers
    numbers = {name: k for k, name in enumerate(verifiers)}
    counts = Counter(run.instance for run in runs)
    instances = {
        "own": [i.own_name for i in rows.instances],
        "family": [pool(i.family) for i in rows.instances],
        "suite": [pool(i.suite) for i in rows.instances],
        "label": [pool(i.label.value if i.label else "") for i in rows.instances],
        "certificate": [pool(i.certificate) for i in rows.instances],
        "knobs": [pool(_knobs_of(i)) for i in rows.instances],
        "components": _measured([i.components for i in rows.instances], COMPONENTS, pool),
        "runs": [counts[i.name] for i in rows.instances],
    }
    columns = {
        "verifier": [numbers[r.verifier] for r in runs],
        "repeat": [r.repeat for r in runs],
        "answer": [pool(r.answer.value) for r in runs],
        "verdict": [pool(r.verdict.value) for r in runs],
        "outcome": [pool(r.outcome.value) for r in runs],
        "wall": [round(r.wall_seconds, 4) for r in runs],
        "reason": [pool(r.reason) for r in runs],
    }
    return _written(
        {
            "several": any(i.name != i.own_name for i in rows.instances),
            "verifiers": verifiers,
            "components": [[name, symbol(name), describe(name)] for name in COMPONENTS],
            "instances": instances,
            "runs": columns,
            "pool": pool.texts,
        }
    )


def details(rows: CampaignRows) -> str:
    """What else an instance shows when it is opened, and what is searched; as safe as `payload`."""
    pool = _TextPool()
    runs = _together(rows)
    extras = list(dict.fromkeys(name for i in rows.instances for name in i.extras))
    instances = {
        "parameters": [[[pool(name), value] for name, value in i.parameters] for i in rows.instances],
        "extras": _measured([i.extras for i in rows.instances], extras, pool),
        "problem": [pool(i.problem) for i in rows.instances],
    }
    folders = [r.log[: len(r.log) - len(r.log.rpartition("/")[2])] for r in runs]
    columns = {
        "cpu": [round(r.cpu_seconds, 4) for r in runs],
        "memory_kb": [round(r.peak_memory_bytes / 1000) for r in runs],
        "ended": [pool(r.termination) for r in runs],
        "detail": [pool(r.detail) for r in runs],
        "folder": [pool(folder) for folder in folders],
        "log": [r.log.removeprefix(folder) for r, folder in zip(runs, folders, strict=True)],
        "tail": [pool(r.log_tail) for r in runs],
        "command": [pool(r.reproduce.replace(r.own_name, NAME)) for r in runs],
        "anchor": [r.anchor for r in runs],
    }
    return _written(
        {
            "extras": [[name, describe(name)] for name in extras],
            "instances": instances,
            "runs": columns,
            "pool": pool.texts,
        }
    )


def _written(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _harmless(text)


def _together(rows: CampaignRows) -> list[RunRow]:
    """The runs, with those of one instance next to each other, as the reader expects."""
    by_instance: dict[str, list[RunRow]] = {}
    for run in rows.runs:
        by_instance.setdefault(run.instance, []).append(run)
    return [run for own in by_instance.values() for run in own]


class _TextPool:
    """Texts, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        return list(self._numbers)


def _knobs_of(row: InstanceRow) -> str:
    """The title without the family, which it begins with."""
    return row.title.removeprefix(f"{row.family}, ")


def _measured(
    found: Sequence[Mapping[str, Measurement]], names: Sequence[str], pool: _TextPool
) -> list[list[Any]]:
    """A column for each name: null (not measured), a number, or one of both and the text that qualifies
    it."""
    return [[_measurement(one[name], pool) if name in one else None for one in found] for name in names]


def _measurement(found: Measurement, pool: _TextPool) -> Any:
    value = None if found.value is None else float(f"{found.value:.{_DIGITS}g}")
    return [value, pool(found.note)] if found.note else value


def _harmless(text: str) -> str:
    """JSON text that no HTML parser or JavaScript engine can misread."""
    for character in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
