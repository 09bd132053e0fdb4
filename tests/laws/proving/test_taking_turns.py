"""Draws and the search for a proof take turns: both take at most twice what the faster one takes."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dokimos.checker.lemmas.zones import Cover
from dokimos.laws.proving import law_search, question
from dokimos.laws.proving.question import Deadline, SearchEnd


class _Clock:
    now = 0.0


class _Search:
    """A search whose steps take a second each, and that ends with a proof after so many."""

    steps = 0

    def __init__(self, clock: _Clock) -> None:
        self._clock, self.cover, self.share = clock, None, 1.0

    def run(self) -> Iterator[None]:
        for _ in range(_Search.steps):
            self._clock.now += 1.0
            yield None
        self.cover = Cover((None,))  # type: ignore[assignment]


def _draws(clock: _Clock, steps: int, size: float) -> Iterator[SearchEnd | None]:
    """Steps that take longer and longer, up to `size` seconds, the last of which finds a violation."""
    took = 0.125
    for _ in range(steps - 1):
        clock.now += took
        took = min(2 * took, size)
        yield None
    clock.now += took
    yield SearchEnd("draws", case=())


@pytest.mark.parametrize("proof", [1, 3, 10, 50, 400])
@pytest.mark.parametrize("violation", [1, 4, 20, 100, 1000])
@pytest.mark.parametrize("seconds", [1e3, 1e6])
def test_both_take_no_longer_than_twice_the_faster_one(
    monkeypatch: pytest.MonkeyPatch, proof: int, violation: int, seconds: float
) -> None:
    clock, alone = _Clock(), _Clock()
    list(_draws(alone, violation, 2.0))
    _Search.steps = proof
    monkeypatch.setattr(law_search, "time", SimpleNamespace(process_time=lambda: clock.now))
    monkeypatch.setattr(law_search, "TreeSearch", lambda statement: _Search(clock))
    statement: Any = None
    end = law_search.search_trees(
        statement, lambda case: True, Deadline.after(seconds), _draws(clock, violation, 2.0)
    )
    faster = min(alone.now, float(proof))
    assert (end.step == "draws") is (end.cover is None)
    assert clock.now <= 2 * faster + 3.0  # a step of each that was under way


def test_without_draws_the_search_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock()
    _Search.steps = 7
    monkeypatch.setattr(law_search, "time", SimpleNamespace(process_time=lambda: clock.now))
    monkeypatch.setattr(law_search, "TreeSearch", lambda statement: _Search(clock))
    statement: Any = None
    end = law_search.search_trees(statement, lambda case: True, Deadline.after(60))
    assert end.cover == Cover((None,)) and clock.now == 7.0


@pytest.mark.parametrize("needed", [(3, 1000, 1000), (1000, 7, 1000), (1000, 1000, 40)])
def test_three_take_no_longer_than_their_turns(
    monkeypatch: pytest.MonkeyPatch, needed: tuple[int, int, int]
) -> None:
    """A search for a violation has half of the time, two for a proof a quarter each."""
    clock = _Clock()
    monkeypatch.setattr(law_search, "time", SimpleNamespace(process_time=lambda: clock.now))
    first, *others = (_draws(clock, steps, 1.0) for steps in needed)
    ends = law_search.taking_turns(first, law_search.taking_turns(*others, expected=(0.0, 1.0)))
    assert next(end for end in ends if end is not None).step == "draws"
    share = 2 if needed[0] < 1000 else 4
    assert clock.now <= share * min(needed) + 5.0


def test_a_search_that_is_over_leaves_its_turns_to_the_others() -> None:
    none: Iterator[SearchEnd | None] = iter(())
    ends = law_search.taking_turns(none, iter([None, SearchEnd("here", case=())]))
    assert [end.step for end in ends if end is not None] == ["here"]


def test_the_last_search_on_copies_has_all_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins anew, so that many short ones cannot do what a long one does."""
    clock, given = _Clock(), list[float]()

    class Search:
        def __init__(self, network: Any, asked: Any, effort: Any, settles: Any) -> None:
            given.append(effort.seconds)
            clock.now += effort.seconds
            effort.seconds = -1.0  # it ran out of time

        def run(self) -> Any:
            return SimpleNamespace(data=None)

    monkeypatch.setattr("dokimos.engine.linear.LinearSearch", Search)
    monkeypatch.setattr(question, "time", SimpleNamespace(process_time=lambda: clock.now))
    copies: Any = SimpleNamespace(
        closer=SimpleNamespace(question=None), made=(None, SimpleNamespace(property=None))
    )
    steps = law_search.search_copies(copies, lambda _: False, Deadline.after(60))
    assert question.first_end(steps, Deadline(59.5)) is None
    assert given == [1.0, 2.0, 4.0, 8.0, 16.0, 29.0]
