"""What each verifier can read: the family `ops`, one row for each form of an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from dokimos.core.readable import printable
from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.facts import Facts
from dokimos.suites.instance import Label

FAMILY = "ops"


class Support(Enum):
    """How a verifier did on the two instances of one form of an operator; the first that applies."""

    WRONG = "wrong"
    BOTH = "both"
    ONE = "one"
    UNSUPPORTED = "unsupported"
    ERROR = "error"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class SupportCell:
    """One verifier on one form: in a word, and what it answered on each instance."""

    support: Support
    text: str
    detail: str


@dataclass(frozen=True)
class SupportRow:
    """One form of an operator; a cell for each verifier, None where it was not run."""

    op: str
    variant: str
    about: str
    misread: str
    cells: tuple[SupportCell | None, ...]


@dataclass(frozen=True)
class SupportRows:
    """The matrix, its columns, and for each column how often each word stands in it."""

    verifiers: tuple[str, ...]
    rows: tuple[SupportRow, ...]
    counts: tuple[Mapping[Support, int], ...]


def support_rows(
    judgements: Sequence[Judgement], naming: Naming, known: Mapping[tuple[str, str], Facts]
) -> SupportRows | None:
    """The matrix of all runs on the family `ops`; None where there are none.

    `known` is what the suites know of their instances, by suite and instance: it names the forms.
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
    """How often each word stands in a column, in the order of the words, without those that do not."""
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
        misread=(variant.misread if variant else None) or "",
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
    return SupportCell(support, text, "; ".join(sorted({_told(j) for j in runs})))


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


def _told(judgement: Judgement) -> str:
    label = "no label" if judgement.label is None else judgement.label.value
    answer = judgement.record.answer.value
    verdict = judgement.verdict
    shown = answer if verdict in (Verdict.CORRECT, Verdict.UNDECIDED) else f"{answer} ({verdict.value})"
    return f"{label}: {shown}"
