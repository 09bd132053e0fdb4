"""How a law is tested, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.cases import LawCase
from dokimos.laws.engine.grouping import Grouping, NamedRates
from dokimos.laws.engine.rates import Rate
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.model import Model


@dataclass(frozen=True, kw_only=True)
class LawSettings:
    """How a law is tested.

    `budget` is the number of tests: cases in which the precondition holds. `exhaustive` goes through all
    draws, unless there are more than `most_draws`; None does where there are no more than the budget.
    `keep` limits how many violations are kept, each of another input. `by` names features to report rates
    by, the domain's GROUPS where none. With `in_range`, cases with a record that was changed to what the
    domain does not declare are no tests.
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
    allow_code: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.by, str):
            object.__setattr__(self, "by", (self.by,))


@dataclass(frozen=True)
class LawViolation:
    """A case that violates the law also when it is predicted record by record, and in words."""

    case: LawCase
    words: str


@dataclass(frozen=True)
class LawResult:
    """What became of the tests of one law.

    `held` of `draws` cases satisfied the precondition, `rejected` did not, and `refused` have a record that
    was changed to what the domain does not declare (`outside` of the tests do); of the `tested`, `violated`
    violate the law, `unique` with distinct draws and `inputs` with distinct inputs. `failed` cases ended in
    an exception, the first of each kind are `errors`; the test is given up where the first ones all end in
    the same. `unconfirmed` of the kept violate in batches only:
    rounding. Draws that were gone through `in_order`, all of them or until an interruption, are no random
    sample: what they say of the others has no interval of confidence.
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
    def is_violated(self) -> bool:
        """Whether a violation was found that is more than rounding."""
        return bool(self.violations)
