"""Slower than in the baseline, beyond noise."""

from __future__ import annotations

from math import comb

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dokimos.judging.pace import LEVEL, slowdown

TIMES = st.dictionaries(st.integers(0, 40), st.tuples(st.floats(0, 20), st.floats(0, 20)), max_size=30)


def test_seven_slower_answers_count_and_six_do_not() -> None:
    before = dict.fromkeys(range(40), 1.0)
    for count, is_real in ((6, False), (7, True)):
        now = {key: 3.0 if key < count else 1.0 for key in before}
        found = slowdown(before, now, factor=2)
        assert (len(found.slower), found.faster, found.pairs, found.is_real) == (count, 0, 40, is_real)
        assert found.chance == 0.5**count


def test_as_many_faster_ones_are_noise() -> None:
    before = dict.fromkeys(range(40), 1.0)
    now = {key: 3.0 if key % 2 else 0.3 for key in before}
    assert not slowdown(before, now, factor=2).is_real


def test_the_slowest_come_first_and_hundredths_of_a_second_do_not_count() -> None:
    before = {"a": 1.0, "b": 2.0, "c": 0.01, "gone": 1.0}
    now = {"a": 2.5, "b": 20.0, "c": 0.09, "new": 9.0}
    found = slowdown(before, now, factor=2)
    assert (found.slower, found.pairs) == (("b", "a"), 3)


@given(TIMES, st.floats(1, 4))
def test_exchanging_before_and_now_exchanges_slower_and_faster(
    times: dict[int, tuple[float, float]], factor: float
) -> None:
    before, now = ({key: pair[k] for key, pair in times.items()} for k in range(2))
    there, back = slowdown(before, now, factor=factor), slowdown(now, before, factor=factor)
    assert (len(there.slower), there.faster) == (back.faster, len(back.slower))
    total = len(there.slower) + there.faster
    of_exactly = comb(total, there.faster) / 2**total  # counted from both sides
    assert abs(there.chance + back.chance - 1 - of_exactly) < 1e-9
    assert not (there.is_real and back.is_real)


def test_noise_alone_is_rarely_taken_for_slowness() -> None:
    """Lognormal times: the share of false alarms stays below the level."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(1000):
        before, now = (dict(enumerate(np.exp(rng.normal(1, 0.6, 50)).tolist())) for _ in range(2))
        alarms += slowdown(before, now, factor=1.5).is_real
    assert alarms <= 1000 * LEVEL
