"""What can be told to be wrong with a law before anything runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dokimos.laws import text
from dokimos.laws.domain.definition import read_domain
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.validation import Severity, check_law
from tests.laws.toy import BLOCK, FEATURES, domain, law


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input x1; var x2 := x1[felonnies := 1];", "no feature felonnies (did you mean felonies?)"),
        ("input x1; var x2 := x1[felonies := x1.agge];", "no feature agge (did you mean age?)"),
        ("input x1; var x2 := setFeat(x1, 17, 1);", "records have the columns 0 to 5"),
        ("input x1; var x2 := setFeat(x1, f9, 1);", "no feature 9"),
        ("input x1; var x2 := setFeat(x1, 'ages', 1);", "did you mean age"),
        ("input x1; var x2 := setFeat(x1, age, 'old');", "age is a number, but this is a string"),
        ("input x1; var x2 := blurr(x1);", "no function blurr (did you mean blur?)"),
        ("input x1; var x2 := blur(x1, 2, 3);", "blur takes 1 argument, not 3"),
        ("input x1; var x2 := x1[age := 1, income := 2, f0 := 3];", "age is changed twice"),
        ("input x1; var x2 := x1; requires label(x1) == 1;", "has no labels"),
    ],
)
def test_what_a_domain_lets_the_checker_see(text: str, message: str) -> None:
    problems = check_law(law(text), domain(blur=lambda x: x))
    assert [each for each in problems if message in each.message], problems


def test_undeclared_names_in_the_block() -> None:
    block = "d = predikt(x1) + toy.predict(x1) + len(blur(x1))"
    text = f"import toy; input x1; output d; {{\n  {block}\n}} ensures d == 1;"
    (problem,) = check_law(parse_law(text), domain(blur=lambda x: x))
    assert "uses predikt" in problem.message and "did you mean predict" in problem.message
    assert (problem.at.line, problem.at.column) == (2, 7)
    one_line = "input x1; output d; { d = predikt(x1) } ensures d == 1;"
    (problem,) = check_law(parse_law(one_line), domain())
    assert one_line[problem.at.column - 1 :].startswith("predikt")


def test_python_binds_names_in_many_ways() -> None:
    code = """
import math
def f(a): return a
class C: pass
try:
    d = f(1)
except ValueError as problem:
    d = [i for i in range(3)] + [problem]
with open(C) as g:
    d = math.pi + g
"""
    parsed = parse_law(f"input x1; output d; {{{code}\nx1 = x1}} ensures d == 1;")
    assert check_law(parsed, domain()) == ()


def test_warnings_do_not_stop_a_law() -> None:
    problems = check_law(parse_law(f"input x1; var x2 := x1; var y := 1; {BLOCK}"), domain())
    assert [each.severity for each in problems] == [Severity.WARNING, Severity.WARNING]
    assert "warning: " in problems[0].shown(parse_law(f"input x1; var x2 := x1; var y := 1; {BLOCK}"))


def test_features_that_are_text_are_strings() -> None:
    words = read_domain(SimpleNamespace(FEATURES=[text("pos"), text("neg")]), name="review")
    problems = check_law(law("input x1; var x2 := x1[pos := x1.neg + 1];"), words)
    assert [each for each in problems if "strConcat" in each.message]
    assert len(FEATURES) == 5
