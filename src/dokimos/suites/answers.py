"""The answers of verifiers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dokimos.suites.vnnlib.model import Point


class Answer(Enum):
    """The verifier's answer, in VNN-LIB's words."""

    SAT = "sat"
    UNSAT = "unsat"
    UNKNOWN = "unknown"
    TIMEOUT = "timeout"
    MEMOUT = "memout"
    ERROR = "error"
    UNSUPPORTED = "unsupported"

    @property
    def decides(self) -> bool:
        """Whether this is `sat` or `unsat`."""
        return self in (Answer.SAT, Answer.UNSAT)


@dataclass(frozen=True)
class VerifierAnswer:
    """An answer, the witness that came with it (exactly as the verifier wrote it), and a remark.

    `outputs` is what the verifier says the network gives at the witness; None if it does not say.
    """

    answer: Answer
    witness: Point | None = None
    detail: str = ""
    outputs: Point | None = None
