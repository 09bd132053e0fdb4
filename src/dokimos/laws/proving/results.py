"""The outcome of deciding a law: proven, violated, open or refused, and by which step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dokimos.checker.lemmas.zones import Cover
from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_results import LawResult, LawSettings, LawViolation
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.question import LinearCover


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
    case: tuple[int | Fraction, ...] | None = None
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
