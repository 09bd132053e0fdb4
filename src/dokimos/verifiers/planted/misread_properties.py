"""Ways to misread a property."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dokimos.properties.model import Box, Case, Conjunction, Linear, Point, Property
from dokimos.verifiers.planted.misread_networks import without_weights_below
from dokimos.verifiers.planted.misreader import Misreader


def _first_disjunct(property: Property) -> Property:
    first = property.cases[:1]
    return replace(property, cases=tuple(replace(case, any_of=case.any_of[:1]) for case in first))


def _first_box(property: Property) -> Property:
    return replace(property, cases=property.cases[:1])


def _last_class_ignored(property: Property) -> Property:
    """Without the conjunctions that ask the last of several outputs to be large."""
    last = property.output_size - 1
    if last == 0:
        return property

    def is_seen(conjunction: Conjunction) -> bool:
        return not any(j == last and d < 0 for constraint in conjunction for j, d in constraint.outputs)

    return replace(
        property,
        cases=tuple(replace(case, any_of=tuple(filter(is_seen, case.any_of))) for case in property.cases),
    )


def _and_for_or(property: Property) -> Property:
    def joined(case: Case) -> Case:
        return replace(case, any_of=(tuple(c for part in case.any_of for c in part),))

    return replace(property, cases=tuple(map(joined, property.cases)))


def _first_conjunct(property: Property) -> Property:
    return _each_conjunction(property, lambda conjunction: conjunction[:1])


def _strict(property: Property) -> Property:
    return _each_constraint(property, lambda c: replace(c, strict=True))


def _reversed(property: Property) -> Property:
    def turned(c: Linear) -> Linear:
        outputs = tuple((j, -d) for j, d in c.outputs)
        return replace(c, inputs=tuple((i, -a) for i, a in c.inputs), outputs=outputs, bound=-c.bound)

    return _each_constraint(property, turned)


def _without_threshold(property: Property) -> Property:
    return _each_constraint(property, lambda c: replace(c, bound=Fraction(0)))


def _moved(by: Fraction) -> Callable[[Property], Property]:
    """Every constraint is harder (by < 0) or easier (by > 0) to meet."""
    return lambda property: _each_constraint(property, lambda c: replace(c, bound=c.bound + by))


def _sorted_as_text(property: Property) -> Property:
    """X_10 is sorted before X_2: inputs get each other's bounds."""
    order = sorted(range(property.input_size), key=str)

    def shuffled(point: Point) -> Point:
        return tuple(point[i] for i in order)

    return _each_box(property, lambda box: Box(shuffled(box.lower), shuffled(box.upper)))


def _box_in_digits(digits: int) -> Callable[[Property], Property]:
    """Both ends with so many digits after the point."""

    def rounded(point: Point) -> Point:
        return tuple(Fraction(round(x * 10**digits), 10**digits) for x in point)

    return lambda property: _each_box(property, lambda box: Box(rounded(box.lower), rounded(box.upper)))


def _each_box(property: Property, change: Callable[[Box], Box]) -> Property:
    return replace(property, cases=tuple(replace(case, box=change(case.box)) for case in property.cases))


def _each_conjunction(property: Property, change: Callable[[Conjunction], Conjunction]) -> Property:
    return replace(
        property,
        cases=tuple(replace(case, any_of=tuple(map(change, case.any_of))) for case in property.cases),
    )


def _each_constraint(property: Property, change: Callable[[Linear], Linear]) -> Property:
    return _each_conjunction(property, lambda conjunction: tuple(map(change, conjunction)))


def _tolerant(digits: int) -> Misreader:
    return Misreader(
        f"tolerance-1e-{digits}",
        f"takes numbers below 1e-{digits} for 0, in weights and in violations",
        network=without_weights_below(10.0**-digits),
        property=_moved(Fraction(-1, 10**digits)),
    )


MISREAD_PROPERTIES = (
    Misreader("first-disjunct", "reads only the first disjunct", property=_first_disjunct),
    Misreader("first-box", "reads only the first box of inputs", property=_first_box),
    Misreader("last-class", "ignores that the last class may win", property=_last_class_ignored),
    Misreader("and-for-or", "reads `or` as `and`", property=_and_for_or),
    Misreader("first-conjunct", "reads only the first constraint of an `and`", property=_first_conjunct),
    Misreader("reversed", "reads <= as >= in constraints of outputs", property=_reversed),
    Misreader("no-threshold", "reads the constant of a constraint as 0", property=_without_threshold),
    Misreader("strict", "reads <= as <", property=_strict),
    _tolerant(5),
    _tolerant(8),
    Misreader("near-1e-5", "a miss by 1e-5 counts as a violation", property=_moved(Fraction(1, 10**5))),
    Misreader("inputs-as-text", "sorts inputs as text: X_10 before X_2", property=_sorted_as_text),
    Misreader("box-3-digits", "rounds the box to 3 digits after the point", property=_box_in_digits(3)),
)
