"""The outcomes that runs are counted by."""

from __future__ import annotations

from enum import Enum

from dokimos.judging.verdicts import Verdict


class RunOutcome(Enum):
    """The columns of the table that verdicts are counted in."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNDECIDED = "undecided"
    OTHER = "other"
    UNCHECKED = "unchecked"

    @classmethod
    def of(cls, verdict: Verdict) -> RunOutcome:
        """The column of a verdict; `other` is unwitnessed, rounding and clipped."""
        if verdict.is_wrong:
            return cls.WRONG
        if verdict.is_unchecked:
            return cls.UNCHECKED
        return {Verdict.CORRECT: cls.CORRECT, Verdict.UNDECIDED: cls.UNDECIDED}.get(verdict, cls.OTHER)
