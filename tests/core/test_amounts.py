"""Sizes and times as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.core.errors import InputError
from dokimos.core.readable import parse_bytes, parse_seconds, size_in_words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (4 * 10**9, "4GB"),
        (1_500_000_000, "1500MB"),
        (512 * 2**20, "512MiB"),
        (2**34, "16GiB"),
        (100, "100"),
        (4_000_000_001, "4000000001"),
    ],
)
def test_a_size_is_written_as_people_write_it(count: int, words: str) -> None:
    assert size_in_words(count) == words


@given(st.integers(1, 10**17))
def test_no_size_is_rounded(count: int) -> None:
    assert parse_bytes(size_in_words(count)) == count


@pytest.mark.parametrize("text", ["0", "0GB", "0.4"])
def test_no_memory_is_not_an_amount(text: str) -> None:
    with pytest.raises(InputError, match="is no memory at all"):
        parse_bytes(text)


def test_a_time_is_in_seconds_unless_it_has_a_unit() -> None:
    assert [parse_seconds(text) for text in ("90", "90s", "1.5m", "2h")] == [90, 90, 90, 7200]


@pytest.mark.parametrize("text", ["soon", "0m", "-1s", "", "9" * 5000])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not an amount of time"):
        parse_seconds(text)
