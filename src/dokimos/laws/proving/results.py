"""The outcome of deciding a law: proven, violated, open or refused, and by which step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dokimos.checker.lemmas.zones import Cover, Number
from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_results import LawResult, LawSettings, LawViolation
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.question import ExactCase, LinearCover
from dokimos.laws.proving.row_zones import Tolerance


class LawAnswer(Enum):
    """What is known about a law in a set of cases."""

    PROVEN = "proven"
    VIOLATED = "violated"
    OPEN = "open"
    REFUSED = "refused"


@dataclass(frozen=True)
class VerifySettings:
    """How laws are decided: in at most `seconds` of CPU time each, for the set that the domain declares.

    With `constrained`, records satisfy the CONSTRAINTS of the domain; otherwise they may be anywhere in the
    ranges.
    """

    seconds: float = 60.0
    seed: int = 0
    constrained: bool = True
    allow_code: bool = True

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InputError(f"The seconds for a law must be above 0, not {self.seconds:g}.")


@dataclass(frozen=True)
class LawDecision:
    """What is known about a law, and how.

    `over` is the set of cases, `step` is what decided. A proven law has the `cover` that proves it, and
    `semantics` says in which arithmetic it holds: as the model computes, or over the reals. A violated one
    has a `case` of the question that was run again, and the `violation` that this was reduced to; for an
    open one, `share` of the set is undecided; a refused one has a `reason`. `left_out` says which rows of
    the data are not in the set.
    """

    law: Law
    domain: Domain
    model: Model
    settings: VerifySettings
    answer: LawAnswer
    over: str = ""
    step: str = ""
    semantics: str = ""
    cover: Cover | LinearCover | None = None
    case: ExactCase | None = None
    violation: LawViolation | None = None
    share: float = 0.0
    reason: str = ""
    seconds: float = 0.0
    left_out: str = ""

    def as_result(self) -> LawResult:
        """The violation as the result of a test of one case, which files of violations hold."""
        assert self.violation is not None  # the law is violated
        settings = LawSettings(budget=1, seed=self.settings.seed, source="range", in_range=True)
        return LawResult(
            law=self.law,
            domain=self.domain,
            model=self.model,
            settings=settings,
            source="range",
            draws=1,
            rejected=0,
            refused=0,
            outside=0,
            held=1,
            tested=1,
            violated=1,
            unique=1,
            inputs=1,
            failed=0,
            errors=(),
            unconfirmed=0,
            unrepeatable=0,
            tolerated=0,
            over_all=(),
            not_deterministic="",
            is_exhaustive=False,
            is_in_order=True,
            is_interrupted=False,
            is_starved=False,
            is_given_up=False,
            classes=(),
            groups=(),
            violations=(self.violation,),
            seconds=self.seconds,
        )


@dataclass(frozen=True)
class RowDecision:
    """What is known about a law around one row.

    A column that is None is missing. A proven row has a cover of the cases around it; with `in_float32` the
    law holds in float32 too; with `is_empty` there are no such cases. A violated row has a case, run again
    and exact.
    """

    row: int
    columns: tuple[Number | None, ...]
    answer: LawAnswer
    cover: Cover | None = None
    case: ExactCase | None = None
    in_float32: bool = False
    is_empty: bool = False
    share: float = 0.0


@dataclass(frozen=True)
class RowsDecision:
    """What is known about a law around the rows of a data set. `outside` counts rows outside the domain."""

    law: Law
    domain: Domain
    model: Model
    settings: VerifySettings
    tolerance: Tolerance
    semantics: str = ""
    rows: tuple[RowDecision, ...] = ()
    outside: int = 0
    reason: str = ""
    seconds: float = 0.0

    def count(self, answer: LawAnswer) -> int:
        """How many rows have this answer, among those with cases around them."""
        return sum(each.answer is answer and not each.is_empty for each in self.rows)

    @property
    def is_proven(self) -> bool:
        """Whether no case around any row violates the law."""
        return not self.reason and all(each.answer is LawAnswer.PROVEN for each in self.rows)

    @property
    def empty(self) -> int:
        """How many rows have no case around them."""
        return sum(each.is_empty for each in self.rows)
