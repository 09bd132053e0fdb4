"""Formulas to disjunctive normal form: `and`, `or` and comparisons of linear terms.

A variable is an integer: i >= 0 is input number i, and ~j = -1 - j is output number j.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from dokimos.core.errors import UnreadableFile
from dokimos.properties.model import Linear, Terms
from dokimos.properties.sexpr import Atom, Group, Source, excerpt, spelt

#: Above these, a formula is refused rather than multiplied out.
MAX_CONJUNCTIONS = 65_536
MAX_CONSTRAINTS = 4_000_000
_MAX_BITS = 20_000
_ONE, _MINUS_ONE = Fraction(1), Fraction(-1)

#: A disjunction of conjunctions; the lists belong to whoever holds the value.
Dnf = list[list[Linear]]

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "=", "!="})
_ARITHMETIC = frozenset({"+", "-", "*"})
_CONNECTIVES = frozenset({"and", "or"})
_OPERATORS = COMPARISONS | _ARITHMETIC | _CONNECTIVES


class Words(Protocol):
    """What the atoms of a formula mean, in one version of VNN-LIB."""

    source: Source
    #: The comparisons that this version knows.
    comparisons: frozenset[str]

    def variable(self, text: str, offset: int) -> int:
        """The variable with this name; raises UnreadableFile where there is none."""

    def number(self, text: str, offset: int) -> Fraction:
        """The value of a number; raises UnreadableFile where it is none."""


@dataclass
class Affine:
    """Σ c·v + constant."""

    constant: Fraction
    terms: dict[int, Fraction] = field(default_factory=dict)

    def add(self, other: Affine, factor: Fraction | int) -> None:
        """Add `factor`·`other` to this term."""
        self.constant += factor * other.constant
        for variable, coefficient in other.terms.items():
            self.terms[variable] = self.terms.get(variable, Fraction(0)) + factor * coefficient

    def scale(self, factor: Fraction) -> None:
        """Multiply this term by a constant."""
        self.constant *= factor
        self.terms = {v: c * factor for v, c in self.terms.items()}


def at_most_zero(difference: Affine, *, strict: bool) -> Linear:
    """The constraint `difference` <= 0, or < 0 where strict."""
    terms = sorted(difference.terms.items())
    inputs: Terms = tuple((v, c) for v, c in terms if v >= 0 and c)
    outputs: Terms = tuple((~v, c) for v, c in reversed(terms) if v < 0 and c)
    return Linear(inputs, outputs, -difference.constant, strict)


def conjoin(left: Dnf, right: Dnf) -> Dnf | None:
    """`left` and `right` multiplied out, or None where that is too large. Consumes `left`."""
    if len(right) == 1:
        for conjunction in left:
            conjunction.extend(right[0])
        return left
    size = len(right) * sum(map(len, left)) + len(left) * sum(map(len, right))
    if len(left) * len(right) > MAX_CONJUNCTIONS or size > MAX_CONSTRAINTS:
        return None
    return [a + b for a in left for b in right]


def too_many(source: Source, offset: int) -> UnreadableFile:
    """The error that a formula would become too large."""
    return source.error(
        offset, f"the constraints multiply out to more than {MAX_CONJUNCTIONS} cases; split the property"
    )


def to_dnf(formula: Group, words: Words) -> Dnf:
    """The formula multiplied out. Works without recursion, so nesting may be as deep as it likes."""
    stack: list[tuple[Group, list[Affine | Dnf]]] = [(_checked(formula, words), [])]
    while True:
        group, values = stack[-1]
        if len(values) + 1 < len(group.items):
            item = group.items[len(values) + 1]
            if isinstance(item, Atom):
                values.append(_leaf(item, words))
            elif (bound := _single_bound(item, words)) is not None:
                values.append([[bound]])
            else:
                stack.append((_checked(item, words), []))
            continue
        result = _reduce(group, values, words)
        stack.pop()
        if stack:
            stack[-1][1].append(result)
        elif isinstance(result, Affine):
            raise words.source.error(group.offset, "expected a comparison, 'and' or 'or', found a term")
        else:
            return result


def _single_bound(group: Group, words: Words) -> Linear | None:
    """A variable against a number, the most common comparison by far; None for all others."""
    match group.items:
        case [Atom("<=" | ">=" | "<" | ">" as comparison), Atom(name, at), Atom(literal, where)] if name[
            0
        ].isalpha() and not (literal[0].isalpha() or literal[0] == "_"):
            variable, bound = words.variable(name, at), words.number(literal, where)
        case _:
            return None
    strict = len(comparison) == 1
    coefficient, bound = (_ONE, bound) if comparison[0] == "<" else (_MINUS_ONE, -bound)
    if variable >= 0:
        return Linear(((variable, coefficient),), (), bound, strict)
    return Linear((), ((~variable, coefficient),), bound, strict)


def _checked(group: Group, words: Words) -> Group:
    """`group`, once it is seen to start with an operator that has operands."""
    source, items = words.source, group.items
    if not items:
        raise source.error(group.offset, "expected a formula, found '()'")
    first = items[0]
    if not isinstance(first, Atom) or first.text not in _OPERATORS:
        second = items[1] if len(items) == 3 else None
        if isinstance(second, Atom) and second.text in _OPERATORS:
            prefix = f"({second.text} {spelt(items[0])} {spelt(items[2])})"
            raise source.error(
                group.offset,
                f"the operator {second.text!r} stands between its operands; write it first: {prefix}",
            )
        found = excerpt(spelt(first))
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
        return Affine(Fraction(0), {words.variable(*atom): Fraction(1)})
    return Affine(words.number(*atom))


def _reduce(group: Group, values: list[Affine | Dnf], words: Words) -> Affine | Dnf:
    operator = group.items[0]
    assert isinstance(operator, Atom)
    terms = [v for v in values if isinstance(v, Affine)]
    formulas = [v for v in values if not isinstance(v, Affine)]
    if operator.text in _CONNECTIVES:
        if terms:
            misplaced = group.items[1 + next(k for k, v in enumerate(values) if isinstance(v, Affine))]
            raise words.source.error(
                misplaced.offset, f"{operator.text!r} joins comparisons, but this is a term"
            )
        return _join(operator, formulas, group, words.source)
    if formulas:
        misplaced = group.items[1 + next(k for k, v in enumerate(values) if not isinstance(v, Affine))]
        raise words.source.error(misplaced.offset, f"{operator.text!r} takes terms, but this is a formula")
    if operator.text in _ARITHMETIC:
        return _calculate(operator, terms, group, words.source)
    return _compare(operator.text, *terms)


def _join(operator: Atom, formulas: list[Dnf], group: Group, source: Source) -> Dnf:
    result = formulas[0]
    for other in formulas[1:]:
        if operator.text == "or":
            result.extend(other)
            joined: Dnf | None = result if len(result) <= MAX_CONJUNCTIONS else None
        else:
            joined = conjoin(result, other)
        if joined is None:
            raise too_many(source, group.offset)
        result = joined
    return result


def _calculate(operator: Atom, terms: list[Affine], group: Group, source: Source) -> Affine:
    if operator.text == "*":
        return _multiply(terms, group, source)
    if len(terms) == 1:
        if operator.text == "-":
            terms[0].scale(Fraction(-1))
        return terms[0]
    sign = -1 if operator.text == "-" else 1
    if sign == 1:
        terms.sort(key=lambda term: -len(term.terms))
    for other in terms[1:]:
        terms[0].add(other, sign)
    return terms[0]


def _multiply(terms: list[Affine], group: Group, source: Source) -> Affine:
    variable = [term for term in terms if any(term.terms.values())]
    if len(variable) > 1:
        raise source.error(
            group.offset, "this multiplies variables with each other; only linear constraints are supported"
        )
    factor = Fraction(1)
    for term in terms:
        if not variable or term is not variable[0]:
            factor *= term.constant
    if max(factor.numerator.bit_length(), factor.denominator.bit_length()) > _MAX_BITS:
        raise source.error(group.offset, "the product has too many digits")
    result = variable[0] if variable else Affine(Fraction(1))
    result.scale(factor)
    return result


def _compare(comparison: str, left: Affine, right: Affine) -> Dnf:
    """The comparison as constraints: `==` is two of them, `!=` is either of two strict ones."""
    below = Affine(left.constant, dict(left.terms))
    below.add(right, -1)
    above = Affine(-below.constant, {v: -c for v, c in below.terms.items()})
    if comparison in ("<", "<="):
        return [[at_most_zero(below, strict=comparison == "<")]]
    if comparison in (">", ">="):
        return [[at_most_zero(above, strict=comparison == ">")]]
    if comparison == "!=":
        return [[at_most_zero(below, strict=True)], [at_most_zero(above, strict=True)]]
    return [[at_most_zero(below, strict=False), at_most_zero(above, strict=False)]]
