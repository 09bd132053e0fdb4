"""A problem in a file of a benchmark, and its severity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class LintSeverity(Enum):
    """The severity: an error makes a benchmark wrong, a warning makes it less meaningful than it seems."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class LintFinding:
    """One problem: the rule it breaks, where (with a line if there is one), why, and what to do.

    `network` is the network that a property has the problem with; empty if it has it with any, or if the
    file is no property.
    """

    rule: str
    severity: LintSeverity
    file: str
    line: int | None
    reason: str
    remedy: str
    network: str = ""

    @property
    def place(self) -> str:
        """The file, with the line if there is one."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.severity.value}: {self.reason}; {self.remedy} [{self.rule}]"
