"""Something that is wrong with a file of a benchmark, and how bad that is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class LintSeverity(Enum):
    """How bad it is: an error makes a benchmark wrong, a warning makes it say less than it seems to."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class LintFinding:
    """One thing that is wrong: by which rule, where (a line if there is one), why, and what to do."""

    rule: str
    severity: LintSeverity
    file: str
    line: int | None
    reason: str
    remedy: str

    @property
    def place(self) -> str:
        """The file, with the line if there is one."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.severity.value}: {self.reason}; {self.remedy} [{self.rule}]"
