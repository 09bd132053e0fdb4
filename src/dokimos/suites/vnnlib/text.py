"""The text of a VNN-LIB file: S-expressions with positions, and exact decimals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from dokimos.core.errors import InputError, Place, UnreadableFile

# S-expressions with positions: the one syntax that both versions of VNN-LIB share


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


# Reads decimal numbers exactly, without ever passing through a float


#: More digits than any float64 written in full, fewer than Python refuses to convert.
MAX_DIGITS = 4000
_MAX_EXPONENT = 400
#: No floating-point number that we read reaches this.
LARGEST = 2**1024

_POWERS = tuple(10**digits for digits in range(40))
_PLAIN = re.compile(r"-?[0-9]+\.[0-9]+", re.ASCII).fullmatch
_DECIMAL = re.compile(r"([-+]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]+))?", re.ASCII)


def parse_decimal(text: str, *, exponent: bool = True) -> Fraction:
    """The exact value of a decimal number such as `-0.25`, `3` or, where allowed, `1e-3`.

    Raises InputError if `text` is not a number, or one too large for any floating-point format.
    """
    if len(text) < len(_POWERS) and _PLAIN(text):
        whole, _, part = text.partition(".")
        return Fraction(int(whole + part), _POWERS[len(part)])
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise InputError(f"{_shortened(text)!r} is not a decimal number.")
    sign, whole, part, power = match.groups()
    part = part or ""
    if len(whole) + len(part) > MAX_DIGITS:
        raise InputError(f"{_shortened(text)!r} has more than {MAX_DIGITS} digits.")
    shift = -len(part)
    if power is not None:
        if not exponent:
            raise InputError(f"{_shortened(text)!r} has an exponent; write the digits out.")
        if len(power) > 5 or abs(int(power)) > _MAX_EXPONENT:
            raise InputError(f"the exponent of {_shortened(text)!r} is out of range (±{_MAX_EXPONENT}).")
        shift += int(power)
    digits = int(sign + whole + part)
    value = Fraction(digits * 10**shift) if shift >= 0 else Fraction(digits, 10**-shift)
    if len(whole) + len(part) + shift > 300 and abs(value) >= LARGEST:
        raise InputError(f"{_shortened(text)!r} is larger than every floating-point number.")
    return value


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
