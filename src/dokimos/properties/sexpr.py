"""S-expressions with positions: the one syntax that both versions of VNN-LIB share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from dokimos.core.errors import Place, UnreadableFile


class Atom(NamedTuple):
    """A word, a number or an operator; an index in brackets belongs to the word before it."""

    text: str
    offset: int


class Group(NamedTuple):
    """What stands between two parentheses; `offset` is that of the opening one."""

    items: list[Atom | Group]
    offset: int


Expression = Atom | Group

#: A bound on one variable, which most groups are, counts as one token.
_TOKEN = re.compile(
    r"(?:\s++|;[^\n]*+)*+"
    r"(?:(?P<bound>\((<=|>=)\s+([A-Za-z][A-Za-z0-9_]*+(?:\[[0-9,]+\])?)\s+([-+]?[0-9][0-9.]*+)\s*\))"
    r"|(?P<open>\()|(?P<close>\))|(?P<index>\[[^\[\]()]*+\])"
    r"|(?P<atom>[<>=!]=?|\"[^\"]*+\"|[^\s()\[\]<>=!;\"]++)|(?P<bad>.)|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Source:
    """A text with the name it is known by."""

    text: str
    file: str

    def error(self, offset: int, reason: str) -> UnreadableFile:
        """The error that something at `offset` is wrong, with its line and column."""
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        return UnreadableFile(Place(self.file, line, column), reason.removesuffix(".") + ".")

    def group_at(self, start: int) -> tuple[Group, int]:
        """The group whose opening parenthesis is at `start`, and the offset after its end.

        Works without recursion, so nesting may be as deep as it likes.
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
            elif kind == "bound":
                comparison, name, number = (Atom(match[k], match.start(k)) for k in (2, 3, 4))
                current.items.append(Group([comparison, name, number], match.start("bound")))
            elif kind == "open":
                stack.append(current)
                current = Group([], match.start("open"))
                stack[-1].items.append(current)
            elif kind == "close":
                if not stack:
                    return outer, position
                current = stack.pop()
            elif kind == "index":
                self._join_index(current, match["index"], match.start("index"))
            elif kind == "bad":
                raise self.error(match.start("bad"), f"unexpected character {match['bad']!r}")
            else:
                raise self.error(current.offset, "this parenthesis is never closed")

    def _join_index(self, group: Group, index: str, offset: int) -> None:
        before = group.items[-1] if group.items else None
        if not isinstance(before, Atom) or before.text.endswith("]"):
            raise self.error(offset, "an index in brackets must follow the name of a tensor")
        group.items[-1] = Atom(before.text + "".join(index.split()), before.offset)


def excerpt(text: str) -> str:
    """`text` in quotes, shortened to what fits into a sentence."""
    text = " ".join(text.split())
    return repr(text if len(text) <= 40 else text[:37] + "...")


def head(group: Group) -> str:
    """The word that a group starts with; "" where there is none."""
    first = group.items[0] if group.items else None
    return first.text if isinstance(first, Atom) else ""


def spelt(expression: Expression) -> str:
    """The expression as text, in short: what stands in a group is left out."""
    return expression.text if isinstance(expression, Atom) else "(…)"
