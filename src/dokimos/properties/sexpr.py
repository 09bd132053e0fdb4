"""S-expressions with positions: the one syntax that both versions of VNN-LIB share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from dokimos.core.errors import Place, UnreadableFile


class Atom(NamedTuple):
    """A word, a number or an operator; an index in brackets belongs to the word before it."""

    text: str
    offset: int


class Group(NamedTuple):
    """What is between two parentheses; `offset` is that of the opening one.

    Consecutive simple groups, which make up most of large files, are kept together as one item: a group
    without items, whose `simple` lists them as (operator, left, right). Simple groups are comparisons of a
    variable with a variable or a number in an `and` or `or`, and products of a number with a variable, in
    this order, in a `+`.
    """

    items: list[Atom | Group]
    offset: int
    simple: list[tuple[str, str, str]] | None = None


Expression = Atom | Group

CONNECTIVES = frozenset({"and", "or"})
_TOKEN = re.compile(
    r"\s*+(?:(?P<open>\()|(?P<close>\))|(?P<index>\[[^\[\]()]*+\])"
    r"|(?P<atom>[<>=!]=?|\"[^\";()\n]*+\"|[^\s()\[\]<>=!;\"|]++)|(?P<bad>.)|\Z)",
    re.DOTALL,
)
#: What begins a quotation. For some readers a `;` in one begins a comment, or a parenthesis counts.
_QUOTES = frozenset('"|')
_NAME = r"[A-Za-z][A-Za-z0-9_]*+(?:\[[0-9,]+\])?"
_NUMBER = r"[-+]?[0-9][0-9.]*+(?:[eE][-+]?[0-9]+)?"
_COMPARISON = rf"\(\s*+({{}}<=|>=|<|>)\s++({{}}{_NAME})\s++({{}}{_NAME}|{_NUMBER})\s*+\)"
_PRODUCT = rf"\(\s*+({{}}\*)\s++({{}}{_NUMBER})\s++({{}}{_NAME})\s*+\)"


def _one_and_all(simple: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What finds the next simple group, and what finds as many as follow each other."""
    follow = rf"(?:\s*+{simple.format('?:', '?:', '?:')})++"
    return re.compile(r"\s*+" + simple.format("", "", ""), re.ASCII), re.compile(follow, re.ASCII)


_SIMPLE = {**dict.fromkeys(CONNECTIVES, _one_and_all(_COMPARISON)), "+": _one_and_all(_PRODUCT)}


@dataclass(frozen=True)
class Source:
    """A text, in which every comment has become spaces, and its name in messages."""

    text: str
    file: str

    def error(self, offset: int, reason: str) -> UnreadableFile:
        """The error for a problem at `offset`, with its line and column."""
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        return UnreadableFile(Place(self.file, line, column), reason.removesuffix(".") + ".")

    def group_at(self, start: int) -> tuple[Group, int]:
        """The group whose opening parenthesis is at `start`, and the offset after its end.

        It is not recursive, so nesting may be arbitrarily deep.
        """
        outer = Group([], start)
        stack: list[Group] = []
        current, position, scan = outer, start + 1, _TOKEN.match
        while True:
            match = scan(self.text, position)
            assert match is not None
            kind, position = match.lastgroup, match.end()
            if kind == "atom":
                current.items.append(Atom(match["atom"], match.start("atom")))
                if len(current.items) == 1:
                    position = self._simple_after(current, position)
            elif kind == "open":
                stack.append(current)
                current = Group([], match.start("open"))
                stack[-1].items.append(current)
            elif kind == "close":
                if not stack:
                    return outer, position
                current = stack.pop()
                position = self._simple_after(current, position)
            elif kind == "index":
                self._join_index(current, match["index"], match.start("index"))
            elif kind == "bad":
                found = match["bad"]
                odd = "readers disagree on the meaning of such quotes; remove them"
                raise self.error(
                    match.start("bad"), odd if found in _QUOTES else f"unexpected character {found!r}"
                )
            else:
                raise self.error(current.offset, "this parenthesis is never closed")

    def _simple_after(self, group: Group, position: int) -> int:
        """Add the simple groups that follow here to `group`; returns the offset after them."""
        patterns = _SIMPLE.get(head(group))
        match = patterns[1].match(self.text, position) if patterns else None
        if patterns is None or match is None:
            return position
        group.items.append(Group([], position, patterns[0].findall(self.text, *match.span())))
        return match.end()

    def simple_offsets(self, group: Group, simple: Group, number: int) -> tuple[int, int]:
        """The offsets of the two operands of one of the simple groups in `group`."""
        found = _SIMPLE[head(group)][0].finditer(self.text, simple.offset)
        match = next(islice(found, number, None))
        return match.start(2), match.start(3)

    def _join_index(self, group: Group, index: str, offset: int) -> None:
        before = group.items[-1] if group.items else None
        if not isinstance(before, Atom) or before.text.endswith("]"):
            raise self.error(offset, "an index in brackets must follow the name of a tensor")
        group.items[-1] = Atom(before.text + "".join(index.split()), before.offset)


def excerpt(text: str) -> str:
    """`text` in quotes, shortened to fit into a sentence."""
    text = " ".join(text.split())
    return repr(text if len(text) <= 40 else text[:37] + "...")


def head(group: Group) -> str:
    """The word that a group starts with; "" if there is none."""
    first = group.items[0] if group.items else None
    return first.text if isinstance(first, Atom) else ""


def written(expression: Expression) -> str:
    """The expression as short text: the contents of groups are left out."""
    return expression.text if isinstance(expression, Atom) else "(…)"
