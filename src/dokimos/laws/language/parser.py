"""Parses laws. For any text the result is a Law, or a LawError with its place."""

from __future__ import annotations

import codecs
import re
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from lark import Lark, UnexpectedInput

from dokimos.core.errors import UnreadableFile
from dokimos.core.files import read_whole
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.blocks import find_block, meaning, parse_block, position
from dokimos.laws.language.law_builder import build_condition, build_law
from dokimos.laws.language.names import name_of
from dokimos.laws.language.problems import LawError
from dokimos.laws.language.syntax import Comment, Expression, Law, Position
from dokimos.laws.language.syntax_errors import explain_syntax
from dokimos.laws.language.text_limits import expect_modest

#: Suffixes of the files that hold laws.
SUFFIXES = (".law", ".nom")
_MAX_BYTES = 1_000_000


def read_law(path: Path) -> Law:
    """The law in a file. Raises UnreadableFile, or LawError if the file could be read."""
    content = read_whole(path, most_bytes=_MAX_BYTES)
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise UnreadableFile(path, f"is not UTF-8 text (byte {problem.start}).") from None
    return parse_law(text, name=name_of(path))


def parse_law(text: str, *, name: str = "law") -> Law:
    """The law written in `text`; `name` is what messages call it. Raises LawError."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = find_block(text, name=name)
    blanked, code = text, ""
    if found is not None:
        start, end = found
        code = text[start + 1 : end]
        blanked = text[: start + 1] + re.sub(r"[^\n]", " ", code) + text[end:]
    expect_modest(blanked, name=name)
    try:
        tree = _lark().parse(blanked)
    except UnexpectedInput as problem:
        raise explain_syntax(problem, name, text) from None
    assert found is not None  # the grammar asks for a block
    block = _checked_block(code, name, text, found[0])
    return build_law(tree, name=name, text=text, block=block, comments=_comments(blanked))


@cache
def _lark(start: str = "law") -> Lark:
    grammar = (resources.files("dokimos.laws.language") / "grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", start=start, propagate_positions=True, maybe_placeholders=False)


@lru_cache(maxsize=256)
def parse_condition(text: str, *, name: str) -> Expression:
    """The single expression written in `text`; `name` is what messages call it. Raises LawError."""
    expect_modest(text, name=name)
    try:
        tree = _lark("condition").parse(text)
    except UnexpectedInput as problem:
        raise explain_syntax(problem, name, text) from None
    return build_condition(tree, name=name, text=text)


def _comments(text: str) -> tuple[Comment, ...]:
    """The comments of a text that parses; strings are skipped, since they may look like comments."""
    found = []
    for match in re.finditer(
        r"""(?s)"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(#[^\n]*|//[^\n]*|/\*.*?\*/)""", text
    ):
        if match[1]:
            at = position(text, match.start())
            found.append(Comment(match[1].rstrip(), at=at, end_line=at.line + match[1].count("\n")))
    return tuple(found)


def _checked_block(code: str, name: str, text: str, brace: int) -> laws.Block:
    """The block, checked by Python's parser. Raises LawError at the place of a syntax error."""
    start = position(text, brace)
    end_line = start.line + code.count("\n")
    try:
        statements = parse_block(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        line = getattr(problem, "lineno", None) or 1
        column = getattr(problem, "offset", None) or 1
        if line == 1 and code.partition("\n")[0].strip():
            column += start.column + len(code) - len(code.lstrip())
        at = Position(min(start.line + line - 1, end_line), max(1, column))
        reason = getattr(problem, "msg", None) or str(problem) or "nested too deeply"
        raise LawError(name, text, at, f"the block is not valid Python: {reason}.") from None
    return laws.Block(code, meaning(statements), at=start, end_line=end_line)
