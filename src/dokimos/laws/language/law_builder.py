"""Turns Lark's parse tree into the frozen values of `syntax`."""

from __future__ import annotations

import math
import re
from typing import Any

from lark import Token, Tree
from lark.exceptions import VisitError
from lark.visitors import Transformer_NonRecursive, v_args

from dokimos.laws.language import syntax as laws
from dokimos.laws.language.problems import LawError
from dokimos.laws.language.syntax import Comment, Expression, Law, Position

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
