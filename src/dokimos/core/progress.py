"""How a long call reports what it has done so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class ProgressUpdate(Generic[T_co]):
    """One step is done: `done` of `total` (None if unknown), in words in `note`.

    `stage` is the kind of work, such as "checking". `item` is the result of the step.
    """

    stage: str
    done: int
    total: int | None
    note: str
    item: T_co


ProgressCallback = Callable[[ProgressUpdate[T]], None]
"""Called in the calling thread after each step. An exception that it raises ends the call."""


def ignore(_update: ProgressUpdate[T]) -> None:
    """A callback that does nothing."""
