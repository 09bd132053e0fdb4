"""Properties in words: the sides of a constraint, the usual patterns, boxes of many inputs."""

from __future__ import annotations

import pytest

from dokimos.suites.vnnlib.model import Linear
from dokimos.suites.vnnlib.reader import parse_vnnlib
from dokimos.suites.vnnlib.writer import box_in_words, constraint_in_words, namer, unsafe_in_words

DECLARED = "".join(f"(declare-const {v} Real)\n" for v in ("X_0", "X_1", "Y_0", "Y_1", "Y_2"))
BOX = "(assert (>= X_0 -1))(assert (<= X_0 1))(assert (>= X_1 0.25))(assert (<= X_1 0.25))\n"
TWO = """(vnnlib-version <2.0>)
(declare-network f (declare-input X real [1,1]) (declare-output Y real [1,1]))
(declare-network g (equal-to f) (declare-input U real [1,1]) (declare-output V real [1,1]))
(assert (and (>= X[0,0] 0) (<= X[0,0] 1) (>= U[0,0] 0) (<= U[0,0] 1)))
(assert (< (* Y[0,0] V[0,0]) (* 2 X[0,0])))
"""


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("(<= Y_0 2)", "Y_0 <= 2"),
        ("(>= Y_0 -2.5)", "Y_0 >= -2.5"),
        ("(<= Y_1 Y_0)", "Y_1 <= Y_0"),
        ("(<= (+ Y_1 0.5) Y_0)", "Y_1 + 0.5 <= Y_0"),
        ("(<= Y_1 (+ Y_0 0.5))", "Y_1 <= Y_0 + 0.5"),
        ("(<= (+ (* 2 Y_1) X_0) (* 3 Y_0))", "X_0 + 2·Y_1 <= 3·Y_0"),
    ],
)
def test_a_constraint_has_positive_terms_on_both_sides(written: str, words: str) -> None:
    asked = parse_vnnlib(f"{DECLARED}{BOX}(assert {written})\n")
    (case,) = asked.cases
    ((one,),) = case.any_of
    assert constraint_in_words(one, namer(asked)) == words


def test_a_strict_constraint_and_one_without_terms() -> None:
    asked = parse_vnnlib(f"{DECLARED}{BOX}(assert (<= Y_0 2))\n")
    assert constraint_in_words(Linear((), ((0, -1),), 0, strict=True), namer(asked)) == "Y_0 > 0"  # type: ignore[arg-type]
    assert constraint_in_words(Linear((), (), 3), namer(asked)) == "0 >= -3"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asserted", "first"),
    [
        ("(assert (or (and (<= Y_1 Y_0)) (and (<= Y_1 Y_2))))", "another output reaches Y_1:"),
        ("(assert (<= Y_1 Y_0))(assert (<= Y_1 Y_2))", "Y_1 is the least output:"),
        ("(assert (<= Y_0 Y_1))(assert (<= Y_2 Y_1))", "Y_1 is the greatest output:"),
        ("(assert (<= Y_0 Y_1))", "Y_0 <= Y_1"),
        ("(assert (or (and (<= Y_1 Y_0)) (and (<= Y_0 Y_1))))", "Y_1 <= Y_0"),
        ("(assert (<= Y_0 Y_1))(assert (<= Y_2 Y_0))", "Y_0 <= Y_1 and Y_2 <= Y_0"),
    ],
)
def test_only_the_pattern_itself_gets_its_name(asserted: str, first: str) -> None:
    asked = parse_vnnlib(f"{DECLARED}{BOX}{asserted}\n")
    assert unsafe_in_words(asked.cases[0].any_of, asked)[0] == first


def test_networks_and_products_have_the_names_of_the_file() -> None:
    asked = parse_vnnlib(TWO)
    assert unsafe_in_words(asked.cases[0].any_of, asked) == ("V[0,0]·Y[0,0] < 2·X[0,0]",)


def test_bounds_from_both_sides_are_an_equality() -> None:
    both = "(assert (<= X_0 X_1))(assert (<= Y_0 2))(assert (<= X_1 X_0))(assert (>= Y_0 2))"
    asked = parse_vnnlib(f"{DECLARED}{BOX}{both}\n")
    assert unsafe_in_words(asked.cases[0].any_of, asked) == ("X_0 = X_1 and Y_0 = 2",)


def test_a_box_says_what_it_leaves_out() -> None:
    asked = parse_vnnlib(f"{DECLARED}{BOX}(assert (<= Y_0 2))\n")
    box = asked.cases[0].box
    assert box_in_words(box, asked, most=2) == ("-1 <= X_0 <= 1", "X_1 = 0.25")
    assert box_in_words(box, asked, most=1)[1] == (
        "… and 1 more inputs; the 2 intervals are of widths 0 to 2"
    )
