"""The property of local robustness: in a box, one class stays above all others."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dokimos.properties.model import Box, Case, Linear, Property, Signature


def class_loses(
    box: Box, label: int, classes: int, *, input_shape: Sequence[int] | None = None
) -> Property:
    """Unsafe: some other class is at least as high as `label`. The input is flat unless a shape is
    given."""
    unsafe = tuple(
        (Linear((), tuple(sorted(((label, Fraction(1)), (other, Fraction(-1))))), Fraction(0)),)
        for other in range(classes)
        if other != label
    )
    shape = (box.size,) if input_shape is None else tuple(input_shape)
    outputs = (classes,) if input_shape is None else (1, classes)
    return Property((Signature("f", "X", shape, "Y", outputs),), (Case(box, unsafe),))


def losing_class(property: Property) -> int | None:
    """The class that a property of this form is about; None if it has another form."""
    if len(property.cases) != 1 or property.products:
        return None
    winners = set()
    for conjunction in property.cases[0].any_of:
        if len(conjunction) != 1 or conjunction[0].inputs or conjunction[0].bound:
            return None
        terms = sorted(conjunction[0].outputs, key=lambda term: -term[1])
        if len(terms) != 2 or terms[0][1] <= 0 or terms[0][1] + terms[1][1] != 0:
            return None
        winners.add(terms[0][0])
    return winners.pop() if len(winners) == 1 else None
