"""Values of choices by their names."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from dokimos.laws import category, choice, integer, real
from dokimos.laws.domain.definition import Domain
from dokimos.laws.language.choices import resolve_choices
from dokimos.laws.language.law_layout import format_law
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.validation import check_law
from tests.laws.toy import domain, inputs, law, run

DEGREE = domain(
    FEATURES=[integer("age", 0, 9), choice("degree", "F", "M", none=True)],
    inputs=lambda: np.array([[1, 1, 0], [2, 0, 1], [3, 0, 0]]),
)


@pytest.mark.parametrize(
    ("by_name", "by_index"),
    [
        ('x1.sex == "Male"', "x1.sex == 1"),
        ('"Male" != x1.sex', "1 != x1.sex"),
        ('getFeat(x1, sex) == "Female"', "getFeat(x1, sex) == 0"),
        ('x1[sex := "Male"] == x1', "x1[sex := 1] == x1"),
        ('x1[age := 3, sex := "Male"].sex != "Female"', "x1[age := 3, sex := 1].sex != 0"),
        ('setFeat(x1, "sex", "Male") == x1', 'setFeat(x1, "sex", 1) == x1'),
        ('s == "Male" && (forall i in 0..1: s != "Male")', "s == 1 && (forall i in 0..1: s != 1)"),
    ],
)
def test_names_mean_what_indices_do(by_name: str, by_index: str) -> None:
    texts = [f"input x1; var s := x1.sex; requires {each}; var x2 := x1;" for each in (by_name, by_index)]
    named, indexed = (law(text) for text in texts)
    assert check_law(named, domain()) == check_law(indexed, domain())
    assert resolve_choices(named, domain()) == indexed
    assert resolve_choices(indexed, domain()) == indexed
    assert parse_law(format_law(named)) == named
    rejected = [run(text, exhaustive=True).rejected for text in texts]
    assert rejected[0] == rejected[1]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ('x1.sex == "Mael"', 'sex has no value "Mael" (did you mean Male?); it has Female, Male'),
        ('x1[sex := "male"] == x1', "did you mean Male"),
        ('x1.sex == "none"', "sex has no value"),
        ('x1.sex < "Male"', "compare values of sex only with == and !="),
        ("x1.sex == name", "sex is a choice: write the name"),
        ("x1[sex := name] == x1", "sex is a choice: write the name"),
        ('x1.age == "Male"', "a number is never equal to a string"),
    ],
)
def test_what_no_choice_has(condition: str, message: str) -> None:
    text = f"input x1; var name := 'Male'; requires {condition}; var x2 := x1;"
    problems = [each for each in check_law(law(text), domain()) if "never used" not in each.message]
    assert len(problems) == 1 and message in problems[0].message
    assert "^" in problems[0].shown(law(text))


def test_a_choice_may_have_none() -> None:
    def count(condition: str, of: Domain) -> int:
        return run(f"input x1; requires {condition}; var x2 := x1;", of=of, exhaustive=True).tested

    assert count('x1.degree == "none"', DEGREE) == count("x1.degree == -1", DEGREE) == 1
    assert count('x1[degree := "none"].degree == -1', DEGREE) == 3
    assert count('x1[degree := "none"].degree_F + x1[degree := -1].degree_M == 0', DEGREE) == 3
    drawn = run("input x1; requires x1.degree == -1; var x2 := x1;", of=DEGREE, source="range", budget=900)
    assert 0.25 < drawn.held / drawn.draws < 0.42
    refused = run("input x1; var x2 := x1[sex := -1];", budget=30)
    assert refused.failed and "sex has no such value" in refused.errors[0][0]


def test_names_that_code_gives() -> None:
    of = domain(other=lambda x: "Male", wrong=lambda x: "male")
    found = run("input x1; var x2 := x1[sex := other(x1)]; ENSURES d1 == d2 && x2.sex == 1", of=of)
    assert (found.tested, found.violated) == (40, 0)
    assert run("input x1; var x2 := x1[sex := wrong(x1)];", of=of).failed
    block = "input x1; output d1; { d1 = getFeat(setFeat(x1, 'sex', 'Male'), 'sex') } ensures d1 == 1;"
    assert run(block, budget=40).violated == 0


def test_what_is_made_of_the_data_is_what_is_said() -> None:
    male = run('input x1; requires x1.sex == "Male"; var x2 := x1;', exhaustive=True)
    assert male.tested == int(inputs()[:, 5].sum()) > 0


def test_every_value_of_a_feature_is_tried() -> None:
    features = [
        category("city", "Athens", "Bern"),
        choice("sex", "F", "M", none=True),
        integer("age", 1, 3),
    ]
    rows = np.array([["Athens", 1, 0, 2]], dtype=object)
    of = domain(FEATURES=features, inputs=lambda: rows)
    text = """input x1;
for every value c of city;
for every value s of "sex";
for every value a of age;
requires c != "Oslo" && s != "none";
var x2 := x1[city := c, sex := s, age := a];
output d1;
{
    d1 = predict(x2)
}
ensures d1 != 1;
"""
    asked = parse_law(text)
    assert parse_law(format_law(asked)) == asked and "for every value s of sex;" in format_law(asked)
    [warned] = check_law(asked, of)
    assert 'city has no value "Oslo"; it has Athens, Bern' in warned.message
    result = run(text, model=lambda x: int(x.tolist() == ["Bern", 0, 1, 3]), of=of)
    assert result.is_exhaustive and (result.tested, result.violated) == (12, 1)


@pytest.mark.parametrize(
    ("feature", "said"),
    [("income", "income has no values that are listed"), ("agee", "no feature agee .did you mean age")],
)
def test_not_every_feature_has_values(feature: str, said: str) -> None:
    of = domain(FEATURES=[integer("age", 1, 3), real("income", 0, 1)])
    problems = check_law(law(f"input x1; for every value v of {feature}; requires v > 0;"), of)
    assert any(re.search(said, each.message) for each in problems)


def test_decisions_are_named_where_the_model_alone_makes_them() -> None:
    of = domain()
    text = 'input x1; output d1; {\n    d1 = predict(x1)\n}\nensures d1 != "high";'
    assert check_law(parse_law(text), of) == ()
    assert resolve_choices(parse_law(text), of) == parse_law(text.replace('"high"', "2"))
    assert "has no value" in check_law(parse_law(text.replace('"high"', '"hihg"')), of)[0].message
    code = parse_law(text.replace("predict(x1)", "str(predict(x1))"))
    assert resolve_choices(code, of) == code
    assert resolve_choices(parse_law(text), replace(of, decide=str)) == parse_law(text)
