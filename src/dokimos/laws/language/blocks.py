"""The Python block of a law: where it ends, whether it is Python, and whether it only predicts."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass

from dokimos.laws.language.problems import LawError
from dokimos.laws.language.syntax import Law, Position


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
