"""What a search may use: steps, which every machine counts alike, and CPU time, which other work is not."""

from __future__ import annotations

import time
from math import inf

from dokimos.engine.outcome import ReachedLimit, SearchEffort


def test_steps_and_time_end_a_search() -> None:
    now = [0.0]
    effort = SearchEffort(2.0, 3, clock=lambda: now[0])
    effort.steps += 3
    assert effort.end is None and effort.left == 2.0
    effort.steps += 1
    assert effort.end is ReachedLimit.STEPS
    effort = SearchEffort(2.0, 3, clock=lambda: now[0])
    now[0] = 2.0
    assert effort.end is ReachedLimit.TIME and effort.left == 0.0


def test_no_time_is_no_time_and_no_limit_is_none() -> None:
    assert SearchEffort(0.0).end is ReachedLimit.TIME
    assert SearchEffort().end is None and SearchEffort().left == inf


def test_waiting_is_not_work() -> None:
    effort = SearchEffort(10.0)
    time.sleep(0.2)
    assert effort.left > 9.85


def test_what_checking_takes_is_kept_in_reserve() -> None:
    now = [0.0]
    effort = SearchEffort(10.0, clock=lambda: now[0])
    now[0], effort.reserve = 6.0, 4.0
    assert effort.spent == 6.0 and effort.end is ReachedLimit.TIME
    effort.reserve = 3.0
    assert effort.left == 1.0 and effort.end is None


def test_what_is_found_beside_ends_a_search() -> None:
    answers = iter([False, True, False])
    effort = SearchEffort(beside=lambda: next(answers))
    effort.pause()
    assert effort.end is None
    effort.pause()
    assert effort.end is ReachedLimit.SETTLED
    effort.pause()
    assert effort.end is ReachedLimit.SETTLED and next(answers) is False
