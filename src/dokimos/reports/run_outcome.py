"""The four outcomes that runs are counted by."""

from __future__ import annotations

from enum import Enum

from dokimos.judging.verdicts import Verdict


class RunOutcome(Enum):
    """The four columns of the table that every verdict falls into."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNDECIDED = "undecided"
    OTHER = "other"

    @classmethod
    def of(cls, verdict: Verdict) -> RunOutcome:
        """The column of a verdict; `other` is unwitnessed, rounding, clipped and unlabelled."""
        if verdict.is_wrong:
            return cls.WRONG
        return {Verdict.CORRECT: cls.CORRECT, Verdict.UNDECIDED: cls.UNDECIDED}.get(verdict, cls.OTHER)
