"""Formulas of many comparisons, deep and long: the same meaning, and errors at the same place."""

from __future__ import annotations

import gc
from fractions import Fraction

import pytest

from dokimos.core.errors import Place, UnreadableFile
from dokimos.suites.vnnlib.formulas import MAX_CONJUNCTIONS
from dokimos.suites.vnnlib.model import Box, Case, Linear
from dokimos.suites.vnnlib.reader import parse_vnnlib

F = Fraction
DECLARED = "(declare-const X_0 Real)\n(declare-const Y_0 Real)\n(declare-const Y_1 Real)\n"
UNIT = "(assert (>= X_0 0.0))\n(assert (<= X_0 1.0))\n"


def cases(formula: str) -> tuple[Case, ...]:
    return parse_vnnlib(f"{DECLARED}{UNIT}(assert {formula})").cases


def below(bound: int) -> Linear:
    return Linear((), ((0, F(1)),), F(bound))


def nested(word: str, depth: int, *, left: bool) -> str:
    """`word` of 0 <= k <= depth comparisons Y_0 <= k, each but one in a group of its own."""
    if left:
        parts = [f" (<= Y_0 {k}))" for k in range(1, depth + 1)]
        return f"({word} " * depth + "(<= Y_0 0)" + "".join(parts)
    parts = [f"({word} (<= Y_0 {k}) " for k in range(depth)]
    return "".join(parts) + f"(<= Y_0 {depth})" + ")" * depth


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("word", ["and", "or"])
def test_nesting_means_the_same_as_none(word: str, left: bool) -> None:
    depth = 3_000
    constraints = [below(k) for k in range(depth + 1)]
    (case,) = cases(nested(word, depth, left=left))
    assert case.any_of == ((tuple(constraints),) if word == "and" else tuple((c,) for c in constraints))


def test_more_cases_than_are_multiplied_out_may_be_written_out() -> None:
    count = MAX_CONJUNCTIONS + 2
    formula = "(or " + " ".join(f"(and (<= Y_0 {k}) (<= Y_1 {k}))" for k in range(count)) + ")"
    (case,) = cases(formula)
    assert len(case.any_of) == count


def test_groups_of_one_do_not_hide_what_is_nested() -> None:
    depth = 3_000
    parts = "".join(f"(or (<= Y_0 {k}) (and " for k in range(depth))
    (case,) = cases(parts + "(<= Y_0 -1)" + "))" * depth)
    assert case.any_of == (*((below(k),) for k in range(depth)), (below(-1),))


def alternating(levels: int) -> str:
    """Of which the k-th level adds a constraint to each of k conjunctions."""
    parts = "".join(f"(and (<= Y_0 {k}) (or (<= Y_1 {k}) " for k in range(levels))
    return parts + "(<= Y_0 -1)" + "))" * levels


def test_and_and_or_in_turn() -> None:
    (case,) = cases(alternating(30))
    wins = [Linear((), ((1, F(1)),), F(k)) for k in range(30)]
    assert case.any_of == (
        *((*map(below, range(k + 1)), wins[k]) for k in range(30)),
        (*map(below, range(30)), below(-1)),
    )


def test_what_multiplies_out_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.suites.vnnlib.formulas.MAX_CONSTRAINTS", 10_000)
    with pytest.raises(UnreadableFile, match=f"more than {MAX_CONJUNCTIONS} cases"):
        cases(alternating(2_000))


@pytest.mark.parametrize(
    ("wrong", "reason", "inside"),
    [
        ("(<= Y_7 1.0)", "'Y_7' is not declared", 4),
        ("(<= Y_1 Y_7)", "'Y_7' is not declared", 8),
        ("(<= Y_1 1.0.0)", "'1.0.0' is not a decimal number", 8),
        ("(<= X_0 1e999)", "the exponent of '1e999' is out of range", 8),
        ("(<= (+ (* 2.0 Y_0) (* 2.0.1 Y_0)) 1.0)", "'2.0.1' is not a decimal", 22),
        ("(<= (+ (* 2.0 Y_0) (* 2.0 Y_9)) 1.0)", "'Y_9' is not declared", 26),
        ("(<= Y_1)", "compares two terms, not 1", 0),
        ("Y_1", "'and' joins comparisons, but this is a term", 0),
        ("(+ 1.0 Y_1)", "'and' joins comparisons, but this is a term", 0),
    ],
)
def test_an_error_among_many_comparisons_has_its_place(wrong: str, reason: str, inside: int) -> None:
    many = "  (<= Y_0 1.0) ; (<= Y_9 1.0)\n\t(>= X_0 0.5) (< Y_0 Y_1)\n"
    text = f"{DECLARED}{UNIT}(assert (or (and\n{many * 100}   {wrong}\n{many})))"
    with pytest.raises(UnreadableFile, match=reason) as caught:
        parse_vnnlib(text, file="asked")
    assert caught.value.place == Place("asked", 6 + 1 + 200, 4 + inside)


def test_every_simple_comparison_means_what_it_says() -> None:
    (case,) = cases(
        "(and (<= Y_0 1.5) (>= Y_0 1.5) (< Y_0 2) (> Y_0 -2.0) (<= Y_0 Y_1) (> Y_0 Y_1) (<= Y_0 Y_0)"
        " (> Y_0 Y_0) (>= X_0 0.25) (<= X_0 0.75) (< X_0 0.5) (<= X_0 Y_1) ; (<= Y_0 7)\n (>= 3.0 Y_0))"
    )
    y, half = ((0, F(1)),), F(1, 2)
    minus = ((0, F(-1)),)
    assert case.box == Box((F(1, 4),), (half,))
    assert case.any_of == (
        (
            Linear((), y, F(3, 2)),
            Linear((), minus, F(-3, 2)),
            Linear((), y, F(2), True),
            Linear((), minus, F(2), True),
            Linear((), ((0, F(1)), (1, F(-1))), F(0)),
            Linear((), ((0, F(-1)), (1, F(1))), F(0), True),
            Linear((), (), F(0), True),
            Linear(y, (), half, True),
            Linear(y, ((1, F(-1)),), F(0)),
            Linear((), y, F(3)),
        ),
    )


def test_products_add_up() -> None:
    (case,) = cases("(<= (+ (* 2.0 Y_0) (* -1.5 Y_1) (* 0.5 Y_0) Y_1 (* Y_0 4.0) 3.0) (* 2.0 X_0))")
    assert case.any_of == ((Linear(((0, F(-2)),), ((0, F(13, 2)), (1, F(-1, 2))), F(-3)),),)


def test_boxes_that_are_equal_are_one_case_however_they_are_given() -> None:
    first, second = cases(
        "(or (and (>= X_0 0.5) (<= Y_0 1)) (and (<= X_0 2.0) (<= Y_0 2))"
        " (and (>= X_0 0.50) (<= X_0 1.0) (<= Y_0 3)) (<= Y_0 4))"
    )
    assert first == Case(Box((F(1, 2),), (F(1),)), ((below(1),), (below(3),)))
    assert second == Case(Box((F(0),), (F(1),)), ((below(2),), (below(4),)))


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_of_garbage_is_left_as_it_was(was_on: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if was_on else gc.disable)()
        cases("(<= Y_0 1)")
        with pytest.raises(UnreadableFile):
            cases("(<= Y_9 1)")
        assert gc.isenabled() is was_on
    finally:
        (gc.enable if before else gc.disable)()
