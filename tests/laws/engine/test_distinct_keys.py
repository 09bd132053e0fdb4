"""Distinct combinations are counted as a set counts them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.laws.engine.tallies import DistinctKeys, keys_of

_ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=20)


@given(batches=st.lists(_ROWS, max_size=5), width=st.sampled_from([1, 2]))
@settings(deadline=None, max_examples=40)
def test_as_a_set_counts(batches: list[list[tuple[int, int]]], width: int) -> None:
    keys, known = DistinctKeys(), set()
    for batch in batches:
        columns = [np.array([row[place] for row in batch], dtype=np.int64) for place in range(width)]
        rows = [row[:width] for row in batch]
        assert keys.lacks(keys_of(columns)).tolist() == [row not in known for row in rows]
        keys.add(keys_of(columns))
        known |= set(rows)
        assert len(keys) == len(known)


def test_those_that_wait_are_put_in_order_at_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.laws.engine.tallies._MOST_WAITING", 10)
    keys = DistinctKeys()
    for start in range(0, 1000, 7):
        keys.add(np.arange(start, start + 12))
        assert sum(map(len, keys._waiting)) <= max(10, len(keys._known))
    assert len(keys) == 1006
