"""Laws are read as they are written, or refused with the place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import UnreadableFile
from dokimos.laws.language import parser
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.law_layout import Prediction, predictions
from dokimos.laws.language.parser import parse_condition, parse_law, read_law
from dokimos.laws.language.syntax import LawError, caret
from dokimos.laws.language.validation import Severity, check_law

CORPUS = Path(__file__).parents[2] / "corpus" / "laws"
ACCEPTED = sorted((CORPUS / "accept").iterdir())
REJECTED = sorted((CORPUS / "reject").iterdir())


def condition(text: str) -> laws.Expression:
    return parse_law(f"input x; output d; {{ d = 1 }} ensures {text};").ensures[0].condition


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.name)
def test_what_the_language_has_is_read(path: Path) -> None:
    law = read_law(path)
    assert [each for each in check_law(law) if each.severity is Severity.ERROR] == []
    assert law.inputs and law.ensures


@pytest.mark.parametrize("path", REJECTED, ids=lambda path: path.stem)
def test_what_is_wrong_is_said_at_its_place(path: Path) -> None:
    """Each file ends in a comment: the line and column of the first error, and words of its message."""
    _, _, wanted = path.read_text().strip().rpartition("# ")
    place, _, words = wanted.partition(" ")
    try:
        law = read_law(path)
        (first, *_) = [each for each in check_law(law) if each.severity is Severity.ERROR]
        message = first.shown(law)
    except LawError as problem:
        message = str(problem)
    assert f"{path}:{place}:" in message
    assert words in message
    assert message.splitlines()[-1].strip() == "^"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a ==> b ==> d", "a ==> (b ==> d)"),
        ("a || b && d", "a || (b && d)"),
        ("a && b || d ==> e", "((a && b) || d) ==> e"),
        ("!a == d", "!(a == d)"),
        ("!a && d", "(!a) && d"),
        ("a - b - d < 1", "((a - b) - d) < 1"),
        ("a + b * d == 1", "(a + (b * d)) == 1"),
        ("-a * d == 1", "((-a) * d) == 1"),
        ("a / b % d == 1", "((a / b) % d) == 1"),
        ("d-1 == 0", "(d - 1) == 0"),
        ("forall i in 0..9: a ==> d", "forall i in 0..9: (a ==> d)"),
        ("x.a.b == d", "((x.a).b) == d"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert condition(text) == condition(same)


def test_precedence_is_not_everything() -> None:
    assert condition("(a ==> b) ==> d") != condition("a ==> b ==> d")
    assert condition("1 == d") != condition("1.0 == d")
    assert condition("1 == d") != condition("true == d")


def test_literals() -> None:
    values = [
        each.value
        for each in condition(r"""f("\u00e9\n\\", 1, 1.5e3, true, False, null, '"')""").children()
    ]  # type: ignore[attr-defined]
    assert values == ["é\n\\", 1, 1500.0, True, False, None, '"']
    assert [type(each) for each in values[1:3]] == [int, float]


def test_positions_are_those_of_the_text() -> None:
    law = parse_law("input x;\noutput d;\n{ d = 1 }\nensures d <=\n  x.income;")
    (comparison,) = [each for each in law.expressions() if isinstance(each, laws.Binary)]
    (feature,) = [each for each in law.expressions() if isinstance(each, laws.FeatureOf)]
    assert (comparison.at, feature.at) == (laws.Position(4, 11), laws.Position(5, 5))
    assert law.ensures[0].end_line == 5


def test_line_ends_and_byte_order_marks_do_not_matter(tmp_path: Path) -> None:
    text = "input x;\noutput d;\n{\n  d = predict(x)\n}\nensures d == 1;\n"
    path = tmp_path / "a.law"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_law(path) == parse_law(text)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"input x" * 200_000])
def test_unreadable_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.law"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=r"a\.law"):
        read_law(path)
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_law(tmp_path / "missing.law")


@pytest.mark.parametrize(
    ("condition", "reason", "column"),
    [
        ("(" * 50_000 + "d" + ")" * 50_000, "300 brackets; split it with variables", 309),
        ("f[a := " * 50_000, r"nested in more than 300 brackets", 2110),
        ("!" * 400_000 + "d", r"more than 20,000 tokens; split it into several laws", 20003),
        ("d" + " + d" * 100_000, r"more than 20,000 tokens", None),
    ],
    ids=["brackets", "changes", "signs", "sums"],
)
def test_what_the_grammar_would_take_minutes_for_is_refused_at_its_place(
    condition: str, reason: str, column: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser, "_lark", lambda *_: pytest.fail("the grammar saw it"))
    with pytest.raises(LawError, match=reason) as problem:
        parse_law(f"output d;\n{{ d = 1 }}\nensures {condition};")
    assert problem.value.at.line == 3 and problem.value.at.column == (column or problem.value.at.column)
    assert max(map(len, str(problem.value).splitlines())) < 140
    with pytest.raises(LawError, match=reason):
        parse_condition(condition, name="CONSTRAINTS")


def test_brackets_in_comments_and_strings_and_the_block_are_no_nesting() -> None:
    many = "(" * 1000
    law = parse_law(f'output d; # {many}\n{{ d = len("{many}") }} /* {many} */ ensures d == "{many}";')
    assert len(law.ensures) == 1
    deep = "(" * 300 + "d" + ")" * 300
    assert (
        parse_law(f"output d; {{ d = 1 }} ensures {deep};").ensures[0]
        == parse_law("output d; { d = 1 } ensures d;").ensures[0]
    )


def test_of_a_long_line_the_part_around_the_place_is_shown() -> None:
    text = "input x;\n" + "a" * 500 + "?" + "b" * 500
    shown = caret(text, laws.Position(2, 501)).splitlines()
    assert shown[1] == "    …" + "a" * 60 + "?" + "b" * 59 + "…"
    assert shown[2].index("^") == shown[1].index("?")


@pytest.mark.no_cover
@given(text=st.text(alphabet=st.sampled_from("inputvar x1;:={}()[].\"'#/*&|!<>-+\n\\df0.9"), max_size=60))
@settings(deadline=None, max_examples=80)
def test_any_text_is_a_law_or_an_error_with_a_place(text: str) -> None:
    try:
        parse_law(text)
    except LawError as problem:
        assert str(problem).startswith(f"law:{problem.at.line}:{problem.at.column}: ")


@pytest.mark.no_cover
@given(cut=st.integers(0, 500))
@settings(deadline=None, max_examples=60)
def test_truncated_laws(cut: int) -> None:
    text = (CORPUS / "accept" / "everything.law").read_text()[:cut]
    try:
        parse_law(text)
    except LawError as problem:
        assert problem.at.line >= 1


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("d = predict(x)\ne = predict(y)", [("d", "x"), ("e", "y")]),
        ("d, e = predict(x), m.predict(y)", [("d", "x"), ("e", "y")]),
        ("d = predict(x)", None),
        ("d = predict(x)\ne = d", None),
        ("d = predict(x)\ne = other.predict(y)", None),
        ("d = predict(x)\ne = predict(x + 1)", None),
        ("d = predict(x)\ne = predict(y, 1)", None),
        ("d = predict(x)\ne = predict(d)", None),
        ("x = predict(x)\nd = predict(x)\ne = predict(x)", None),
        ("d = e = predict(x)", None),
        ("d, e = predict(x), predict(y), predict(y)", None),
        ("d = predict(x)\ne = predict(y)\nprint(d)", None),
    ],
)
def test_blocks_that_only_predict_are_recognised(block: str, found: list[tuple[str, str]] | None) -> None:
    law = parse_law(f"import m; input x; input y; output d; output e; {{\n{block}\n}} ensures d == e;")
    wanted = None if found is None else tuple(Prediction(*each) for each in found)
    assert predictions(law) == wanted


def test_the_place_of_a_mistake_in_indented_python() -> None:
    with pytest.raises(LawError, match="not valid Python") as caught:
        parse_law("input x;\noutput d;\n{\n    d = 1\n    e = = 2\n}\nensures d == 1;")
    assert caught.value.at == laws.Position(5, 9)


def test_if_then_else_is_short_for_two_implications() -> None:
    one = parse_condition("if a > 1 then b == 2 else !c ==> d", name="e")
    other = parse_condition("(a > 1 ==> b == 2) && (!(a > 1) ==> (!c ==> d))", name="e")
    assert one == other
    nested = parse_condition("if a then if b then c else d else e", name="e")
    assert nested == parse_condition("(a ==> (b ==> c) && (!b ==> d)) && (!a ==> e)", name="e")
    assert parse_condition("then == x1.if", name="e")  # they are names elsewhere
    with pytest.raises(LawError, match="else"):
        parse_condition("if a then b", name="e")
