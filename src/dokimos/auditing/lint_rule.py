"""What a rule is, and what its function reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dokimos.suites.file_findings import LintFinding, LintSeverity

T = TypeVar("T")


@dataclass(frozen=True)
class Remark:
    """What the function of a rule reports: why, and where, if not in the file it was given."""

    reason: str
    line: int | None = None
    file: str = ""


@dataclass(frozen=True, eq=False)
class LintRule(Generic[T]):
    """A rule: its name, what it looks for, how bad that is, how to fix it, and the function that looks.

    `look` gets the subject of the rule (see `subjects`): the whole benchmark, one property, one network,
    one instance, or the results published on one instance.
    """

    name: str
    about: str
    severity: LintSeverity
    remedy: str
    look: Callable[[T], Iterable[Remark]]

    def findings(self, subject: T, file: str) -> list[LintFinding]:
        """What the rule finds in `subject`, which is called `file`."""
        return [
            LintFinding(
                self.name, self.severity, remark.file or file, remark.line, remark.reason, self.remedy
            )
            for remark in self.look(subject)
        ]


AnyRule = LintRule[Any]
