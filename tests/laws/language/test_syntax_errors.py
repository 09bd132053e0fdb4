"""What is said of a text that is no law."""

from __future__ import annotations

import pytest

from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import LawError
from dokimos.laws.language.validation import check_law

_LAW = "input x1;\n{requires}output d1;\n{{\n d1 = predict(x1)\n}}\nensures {ensures};\n"


@pytest.mark.parametrize(
    ("requires", "ensures", "line"),
    [
        ("", "not d1", "ensures not d1;"),
        ("", "d1 == 1 ==> not d1 == 2", "ensures d1 == 1 ==> not d1 == 2;"),
        ("", "d1 == 1 &&\n  not d1 == 2", "  not d1 == 2;"),
        ("requires not x1.age == 3;\n", "d1 == 1", "requires not x1.age == 3;"),
    ],
)
def test_the_caret_is_under_not(requires: str, ensures: str, line: str) -> None:
    with pytest.raises(LawError) as refused:
        parse_law(_LAW.format(requires=requires, ensures=ensures))
    sentence, shown, caret = str(refused.value).split("\n")
    assert sentence.endswith("unexpected 'not'; use ! instead.")
    assert shown.strip() == line.strip()
    assert shown[caret.index("^") :].startswith("not")


def test_a_name_that_ends_in_not_is_no_negation() -> None:
    with pytest.raises(LawError, match="unexpected 'd1'"):
        parse_law(_LAW.format(requires="", ensures="knot d1"))


def test_not_is_no_function_even_where_no_domain_says_which_there_are() -> None:
    (problem,) = check_law(parse_law(_LAW.format(requires="", ensures="not(d1 == 1)")))
    assert problem.message == "there is no function not; use ! instead"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "input x1;\nvar x2 := x1  # the same\n\noutput d1;",
            r"law:2:13: a ';' is missing here, before 'output'",
        ),
        ("input x1\noutput d1;", r"law:1:9: a ';' is missing here"),
        ("input x1; requires x1.a > 1 output d1;", r"law:1:28: a ';' is missing here, before 'output'"),
        ('input x1;\nvar v := "a // b"\n/* c\n d */ output d1;', r"law:2:18: a ';' is missing here"),
        ("input x1; requires x1.a > 1 => x1.b > 1;", r"Write ==>"),
        ("input x1; for every value v sex;", r"expected 'of'"),
        ("input x1; requires x1.a > 1 implies x1.b > 1;", r"Use ==> instead"),
        ("input x1; requires x1.a > 1 ? x1.b > 1 : x1.b < 1;", r"if condition then one else"),
    ],
)
def test_what_is_missing_or_written_otherwise_is_said(text: str, said: str) -> None:
    with pytest.raises(LawError, match=said):
        parse_law(f"{text}\noutput d1;\n{{ d1 = predict(x1) }}\nensures d1 == 0;")
