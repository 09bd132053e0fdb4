"""The tree of cases: in which order they are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dokimos.engine.relu_relaxation import CaseFinding, Leaf, Tree, grow

Phases = Mapping[int, bool]


def full_to_depth(depth: int, seen: list[tuple[bool, ...]], bounds: Mapping[int, float]) -> Tree | str:
    """Ask ReLU 0, 1, 2, … in turn; `bounds` has the bound of a case by the order in which it was seen."""

    def look(phases: Phases) -> CaseFinding[str]:
        assert list(phases) == list(range(len(phases)))
        seen.append(tuple(phases.values()))
        if len(phases) == depth:
            return CaseFinding(leaf=Leaf({10: Fraction(1, 2)}, {9: Fraction(2)}))
        return CaseFinding(split=len(phases), bound=bounds.get(len(seen), 0.0))

    return grow(look, depth_first=not bounds)


def test_depth_first_goes_down_before_it_goes_on() -> None:
    seen: list[tuple[bool, ...]] = []
    assert isinstance(full_to_depth(2, seen, {}), Tree)
    on, off = True, False
    assert seen == [(), (on,), (on, on), (on, off), (off,), (off, on), (off, off)]


def test_otherwise_the_parts_of_the_case_with_the_least_bound_come_first() -> None:
    """The second case (on) has a bound of 5, the third (off) one of −5: its parts are looked at first."""
    seen: list[tuple[bool, ...]] = []
    full_to_depth(2, seen, {1: 0.0, 2: 5.0, 3: -5.0})
    on, off = True, False
    assert seen == [(), (on,), (off,), (off, on), (off, off), (on, on), (on, off)]


def test_a_counterexample_ends_the_search_and_an_open_case_does_not() -> None:
    def look(phases: Phases) -> CaseFinding[str]:
        if not phases:
            return CaseFinding(split=3)
        return CaseFinding() if phases[3] else CaseFinding(counterexample="here")

    assert grow(look, depth_first=True) == "here"
    tree = grow(lambda phases: CaseFinding[str]() if phases else CaseFinding(split=3), depth_first=True)
    assert isinstance(tree, Tree)
    assert tree.left_open == 2
