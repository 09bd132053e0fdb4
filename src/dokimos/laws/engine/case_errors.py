"""Cases that ended in an exception of user code: how many, and the first of each kind."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from dokimos.laws.engine.frame import Frame

_KEPT_ERRORS = 20
#: If this many cases fail in the same way and none succeeds, the rest are taken to fail too.
PATIENCE = 20


@dataclass(frozen=True)
class CaseError:
    """A failure in one case: the reason, and the case (a frame of one)."""

    reason: str
    case: Frame


@dataclass
class CaseErrors:
    """Cases in which user code failed: how many, and the first few that differ."""

    count: int = 0
    kept: list[CaseError] = field(default_factory=list)
    by_kind: Counter[str] = field(default_factory=Counter)

    def copy(self) -> CaseErrors:
        """The failures so far."""
        return CaseErrors(self.count, list(self.kept), self.by_kind.copy())

    def add(self, reason: str, case: Frame) -> None:
        """Count a case, and keep it if its reason is of a new kind."""
        self.count += 1
        kind = kind_of(reason)
        self.by_kind[kind] += 1
        if len(self.kept) < _KEPT_ERRORS and all(kind_of(each.reason) != kind for each in self.kept):
            self.kept.append(CaseError(reason, case))

    @property
    def are_alike(self) -> bool:
        """Whether so many cases have failed in the same way that more would add nothing."""
        return max(self.by_kind.values(), default=0) >= PATIENCE


def kind_of(reason: str) -> str:
    """The kind of a reason: for an exception its type and place, without its message."""
    return re.sub(r"( raised \w+): .*( at .*)", r"\1\2", reason)
