"""From asserted constraints to the cases of a property: boxes of inputs, and what is unsafe in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dokimos.core.errors import InputError
from dokimos.suites.vnnlib.formulas import (
    Affine,
    Dnf,
    InputBound,
    Words,
    at_most_zero,
    conjoin,
    to_dnf,
    too_many,
)
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear
from dokimos.suites.vnnlib.text import Atom, Group, Source, excerpt, head, parse_decimal


@dataclass
class Bounds:
    """The tightest known bounds of each input; an input without a known bound is missing."""

    lower: dict[int, Fraction] = field(default_factory=dict)
    upper: dict[int, Fraction] = field(default_factory=dict)

    def at_most(self, index: int, value: Fraction) -> None:
        """Record that input `index` is at most `value`."""
        known = self.upper.get(index)
        if known is None or value < known:
            self.upper[index] = value

    def at_least(self, index: int, value: Fraction) -> None:
        """Record that input `index` is at least `value`."""
        known = self.lower.get(index)
        if known is None or value > known:
            self.lower[index] = value

    def take_in(self, constraints: Iterable[Linear | InputBound]) -> list[Linear]:
        """Record the bounds on single inputs; returns the remaining constraints.

        A strict bound is recorded as a non-strict one and also stays as a constraint. Constraints that
        always hold are dropped; those that never hold stay.
        """
        rest = []
        for constraint in constraints:
            if isinstance(constraint, InputBound):
                index, is_upper, value = constraint
                if index not in (known := self.upper if is_upper else self.lower):
                    known[index] = value
                else:
                    (self.at_most if is_upper else self.at_least)(index, value)
                continue
            if len(constraint.inputs) != 1 or constraint.outputs:
                if constraint.inputs or constraint.outputs or not constraint.holds((), ()):
                    rest.append(constraint)
                continue
            index, coefficient = constraint.inputs[0]
            value = constraint.bound if coefficient == 1 else constraint.bound / coefficient
            if coefficient > 0:
                self.at_most(index, value)
            else:
                self.at_least(index, value)
            if constraint.strict:
                rest.append(constraint)
        return rest

    def copy(self) -> Bounds:
        """An independent copy of these bounds."""
        return Bounds(dict(self.lower), dict(self.upper))

    def box(self, size: int) -> Box:
        """The box of these bounds, which must be known for all inputs."""
        lower, upper = self.lower, self.upper
        return Box(*(tuple(map(ends.__getitem__, range(size))) for ends in (lower, upper)))

    def infer(self, constraints: Iterable[Linear], size: int) -> None:
        """Find missing bounds from linear constraints over bounded inputs.

        Σ c_i·x_i <= b gives c_j·x_j <= b − Σ_{i≠j} min c_i·x_i wherever the minima are known. This is
        repeated until nothing new follows; of several bounds that follow in one round, the tightest is
        taken.
        """
        if len(self.lower) == size and len(self.upper) == size:
            return
        usable = [c for c in constraints if c.inputs and not c.outputs]
        while True:
            found = Bounds()
            for constraint in usable:
                self._follow(constraint, found)
            if not found.lower and not found.upper:
                return
            self.lower.update(found.lower)
            self.upper.update(found.upper)

    def _follow(self, constraint: Linear, found: Bounds) -> None:
        minima = [
            None if end is None else c * end
            for c, end in ((c, (self.lower if c > 0 else self.upper).get(i)) for i, c in constraint.inputs)
        ]
        unknown = [k for k, least in enumerate(minima) if least is None]
        if len(unknown) > 1:
            return
        total = sum((least for least in minima if least is not None), Fraction(0))
        for k in unknown or range(len(minima)):
            index, c = constraint.inputs[k]
            value = (constraint.bound - total + (minima[k] or 0)) / c
            if c > 0 and index not in self.upper:
                found.at_most(index, value)
            elif c < 0 and index not in self.lower:
                found.at_least(index, value)


class Assertions:
    """Everything that a file asserts, in order; `cases` turns it into cases."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.bounds = Bounds()
        self._common: list[Linear] = []
        self._choices: list[tuple[Dnf, int]] = []

    def add(self, formula: Dnf, offset: int) -> None:
        """Assert the formula at `offset`."""
        if len(formula) == 1:
            self._common.extend(self.bounds.take_in(formula[0]))
        else:
            self._choices.append((formula, offset))

    def cases(
        self, size: int, *, name: Callable[[int], str], place: Callable[[int], int]
    ) -> tuple[Case, ...]:
        """The cases over `size` inputs, grouped by box, in the order of their first appearance.

        Raises UnreadableFile if an input has no lower or upper bound: `name` and `place` give the
        name and the offset of an input's declaration.
        """
        base = self.bounds
        base.infer(self._common, size)
        groups: dict[object, tuple[Bounds, list[Conjunction]]] = {}
        for conjunction in self._multiplied_out():
            own = Bounds()
            constraints = (*self._common, *own.take_in(conjunction))
            bounds = _both(base, own)
            bounds.infer(constraints, size)
            missing = _missing(bounds, size)
            if missing is not None:
                index, side = missing
                raise self._source.error(
                    place(index), f"the input {name(index)} has no {side} bound; assert one"
                )
            key = (
                _changes(base.lower, own.lower, bounds.lower),
                _changes(base.upper, own.upper, bounds.upper),
            )
            groups.setdefault(key, (bounds, []))[1].append(constraints)
        return tuple(Case(bounds.box(size), tuple(any_of)) for bounds, any_of in groups.values())

    def _multiplied_out(self) -> Dnf:
        result: Dnf = [[]]
        for formula, offset in self._choices:
            joined = conjoin(result, formula)
            if joined is None:
                raise too_many(self._source, offset)
            result = joined
        return result


def _both(base: Bounds, own: Bounds) -> Bounds:
    """The tighter of both bounds, everywhere."""
    if not base.lower and not base.upper:
        return own.copy()
    result = base.copy()
    for index, value in own.lower.items():
        result.at_least(index, value)
    for index, value in own.upper.items():
        result.at_most(index, value)
    return result


def _missing(bounds: Bounds, size: int) -> tuple[int, str] | None:
    for known, side in ((bounds.lower, "lower"), (bounds.upper, "upper")):
        if len(known) < size:
            return next(i for i in range(size) if i not in known), side
    return None


def _changes(
    base: dict[int, Fraction], own: dict[int, Fraction], both: dict[int, Fraction]
) -> tuple[tuple[int, int, int], ...]:
    """What tells the bounds `both` from `base`: the input and the value (as integers: they hash faster).

    They differ only where they are among the `own` ones, or where there were none and some were inferred.
    """
    candidates = own if len(both) == len(base) else both
    changed = sorted(i for i in candidates if i not in base or base[i] != both[i])
    return tuple((i, *both[i].as_integer_ratio()) for i in changed)


# The top-level forms of a VNN-LIB file, with a fast path for the two that make up most of a file


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
