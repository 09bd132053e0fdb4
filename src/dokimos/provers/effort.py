"""How far a search for a proof may go: so many steps, and so much CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import inf


class ReachedLimit(Enum):
    """What ended a search before it was through. Steps end it at the same place on every machine."""

    STEPS = "steps"
    TIME = "CPU time"


@dataclass
class SearchEffort:
    """What a search may use, and has used.

    The time is the CPU time of this process, so that what else a machine does changes nothing; `clock` can
    be another one. What a step is, the search says.
    """

    seconds: float = inf
    most_steps: float = inf
    clock: Callable[[], float] = time.process_time
    steps: int = 0
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    @property
    def left(self) -> float:
        """The seconds that are left; none if it is not positive."""
        return self._begun + self.seconds - self.clock()

    @property
    def end(self) -> ReachedLimit | None:
        """What ends the search now; None if it may go on."""
        if self.steps > self.most_steps:
            return ReachedLimit.STEPS
        return ReachedLimit.TIME if self.left <= 0 else None
