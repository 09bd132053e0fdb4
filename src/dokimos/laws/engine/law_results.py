"""Settings and results of testing a law."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from typing import Any

from dokimos.core.records import Table, record_of
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_case import LawCase
from dokimos.laws.engine.means import Rate, SetOutcome, SetVerdict
from dokimos.laws.engine.tallies import Grouping, NamedRates
from dokimos.laws.language.set_conditions import is_over_all_tests
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.tested_model import Model

#: How many violations a result shows in a notebook; the largest come first.
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class LawSettings:
    """How a law is tested.

    `budget` is the number of tests: cases in which the precondition holds. `exhaustive` tests all draws,
    unless there are more than `most_draws`; None does so if there are no more than the budget. `keep`
    limits how many violations are kept, each of a different input. `by` names the features to report rates
    by (by default the domain's GROUPS). With `in_range`, a case does not count as a test if a record was
    changed to something that the domain does not declare. A rate of violations up to `max_rate` is
    tolerated.
    """

    budget: int = 5000
    seed: int = 0
    source: str = "test"
    exhaustive: bool | None = None
    most_draws: int = 20_000_000
    keep: int = 100
    by: tuple[str, ...] | str = ()
    shrink: bool = True
    in_range: bool = False
    max_rate: float = 0.0
    allow_code: bool = True
    #: After how many seconds to stop, with what there is.
    seconds: float | None = None

    @property
    def how_many(self) -> str:
        """The number of tests, or for how long, as the command takes it."""
        return f"{self.budget:,}" if self.seconds is None else f"{self.seconds:g}s"

    def __post_init__(self) -> None:
        if isinstance(self.by, str):
            object.__setattr__(self, "by", (self.by,))


@dataclass(frozen=True)
class LawViolation:
    """A case that violates the law even when predicted record by record, and its description.

    It `is_tolerated` if what it violates is ensured only of a share of the tests.
    """

    case: LawCase
    words: str
    is_tolerated: bool = False


@dataclass(frozen=True)
class LawResult(Table):
    """The result of testing one law.

    Of `draws` cases, `held` satisfied the precondition and `rejected` did not; `refused` have a record that
    was changed to something that the domain does not declare (as do `outside` of the tests). Of the
    `tested` cases, `violated` violate the law: `unique` with distinct draws, `inputs` with distinct inputs.
    `failed` cases ended in an exception, and `errors` has the first of each kind; testing stops early if
    the first cases all fail in the same way. Of the kept violations, `unconfirmed` did not show when run
    again record by record: because of rounding or, for the `unrepeatable` ones, because the model gave a
    different result. `tolerated` violations violate only what is ensured of a share of the tests;
    `over_all` has the outcome of these conditions, and of means. `not_deterministic` says what gave a
    different result when run twice, in which case draws were sampled instead of enumerated. Draws
    enumerated `in_order`, all of them or up to an interruption, are not a random sample, so their rate has
    no confidence interval.
    """

    law: Law
    domain: Domain
    model: Model
    settings: LawSettings
    source: str
    draws: int
    rejected: int
    refused: int
    outside: int
    held: int
    tested: int
    violated: int
    unique: int
    inputs: int
    failed: int
    errors: tuple[tuple[str, LawCase], ...]
    unconfirmed: int
    unrepeatable: int
    tolerated: int
    over_all: tuple[SetVerdict, ...]
    not_deterministic: str
    is_exhaustive: bool
    is_in_order: bool
    is_interrupted: bool
    is_starved: bool
    is_given_up: bool
    classes: NamedRates
    groups: tuple[Grouping, ...]
    violations: tuple[LawViolation, ...]
    seconds: float
    is_out_of_time: bool = False

    @property
    def passed(self) -> int:
        """How many tests satisfy the law."""
        return self.tested - self.violated

    @property
    def rate(self) -> Rate:
        """The share of tests that violate the law."""
        return Rate(self.violated, self.tested)

    @property
    def has_case_ensures(self) -> bool:
        """Whether the law says something about single cases."""
        return any(not is_over_all_tests(each, self.domain) for each in self.law.ensures)

    @property
    def is_sample(self) -> bool:
        """Whether the tests are a random sample of the draws, so that a rate has an interval."""
        return not self.is_in_order

    @property
    def is_violated(self) -> bool:
        """Whether the law is violated.

        More violations than are tolerated were found (rounding aside), or a condition on all tests is
        false.
        """
        if any(each.outcome is SetOutcome.VIOLATED for each in self.over_all):
            return True
        strict = Rate(self.violated - self.tolerated, self.tested)
        sure = any(not each.is_tolerated for each in self.violations)
        return sure and strict.value > self.settings.max_rate

    @property
    def is_undecided(self) -> bool:
        """Whether there are too few tests to decide the conditions on all of them together."""
        return any(each.outcome is SetOutcome.UNDECIDED for each in self.over_all)

    @property
    def is_inconclusive(self) -> bool:
        """Whether there is no verdict: not tested, too close to call, or not deterministic."""
        return self.tested == 0 or self.is_undecided or bool(self.unrepeatable)

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each violation that was kept."""
        return [
            {"law": self.law.name} | record_of(each, "words", "is_tolerated") for each in self.violations
        ]

    def _repr_html_(self) -> str:
        """The verdict, and the violations."""
        counts = f"{self.violated:,} of {self.tested:,} tests violate it"
        said = f"{self.law.name}: {verdict_of(self).value}; {counts}"
        shown = "".join(f"<li>{escape(each.words)}</li>" for each in self.violations[:_SHOWN])
        return f"<p>{escape(said)}</p>\n<ol>{shown}</ol>"


# The verdict of a law's test, as a word and as a sentence


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
