"""Parses laws. For any text the result is a Law, or a LawError with its place."""

from __future__ import annotations

import codecs
import math
import re
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken
from lark.exceptions import VisitError
from lark.visitors import Transformer_NonRecursive, v_args

from dokimos.core.errors import UnreadableFile
from dokimos.core.files import read_whole
from dokimos.core.readable import did_you_mean
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.law_layout import find_block, meaning, parse_block, position
from dokimos.laws.language.syntax import Comment, Expression, Law, LawError, Position, name_of

# Turns Lark's parse tree into the frozen values of `syntax`


#: Deeper nesting is refused, so that no later stage runs out of stack.
MAX_DEPTH = 150
MAX_INTEGER = 2**63 - 1

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


def build_law(
    tree: Tree[Token], *, name: str, text: str, block: laws.Block, comments: tuple[Comment, ...]
) -> Law:
    """The law that a tree represents. Raises LawError if it is nested too deeply or a number too large."""
    try:
        law: Law = _Builder(name, text, block, comments).transform(tree)
        return law
    except VisitError as problem:
        raise problem.orig_exc from None


def build_condition(tree: Tree[Token], *, name: str, text: str) -> Expression:
    """The expression that a tree represents. Raises LawError as `build_law` does."""
    try:
        condition: Expression = _Builder(name, text, laws.Block("", ""), ()).transform(tree)
        return condition
    except VisitError as problem:
        raise problem.orig_exc from None


@v_args(meta=True)
class _Builder(Transformer_NonRecursive[Any, Any]):
    """One method for each rule of the grammar; none recurses."""

    def __init__(self, name: str, text: str, block: laws.Block, comments: tuple[Comment, ...]) -> None:
        super().__init__()
        self._name, self._text, self._block, self._comments = name, text, block, comments
        self._depths: dict[int, int] = {}

    def _at(self, meta: Any) -> Position:
        return Position(meta.line, meta.column)

    def _made(self, node: Expression) -> Expression:
        """`node`, unless it is nested too deeply (children are always built first)."""
        depth = 1 + max((self._depths[id(child)] for child in node.children()), default=0)
        if depth > MAX_DEPTH:
            raise self._error(
                node.at, f"this expression is nested more than {MAX_DEPTH} deep; split it with variables."
            )
        self._depths[id(node)] = depth
        return node

    def _error(self, at: Position, reason: str) -> LawError:
        return LawError(self._name, self._text, at, reason)

    def law(self, meta: Any, children: list[Any]) -> Law:
        imports = tuple(each for each in children if isinstance(each, laws.Import))
        ensures = tuple(each for each in children if isinstance(each, laws.Ensures))
        declarations = tuple(each for each in children if isinstance(each, laws.Declaration))
        return Law(
            imports, declarations, self._block, ensures,
            name=self._name, text=self._text, comments=self._comments,
        )  # fmt: skip

    def condition(self, meta: Any, children: list[Expression]) -> Expression:
        return children[0]

    def import_(self, meta: Any, children: list[Token]) -> laws.Import:
        return laws.Import(".".join(children), at=self._at(meta), end_line=meta.end_line)

    def input(self, meta: Any, children: list[Token]) -> laws.Input:
        return laws.Input(str(children[0]), at=self._at(meta), end_line=meta.end_line)

    def output(self, meta: Any, children: list[Token]) -> laws.Output:
        return laws.Output(str(children[0]), at=self._at(meta), end_line=meta.end_line)

    def var(self, meta: Any, children: list[Any]) -> laws.Var:
        return laws.Var(str(children[0]), children[1], at=self._at(meta), end_line=meta.end_line)

    def every(self, meta: Any, children: list[Token]) -> laws.Var:
        """`for every value v of sex;` is a variable, whose value is drawn."""
        name, feature = children
        told = self._unescaped(feature) if feature.type == "STRING" else str(feature)
        at = Position(feature.line or 1, feature.column or 1)
        value = laws.Call(laws.EVERY_VALUE, (laws.Literal(told, at=at),), at=at)
        return laws.Var(str(name), value, at=self._at(meta), end_line=meta.end_line)

    def requires(self, meta: Any, children: list[Any]) -> laws.Requires:
        return laws.Requires(children[0], at=self._at(meta), end_line=meta.end_line)

    def ensures(self, meta: Any, children: list[Any]) -> laws.Ensures:
        condition, *share = children
        percent = share[0] if share else None
        return laws.Ensures(condition, percent, at=self._at(meta), end_line=meta.end_line)

    def share(self, meta: Any, children: list[Token]) -> laws.Literal:
        number, at = children[0], Position(children[0].line or 1, children[0].column or 1)
        if number.type == "INTEGER":
            return laws.Literal(self._integer(number), at=at)
        return laws.Literal(float(number), at=at)

    def block(self, meta: Any, children: list[Any]) -> laws.Block:
        return self._block

    def forall(self, meta: Any, children: list[Any]) -> Expression:
        variable, low, high, body = children
        return self._made(laws.ForAll(str(variable), low, high, body, at=self._at(meta)))

    def either(self, meta: Any, children: list[Any]) -> Expression:
        """`if c then a else b` is short for (c ==> a) && (!c ==> b)."""
        at, (condition, first, second) = self._at(meta), children
        otherwise = self._made(laws.Unary("!", condition, at=at))
        sides = ((condition, first), (otherwise, second))
        one, other = (self._made(laws.Binary("==>", *each, at=at)) for each in sides)
        return self._made(laws.Binary("&&", one, other, at=at))

    def binary(self, meta: Any, children: list[Any]) -> Expression:
        left, operator, right = children
        at = Position(operator.line, operator.column)
        return self._made(laws.Binary(str(operator), left, right, at=at))

    def unary(self, meta: Any, children: list[Any]) -> Expression:
        return self._made(laws.Unary(str(children[0]), children[1], at=self._at(meta)))

    def feature(self, meta: Any, children: list[Any]) -> Expression:
        record, name = children
        return self._made(laws.FeatureOf(record, str(name), at=Position(name.line, name.column)))

    def change(self, meta: Any, children: list[Any]) -> tuple[str | int, Expression, Position]:
        feature, value = children
        at = Position(feature.line, feature.column)
        return self._integer(feature) if feature.type == "INTEGER" else str(feature), value, at

    def update(self, meta: Any, children: list[Any]) -> Expression:
        record, *found = children
        changes = tuple((feature, value) for feature, value, _ in found)
        places = tuple(at for _, _, at in found)
        return self._made(laws.Update(record, changes, places=places, at=self._at(meta)))

    def call(self, meta: Any, children: list[Any]) -> Expression:
        function, *arguments = children
        return self._made(laws.Call(str(function), tuple(arguments), at=self._at(meta)))

    def name(self, meta: Any, children: list[Token]) -> Expression:
        return self._made(laws.Name(str(children[0]), at=self._at(meta)))

    def integer(self, meta: Any, children: list[Token]) -> Expression:
        return self._made(laws.Literal(self._integer(children[0]), at=self._at(meta)))

    def _integer(self, token: Token) -> int:
        digits = token.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > MAX_INTEGER:
            at = Position(token.line or 1, token.column or 1)
            raise self._error(at, f"this number is too large; the largest is {MAX_INTEGER}.")
        return int(digits)

    def float(self, meta: Any, children: list[Token]) -> Expression:
        value = float(children[0])
        if math.isinf(value):
            raise self._error(self._at(meta), "this number is too large for a double.")
        return self._made(laws.Literal(value, at=self._at(meta)))

    def string(self, meta: Any, children: list[Token]) -> Expression:
        return self._made(laws.Literal(self._unescaped(children[0]), at=self._at(meta)))

    def _unescaped(self, token: Token) -> str:
        def one(match: re.Match[str]) -> str:
            if match[1] is not None:
                return chr(int(match[1], 16))
            if match[2] not in _ESCAPES:
                at = Position(token.line or 1, (token.column or 1) + 1 + match.start())
                raise self._error(
                    at, f"\\{match[2]} is not an escape; use one of \\n \\t \\r \\0 \\\\ \\\" \\' \\uXXXX."
                )
            return _ESCAPES[match[2]]

        return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(.))", one, token[1:-1])

    def true(self, meta: Any, children: list[Token]) -> Expression:
        return self._made(laws.Literal(True, at=self._at(meta)))

    def false(self, meta: Any, children: list[Token]) -> Expression:
        return self._made(laws.Literal(False, at=self._at(meta)))

    def null(self, meta: Any, children: list[Token]) -> Expression:
        return self._made(laws.Literal(None, at=self._at(meta)))


# Syntax errors in one sentence: what was found, and what was expected


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
#: What is written elsewhere, and its form in laws.
_PYTHON_LOGIC = {"and": "&&", "or": "||", "not": "!", "implies": "==>", "then": "==>"}
#: What statements begin with.
_STATEMENTS = ("import", "input", "var", "for", "requires", "output", "ensures", "{")
#: Comments, as the first group, and strings, which may look as if they held some.
_COMMENT = re.compile(r"""(?s)"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(#[^\n]*|//[^\n]*|/\*.*?\*/)""")

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
    negation = _NEGATION.search(_before(text, at))
    if negation is not None:
        start = position(text, negation.start("word"))
        return LawError(name, text, start, f"unexpected 'not'; use {_PYTHON_LOGIC['not']} instead.")
    if (
        isinstance(problem, UnexpectedToken)
        and "SEMICOLON" in expected
        and str(problem.token) in _STATEMENTS
    ):
        missing = f"a ';' is missing here, before {str(problem.token)!r}."
        return LawError(name, text, _end_before(text, at), missing)
    hint = _hint(problem, text, at, expected)
    return LawError(name, text, at, f"{found}{_expected(expected)}.{hint}")


def _hint(problem: UnexpectedInput, text: str, at: Position, expected: set[str]) -> str:
    """What may have been meant; empty if nothing is known."""
    hint = ""
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
        is_arrow = text.splitlines()[at.line - 1][at.column - 1 :].startswith("=>")
        hint = " Write ==>." if is_arrow else " Assign with :=, compare with ==."
    elif isinstance(problem, UnexpectedCharacters) and problem.char == "?":
        hint = " Write `if condition then one else the other`, which are conditions."
    elif isinstance(problem, UnexpectedCharacters) and problem.char in "&|":
        hint = f" Write {problem.char * 2}."
    return hint


def _end_before(text: str, at: Position) -> Position:
    """Behind the last word before a place, comments left out."""
    lines = _COMMENT.sub(lambda found: found[0] if not found[1] else " ", _before(text, at)).split("\n")
    number = max(k for k, each in enumerate(lines, start=1) if each.strip() or k == 1)
    return Position(number, len(lines[number - 1].rstrip()) + 1)


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


# Limits checked before parsing: some texts would take the parser minutes


#: Brackets are nested no deeper than this.
MOST_NESTED = 300
#: The most tokens that a law may have, without those of its block.
MOST_WORDS = 20_000

_WORD = re.compile(
    r"""(?sx) (?P<skipped> \s+ | \#[^\n]* | //[^\n]* | /\*.*?\*/ )
    | (?P<open> [(\[] ) | (?P<close> [)\]] )
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | [A-Za-z_0-9.]+ | . """
)


def expect_modest(text: str, *, name: str) -> None:
    """Raise LawError if a text has more tokens, or more deeply nested brackets, than anyone would write.

    Takes linear time, whether or not the text is a law.
    """
    words = depth = 0
    for match in _WORD.finditer(text):
        kind = match.lastgroup
        if kind == "skipped":
            continue
        words += 1
        depth = max(0, depth + (kind == "open") - (kind == "close"))
        if depth > MOST_NESTED:
            reason = f"this is nested in more than {MOST_NESTED} brackets; split it with variables."
        elif words > MOST_WORDS:
            reason = f"up to here there are more than {MOST_WORDS:,} tokens; split it into several laws."
        else:
            continue
        raise LawError(name, text, position(text, match.start()), reason)


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
    return replace(parse_law(text, name=name_of(path)), path=path)


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
    for match in _COMMENT.finditer(text):
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
