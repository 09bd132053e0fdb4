"""The top-level forms of a VNN-LIB file, with a fast path for the two that make up most of a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from dokimos.core.errors import InputError
from dokimos.properties.cases import Assertions
from dokimos.properties.decimals import parse_decimal
from dokimos.properties.formulas import Affine, Words, at_most_zero, to_dnf
from dokimos.properties.sexpr import Atom, Group, Source, excerpt, head

#: Space, then a bound on one variable, a declaration of a flat variable, or any other form.
_FORM = re.compile(
    r"\s*+(?:\(\s*assert\s*\(\s*(?P<comparison><=|>=)\s*(?P<variable>[A-Za-z]\w*(?:\[[0-9,]+\])?)"
    r"\s+(?P<bound>[-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?)\s*\)\s*\)"
    r"|\(\s*declare-const\s+(?P<letter>[XY])_(?P<number>[0-9]+)\s+Real\s*\)"
    r"|(?P<open>\()|(?P<close>\))|(?P<other>\S)|\Z)",
    re.ASCII,
)


class Numbers:
    """The numbers of a text, each parsed once; with or without exponents."""

    def __init__(self, source: Source, *, exponent: bool) -> None:
        self.source = source
        self._exponent = exponent
        self._known: dict[str, Fraction] = {}

    def number(self, text: str, offset: int) -> Fraction:
        """The number in `text`, which is at `offset`. Raises UnreadableFile if it is not a number."""
        value = self._known.get(text)
        if value is None:
            try:
                value = self._known[text] = parse_decimal(text, exponent=self._exponent)
            except InputError as problem:
                raise self.source.error(offset, str(problem)) from None
        return value


def read_forms(
    words: Words,
    assertions: Assertions,
    *,
    declare: Callable[[str, str, int], None],
    other: Mapping[str, Callable[[Group], None]],
) -> None:
    """Read all forms: asserts go to `assertions`, each other form to its reader in `other`.

    `declare(letter, number, offset)` takes the flat declarations `(declare-const X_0 Real)`.
    """
    source, bounds = words.source, assertions.bounds
    text, position, scan = source.text, 0, _FORM.match
    while True:
        match = scan(text, position)
        assert match is not None
        position = match.end()
        kind = match.lastgroup
        if kind == "bound":
            comparison, name, literal, *_ = match.groups()
            variable = words.variable(name, match.start("variable"))
            value = words.number(literal, match.start("bound"))
            if variable < 0:
                sign = 1 if comparison == "<=" else -1
                difference = Affine(-sign * value, {variable: Fraction(sign)})
                assertions.add([[at_most_zero(difference, strict=False)]], match.start("comparison"))
            elif comparison == "<=":
                bounds.at_most(variable, value)
            else:
                bounds.at_least(variable, value)
        elif kind == "number":
            declare(match["letter"], match["number"], match.start("letter"))
        elif kind == "open":
            group, position = source.group_at(match.start("open"))
            _read_group(group, words, assertions, other)
        elif kind == "close":
            raise source.error(match.start("close"), "this closing parenthesis has no opening one")
        elif kind == "other":
            found = excerpt(text[match.start("other") :].split(maxsplit=1)[0])
            raise source.error(match.start("other"), f"expected '(', found {found}")
        else:
            return


def _read_group(
    group: Group, words: Words, assertions: Assertions, other: Mapping[str, Callable[[Group], None]]
) -> None:
    word = head(group)
    if word != "assert":
        if word not in other:
            known = ", ".join(sorted({"assert", *other}))
            found = excerpt(word) if word else "no word"
            raise words.source.error(group.offset, f"unknown form: it starts with {found}; known: {known}")
        other[word](group)
        return
    if len(group.items) != 2 or isinstance(group.items[1], Atom):
        raise words.source.error(group.offset, "an assert takes exactly one formula in parentheses")
    assertions.add(to_dnf(group.items[1], words), group.offset)
