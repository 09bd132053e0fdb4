"""Syntax errors in one sentence: what was found, and what was expected."""

from __future__ import annotations

import re

from lark import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from dokimos.core.suggestions import did_you_mean
from dokimos.laws.language.blocks import position
from dokimos.laws.language.problems import LawError
from dokimos.laws.language.syntax import Position

_WORDS = {
    "SEMICOLON": "';'",
    "COLON": "':'",
    "COMMA": "','",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COMPARISON": "a comparison",
    "NAME": "a name",
    "INTEGER": "a number",
    "FLOAT": "a number",
    "PERCENT": "'%'",
    "STRING": "a string",
    "$END": "the end of the law",
}
#: The tokens that can start an expression.
_VALUES = {"INTEGER", "FLOAT", "STRING", "TRUE", "FALSE", "NULL"}
_OPERATORS = {
    "PLUS",
    "MINUS",
    "STAR",
    "SLASH",
    "PERCENT",
    "AND",
    "OR",
    "IMPLIES",
    "COMPARISON",
    "DOT",
    "LSQB",
}
#: What Python programmers write, and its form in laws.
_PYTHON_LOGIC = {"and": "&&", "or": "||", "not": "!"}

_NEGATION = re.compile(r"(?<![\w.])(?P<word>not)\s+\Z")


def explain_syntax(problem: UnexpectedInput, name: str, text: str) -> LawError:
    """One sentence: what was found, and what was expected."""
    if isinstance(problem, UnexpectedToken) and problem.token.type != "$END":
        at = Position(problem.line, problem.column)
        found = f"unexpected {str(problem.token)!r}"
        expected = set(problem.accepts or problem.expected)
    elif isinstance(problem, UnexpectedCharacters):
        at = Position(problem.line, problem.column)
        found, expected = f"unexpected character {problem.char!r}", set(problem.allowed or ())
    else:
        end = len(text.rstrip())
        at = position(text, max(end - 1, 0)) if end else Position(1, 1)
        found = "the law ends too early"
        expected = set(problem.expected if isinstance(problem, UnexpectedEOF) else problem.accepts or ())  # type: ignore[attr-defined]
    hint = ""
    negation = _NEGATION.search(_before(text, at))
    if negation is not None:
        start = position(text, negation.start("word"))
        return LawError(name, text, start, f"unexpected 'not'; use {_PYTHON_LOGIC['not']} instead.")
    if isinstance(problem, UnexpectedToken) and problem.token.type == "NAME" and "IMPORT" in expected:
        hint = did_you_mean(
            str(problem.token), ("import", "input", "output", "requires", "var")
        ).capitalize()
        hint = f" {hint.strip(' ()')}" if hint else ""
    elif text.strip() and _behind_forall(text, at):
        hint = " Put `forall` in parentheses if it is not the whole condition."
    elif isinstance(problem, UnexpectedToken) and problem.token.type == "COMPARISON":
        hint = " Comparisons cannot be chained: join them with &&."
    elif isinstance(problem, UnexpectedToken) and str(problem.token) in _PYTHON_LOGIC:
        hint = f" Use {_PYTHON_LOGIC[str(problem.token)]} instead."
    elif isinstance(problem, UnexpectedCharacters) and problem.char == "=":
        hint = " Assign with :=, compare with ==."
    elif isinstance(problem, UnexpectedCharacters) and problem.char in "&|":
        hint = f" Write {problem.char * 2}."
    return LawError(name, text, at, f"{found}{_expected(expected)}.{hint}")


def _before(text: str, at: Position) -> str:
    """The text before a place."""
    lines = text.split("\n")
    return "\n".join([*lines[: at.line - 1], lines[at.line - 1][: at.column - 1]])


def _behind_forall(text: str, at: Position) -> bool:
    return text.splitlines()[at.line - 1][: at.column - 1].split()[-1:] == ["forall"]


def _expected(terminals: set[str]) -> str:
    if terminals >= _VALUES:
        return " where an expression should start"
    words = {
        _WORDS.get(each, f"'{each.lower()}'") for each in terminals - {"COMMENT"} if "ANON" not in each
    }
    if "SEMICOLON" in terminals and terminals & _OPERATORS:
        return "; expected ';' or an operator"
    if not words or len(words) > 8:
        return ""
    *most, last = sorted(words)
    return f"; expected {', '.join(most)} or {last}" if most else f"; expected {last}"
