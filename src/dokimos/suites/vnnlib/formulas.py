"""From formulas to disjunctive normal form: `and`, `or` and comparisons of polynomials.

A variable is an integer: i >= 0 is input number i, and ~j = -1 - j is output number j. A product of
variables is a variable too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, Protocol, TypeVar

from dokimos.core.errors import UnreadableFile
from dokimos.suites.vnnlib.model import Linear, Terms
from dokimos.suites.vnnlib.text import CONNECTIVES, Atom, Group, Source, excerpt, written

#: A formula larger than this is refused rather than multiplied out; cases that are written out may be more.
MAX_CONJUNCTIONS = 65_536
MAX_CASES = 1 << 20
MAX_CONSTRAINTS = 4_000_000
MAX_TERMS = 100_000
_MAX_BITS = 20_000
_ZERO, _ONE, _MINUS_ONE = Fraction(0), Fraction(1), Fraction(-1)


V = TypeVar("V")


class InputBound(NamedTuple):
    """An input is at most, or at least, `value`: most constraints of large properties have this form."""

    variable: int
    is_upper: bool
    value: Fraction


#: A disjunction of conjunctions; the lists belong to whoever holds the value.
Dnf = list[list[Linear | InputBound]]

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "=", "!="})
_ARITHMETIC = frozenset({"+", "-", "*"})
_OPERATORS = COMPARISONS | _ARITHMETIC | CONNECTIVES


class Words(Protocol):
    """What the atoms of a formula mean, in one version of VNN-LIB."""

    source: Source
    #: The comparisons that this version knows.
    comparisons: frozenset[str]

    def variable(self, text: str, offset: int) -> int:
        """The variable with this name; raises UnreadableFile if there is none."""

    def number(self, text: str, offset: int) -> Fraction:
        """The value of a number; raises UnreadableFile if it is not a number."""

    def product(self, left: int, right: int, offset: int) -> int:
        """The variable that is the product of two; raises UnreadableFile if there is none."""


@dataclass
class Affine:
    """Σ c·v + constant."""

    constant: Fraction
    terms: dict[int, Fraction] = field(default_factory=dict)

    def add(self, other: Affine, *, negated: bool) -> None:
        """Add `other` to this term, or subtract it."""
        if other.constant:
            self.constant += -other.constant if negated else other.constant
        for variable, coefficient in other.terms.items():
            known, added = self.terms.get(variable), -coefficient if negated else coefficient
            self.terms[variable] = added if known is None else known + added

    def scale(self, factor: Fraction) -> None:
        """Multiply this term by a constant."""
        self.constant *= factor
        self.terms = {v: c * factor for v, c in self.terms.items()}


def at_most_zero(difference: Affine, *, strict: bool) -> Linear:
    """The constraint `difference` <= 0, or < 0 where strict."""
    terms = sorted([(v, c) for v, c in difference.terms.items() if c])
    inputs: Terms = tuple([(v, c) for v, c in terms if v >= 0])
    outputs: Terms = tuple([(~v, c) for v, c in reversed(terms) if v < 0])
    return Linear(inputs, outputs, -difference.constant, strict)


def conjoin(left: Dnf, right: Dnf) -> Dnf | None:
    """`left` and `right` multiplied out, or None if the result is too large. Consumes both."""
    size = len(right) * sum(map(len, left)) + len(left) * sum(map(len, right))
    cases = len(left) * len(right)
    most = MAX_CASES if 1 in (len(left), len(right)) else MAX_CONJUNCTIONS
    if cases > most or (cases > 1 and size > MAX_CONSTRAINTS):
        return None
    if len(right) == 1:
        for conjunction in left:
            conjunction.extend(right[0])
        return left
    if len(left) == 1:
        for conjunction in right:
            conjunction[:0] = left[0]
        return right
    return [a + b for a in left for b in right]


def too_many(source: Source, offset: int) -> UnreadableFile:
    """The error for a formula that would become too large."""
    return source.error(
        offset, f"the constraints multiply out to more than {MAX_CONJUNCTIONS} cases; split the property"
    )


class _Joined:
    """The combined operands of an `and` or `or` that have been read so far."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.dnf: Dnf | None = None

    def add(self, other: Dnf) -> bool:
        """Add one operand, or several as one; False if the result is too large. Consumes `other`."""
        if self.dnf is None:
            self.dnf = other
        elif self.word == "and":
            self.dnf = conjoin(self.dnf, other)
        else:
            self.dnf.extend(other)
        return self.dnf is not None and len(self.dnf) <= MAX_CASES


@dataclass
class _Open:
    """A group that is being read: a connective has what is `joined`, every other operator its `terms`."""

    group: Group
    joined: _Joined | None
    terms: list[Affine] = field(default_factory=list)
    position: int = 1


def to_dnf(formula: Group, words: Words) -> Dnf:
    """The formula multiplied out. It is not recursive, so nesting may be arbitrarily deep.

    An `and` in an `and` adds its operands to those of the outer one, as does an `or` in an `or`, so that
    nesting costs nothing.
    """
    stack = [_opened(formula, None, words)]
    while True:
        top = stack[-1]
        if top.position < len(top.group.items):
            item = top.group.items[top.position]
            top.position += 1
            if isinstance(item, Atom):
                _take_term(top, _leaf(item, words), item, words)
            elif item.simple is None:
                stack.append(_opened(item, top.joined, words))
            else:
                _take_simple(top, item, words)
            continue
        stack.pop()
        above = stack[-1] if stack else None
        if top.joined is not None:
            if above is None:
                assert top.joined.dnf is not None
                return top.joined.dnf
            if top.joined is not above.joined:
                assert top.joined.dnf is not None
                _take_formula(above, top.joined.dnf, top.group, words)
            continue
        result = _calculate_or_compare(top, words)
        if isinstance(result, Affine):
            _take_term(above, result, top.group, words)
        elif above is None:
            return result
        else:
            _take_formula(above, result, top.group, words)


def _opened(group: Group, outer: _Joined | None, words: Words) -> _Open:
    """A group ready to be read inside of what `outer` joins (None: inside of anything else)."""
    operator = _checked(group, words).items[0]
    assert isinstance(operator, Atom)
    if operator.text not in CONNECTIVES:
        return _Open(group, None)
    # The word does not matter where it joins a single operand.
    alone = len(group.items) == 2 and not isinstance(last := group.items[1], Atom) and not last.simple
    if outer is not None and (alone or outer.word == operator.text):
        return _Open(group, outer)
    return _Open(group, _Joined(operator.text))


def _take_term(top: _Open | None, term: Affine, item: Atom | Group, words: Words) -> None:
    if top is None:
        raise words.source.error(item.offset, "expected a comparison, 'and' or 'or', found a term")
    if top.joined is not None:
        word = top.group.items[0]
        raise words.source.error(item.offset, f"{written(word)!r} joins comparisons, but this is a term")
    top.terms.append(term)


def _take_formula(top: _Open, formula: Dnf, item: Group, words: Words) -> None:
    if top.joined is None:
        word = top.group.items[0]
        raise words.source.error(item.offset, f"{written(word)!r} takes terms, but this is a formula")
    if not top.joined.add(formula):
        raise too_many(words.source, top.group.offset)


def _take_simple(top: _Open, simple: Group, words: Words) -> None:
    """Join simple comparisons, or add up simple products."""
    if top.joined is None:
        total = Affine(_ZERO)
        for one in _simple_values(_product, top.group, simple, words):
            total.add(one, negated=False)
        top.terms.append(total)
        return
    found = _simple_values(_comparison, top.group, simple, words)
    if not top.joined.add([[one] for one in found] if top.joined.word == "or" else [found]):
        raise too_many(words.source, top.group.offset)


def _simple_values(
    value: Callable[[str, str, str, int, int, Words], V], group: Group, simple: Group, words: Words
) -> list[V]:
    """What each of the simple groups in `group` means; only for an invalid one is its offset computed."""
    found: list[V] = []
    assert simple.simple is not None
    try:
        for operator, left, right in simple.simple:
            found.append(value(operator, left, right, 0, 0, words))
    except UnreadableFile:
        value(*simple.simple[len(found)], *words.source.simple_offsets(group, simple, len(found)), words)
        raise
    return found


def _product(_: str, factor: str, name: str, factor_at: int, name_at: int, words: Words) -> Affine:
    number = words.number(factor, factor_at)
    return Affine(_ZERO, {words.variable(name, name_at): number})


def _comparison(
    comparison: str, left: str, right: str, left_at: int, right_at: int, words: Words
) -> Linear | InputBound:
    """A variable against a number or another variable."""
    variable = words.variable(left, left_at)
    if right[0].isalpha():
        other = words.variable(right, right_at)
        low, high = (variable, other) if comparison[0] == "<" else (other, variable)
        difference = Affine(_ZERO, {} if low == high else {low: _ONE, high: _MINUS_ONE})
        return at_most_zero(difference, strict=len(comparison) == 1)
    bound = words.number(right, right_at)
    if variable >= 0 and len(comparison) == 2:
        return InputBound(variable, comparison == "<=", bound)
    coefficient, bound = (_ONE, bound) if comparison[0] == "<" else (_MINUS_ONE, -bound)
    if variable >= 0:
        return Linear(((variable, coefficient),), (), bound, len(comparison) == 1)
    return Linear((), ((~variable, coefficient),), bound, len(comparison) == 1)


def _checked(group: Group, words: Words) -> Group:
    """`group`. Raises UnreadableFile unless it starts with an operator that has operands."""
    source, items = words.source, group.items
    if not items:
        raise source.error(group.offset, "expected a formula, found '()'")
    first = items[0]
    if not isinstance(first, Atom) or first.text not in _OPERATORS:
        second = items[1] if len(items) == 3 else None
        if isinstance(second, Atom) and second.text in _OPERATORS:
            prefix = f"({second.text} {written(items[0])} {written(items[2])})"
            raise source.error(
                group.offset,
                f"the operator {second.text!r} is between its operands; write it first: {prefix}",
            )
        found = excerpt(written(first))
        known = ", ".join(sorted((_OPERATORS - COMPARISONS) | words.comparisons))
        raise source.error(first.offset, f"expected an operator, found {found}; known: {known}")
    if first.text in COMPARISONS:
        if first.text not in words.comparisons:
            raise source.error(first.offset, f"the comparison {first.text!r} is unknown; write '=='")
        if len(items) != 3:
            raise source.error(group.offset, f"{first.text!r} compares two terms, not {len(items) - 1}")
    elif len(items) == 1:
        raise source.error(group.offset, f"{first.text!r} needs at least one operand")
    return group


def _leaf(atom: Atom, words: Words) -> Affine:
    start = atom.text[0]
    if start.isalpha() or start == "_":
        return Affine(_ZERO, {words.variable(*atom): _ONE})
    return Affine(words.number(*atom))


def _calculate_or_compare(done: _Open, words: Words) -> Affine | Dnf:
    operator = done.group.items[0]
    assert isinstance(operator, Atom)
    if operator.text in _ARITHMETIC:
        return _calculate(operator, done.terms, done.group, words)
    return _compare(operator.text, *done.terms)


def _calculate(operator: Atom, terms: list[Affine], group: Group, words: Words) -> Affine:
    if operator.text == "*":
        return _multiply(terms, group, words)
    if len(terms) == 1:
        if operator.text == "-":
            terms[0].scale(_MINUS_ONE)
        return terms[0]
    negated = operator.text == "-"
    if not negated:
        terms.sort(key=lambda term: -len(term.terms))
    for other in terms[1:]:
        terms[0].add(other, negated=negated)
    return terms[0]


def _multiply(terms: list[Affine], group: Group, words: Words) -> Affine:
    result, *others = terms
    for other in others:
        if not any(other.terms.values()):
            result.scale(other.constant)
        elif not any(result.terms.values()):
            other.scale(result.constant)
            result = other
        else:
            result = _multiplied_out(result, other, group, words)
        numbers = (result.constant, *result.terms.values())
        if any(n.numerator.bit_length() + n.denominator.bit_length() > _MAX_BITS for n in numbers):
            raise words.source.error(group.offset, "the product has too many digits")
    return result


def _multiplied_out(left: Affine, right: Affine, group: Group, words: Words) -> Affine:
    """(Σ c·v + a)·(Σ d·w + b) = Σ c·d·(v·w) + Σ c·b·v + Σ a·d·w + a·b."""
    if len(left.terms) * len(right.terms) > MAX_TERMS:
        raise words.source.error(group.offset, f"the product has more than {MAX_TERMS} terms")
    result = Affine(_ZERO)
    for v, c in left.terms.items():
        row = {words.product(v, w, group.offset): c * d for w, d in right.terms.items()}
        result.add(Affine(_ZERO, row), negated=False)
    constant = left.constant
    left.scale(right.constant)
    right.scale(constant)
    right.constant = _ZERO
    result.add(left, negated=False)
    result.add(right, negated=False)
    return result


def _compare(comparison: str, left: Affine, right: Affine) -> Dnf:
    """The comparison as constraints: `==` is two of them, `!=` is either of two strict ones."""
    if comparison in ("<", "<="):
        left.add(right, negated=True)
        return [[at_most_zero(left, strict=comparison == "<")]]
    if comparison in (">", ">="):
        right.add(left, negated=True)
        return [[at_most_zero(right, strict=comparison == ">")]]
    left.add(right, negated=True)
    above = Affine(-left.constant, {v: -c for v, c in left.terms.items()})
    if comparison == "!=":
        return [[at_most_zero(left, strict=True)], [at_most_zero(above, strict=True)]]
    return [[at_most_zero(left, strict=False), at_most_zero(above, strict=False)]]
