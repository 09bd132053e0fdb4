"""Cases that ended in an exception of user code: how many, and the first of each kind."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dokimos.laws.engine.frame import Frame

_KEPT_ERRORS = 20


@dataclass(frozen=True)
class CaseError:
    """Something went wrong in one case: what, and the case (a frame of one)."""

    reason: str
    case: Frame


@dataclass
class CaseErrors:
    """Cases in which user code failed: how many, and the first few that differ."""

    count: int = 0
    kept: list[CaseError] = field(default_factory=list)

    def copy(self) -> CaseErrors:
        """What there is so far."""
        return CaseErrors(self.count, list(self.kept))

    def add(self, reason: str, case: Frame) -> None:
        """Count a case, and keep it where its reason is of a new kind."""
        self.count += 1
        kind = _kind(reason)
        if len(self.kept) < _KEPT_ERRORS and all(_kind(each.reason) != kind for each in self.kept):
            self.kept.append(CaseError(reason, case))


def _kind(reason: str) -> str:
    """The kind of a reason: of an exception its type and place, not what it says of the case."""
    return re.sub(r"( raised \w+): .*( at .*)", r"\1\2", reason)
