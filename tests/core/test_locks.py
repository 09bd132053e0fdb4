from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos.core.files import only_one


def test_the_second_one_is_told_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with only_one(path, doing="works here"):
        with (
            pytest.raises(InputError, match=rf"Another process \(process {os.getpid()}\) works here; wait"),
            only_one(path, doing="works here"),
        ):
            raise AssertionError
        assert path.exists()
    assert not path.exists()
    with only_one(path, doing="works here", keep=True):
        pass
    assert path.read_text() == f"process {os.getpid()}\n"


def test_whoever_waits_comes_next_even_where_the_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    said: list[str] = []
    told = threading.Event()
    order: list[int] = []

    def wait(number: int) -> None:
        def say(line: str) -> None:
            said.append(line)
            told.set()

        with only_one(path, doing="works", waiting=say):
            assert path.exists()
            order.append(number)

    with only_one(path, doing="works"):
        others = [threading.Thread(target=wait, args=(k,)) for k in range(3)]
        for other in others:
            other.start()
        assert told.wait(20)
        assert order == []
    for other in others:
        other.join()
    assert sorted(order) == [0, 1, 2]
    assert said[0].startswith("Another process (process ") and said[0].endswith(" works; waiting for it")
    assert not path.exists()
