"""One tree of errors. Each message is one sentence that says what is wrong, where, and what to do.

DokimosError
├── InputError            a file, an option or a value the user gave is not usable   (exit 2)
│   ├── UnreadableFile    a file is truncated or malformed
│   │   ├── MissingFile   or it is not there
│   │   ├── LargeFile     or larger than it may be
│   │   └── FileElsewhere or its name or a link leads out of its folder
│   └── UnsupportedOp     a network uses an operator (or a form of one) that is not supported
│       └── OversizedOp   or one whose tensors or windows are larger than we allow
├── InvalidProof          a well-formed certificate that does not prove its label    (exit 1)
├── ConstructionFailed    the parameters admit no instance that can be proven        (exit 2)
└── VerifierUnavailable   a verifier is not installed or does not start              (exit 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any


class DokimosError(Exception):
    """The base class of all errors that Dokimos raises on purpose."""


class InputError(DokimosError):
    """A file, an option or a value that the user gave is not usable."""


@dataclass(frozen=True)
class Place:
    """A place in a text: 1-based line and column."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [self.file]
        if self.line is not None:
            parts.append(str(self.line))
            if self.column is not None:
                parts.append(str(self.column))
        return ":".join(parts)


class UnreadableFile(InputError):
    """A file is missing, truncated or malformed. The message starts with its place."""

    def __init__(self, place: Place | Path | str, reason: str) -> None:
        self.place = place if isinstance(place, Place) else Place(str(place))
        self.reason = reason
        super().__init__(f"{self.place}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.place, self.reason)


class MissingFile(UnreadableFile):
    """There is no such file."""


class LargeFile(UnreadableFile):
    """A file is larger than it may be; nothing else is said of its content."""


class FileElsewhere(UnreadableFile):
    """A name, or a link, leads out of the folder that it should stay in."""


class UnsupportedOp(InputError):
    """A network uses an operator, or a form of one, that Dokimos does not support."""

    def __init__(self, op: str, reason: str, *, place: str = "network") -> None:
        self.op, self.reason, self.where = op, reason, place
        super().__init__(f"{place}: operator {op}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), place=self.where), (self.op, self.reason)


class OversizedOp(UnsupportedOp):
    """The tensors or windows of an operator are larger than Dokimos allows."""


class InvalidProof(DokimosError):
    """A well-formed certificate that does not prove the label of its instance."""


class ConstructionFailed(InputError):
    """The parameters given admit no instance whose label can be proven."""


class VerifierUnavailable(InputError):
    """A verifier is not installed, or does not start."""


def about(value: Fraction) -> str:
    """A few digits of a number, however large, for messages."""
    return f"{float(value):.6g}" if abs(value) < 2**1000 else "beyond 2^1000"
