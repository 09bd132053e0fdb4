"""What became of a law that was to be decided for every case, for a terminal."""

from __future__ import annotations

from dokimos.laws.proving.results import LawAnswer, LawDecision


def decision_words(decision: LawDecision) -> str:
    """The answer, the set that it is about, which step decided, and the case that violates the law."""
    took = f"{decision.step}, {decision.seconds:.1f} s"
    head = f"{decision.law.name}: {decision.answer.value}"
    match decision.answer:
        case LawAnswer.PROVEN:
            zones = 0 if decision.cover is None else decision.cover.leaves
            checked = f"{zones:,} zone{'s' * (zones != 1)}, each checked"
            return f"{head} for {decision.over}, {decision.semantics} ({took}; {checked})"
        case LawAnswer.VIOLATED:
            words = "" if decision.violation is None else f"\n  - {decision.violation.words}"
            return f"{head} in {decision.over} ({took}){words}"
        case LawAnswer.REFUSED:
            return f"{head}: {decision.reason}"
    return f"{head}: {share_words(decision.share)} of {decision.over} is left ({took})"


def share_words(share: float) -> str:
    """A share in percent; the smallest ones by their order of magnitude."""
    return f"{100 * share:.3g} %"
