"""Formats laws in a single layout, keeping the meaning and every comment."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dokimos.laws.language import syntax as laws
from dokimos.laws.language.blocks import meaning, parse_block
from dokimos.laws.language.syntax import Comment, Expression, Law, LawStatement

#: How tightly each operator binds, loosest first.
_IMPLIES, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _NEGATIVE, _POSTFIX = range(1, 10)
_LEFT_AND_RIGHT = {
    "==>": (_IMPLIES, _OR, 0),
    "||": (_OR, _OR, _AND),
    "&&": (_AND, _AND, _NOT),
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), (_COMPARISON, _SUM, _SUM)),
    **dict.fromkeys(("+", "-"), (_SUM, _SUM, _PRODUCT)),
    **dict.fromkeys(("*", "/", "%"), (_PRODUCT, _PRODUCT, _NEGATIVE)),
}
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def format_law(law: Law) -> str:
    """The formatted law: formatting it again changes nothing, and parsing it gives the same law."""
    statements: list[LawStatement] = [*law.imports, *law.declarations, law.block, *law.ensures]
    lines: list[str] = []
    last_line: int | None = None
    comments = list(law.comments)

    def put(text: str, first: int, end: int) -> None:
        nonlocal last_line
        if last_line is not None and first - last_line > 1:
            lines.append("")
        lines.append(text)
        last_line = end

    for index, statement in enumerate(statements):
        following = statements[index + 1] if index + 1 < len(statements) else None
        before = [each for each in comments if not _is_after(each, statement, law)]
        comments = comments[len(before) :]
        for comment in before:
            put(comment.text, comment.at.line, comment.end_line)
        text, end = _statement(statement), statement.end_line
        if comments and _trails(comments[0], statement, following):
            trailing = comments.pop(0)
            text, end = f"{text}  {trailing.text}", trailing.end_line
        put(text, statement.at.line, end)
    for comment in comments:
        put(comment.text, comment.at.line, comment.end_line)
    return "\n".join(lines) + "\n"


def _is_after(comment: Comment, statement: LawStatement, law: Law) -> bool:
    """Whether the comment starts after the end of the statement."""
    if comment.at.line != statement.end_line:
        return comment.at.line > statement.end_line
    line = law.text.splitlines()[comment.at.line - 1][: comment.at.column - 1]
    marks = "}" if isinstance(statement, laws.Block) else ";"
    begins = statement.at.column - 1 if statement.at.line == comment.at.line else 0
    return marks in line[begins:]


def _trails(comment: Comment, statement: LawStatement, following: LawStatement | None) -> bool:
    """Whether the comment follows the statement on its last line, with nothing after it."""
    if comment.at.line != statement.end_line:
        return False
    return following is None or following.at.line > comment.at.line


def _statement(statement: LawStatement) -> str:
    match statement:
        case laws.Import(name=name):
            return f"import {name};"
        case laws.Input(name=name):
            return f"input {name};"
        case laws.Output(name=name):
            return f"output {name};"
        case laws.Var(name=name, value=value):
            return f"var {name} := {format_expression(value)};"
        case laws.Requires(condition=condition):
            return f"requires {format_expression(condition)};"
        case laws.Ensures(condition=condition, percent=percent):
            share = "" if percent is None else f" in {format_expression(percent)} %"
            return f"ensures {format_expression(condition)}{share};"
        case laws.Block(text=text):
            return _block(text)
    raise TypeError(f"{statement!r} is not a statement")


def _block(text: str) -> str:
    """The block with its code indented by four spaces; unchanged if that would alter a string."""
    first, _, rest = text.partition("\n")
    code = textwrap.dedent(rest)
    if first.strip():
        code = f"{first.strip()}\n{code}"
    indented = textwrap.indent(code.strip("\n"), "    ")
    lines = "\n".join(line.rstrip() for line in indented.splitlines())
    laid_out = f"\n{lines}\n" if lines.strip() else "\n"
    try:
        same = meaning(parse_block(laid_out)) == meaning(parse_block(text))
    except SyntaxError:
        same = False
    return f"{{{laid_out if same else text}}}"


def format_expression(expression: Expression, binding: int = 0) -> str:
    """The expression, as an operand of an operator that binds as tightly as `binding`.

    It has no more parentheses than needed; the exceptions are `!(a == b)` and `-(-a)`, which are easily
    misread without them.
    """
    text, own = _printed(expression)
    return f"({text})" if own < binding else text


def _printed(expression: Expression) -> tuple[str, int]:
    match expression:
        case laws.Literal(value=value):
            return _literal(value), _POSTFIX
        case laws.Name(name=name):
            return name, _POSTFIX
        case laws.Unary(operator="!", operand=operand):
            binding = _POSTFIX if isinstance(operand, laws.Binary) else _NOT
            return f"!{format_expression(operand, binding)}", _NOT
        case laws.Unary(operand=operand):
            return f"-{format_expression(operand, _POSTFIX)}", _NEGATIVE
        case laws.Binary(operator=operator, left=left, right=right):
            own, at_left, at_right = _LEFT_AND_RIGHT[operator]
            sides = format_expression(left, at_left), format_expression(right, at_right)
            return f"{sides[0]} {operator} {sides[1]}", own
        case laws.Call(function=function, arguments=arguments):
            return f"{function}({_joined(arguments)})", _POSTFIX
        case laws.FeatureOf(record=record, feature=feature):
            return f"{format_expression(record, _POSTFIX)}.{feature}", _POSTFIX
        case laws.Update(record=record, changes=changes):
            inside = ", ".join(f"{feature} := {format_expression(value)}" for feature, value in changes)
            return f"{format_expression(record, _POSTFIX)}[{inside}]", _POSTFIX
        case laws.ForAll(variable=variable, low=low, high=high, body=body):
            ends = f"{format_expression(low, _SUM)}..{format_expression(high, _SUM)}"
            return f"forall {variable} in {ends}: {format_expression(body)}", 0
    raise TypeError(f"{expression!r} is not an expression")


def _joined(expressions: Sequence[Expression]) -> str:
    return ", ".join(format_expression(each) for each in expressions)


def _literal(value: bool | int | float | str | None) -> str:
    if isinstance(value, str):
        return f'"{"".join(_escaped(mark) for mark in value)}"'
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _escaped(mark: str) -> str:
    if mark in _ESCAPED:
        return _ESCAPED[mark]
    ordinary = mark.isprintable() or ord(mark) > 0xFFFF
    return mark if ordinary else f"\\u{ord(mark):04x}"
