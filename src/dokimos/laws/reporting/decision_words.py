"""The outcome of deciding a law for every case, for a terminal."""

from __future__ import annotations

from dokimos.laws.proving.results import LawAnswer, LawDecision
from dokimos.laws.proving.row_deciding import RowsDecision


def decision_words(decision: LawDecision) -> str:
    """The answer, the set that it is about, which step decided, and the case that violates the law."""
    took = f"{decision.step}, {decision.seconds:.1f} s"
    head = f"{decision.law.name}: {decision.answer.value}"
    match decision.answer:
        case LawAnswer.PROVEN:
            zones = 0 if decision.cover is None else decision.cover.leaves
            checked = f"{zones:,} zone{'s' * (zones != 1)}, each checked"
            left_out = f"\n  but {decision.left_out}" if decision.left_out else ""
            return f"{head} for {decision.over}, {decision.semantics} ({took}; {checked}){left_out}"
        case LawAnswer.VIOLATED:
            words = "" if decision.violation is None else f"\n  - {decision.violation.words}"
            return f"{head} in {decision.over} ({took}){words}"
        case LawAnswer.REFUSED:
            return f"{head}: {decision.reason}"
    return f"{head}: {share_words(decision.share)} of {decision.over} is undecided ({took})"


def rows_words(decision: RowsDecision) -> str:
    """How many rows have which answer."""
    head = f"{decision.law.name} {decision.over or f'± {decision.tolerance.words}'}"
    if decision.reason:
        return f"{head}: refused: {decision.reason}"
    answers = (LawAnswer.PROVEN, LawAnswer.VIOLATED, LawAnswer.OPEN)
    counts = ", ".join(f"{decision.count(each):,} {each.value}" for each in answers)
    single = sum(each.in_float32 and not each.is_empty for each in decision.rows)
    more = f"; {single:,} proven in float32 too" if single else ""
    if decision.empty:
        more += f"; {decision.empty:,} without cases"
    if decision.outside:
        more += f"; {decision.outside:,} outside the domain"
    took = f"{decision.seconds:.1f} s of processor time"
    return f"{head}: {counts} of {len(decision.rows):,} rows, {decision.semantics} ({took}{more})"


def share_words(share: float) -> str:
    """A share in percent, with three significant digits."""
    return f"{100 * share:.3g} %"
