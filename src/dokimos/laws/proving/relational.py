"""A law as a property of several networks, one for each record that the model decides on.

The property given to a verifier is about real numbers: integers may have any value in between, and where
there are many combinations of choices, a choice may be any mixture of its remaining values. So `unsat`
proves the law; the input of a `sat` is a violation if it is a valid record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import prod

from dokimos.checker.lemmas.zones import (
    Comparison,
    Either,
    ForbiddenDecisions,
    Formula,
    Grid,
    Options,
    Quantity,
    Sign,
    Span,
    Values,
    Zone,
)
from dokimos.laws.domain.features import Kind, Slot
from dokimos.laws.proving.expressions import Refusal, float32_end
from dokimos.laws.proving.question import Forbidden, LawQuestion
from dokimos.networks.graph import Network
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Property, Relation, Signature

#: The most conjunctions that a property may have.
_MOST_CONJUNCTIONS = 10_000
#: Choices with no more combinations than this have a box for each.
_MOST_BOXES = 64
#: No more of them than this are compared with each other.
_MOST_COMPARED = 300


def relational_property(question: LawQuestion, zone: Zone, network: Network) -> Property | None:
    """Is there a case in the zone in which the decisions of a network violate the law? None: no case.

    The networks of the property are f1, f2, …, all equal; the inputs of fk are the columns of record k of
    the question.

    Theorem. At every case of the zone that violates the law, the columns of its records are unsafe. So the
    law holds in the zone where the property is `unsat`.

    *Proof.* Each variable of the question is read from the first record that has it; other records that
    have it are linked to that by equalities. Where choices have few combinations, each is a case of the
    property. Columns are between their ends in the zone, or float32
    numbers around these; those of a choice
    are 0 or 1 and add up to 1 (at most 1 where "none" is left). Every condition of the question, and where
    the decisions are forbidden, is a formula over the variables: a comparison of one choice with a number
    says in which of its options the choice is, and is written as "these columns add up to 1"; q < 0 over
    integers is q <= −1. The decision is a iff no score before a is as large and none behind it is larger;
    a single score is compared as the law compares it. ∎

    Raises Refusal if a condition uses what no record shows, or there are too many combinations.
    """
    return _Relational(question, zone, network).property()


def without_strict(property_: Property) -> Property:
    """The property with <= for each <, for formats without strict comparisons: ties count as unsafe."""
    cases = tuple(
        Case(case.box, tuple(tuple(replace(c, strict=False) for c in part) for part in case.any_of))
        for case in property_.cases
    )
    return replace(property_, cases=cases)


@dataclass(frozen=True)
class _Relational:
    question: LawQuestion
    zone: Zone
    network: Network

    @property
    def _width(self) -> int:
        return self.question.layout.width

    def _places(self) -> dict[int, tuple[int, Slot]]:
        """The record and the slot that each variable is read from."""
        found: dict[int, tuple[int, Slot]] = {}
        for number, record in enumerate(self.question.records):
            for slot, feature in zip(self.question.layout.slots, record.features, strict=True):
                if feature.variable is not None:
                    found.setdefault(feature.variable, (number, slot))
        return found

    def property(self) -> Property | None:
        cases = [replace(self, zone=zone)._case() for zone in _by_choices(self.zone)]
        found = tuple(each for each in cases if each is not None)
        if sum(len(case.any_of) for case in found) > _MOST_CONJUNCTIONS:
            raise Refusal(f"the law has more than {_MOST_CONJUNCTIONS:,} combinations of conditions")
        return Property(self._signatures(), found) if found else None

    def _case(self) -> Case | None:
        question, places = self.question, self._places()
        if question.rules_out(self.zone):
            return None
        common = [*self._links(places), *self._mixtures(places)]
        conjunctions: list[Conjunction] = []
        for each in question.forbidden:
            decisions = list(self._forbidden(each, places))
            for part in _parts([*question.conditions, each.where], self.zone):
                conditions = [c for comparison in part for c in self._linear(comparison, places)]
                conjunctions.append((*common, *conditions, *decisions))
        box = self._box()
        if not conjunctions or box.is_empty:
            return None
        return Case(box, tuple(conjunctions))

    def _signatures(self) -> tuple[Signature, ...]:
        shapes = self.network.input_shape, self.network.output_shape
        return tuple(
            Signature(
                f"f{k}",
                f"X{k}",
                shapes[0],
                f"Y{k}",
                shapes[1],
                Relation.FREE if k == 1 else Relation.EQUAL,
                None if k == 1 else "f1",
            )
            for k in range(1, len(self.question.records) + 1)
        )

    def _box(self) -> Box:
        ends: list[tuple[Fraction, Fraction]] = []
        for record in self.question.records:
            for slot, feature in zip(self.question.layout.slots, record.features, strict=True):
                ends += self._ends(slot, feature)
        return Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))

    def _ends(self, slot: Slot, feature: Quantity) -> list[tuple[Fraction, Fraction]]:
        values = None if feature.variable is None else self.zone.values[feature.variable]
        if slot.feature.kind is Kind.CHOICE:
            left = values.left if isinstance(values, Options) else frozenset({int(feature.constant)})
            return [
                (Fraction(left == {option}), Fraction(option in left))
                for option in range(slot.feature.width)
            ]
        low, high = (
            (values.low, values.high) if isinstance(values, Span) else (feature.constant, feature.constant)
        )
        return [(float32_end(low, up=False), float32_end(high, up=True))]

    def _columns(self, place: tuple[int, Slot]) -> range:
        number, slot = place
        return range(number * self._width + slot.start, number * self._width + slot.stop)

    def _links(self, places: dict[int, tuple[int, Slot]]) -> Iterator[Linear]:
        for number, record in enumerate(self.question.records):
            for slot, feature in zip(self.question.layout.slots, record.features, strict=True):
                if feature.variable is None or places[feature.variable] == (number, slot):
                    continue
                pairs = zip(
                    self._columns(places[feature.variable]), self._columns((number, slot)), strict=True
                )
                for pair in pairs:
                    a, b = sorted(pair)
                    for sign in (Fraction(1), Fraction(-1)):
                        yield Linear(((a, sign), (b, -sign)), (), Fraction(0))

    def _mixtures(self, places: dict[int, tuple[int, Slot]]) -> Iterator[Linear]:
        """What the columns of a choice with several options left add up to."""
        for variable, place in places.items():
            values = self.zone.values[variable]
            if not isinstance(values, Options) or values.is_single:
                continue
            columns = self._columns(place)
            for sign in (1,) if -1 in values.left else (1, -1):
                yield Linear(tuple((c, Fraction(sign)) for c in columns), (), Fraction(sign))

    def _forbidden(self, each: Forbidden, places: dict[int, tuple[int, Slot]]) -> Iterator[Linear]:
        if isinstance(each, ForbiddenDecisions):
            for record, chosen in enumerate(each.classes):
                yield from self._decides(record, chosen)
            return
        for part in each.parts:
            terms, constant = self._terms(self._known(part.quantity, places), places)
            scores = tuple(sorted((record, Fraction(factor)) for record, _, factor in part.scores))
            yield Linear(terms, scores, -constant, strict=part.sign is Sign.BELOW)

    def _known(self, quantity: Quantity, places: dict[int, tuple[int, Slot]]) -> Quantity:
        """The quantity, if records show all that it is about. Raises Refusal."""
        for variable, _ in quantity.terms:
            if variable not in places:
                name = self.question.variables[variable].name
                raise Refusal(f"a condition uses {name}, which no record shows")
        return quantity

    def _decides(self, record: int, chosen: int) -> Iterator[Linear]:
        classes = self.network.output_size
        for other in range(classes):
            if other != chosen:
                terms = [
                    (record * classes + other, Fraction(1)),
                    (record * classes + chosen, Fraction(-1)),
                ]
                yield Linear((), tuple(sorted(terms)), Fraction(0), strict=other < chosen)

    def _linear(self, comparison: Comparison, places: dict[int, tuple[int, Slot]]) -> Iterator[Linear]:
        quantity = self._known(comparison.quantity, places)
        if len(quantity.terms) == 1:
            ((variable, factor),) = quantity.terms
            values = self.zone.values[variable]
            if isinstance(values, Options):
                inside = {
                    option
                    for option in values.left
                    if comparison.sign.holds(quantity.constant + factor * option)
                }
                yield self._is_among(inside, self._columns(places[variable]))
                return
        terms, constant = self._terms(quantity, places)
        sign = comparison.sign
        yield Linear(terms, (), -constant, strict=sign is Sign.BELOW)
        if sign is Sign.ZERO:
            yield Linear(tuple((column, -factor) for column, factor in terms), (), constant)

    def _is_among(self, options: set[int], columns: range) -> Linear:
        """That a choice is one of these: their columns, and what is left to 1 for none, add up to 1."""
        factors = {columns[option]: Fraction(-1) for option in options if option >= 0}
        if -1 in options:
            factors = {column: factors.get(column, Fraction(0)) + 1 for column in columns}
        terms = tuple((column, factor) for column, factor in sorted(factors.items()) if factor)
        return Linear(terms, (), Fraction(0 if -1 in options else -1))

    def _terms(
        self, quantity: Quantity, places: dict[int, tuple[int, Slot]]
    ) -> tuple[tuple[tuple[int, Fraction], ...], Fraction]:
        """A quantity in columns: the index of a choice is the sum of its columns times their numbers."""
        constant, found = Fraction(quantity.constant), dict[int, Fraction]()
        for variable, factor in quantity.terms:
            columns = self._columns(places[variable])
            values = self.zone.values[variable]
            if isinstance(values, Span):
                found[columns[0]] = found.get(columns[0], Fraction(0)) + factor
                continue
            shift = 1 if -1 in values.left else 0
            constant -= shift * factor
            for option, column in enumerate(columns):
                found[column] = found.get(column, Fraction(0)) + factor * (option + shift)
        return tuple((column, each) for column, each in sorted(found.items()) if each), constant


def _by_choices(zone: Zone) -> list[Zone]:
    """Zones with one option of each choice, which make up the zone; itself where there would be many."""
    if prod(len(each.left) for each in zone.values if isinstance(each, Options)) > _MOST_BOXES:
        return [zone]
    return [Zone(values) for values in product(*map(_one_by_one, zone.values))]


def _one_by_one(values: Values) -> list[Values]:
    if isinstance(values, Span):
        return [values]
    return [Options(frozenset({one})) for one in sorted(values.left)]


def _parts(formulas: Sequence[Formula], zone: Zone) -> list[tuple[Comparison, ...]]:
    """All of these hold in a case of the zone iff all of one of these parts do.

    A part in which two comparisons contradict each other holds nowhere, and one with all comparisons of
    another, and more, adds nothing: both are left out.
    """
    found: list[tuple[Comparison, ...]] = [()]
    for formula in formulas:
        ways = _ways(formula, zone)
        if len(found) * len(ways) > _MOST_CONJUNCTIONS:
            raise Refusal(f"the law has more than {_MOST_CONJUNCTIONS:,} combinations of conditions")
        made = dict.fromkeys(tuple(dict.fromkeys((*one, *way))) for one, way in product(found, ways))
        found = [part for part in made if not any(_exclude(*pair) for pair in combinations(part, 2))]
        if len(found) <= _MOST_COMPARED:
            own = [frozenset(part) for part in found]
            found = [part for part, mine in zip(found, own, strict=True) if not any(o < mine for o in own)]
    return found


def _exclude(one: Comparison, other: Comparison) -> bool:
    """Whether two comparisons hold in no case: those of opposite quantities, but for a constant."""
    if not {one.sign, other.sign} <= {Sign.AT_MOST, Sign.BELOW}:
        return False
    total = one.quantity.plus(other.quantity)
    is_strict = Sign.BELOW in (one.sign, other.sign)
    return total.is_constant and (total.constant >= 0 if is_strict else total.constant > 0)


def _ways(formula: Formula, zone: Zone) -> list[tuple[Comparison, ...]]:
    decided = formula.over(zone)
    if decided is not None:
        return [()] if decided else []
    if isinstance(formula, Comparison):
        ((variable, _), *others) = formula.quantity.terms
        is_choice = not others and isinstance(zone.values[variable], Options)
        if is_choice:
            return [(formula,)]
        sides = [formula.quantity, formula.quantity.times(-1)]
        if formula.sign is Sign.OTHER:
            below = [Comparison(each, Sign.BELOW) for each in sides]
            return [(_at_most(each, zone),) for each in below if each.over(zone) is not False]
        if formula.sign is Sign.ZERO:
            known = [Comparison(each, Sign.AT_MOST) for each in sides]
            open_ones = tuple(each for each in known if each.over(zone) is not True)
            return [open_ones if len(open_ones) == 1 else (formula,)]
        return [(_at_most(formula, zone),)]
    if isinstance(formula, Either):
        return [way for each in formula.parts for way in _ways(each, zone)]
    return _parts(formula.parts, zone)


def _at_most(comparison: Comparison, zone: Zone) -> Comparison:
    """The comparison, with q + 1 <= 0 for q < 0 where all cases of the zone have whole numbers for q."""
    quantity = comparison.quantity
    values = [zone.values[variable] for variable, _ in quantity.terms]
    numbers = (quantity.constant, *(factor for _, factor in quantity.terms))
    are_whole = all(isinstance(each, Options) or each.grid is Grid.WHOLE for each in values)
    if comparison.sign is Sign.BELOW and are_whole and all(isinstance(each, int) for each in numbers):
        return Comparison(quantity.plus(Quantity(1)), Sign.AT_MOST)
    return comparison
