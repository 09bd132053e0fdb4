"""Laws as questions: what is linked, what is asked for every value, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from dokimos.checker.lemmas.zones import (
    FALSE,
    TRUE,
    Comparison,
    Either,
    Every,
    Options,
    Quantity,
    Sign,
    Span,
    Zone,
    simplified,
)
from dokimos.laws.engine.law_plan import make_plan
from dokimos.laws.language.parser import parse_law
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.translation import translate
from tests.laws import toy
from tests.laws.proving.small import BY, LATER, MORE, OTHER, SAME, plan


def test_a_draw_that_a_feature_determines_is_no_variable() -> None:
    """x2.points = x1.points + r: r is x2.points − x1.points, and its ends are conditions on that."""
    question = translate(plan(BY), range(3))
    assert [each.name for each in question.variables] == ["x1.points", "x1.paid", "x1.kind", "x2.points"]
    (draw,) = question.draws
    assert draw.at((1, 0, 0, 3)) == 2
    assert question.admits((1, 0, 0, 3)) and not question.admits((1, 0, 0, 4))
    assert not question.admits((1, 0, 0, 1)) and not question.admits((5, 0, 0, 6))


def test_records_share_what_the_law_does_not_change() -> None:
    question = translate(plan(MORE), range(3))
    first, second = question.records
    assert first.features[1:] == second.features[1:] and first.features[0] != second.features[0]
    assert {each.classes for each in question.forbidden} == {(1, 0), (2, 0), (2, 1)}


def test_a_choice_that_is_set_stays_a_choice() -> None:
    question = translate(plan(LATER), range(3))
    assert question.variables[-1].is_choice
    assert question.admits((0, 0, -1, 2)) and not question.admits((0, 0, 2, 2))


def test_another_input_gives_what_is_linked() -> None:
    question = translate(plan(OTHER + SAME), range(3))
    assert len(question.inputs) == 2 and len(question.records) == 2
    assert len(question.forbidden) == 6


def test_constraints_hold_of_every_record() -> None:
    constrained = translate(plan(MORE, "points <= 4"), range(3))
    assert constrained.over.endswith("with its constraints")
    assert constrained.admits((3, 0, 0, 4)) and not constrained.admits((3, 0, 0, 5))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("input x1; var x2 := x1; ENSURES score(x1, 0) <= score(x2, 0)", "the model's scores"),
        ("input x1; var x2 := x1; ENSURES d1 == d2 in 99 %", "share or a mean"),
        ("input x1; var x2 := x1[age := x1.age * x1.felonies];", "not linear"),
        ("input x1; var x2 := x1[age := x1.age % 2];", "not linear"),
        ("input x1; var x2 := x1[age := abs(x1.age)];", "abs"),
        ("input x1; var x2 := x1; requires label(x1) == 1;", "rows of a data set"),
        ("input x1; var x2 := x1[sex_Male := 1];", "one column of the choice sex"),
        ("input x1; var x2 := twin(x1);", "twin is a function of the domain"),
    ],
)
def test_what_cannot_be_translated_is_refused_with_the_reason(text: str, reason: str) -> None:
    domain = toy.domain(twin=lambda record: record, labels=lambda: [0] * 40)
    with pytest.raises(Refusal, match=reason):
        translate(make_plan(toy.law(text), domain), range(3))


def test_a_block_that_is_code_is_refused() -> None:
    text = "input x1; output d1; { d1 = 1 + predict(x1) } ensures d1 == 0;"
    with pytest.raises(Refusal, match="more than predict"):
        translate(make_plan(parse_law(text), toy.domain()), range(3))


def test_a_domain_without_ranges_is_refused() -> None:
    features: list[Any] = ["age"]
    domain = toy.domain(FEATURES=features)
    with pytest.raises(Refusal, match="no declared range"):
        translate(make_plan(toy.law("input x1; var x2 := x1;"), domain), range(3))


def test_the_refusal_says_where() -> None:
    domain = toy.domain()
    text = "input x1;\nvar x2 := x1[age := x1.age * x1.age];"
    with pytest.raises(Refusal, match=r"line 2, column \d+"):
        translate(make_plan(toy.law(text), domain), range(3))


def test_every_forall_and_iff() -> None:
    text = "input x1; var x2 := x1; ENSURES forall i in 0..2: (d1 == i) == (d2 == i)"
    question = translate(make_plan(toy.law(text), toy.domain()), range(3))
    assert {each.classes for each in question.forbidden} == {
        (a, b) for a in range(3) for b in range(3) if a != b
    }


ZONE = Zone((Span(0, 3), Options(frozenset({0, 2}))))


@pytest.mark.parametrize(
    ("sign", "constant", "found"),
    [
        (Sign.AT_MOST, -3, True),
        (Sign.AT_MOST, -2, None),
        (Sign.AT_MOST, 1, False),
        (Sign.BELOW, -3, None),
        (Sign.BELOW, 0, False),
        (Sign.BELOW, -4, True),
        (Sign.ZERO, 1, False),
        (Sign.ZERO, 0, None),
        (Sign.OTHER, 1, True),
    ],
)
def test_what_a_zone_says_of_a_comparison(sign: Sign, constant: int, found: bool | None) -> None:
    assert Comparison(Quantity(constant, ((0, 1),)), sign).over(ZONE) is found


def test_what_a_zone_says_of_a_choice() -> None:
    """1 lies between the options that are left, and is none of them."""
    assert Comparison(Quantity(-1, ((1, 1),)), Sign.ZERO).over(ZONE) is False
    assert Comparison(Quantity(-1, ((1, 1),)), Sign.OTHER).over(ZONE) is True


def test_formulas_are_simplified_and_negated() -> None:
    atom = Comparison(Quantity.of(0), Sign.BELOW)
    assert simplified(Every((TRUE, atom, Either((atom,))))) == atom
    assert simplified(Either((FALSE, Every((atom, FALSE))))) == FALSE
    for formula in (atom, Every((atom, TRUE)), Either((atom, FALSE))):
        for case in ((-1, 0), (0, 0), (1, 0)):
            assert formula.negated().holds(case) is not formula.holds(case)
