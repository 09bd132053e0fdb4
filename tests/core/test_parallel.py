"""The same function in several processes: what comes back, and what goes wrong."""

from __future__ import annotations

import os
import signal

import pytest

from dokimos.core.errors import DokimosError
from dokimos.core.parallel import each


def _double(number: int) -> int:
    return 2 * number


def _fail(number: int) -> int:
    raise ValueError(f"no {number}")


def _killed(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_result_comes_with_the_index_of_its_item(jobs: int) -> None:
    assert sorted(each(_double, [3, 1, 2], jobs=jobs)) == [(0, 6), (1, 2), (2, 4)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_out(jobs: int) -> None:
    with pytest.raises(ValueError, match="no"):
        list(each(_fail, [3, 1], jobs=jobs))


def test_a_killed_process_is_one_sentence() -> None:
    with pytest.raises(DokimosError, match=r"was killed.*fewer --jobs"):
        list(each(_killed, [3, 1], jobs=2))
