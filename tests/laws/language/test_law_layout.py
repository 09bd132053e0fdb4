"""One layout, the same meaning, no comment lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.laws.language import syntax as laws
from dokimos.laws.language.law_layout import format_expression, format_law
from dokimos.laws.language.parser import parse_law, read_law
from tests.laws.language.strategies import BLOCKS, COMMENTS, EXPRESSIONS, GAPS
from tests.laws.language.test_parser import ACCEPTED, condition


@pytest.mark.no_cover
@given(expression=EXPRESSIONS)
@settings(deadline=None, max_examples=80)
def test_expressions_are_read_back_as_they_were(expression: laws.Expression) -> None:
    assert condition(format_expression(expression)) == expression


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("!(d == 2)", "!(d == 2)"),
        ("! d == 2", "!(d == 2)"),
        ("!(d)", "!d"),
        ("!!d", "!!d"),
        ("!(forall i in 0..1: d == i)", "!(forall i in 0..1: d == i)"),
        ("-(-2) == - d * 3", "-(-2) == -d * 3"),
    ],
)
def test_nothing_that_is_easily_misread(text: str, printed: str) -> None:
    assert format_expression(condition(text)) == printed
    assert condition(printed) == condition(text)


@pytest.mark.no_cover
@given(data=st.data(), expression=EXPRESSIONS, block=BLOCKS)
@settings(deadline=None, max_examples=60)
def test_formatting_keeps_the_meaning_and_is_stable(
    data: st.DataObject, expression: laws.Expression, block: str
) -> None:
    printed = format_expression(expression)
    parts = [
        "import m;",
        "input x1 ;",
        f"var  v:={printed};",
        "output d;",
        f"{{{block}}}",
        f"ensures {printed} ;",
        data.draw(st.sampled_from(["", "ensures d in 99%;", "ensures  d  in  0.5 %  ;"])),
    ]
    text = ""
    for part in parts:
        comment = data.draw(COMMENTS)
        line_end = "\n" if comment.startswith((" #", " //")) else ""
        text += part + comment + line_end + data.draw(GAPS)
    law = parse_law(text)
    laid_out = format_law(law)
    again = parse_law(laid_out)
    assert again == law
    assert [each.text for each in again.comments] == [each.text for each in law.comments]
    assert format_law(again) == laid_out


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.name)
def test_the_corpus_keeps_its_meaning(path: Path) -> None:
    law = read_law(path)
    assert parse_law(format_law(law)) == law


def test_the_layout() -> None:
    text = """/* about */ input x;var v:=x.f1+( 2*3 ) ; # trailing
// own line


output d; {
  # note
  d = predict(x)
    }
ensures // inside
  (d==v)==>(d==(1));"""
    assert (
        format_law(parse_law(text))
        == """/* about */
input x;
var v := x.f1 + 2 * 3;  # trailing
// own line

output d;
{
    # note
    d = predict(x)
}
// inside
ensures d == v ==> d == 1;
"""
    )


def test_a_string_of_several_lines_in_the_block_is_left_alone() -> None:
    text = 'input x;\noutput d;\n{\n  d = """a\n  b"""\n}\nensures d == 1;\n'
    assert format_law(parse_law(text)) == text
