"""What has changed since an earlier campaign: the same verifiers on the same instances, then and now."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

from dokimos.core.tables import HIDDEN, TableRows, table
from dokimos.difficulty.explain.rows import Status, status_of
from dokimos.judging.verdicts import Judgement
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section

SLOWER, AT_LEAST_SECONDS = 2.0, 1.0
"""A solved run counts as slower or faster from this factor and this many seconds on."""

LISTED = 200
"""How many changes the page lists; the table has all of them."""


class Change(Enum):
    """How a run changed; the worst first."""

    NEWLY_WRONG = "newly wrong"
    LOST = "no longer solved"
    SLOWER = "slower"
    MENDED = "no longer wrong"
    GAINED = "newly solved"
    FASTER = "faster"
    OTHER = "otherwise"

    @property
    def is_bad(self) -> bool:
        """Whether the verifier does worse than before."""
        return self in (Change.NEWLY_WRONG, Change.LOST, Change.SLOWER)


@dataclass(frozen=True)
class ChangeRow:
    """One run that has changed."""

    change: Change
    instance: str
    title: Annotated[str, HIDDEN]
    verifier: str
    before: Status
    now: Status
    before_seconds: float
    now_seconds: float


@dataclass(frozen=True)
class ProgressRow:
    """One verifier on the runs in both campaigns; `ratio` is the median ratio of times (solved in both)."""

    verifier: str
    runs: int
    solved_before: int
    solved: int
    wrong_before: int
    wrong: int
    ratio: float | None


@dataclass(frozen=True)
class ChangeRows:
    """The earlier campaigns by name, each verifier then and now, and every change.

    `only_now` runs have no earlier one; `only_before` have none now; `other_files` are on instances whose
    files have changed.
    """

    earlier: tuple[str, ...]
    progress: tuple[ProgressRow, ...]
    changes: tuple[ChangeRow, ...]
    only_now: int
    only_before: int
    other_files: int


class Changes(Section[ChangeRows]):
    """The comparison with an earlier campaign."""

    name = "changes"
    title = "Since the earlier run"
    link = "Changes"

    def rows(self, findings: Findings) -> ChangeRows | None:
        return None if findings.earlier is None else change_rows(findings)

    def lacks(self, rows: ChangeRows) -> str:
        if rows.progress:
            return ""
        again = "`dokimos report RUN --against EARLIER` compares two that have runs in common"
        return f"No verifier was run on the same instances before; {again}."

    def view(self, rows: ChangeRows) -> Mapping[str, Any]:
        counts = Counter(row.change for row in rows.changes)
        return {"counts": [(c, counts[c]) for c in Change if counts[c]], "listed": LISTED}

    def tables(self, rows: ChangeRows) -> Iterator[TableRows]:
        yield table("progress", [ProgressRow], [(row,) for row in rows.progress])
        yield table("changes", [ChangeRow], [(row,) for row in rows.changes])


Key = tuple[str, str, str, int]


def change_rows(findings: Findings) -> ChangeRows:
    """Compare the findings with `findings.earlier`, by suite, instance, verifier and repeat."""
    assert findings.earlier is not None
    earlier = findings.earlier
    now, before = _by_run(findings.judgements), _by_run(earlier.judgements)
    both = [key for key in now if key in before]
    same = [key for key in both if not _is_other(findings, key)]
    groups: dict[str, list[Key]] = {}
    for key in same:
        groups.setdefault(findings.naming.verifier(now[key].record), []).append(key)
    progress = [_progress(name, [(before[k], now[k]) for k in keys]) for name, keys in groups.items()]
    found = [row for key in same if (row := _change(findings, before[key], now[key])) is not None]
    order = list(Change)
    return ChangeRows(
        earlier=earlier.names,
        progress=tuple(sorted(progress, key=lambda row: row.verifier)),
        changes=tuple(sorted(found, key=lambda row: (order.index(row.change), row.verifier, row.instance))),
        only_now=len(now) - len(both),
        only_before=len(before) - len(both),
        other_files=len(both) - len(same),
    )


def _by_run(judgements: Sequence[Judgement]) -> dict[Key, Judgement]:
    """The runs by their name in both campaigns; versions may differ."""
    return {(j.record.suite, j.record.instance, j.record.verifier, j.record.repeat): j for j in judgements}


def _is_other(findings: Findings, key: Key) -> bool:
    """Whether an instance of that name is known to have had different files."""
    assert findings.earlier is not None
    mine, old = findings.known.get(key[:2]), findings.earlier.known.get(key[:2])
    if mine is None or old is None:
        return False
    return (mine.network_sha256, mine.property_sha256) != (old.network_sha256, old.property_sha256)


def _progress(verifier: str, runs: Sequence[tuple[Judgement, Judgement]]) -> ProgressRow:
    pairs = [(status_of(old), status_of(new)) for old, new in runs]
    ratios = [
        new.record.wall_seconds / max(old.record.wall_seconds, 1e-3)
        for (old, new), pair in zip(runs, pairs, strict=True)
        if pair == (Status.SOLVED, Status.SOLVED)
    ]
    return ProgressRow(
        verifier=verifier,
        runs=len(runs),
        solved_before=sum(old is Status.SOLVED for old, _ in pairs),
        solved=sum(new is Status.SOLVED for _, new in pairs),
        wrong_before=sum(old is Status.WRONG for old, _ in pairs),
        wrong=sum(new is Status.WRONG for _, new in pairs),
        ratio=statistics.median(ratios) if ratios else None,
    )


def _change(findings: Findings, old: Judgement, new: Judgement) -> ChangeRow | None:
    was, status = status_of(old), status_of(new)
    kind = change_of(was, status, old.record.wall_seconds, new.record.wall_seconds)
    if kind is None:
        return None
    record = new.record
    return ChangeRow(
        change=kind,
        instance=findings.naming.instance(record),
        title=findings.titles.get((record.suite, record.instance), ""),
        verifier=findings.naming.verifier(record),
        before=was,
        now=status,
        before_seconds=old.record.wall_seconds,
        now_seconds=record.wall_seconds,
    )


def change_of(before: Status, now: Status, before_seconds: float, now_seconds: float) -> Change | None:
    """How a run changed; None if it did not."""
    if before is now:
        if now is not Status.SOLVED or abs(now_seconds - before_seconds) < AT_LEAST_SECONDS:
            return None
        if now_seconds >= SLOWER * before_seconds:
            return Change.SLOWER
        return Change.FASTER if before_seconds >= SLOWER * now_seconds else None
    if now is Status.WRONG:
        return Change.NEWLY_WRONG
    if before is Status.SOLVED:
        return Change.LOST
    if now is Status.SOLVED:
        return Change.GAINED if before is not Status.WRONG else Change.MENDED
    return Change.MENDED if before is Status.WRONG else Change.OTHER
