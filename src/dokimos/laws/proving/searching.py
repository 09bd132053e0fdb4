"""The result of a search for a proof or a violation, and how to find cases in an open zone."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dokimos.checker.lemmas.zones import (
    Cover,
    Number,
    Zone,
)
from dokimos.laws.proving.question import LinearCover

ExactCase = tuple[Number, ...]
#: Whether a case certainly violates the law.
Confirms = Callable[[ExactCase], bool]


@dataclass(frozen=True)
class SearchEnd:
    """A proof by a cover without open zones, or by linear bounds; or a case that seems to violate the law.

    `share` of the set was left open: of all values that the variables may have, whatever the conditions.
    """

    cover: Cover | None = None
    linear: LinearCover | None = None
    case: ExactCase | None = None
    share: float = 0.0


@dataclass(frozen=True)
class Deadline:
    """The CPU time of this process at which a search ends."""

    at: float

    @staticmethod
    def after(seconds: float) -> Deadline:
        """The deadline that many CPU seconds from now."""
        return Deadline(time.process_time() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether it has passed."""
        return time.process_time() > self.at

    @property
    def left(self) -> float:
        """How many CPU seconds are left."""
        return max(0.0, self.at - time.process_time())


def share_of(zones: Sequence[Zone], whole: Zone) -> float:
    """The share of a zone that some of its parts make up."""
    return min(1.0, sum(math.exp(zone.log_size - whole.log_size) for zone in zones))
