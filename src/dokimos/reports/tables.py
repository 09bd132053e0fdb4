"""The rows of every table and figure of the page as CSV, for those who want to compute with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dokimos.core.files import write_whole
from dokimos.reports.explained_tables import explained_tables
from dokimos.reports.rows import ReportRows
from dokimos.reports.table_rows import TableRows, table, value_of
from dokimos.suites.profile_file import COMPONENTS, Measurement


def write_tables(rows: ReportRows, folder: Path) -> tuple[str, ...]:
    """Write every table to `folder`, which is made if missing; returns the names of the files."""
    names = []
    for one in tables(rows):
        path = folder / f"{one.name}.csv"
        write_whole(path, one.csv().encode("utf-8", errors="replace"), what="the table")
        names.append(path.name)
    return tuple(names)


def tables(rows: ReportRows) -> Iterator[TableRows]:
    """Every table; one without rows is there, too, with its heading."""
    yield _wrong(rows)
    yield _matrix(rows)
    yield table(
        "cactus",
        ("verifier", "solved", "seconds"),
        [(s.verifier, k, t) for s in rows.cactus for k, t in enumerate(s.wall_seconds, start=1)],
    )
    yield _runs(rows)
    yield _instances(rows)
    if rows.scoring is not None:
        scoring = rows.scoring
        yield table(
            "scores",
            ("benchmark", "verifier", "rules", "points", "worth"),
            [
                (row.suite or "all", row.verifier, name, row.points[k], row.worths[k])
                for row in (*scoring.scores, *scoring.totals)
                for k, name in enumerate(scoring.rules)
            ],
        )
        yield table(
            "disagreements",
            ("instance", "verifier", "label", "answer", "rules", "standing", "points", "reason"),
            [
                (
                    d.instance,
                    d.verifier,
                    value_of(d.label),
                    d.answer.value,
                    mark.rules,
                    mark.standing.value,
                    mark.points,
                    mark.reason,
                )
                for d in scoring.disagreements
                for mark in d.marks
            ],
        )
    if rows.support is not None:
        matrix = rows.support
        yield table(
            "operators",
            ("operator", "form", "verifier", "support", "detail"),
            [
                (row.op, row.variant, matrix.verifiers[k], cell.text, cell.detail)
                for row in matrix.rows
                for k, cell in enumerate(row.cells)
                if cell is not None
            ],
        )
    if rows.explanation is not None:
        yield from explained_tables(rows.explanation)


def _wrong(rows: ReportRows) -> TableRows:
    return table(
        "wrong_answers",
        (
            "verdict",
            "instance",
            "family",
            "verifier",
            "claim",
            "truth",
            "certificate",
            "reason",
            "in_box",
            "outside_by",
            "violates_exactly",
            "slack",
            "violates_in_onnxruntime",
            "reproduce",
        ),
        [
            (row.verdict.value, row.instance, row.family, row.verifier, row.claim.value)
            + (value_of(row.truth), row.certificate, row.reason)
            + (
                (None,) * 5
                if (replay := row.replay) is None
                else (
                    replay.in_box,
                    replay.outside_by.full,
                    replay.violates_exactly,
                    None if replay.violation is None else replay.violation.full,
                    replay.violates_in_onnxruntime,
                )
            )
            + (row.reproduce,)
            for row in rows.wrong
        ],
    )


def _matrix(rows: ReportRows) -> TableRows:
    return table(
        "families",
        (
            "family",
            "verifier",
            "solved",
            "confirmed",
            "wrong",
            "timeouts",
            "undecided",
            "total",
            "timed",
            "mean_seconds",
            "deviation_seconds",
        ),
        [
            (
                c.family or "all",
                c.verifier,
                c.solved,
                c.confirmed,
                c.wrong,
                c.timeouts,
                c.undecided,
                c.total,
                c.timed,
                c.mean_seconds,
                c.deviation_seconds,
            )
            for c in rows.matrix
        ],
    )


def _runs(rows: ReportRows) -> TableRows:
    return table(
        "runs",
        (
            "instance",
            "family",
            "verifier",
            "repeat",
            "label",
            "answer",
            "verdict",
            "wall_seconds",
            "cpu_seconds",
            "peak_memory_bytes",
            "ended",
            "reason",
            "detail",
            "log",
        ),
        [
            (
                r.instance,
                r.family,
                r.verifier,
                r.repeat,
                value_of(r.label),
                r.answer.value,
                r.verdict.value,
                r.wall_seconds,
                r.cpu_seconds,
                r.peak_memory_bytes,
                r.termination,
                r.reason,
                r.detail,
                r.log,
            )
            for r in rows.runs
        ],
    )


def _instances(rows: ReportRows) -> TableRows:
    extras = tuple(dict.fromkeys(name for row in rows.instances for name in row.extras))
    return table(
        "instances",
        (
            "instance",
            "suite",
            "family",
            "label",
            "certificate",
            "knobs",
            *COMPONENTS,
            *extras,
            "notes",
            "no_profile",
        ),
        [
            (
                row.name,
                row.suite,
                row.family,
                value_of(row.label),
                row.certificate,
                json.dumps(dict(row.parameters), ensure_ascii=False),
                *_numbers(row.components, COMPONENTS),
                *_numbers(row.extras, extras),
                _notes({**row.components, **row.extras}),
                row.problem,
            )
            for row in rows.instances
        ],
    )


def _numbers(found: Mapping[str, Measurement], names: Sequence[str]) -> tuple[float | None, ...]:
    return tuple(found[name].value if name in found else None for name in names)


def _notes(found: Mapping[str, Measurement]) -> str:
    return "; ".join(f"{name}: {one.note}" for name, one in found.items() if one.note)
