"""How a law is tested, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.cases import LawCase
from dokimos.laws.engine.grouping import Grouping, NamedRates
from dokimos.laws.engine.means import SetOutcome, SetVerdict
from dokimos.laws.engine.rates import Rate
from dokimos.laws.language.set_conditions import is_over_all_tests
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.model import Model


@dataclass(frozen=True, kw_only=True)
class LawSettings:
    """How a law is tested.

    `budget` is the number of tests: cases in which the precondition holds. `exhaustive` goes through all
    draws, unless there are more than `most_draws`; None does where there are no more than the budget.
    `keep` limits how many violations are kept, each of another input. `by` names features to report rates
    by, the domain's GROUPS where none. With `in_range`, cases with a record that was changed to what the
    domain does not declare are no tests. A rate of violations up to `max_rate` is tolerated. `search` says
    how cases are chosen where not all draws are gone through: at random, or guided by the margin or the
    coverage of those before.
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
    search: str = "random"
    allow_code: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.by, str):
            object.__setattr__(self, "by", (self.by,))


@dataclass(frozen=True)
class LawViolation:
    """A case that violates the law also when it is predicted record by record, and in words.

    It `is_tolerated` where the law ensures only of a share of the tests what it violates.
    """

    case: LawCase
    words: str
    is_tolerated: bool = False


@dataclass(frozen=True)
class LawResult:
    """What became of the tests of one law.

    `held` of `draws` cases satisfied the precondition, `rejected` did not, and `refused` have a record that
    was changed to what the domain does not declare (`outside` of the tests do); of the `tested`, `violated`
    violate the law, `unique` with distinct draws and `inputs` with distinct inputs. `failed` cases ended in
    an exception, the first of each kind are `errors`; the test is given up where the first ones all end in
    the same. Of the kept, `unconfirmed` did
    not violate when run again record by record: by rounding, or, the `unrepeatable` ones, because the model
    gave something else. `tolerated` of the violated are so only in what is ensured of a share of the tests;
    `over_all` has what became of that, and of means. `not_deterministic` says what gave something else when
    run twice, so that not all draws were gone through. Draws that were gone through `in_order`, all of them
    or until an interruption, are no random sample: what they say of the others has no interval of
    confidence.
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
        """Whether the law says something of single cases."""
        return any(not is_over_all_tests(each, self.domain) for each in self.law.ensures)

    @property
    def is_sample(self) -> bool:
        """Whether the tests are a random sample of the draws, so that a rate has an interval."""
        return not self.is_in_order and self.settings.search == "random"

    @property
    def is_violated(self) -> bool:
        """Whether a violation was found that is more than rounding, and more of them than are tolerated.

        Or whether what the law says of all tests together is false.
        """
        if any(each.outcome is SetOutcome.VIOLATED for each in self.over_all):
            return True
        strict = Rate(self.violated - self.tolerated, self.tested)
        sure = any(not each.is_tolerated for each in self.violations)
        return sure and strict.value > self.settings.max_rate

    @property
    def is_undecided(self) -> bool:
        """Whether the tests are too few to tell what the law says of all of them together."""
        return any(each.outcome is SetOutcome.UNDECIDED for each in self.over_all)

    @property
    def is_inconclusive(self) -> bool:
        """Whether nothing can be said: not tested, too close to call, or another answer when run again."""
        return self.tested == 0 or self.is_undecided or bool(self.unrepeatable)
