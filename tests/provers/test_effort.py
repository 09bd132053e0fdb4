"""What a search may use: steps, which every machine counts alike, and CPU time, which other work is not."""

from __future__ import annotations

import time
from math import inf

from dokimos.provers.effort import Effort, ReachedLimit


def test_steps_and_time_end_a_search() -> None:
    now = [0.0]
    effort = Effort(2.0, 3, clock=lambda: now[0])
    effort.steps += 3
    assert effort.end is None and effort.left == 2.0
    effort.steps += 1
    assert effort.end is ReachedLimit.STEPS
    effort = Effort(2.0, 3, clock=lambda: now[0])
    now[0] = 2.0
    assert effort.end is ReachedLimit.TIME and effort.left == 0.0


def test_no_time_is_no_time_and_no_limit_is_none() -> None:
    assert Effort(0.0).end is ReachedLimit.TIME
    assert Effort().end is None and Effort().left == inf


def test_waiting_is_not_work() -> None:
    effort = Effort(10.0)
    time.sleep(0.2)
    assert effort.left > 9.85
