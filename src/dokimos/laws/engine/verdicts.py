"""The verdict of a law's test, as a word and as a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from dokimos.laws.engine.results import LawResult


class LawVerdict(Enum):
    """The verdict on a law."""

    VIOLATED = "violated"
    FAILED = "failed"
    UNTESTED = "not tested"
    UNDECIDED = "too close to call"
    UNREPEATABLE = "not deterministic"
    TOLERATED = "tolerated"
    ROUNDING = "rounding only"
    HOLDS = "holds for every draw"
    PASSED = "no violation found"


def verdict_of(result: LawResult) -> LawVerdict:
    """The verdict on a law."""
    if result.is_violated:
        return LawVerdict.VIOLATED
    if result.failed:
        return LawVerdict.FAILED
    if result.tested == 0:
        return LawVerdict.UNTESTED
    if result.is_undecided:
        return LawVerdict.UNDECIDED
    if result.unrepeatable:
        return LawVerdict.UNREPEATABLE
    if result.violated:
        return LawVerdict.TOLERATED if result.violations else LawVerdict.ROUNDING
    return LawVerdict.HOLDS if result.is_exhaustive else LawVerdict.PASSED


def _short(model: str) -> str:
    """The name of a model's file without its folder, and without the hash in the names of cached models."""
    return re.sub(r"-[0-9a-f]{16}(?=\.\w+$)", "", model.replace("\\", "/").rpartition("/")[2])


def _start(words: str) -> str:
    """Words with a capital at the start of a sentence; the name of a file stays as it is."""
    return words[0].upper() + words[1:] if words.startswith(("the ", "one ")) else words


def why_untested(results: Sequence[LawResult]) -> str:
    """Why there are no tests of these laws, in words."""
    if any(result.refused for result in results):
        return "the precondition never held, or only out of range"
    return "the precondition never held"


def headline(results: Sequence[LawResult], names: Sequence[str]) -> str:
    """All verdicts in one sentence, the worst first."""
    verdicts = [verdict_of(result) for result in results]
    count = len(results)
    laws = "the law" if count == 1 else f"all {count} laws"

    def named(kind: LawVerdict) -> str:
        chosen = [name for name, each in zip(names, verdicts, strict=True) if each is kind]
        shown = ", ".join(chosen[:4])
        return f"{shown} and {len(chosen) - 4} more" if len(chosen) > 4 else shown

    violated = verdicts.count(LawVerdict.VIOLATED)
    models = {_short(result.model.name) for result in results}
    model = models.pop() if len(models) == 1 else "one of the models"
    if violated:
        how_many = "the law" if count == 1 else f"{violated} of {count} laws"
        return f"{_start(model)} violates {how_many}: {named(LawVerdict.VIOLATED)}."
    if LawVerdict.FAILED in verdicts:
        return f"No violation was found, but code failed while testing {named(LawVerdict.FAILED)}."
    if LawVerdict.UNTESTED in verdicts:
        untested = [each for each in results if verdict_of(each) is LawVerdict.UNTESTED]
        return f"Nothing could be tested for {named(LawVerdict.UNTESTED)}: {why_untested(untested)}."
    if LawVerdict.UNDECIDED in verdicts:
        return f"Too few tests to tell whether {model} satisfies {named(LawVerdict.UNDECIDED)}."
    if LawVerdict.UNREPEATABLE in verdicts:
        again = f"{_start(model)} gives different answers when run again"
        return f"{again}, so nothing can be said about {named(LawVerdict.UNREPEATABLE)}."
    if LawVerdict.TOLERATED in verdicts:
        return f"{_start(model)} violates {named(LawVerdict.TOLERATED)} no more than is tolerated."
    if set(verdicts) == {LawVerdict.HOLDS}:
        return f"{_start(model)} satisfies {laws} in every draw from the data."
    return f"No violation of {laws} was found in {model}."
