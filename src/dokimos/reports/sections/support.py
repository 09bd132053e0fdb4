"""Which operators each verifier can read: the family `ops`, one row for each form of an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from rich.table import Table
from rich.text import Text

from dokimos.core.readable import printable
from dokimos.core.tables import HIDDEN, Column, TableRows, table
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.reports.findings import Findings, Known
from dokimos.reports.sections.base import Section
from dokimos.reports.terminal_tables import grid
from dokimos.suites.instance import Answer, Label

FAMILY = "ops"


class Support(Enum):
    """How a verifier did on the two instances of one form of an operator; the first that applies counts."""

    WRONG = "wrong"
    BOTH = "both"
    ONE = "one"
    UNSUPPORTED = "unsupported"
    ERROR = "error"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class SupportCell:
    """One verifier on one form: in a word, and what it answered on each instance."""

    support: Annotated[Support, HIDDEN]
    text: Annotated[str, Column("support")]
    detail: str


@dataclass(frozen=True)
class SupportRow:
    """One form of an operator; a cell for each verifier, None if it was not run."""

    op: Annotated[str, Column("operator")]
    variant: Annotated[str, Column("form")]
    about: Annotated[str, HIDDEN]
    misread: Annotated[str, HIDDEN]
    cells: tuple[SupportCell | None, ...]


@dataclass(frozen=True)
class SupportRows:
    """The matrix, its columns, and for each column how often each outcome occurs."""

    verifiers: tuple[str, ...]
    rows: tuple[SupportRow, ...]
    counts: tuple[Mapping[Support, int], ...]


class OperatorSupport(Section[SupportRows]):
    """Which of the two instances of each form of an operator each verifier answers."""

    name = "support"
    title = "Operators and verifiers"
    link = "Operators"

    def rows(self, findings: Findings) -> SupportRows | None:
        return support_rows(findings.judgements, findings.naming, findings.known)

    def tables(self, rows: SupportRows) -> Iterator[TableRows]:
        cells = [
            (row, rows.verifiers[k], cell)
            for row in rows.rows
            for k, cell in enumerate(row.cells)
            if cell is not None
        ]
        yield table("operators", [SupportRow, "verifier", SupportCell], cells)

    def lines(self, rows: SupportRows) -> Iterator[Table]:
        yield support_table(rows)


def support_rows(judgements: Sequence[Judgement], naming: Naming, known: Known) -> SupportRows | None:
    """The matrix of all runs on the family `ops`; None if there are none.

    `known` is what the suites know about their instances, by suite and instance: it names the forms.
    """
    groups: dict[str, dict[str, list[Judgement]]] = {}
    for judgement in judgements:
        record = judgement.record
        facts = known.get((record.suite, record.instance))
        variant = facts.made_by.get("variant") if facts else None
        if record.family == FAMILY and isinstance(variant, str):
            groups.setdefault(variant, {}).setdefault(naming.verifier(record), []).append(judgement)
    if not groups:
        return None
    verifiers = tuple(sorted({verifier for group in groups.values() for verifier in group}))
    rows = sorted((_row(v, group, verifiers) for v, group in groups.items()), key=_order)
    counts = tuple(_counts([row.cells[k] for row in rows]) for k in range(len(verifiers)))
    return SupportRows(verifiers, tuple(rows), counts)


def _counts(column: Sequence[SupportCell | None]) -> Mapping[Support, int]:
    """How often each outcome occurs in a column, in the order of the outcomes, without zeros."""
    found = Counter(cell.support for cell in column if cell)
    return {support: found[support] for support in Support if found[support]}


def _order(row: SupportRow) -> tuple[str, str]:
    return (row.op.lower(), row.variant)


def _row(name: str, group: Mapping[str, list[Judgement]], verifiers: Sequence[str]) -> SupportRow:
    from dokimos.constructions.operators import VARIANTS

    variant = VARIANTS.get(name)
    return SupportRow(
        op=variant.op if variant else "",
        variant=printable(name),
        about=variant.about if variant else "",
        misread="; ".join(variant.misreadings) if variant else "",
        cells=tuple(_cell(group[v]) if v in group else None for v in verifiers),
    )


def _cell(runs: Sequence[Judgement]) -> SupportCell:
    solved = [
        label
        for label in Label
        if (own := [j.verdict is Verdict.CORRECT for j in runs if j.label is label]) and all(own)
    ]
    support = _support(runs, solved)
    text = f"{solved[0].value} only" if support is Support.ONE else support.value
    return SupportCell(support, text, "; ".join(sorted({_answered(j) for j in runs})))


def _support(runs: Sequence[Judgement], solved: Sequence[Label]) -> Support:
    if any(j.verdict.is_wrong for j in runs):
        return Support.WRONG
    if solved:
        return Support.BOTH if len(solved) == len(Label) else Support.ONE
    answers = {j.record.answer for j in runs}
    for answer, support in ((Answer.UNSUPPORTED, Support.UNSUPPORTED), (Answer.ERROR, Support.ERROR)):
        if answer in answers:
            return support
    return Support.UNDECIDED


def _answered(judgement: Judgement) -> str:
    label = "no label" if judgement.label is None else judgement.label.value
    answer = judgement.record.answer.value
    verdict = judgement.verdict
    shown = answer if verdict in (Verdict.CORRECT, Verdict.UNDECIDED) else f"{answer} ({verdict.value})"
    return f"{label}: {shown}"


def support_table(support: SupportRows) -> Table:
    """Per form of an operator and verifier: the outcome, in a word."""
    styles = {Support.BOTH: "green", Support.ONE: "yellow", Support.WRONG: "bold red"}
    title = "Operators: which of the two instances are solved"
    table = grid(("operator", "form", *support.verifiers), title=title)
    previous = None
    for row in support.rows:
        cells = [Text(c.text, style=styles.get(c.support, "dim")) if c else Text("-") for c in row.cells]
        table.add_row(Text("" if row.op == previous else row.op), Text(row.variant), *cells)
        previous = row.op
    table.add_section()
    sums = [", ".join(f"{n} {s.value}" for s, n in counts.items()) for counts in support.counts]
    table.add_row(Text("all"), Text(str(len(support.rows))), *map(Text, sums))
    return table
