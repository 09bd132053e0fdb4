"""By family and verifier: how many runs were solved, and how long that took; and the cactus plot."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dokimos.core.readable import seconds
from dokimos.core.tables import Column, TableRows, table
from dokimos.difficulty.explain.rows import Status, status_of
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.reports.campaign_report import headline_of
from dokimos.reports.figures.curves import CactusSeries, cactus
from dokimos.reports.figures.frame import Figure, Pair, pair
from dokimos.reports.findings import Findings, RunOutcome
from dokimos.reports.sections.base import Section
from dokimos.reports.terminal_tables import VerifierName, grid

# A short glossary: the terms of a report, each explained in a sentence


GLOSSARY = (
    ("sat", "Some input in the box violates the property: there is a counterexample."),
    ("unsat", "No input in the box violates the property: it is proven to hold."),
    ("label", "The true answer, sat or unsat, with a proof that was checked in exact arithmetic."),
    ("witness", "The input that a verifier gives with sat, to show that the property is violated there."),
    (
        "twin",
        "The sat counterpart of an unsat instance, made by a small change that breaks the property.",
    ),
    ("margin", "How far an output is from violating the property; if negative, by how much it violates."),
    ("slack", "The margin with the opposite sign: at 0 or above, the point violates the property."),
    ("solved", "Decided, and a label or an exact witness confirms it."),
    ("wrong", "Decided, and a proof or an exact computation refutes it."),
    (
        "undecided",
        "No answer: unknown, timeout, out of memory, an error, or an operator that is not supported.",
    ),
    ("unchecked", "Decided, and nothing confirms or refutes it."),
    ("time", "Over solved runs and timeouts; a timeout counts with its limit. Errors have no time."),
)
"""Words and what they mean, in the order in which they build on each other."""


_STYLES = {
    "correct": "green",
    "wrong": "bold red",
    "undecided": "yellow",
    "other": "cyan",
    "unchecked": "magenta",
}


@dataclass(frozen=True)
class TallyRow:
    """How one verifier did on one family (`family` is None for all of them together)."""

    family: str | None
    verifier: str
    correct: int
    wrong: int
    undecided: int
    other: int
    wall_seconds_total: float
    unchecked: int = 0

    @property
    def total(self) -> int:
        """How many runs there were."""
        return self.correct + self.wrong + self.undecided + self.other + self.unchecked

    @property
    def wall_seconds_mean(self) -> float:
        """The mean wall-clock time of a run (0 if there are no runs)."""
        return self.wall_seconds_total / self.total if self.total else 0.0


@dataclass(frozen=True)
class MatrixCell:
    """How one verifier did on one family (None: on all of them).

    A run is *solved* if it decided and a label or an exact witness confirms that; `confirmed` counts those
    whose witness, if one is due, holds too. `unchecked` counts decisions that nothing confirms or refutes.
    Times are those of solved runs and timeouts, where a timeout counts with its limit (as in Figure 4 of
    the paper): there are `timed` of them, with their mean and their sample standard deviation, which needs
    two. The times of failed and undecided runs are not meaningful. `undecided` includes the timeouts.
    """

    family: Annotated[str | None, Column(for_none="all")]
    verifier: str
    solved: int
    confirmed: int
    wrong: int
    timeouts: int
    undecided: int
    total: int
    timed: int
    mean_seconds: float | None
    deviation_seconds: float | None
    unchecked: int = 0


@dataclass(frozen=True)
class FamilyRows:
    """The result in a sentence, and how each verifier did on each family.

    `tallies` has a row for each family and verifier, `totals` one for each verifier. `stand_in` says if
    witnesses were not replayed by onnxruntime. If verifiers were run on different instances, `remark` says
    so, and `common` and `common_cells` have the sums over the instances that all of them were run on.
    """

    headline: str
    tallies: tuple[TallyRow, ...]
    totals: tuple[TallyRow, ...]
    cells: tuple[MatrixCell, ...]
    stand_in: str = ""
    remark: str = ""
    common: tuple[TallyRow, ...] = ()
    common_cells: tuple[MatrixCell, ...] = ()

    @property
    def verifiers(self) -> list[str]:
        """Every verifier, by name."""
        return [total.verifier for total in self.totals]

    @property
    def families(self) -> list[str]:
        """Every family, by name."""
        return sorted({tally.family for tally in self.tallies if tally.family is not None})


class Families(Section[FamilyRows]):
    """How much of each family each verifier solves, and how fast."""

    name = "families"
    title = "By family and verifier"
    link = "Families"

    def rows(self, findings: Findings) -> FamilyRows:
        judgements, naming, remark = findings.judgements, findings.naming, findings.common.remark
        common = findings.common_by_verifier() if len(findings.common.judgements) < len(judgements) else {}
        return FamilyRows(
            headline=headline_of(judgements, naming),
            tallies=_tallies(judgements, naming),
            totals=tuple(_tally(None, name, group) for name, group in findings.by_verifier().items()),
            cells=matrix_cells(judgements, naming),
            stand_in=_stand_in(judgements),
            remark=remark,
            common=tuple(_tally(None, name, group) for name, group in common.items()),
            common_cells=tuple(_cell(None, name, group) for name, group in common.items()),
        )

    def view(self, rows: FamilyRows) -> Mapping[str, Any]:
        cells = {(cell.family, cell.verifier): cell for cell in rows.cells}
        return {
            "cells": cells,
            "common": {cell.verifier: cell for cell in rows.common_cells},
            "unchecked": any(cell.unchecked for cell in rows.cells),
            "glossary": GLOSSARY,
        }

    def tables(self, rows: FamilyRows) -> Iterator[TableRows]:
        yield table("families", [MatrixCell], [(cell,) for cell in rows.cells])

    def lines(self, rows: FamilyRows) -> Iterator[RenderableType]:
        yield summary_table(rows)
        if rows.remark:
            yield Text(rows.remark, style="yellow")
        if rows.stand_in:
            yield Text(rows.stand_in)


def _stand_in(judgements: Sequence[Judgement]) -> str:
    replays = [j.replay for j in judgements if j.replay is not None]
    replaced = [replay.runtime for replay in replays if not replay.is_by_onnxruntime]
    others = sorted(set(replaced))
    return (
        f"Replayed by {' and '.join(others)}, as onnxruntime cannot run the network: "
        f"{len(replaced)} of {len(replays)} witnesses."
        if others
        else ""
    )


def matrix_cells(judgements: Sequence[Judgement], naming: Naming) -> tuple[MatrixCell, ...]:
    """A cell for each family and verifier with runs, by family; then the sums, by verifier."""
    groups: dict[tuple[str, str], list[Judgement]] = {}
    sums: dict[str, list[Judgement]] = {}
    for j in judgements:
        verifier = naming.verifier(j.record)
        groups.setdefault((naming.family(j.record), verifier), []).append(j)
        sums.setdefault(verifier, []).append(j)
    cells = [_cell(*key, groups[key]) for key in sorted(groups)]
    return (*cells, *(_cell(None, verifier, sums[verifier]) for verifier in sorted(sums)))


def _cell(family: str | None, verifier: str, judgements: Sequence[Judgement]) -> MatrixCell:
    statuses = [status_of(j) for j in judgements]
    times = [
        _limit(j) if status is Status.TIMEOUT else j.record.wall_seconds
        for j, status in zip(judgements, statuses, strict=True)
        if status in (Status.SOLVED, Status.TIMEOUT)
    ]
    solved, wrong = statuses.count(Status.SOLVED), statuses.count(Status.WRONG)
    unchecked = statuses.count(Status.UNCHECKED)
    return MatrixCell(
        family=family,
        verifier=verifier,
        solved=solved,
        confirmed=sum(j.verdict is Verdict.CORRECT for j in judgements),
        wrong=wrong,
        timeouts=statuses.count(Status.TIMEOUT),
        undecided=len(statuses) - solved - wrong - unchecked,
        total=len(statuses),
        timed=len(times),
        mean_seconds=statistics.fmean(times) if times else None,
        deviation_seconds=statistics.stdev(times) if len(times) > 1 else None,
        unchecked=unchecked,
    )


def _limit(judgement: Judgement) -> float:
    record = judgement.record
    return record.wall_seconds if record.limits is None else record.limits.wall_seconds


def _tally(family: str | None, verifier: str, judgements: Sequence[Judgement]) -> TallyRow:
    outcomes = [RunOutcome.of(j.verdict) for j in judgements]
    return TallyRow(
        family=family,
        verifier=verifier,
        correct=outcomes.count(RunOutcome.CORRECT),
        wrong=outcomes.count(RunOutcome.WRONG),
        undecided=outcomes.count(RunOutcome.UNDECIDED),
        other=outcomes.count(RunOutcome.OTHER),
        wall_seconds_total=sum(j.record.wall_seconds for j in judgements),
        unchecked=outcomes.count(RunOutcome.UNCHECKED),
    )


def _tallies(judgements: Sequence[Judgement], naming: Naming) -> tuple[TallyRow, ...]:
    cells: dict[tuple[str, str], list[Judgement]] = {}
    for j in judgements:
        cells.setdefault((naming.family(j.record), naming.verifier(j.record)), []).append(j)
    return tuple(_tally(family, verifier, cells[family, verifier]) for family, verifier in sorted(cells))


def summary_table(rows: FamilyRows) -> Table:
    """Per family and verifier: the number of correct, wrong, undecided and other runs, and the time.

    There is a column for unchecked runs if there are any. With more than one family, a line per verifier
    sums them up.
    """
    columns = [name for name in _STYLES if name != "unchecked" or any(t.unchecked for t in rows.totals)]
    numbers = (*columns, "runs", "mean s", "total s")
    table = grid(("family", "verifier", *numbers), title=rows.headline, right=numbers)
    previous = None
    for tally in rows.tallies:
        table.add_row(*_cells(tally, "" if tally.family == previous else tally.family or "", columns))
        previous = tally.family
    if len({tally.family for tally in rows.tallies}) > 1:
        table.add_section()
        for k, tally in enumerate(rows.totals):
            table.add_row(*_cells(tally, "all families" if k == 0 else "", columns))
    if rows.common:
        table.add_section()
        for k, tally in enumerate(rows.common):
            table.add_row(*_cells(tally, "run by all" if k == 0 else "", columns))
    return table


def _cells(tally: TallyRow, family: str, columns: Sequence[str]) -> list[Text]:
    counts = [(getattr(tally, name), _STYLES[name]) for name in columns]
    return [
        Text(family),
        VerifierName(tally.verifier),
        *(Text(str(count), style=style if count else "dim") for count, style in counts),
        Text(str(tally.total)),
        Text(seconds(tally.wall_seconds_mean)),
        Text(seconds(tally.wall_seconds_total)),
    ]


@dataclass(frozen=True)
class CactusRows:
    """A curve for each verifier, and the time limit of every run if there is just one."""

    series: tuple[CactusSeries, ...]
    limit_wall_seconds: float | None


class Cactus(Section[CactusRows]):
    """The cactus plot."""

    name = "cactus"
    title = "Cactus plot"
    link = "Cactus plot"

    def rows(self, findings: Findings) -> CactusRows:
        series = tuple(
            CactusSeries(
                verifier=verifier,
                wall_seconds=tuple(
                    sorted(j.record.wall_seconds for j in group if j.verdict is Verdict.CORRECT)
                ),
            )
            for verifier, group in findings.common_by_verifier().items()
        )
        return CactusRows(series, findings.limit_wall_seconds)

    def lacks(self, rows: CactusRows) -> str:
        if any(one.wall_seconds for one in rows.series):
            return ""
        return "No run is solved; `dokimos run` with a longer `--timeout` may solve some."

    def view(self, rows: CactusRows) -> Mapping[str, Any]:
        return {"plot": _plot(rows)}

    def tables(self, rows: CactusRows) -> Iterator[TableRows]:
        points = [
            (one.verifier, solved, seconds)
            for one in rows.series
            for solved, seconds in enumerate(one.wall_seconds, start=1)
        ]
        yield table("cactus", ["verifier", "solved", "seconds"], points)

    def figures(self, rows: CactusRows) -> Iterator[Figure]:
        plot = _plot(rows)
        if plot is not None:
            yield plot.wide


def _plot(rows: CactusRows) -> Pair | None:
    return pair(lambda w: cactus(rows.series, limit_wall_seconds=rows.limit_wall_seconds, width=w))
