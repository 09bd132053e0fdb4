"""How a long call reports what it has done so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class ProgressUpdate(Generic[T_co]):
    """One step is done: `done` of `total` (None where nobody knows), in words in `note`.

    `stage` says what is going on, such as "checking". `item` is what the step gave.
    """

    stage: str
    done: int
    total: int | None
    note: str
    item: T_co


ProgressCallback = Callable[[ProgressUpdate[T]], None]
"""Called in the calling thread after each step. What it raises ends the call."""


def ignore(_update: ProgressUpdate[T]) -> None:
    """The callback of a caller who does not want to know."""
