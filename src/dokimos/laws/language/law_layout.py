"""Formats laws in a single layout, keeping the meaning and every comment."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.laws.language import syntax as laws
from dokimos.laws.language.syntax import Comment, Expression, Law, LawError, LawStatement, Position

# The Python block of a law: where it ends, whether it is Python, and whether it only predicts


def position(text: str, index: int) -> Position:
    """Line and column of an index into `text`."""
    start = text.rfind("\n", 0, index) + 1
    return Position(text.count("\n", 0, index) + 1, index - start + 1)


def find_block(text: str, *, name: str) -> tuple[int, int] | None:
    """The indices of the block's braces; None if there is no block.

    Braces in comments and strings, of the law or of Python, do not count. Raises LawError if a
    comment, a string or the block is never closed.
    """
    index = 0
    while index < len(text):
        mark = text[index]
        if mark == "#" or text.startswith("//", index):
            index = _line_end(text, index)
        elif text.startswith("/*", index):
            end = text.find("*/", index + 2)
            if end < 0:
                raise LawError(name, text, position(text, index), "this comment is never closed with */.")
            index = end + 2
        elif mark in "\"'":
            index = _string_end(text, index, name)
        elif mark == "{":
            return index, _block_end(text, index, name)
        else:
            index += 1
    return None


def _line_end(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end < 0 else end


def _string_end(text: str, index: int, name: str, *, python: bool = False) -> int:
    """The index after the string that starts at `index`; only Python's triple quotes may span lines."""
    quote = text[index]
    triple = python and text.startswith(quote * 3, index)
    close = quote * 3 if triple else quote
    at = index + len(close)
    while at < len(text) and (triple or text[at] != "\n"):
        if text[at] == "\\":
            at += 2
        elif text.startswith(close, at):
            return at + len(close)
        else:
            at += 1
    raise LawError(name, text, position(text, index), f"this string is never closed with {close}.")


def _block_end(text: str, start: int, name: str) -> int:
    depth, index = 0, start
    while index < len(text):
        mark = text[index]
        if mark == "#":
            index = _line_end(text, index)
            continue
        if mark in "\"'":
            index = _string_end(text, index, name, python=True)
            continue
        depth += (mark == "{") - (mark == "}")
        if depth == 0:
            return index
        index += 1
    raise LawError(name, text, position(text, start), "this Python block is never closed with }.")


def runnable(text: str) -> str:
    """The block as a program with the same line numbers.

    Code that starts right after the brace is moved to the margin. Indented code is put under an `if` rather
    than dedented, which would change multi-line strings.
    """
    first, newline, rest = text.partition("\n")
    if first.strip() and not first.lstrip().startswith("#"):
        return first.lstrip() + newline + textwrap.dedent(rest)
    body = [line for line in rest.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    if body and body[0][0] in " \t":
        return f"if True:\n{rest.rstrip()}\n"
    return newline + rest


def parse_block(text: str) -> list[ast.stmt]:
    """The statements of a block. Raises SyntaxError (or ValueError for a null byte)."""
    program = runnable(text)
    statements = ast.parse(program).body
    if program.startswith("if True:\n") and len(statements) == 1 and isinstance(statements[0], ast.If):
        return statements[0].body
    return statements


def meaning(statements: list[ast.stmt]) -> str:
    """What the statements mean to Python, independent of their layout."""
    return "\n".join(ast.dump(statement) for statement in statements)


@dataclass(frozen=True)
class Prediction:
    """`output = predict(record)` in a block."""

    output: str
    record: str


def predictions(law: Law) -> tuple[Prediction, ...] | None:
    """The predictions of a block that does nothing else and assigns every output; None for other blocks.

    Such a block has lines of `d = predict(x)` or `d = NAME.predict(x)` with an imported NAME, possibly
    several joined by commas.
    """
    records = law.value_names
    modules = {each.name for each in law.imports}
    found: list[Prediction] = []
    for statement in parse_block(law.block.text):
        pairs = _pairs(statement)
        if pairs is None:
            return None
        for target, value in pairs:
            record = _predicted(value, modules)
            if not isinstance(target, ast.Name) or record not in records or target.id in records:
                return None
            found.append(Prediction(target.id, record))
    given = {each.output for each in found}
    return tuple(found) if given == {each.name for each in law.outputs} else None


def _pairs(statement: ast.stmt) -> list[tuple[ast.expr, ast.expr]] | None:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return (
            list(zip(target.elts, value.elts, strict=True)) if len(target.elts) == len(value.elts) else None
        )
    return [(target, value)]


def _predicted(value: ast.expr, modules: set[str]) -> str:
    """The name of the record that `value` predicts; empty if it is not such a call."""
    if not isinstance(value, ast.Call) or len(value.args) != 1 or value.keywords:
        return ""
    function, argument = value.func, value.args[0]
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        known = function.attr == "predict" and function.value.id in modules
    else:
        known = isinstance(function, ast.Name) and function.id == "predict"
    return argument.id if known and isinstance(argument, ast.Name) else ""


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
        case laws.Var(name=name, value=laws.Call(laws.EVERY_VALUE, (laws.Literal(value=str(feature)),))):
            told = feature if feature.isidentifier() else format_literal(feature)
            return f"for every value {name} of {told};"
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
            return format_literal(value), _POSTFIX
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


def format_literal(value: bool | int | float | str | None) -> str:
    """A value as laws write it; a string is closed by nothing that it holds."""
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
