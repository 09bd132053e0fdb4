"""The rows of an explanation as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dokimos.difficulty.explain.rows import Explanation
from dokimos.reports.table_rows import TableRows, table, value_of
from dokimos.suites.profile_file import COMPONENTS


def explained_tables(found: Explanation) -> Iterator[TableRows]:
    """What the figures about difficulty show: a row for each of their marks."""
    accounts = [("verifier", a) for a in found.verifiers] + [("style", a) for a in found.styles]
    yield table(
        "separations",
        ("kind", "subject", "component", "auc", "low", "high", "solved", "timeouts", "left_out", "note"),
        [
            (kind, s.subject, s.component, s.auc, s.low, s.high, s.solved, s.timeouts, s.left_out, s.note)
            for kind, account in accounts
            for s in account.separations
        ],
    )
    yield table(
        "interactions",
        (
            "kind",
            "subject",
            "first",
            "second",
            "effect",
            "low",
            "high",
            "note",
            "first_from",
            "first_to",
            "second_from",
            "second_to",
            "timeouts",
            "total",
        ),
        [
            (
                kind,
                row.subject,
                row.first,
                row.second,
                row.effect,
                row.low,
                row.high,
                row.note,
                row.first_edges[i],
                row.first_edges[i + 1],
                row.second_edges[j],
                row.second_edges[j + 1],
                cell.timeouts,
                cell.total,
            )
            for kind, account in accounts
            for row in account.interactions
            for i, column in enumerate(row.cells)
            for j, cell in enumerate(column)
        ],
    )
    yield table(
        "breaking",
        (
            "kind",
            "subject",
            "suite",
            "family",
            "label",
            "knob",
            "value",
            "status",
            "seconds",
            "solved",
            "total",
            "breaks_at",
            "broken_by",
            "last_solved",
            "note",
            "fixed",
        ),
        [
            (
                kind,
                c.subject,
                c.suite,
                c.family,
                c.label,
                c.knob,
                rung.value,
                rung.status.value,
                rung.seconds,
                rung.solved,
                rung.total,
                c.breaks_at,
                value_of(c.broken_by),
                c.last_solved,
                c.note,
                json.dumps(dict(c.fixed)),
            )
            for kind, account in accounts
            for c in account.curves
            for rung in c.points
        ],
    )
    yield table(
        "trajectories",
        ("suite", "position", "instance", "family", *COMPONENTS, "verifier", "status", "seconds"),
        [
            (
                path.suite,
                step.position,
                step.instance,
                step.family,
                *tuple(step.components.get(name) for name in COMPONENTS),
                verifier,
                status.value,
                step.seconds[verifier],
            )
            for path in found.trajectories
            for step in path.steps
            for verifier, status in step.outcomes.items()
        ],
    )
    yield table(
        "alone",
        ("subject", "in", "suite", "instance", "family", "status", "seconds", "others"),
        [
            (a.subject, a.lone.value, a.suite, a.instance, a.family, a.status.value, a.seconds, a.others)
            for _, account in accounts
            for a in account.alone
        ],
    )
