"""What a rule has to say, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LintSeverity(Enum):
    """How bad it is: an error makes a benchmark wrong, a warning makes it say less than it seems to."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class LintFinding:
    """One thing that is wrong: by which rule, where (a line where there is one), why, and what to do."""

    rule: str
    severity: LintSeverity
    file: str
    line: int | None
    reason: str
    remedy: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.severity.value}: {self.reason}; {self.remedy} [{self.rule}]"


@dataclass(frozen=True)
class Remark:
    """What the function of a rule reports: why, and where, if not at the file it was given."""

    reason: str
    line: int | None = None
    file: str = ""


@dataclass(frozen=True, eq=False)
class LintRule(Generic[T]):
    """A rule: its name, what it looks for, how bad that is, what to do about it, and who looks.

    `look` gets what the rule is about (see `subjects`): the whole benchmark, one property, one network, one
    instance, or what was published on one instance.
    """

    name: str
    about: str
    severity: LintSeverity
    remedy: str
    look: Callable[[T], Iterable[Remark]]

    def findings(self, subject: T, file: str) -> list[LintFinding]:
        """What the rule says of `subject`, which is called `file`."""
        return [
            LintFinding(
                self.name, self.severity, remark.file or file, remark.line, remark.reason, self.remedy
            )
            for remark in self.look(subject)
        ]


AnyRule = LintRule[Any]
