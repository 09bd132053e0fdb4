"""Where a network is compared: few points, chosen so that a misreading shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from dokimos.properties.model import Box, Point, Property

#: A coordinate beyond this has no float32 number next to it.
_FLOAT32_END = Fraction(float(np.finfo(np.float32).max))


def points_to_compare(question: Property, witness: Point | None, *, few: bool) -> Mapping[str, Point]:
    """The witness, the centre of the first box, and a corner of the first and of the last box, by name.

    Which ends a corner takes is drawn at random, but always alike: where all ends are lower ones, a window
    that is in the wrong place may see the same numbers. Every point is the nearest float32 point, which
    may leave its box: the network has a value there, too. With `few`, the witness and one corner.
    """
    named = {name: _in_float32(point) for name, point in _named(question, witness, few=few)}
    found: dict[Point, str] = {}
    for name, point in named.items():
        if point is not None:
            found.setdefault(point, name)
    return {name: point for point, name in found.items()}


def _named(question: Property, witness: Point | None, *, few: bool) -> Iterator[tuple[str, Point]]:
    if witness is not None:
        yield "the witness", witness
    boxes = [case.box for case in question.cases if not case.box.is_empty]
    if not boxes:
        return
    yield "a corner of the first box", _corner(boxes[0])
    if not few:
        yield "the centre of the first box", boxes[0].centre
        yield "a corner of the last box", _corner(boxes[-1])


def _corner(box: Box) -> Point:
    upper = np.random.default_rng(box.size).random(box.size) < 0.5
    return tuple(b if up else a for a, b, up in zip(box.lower, box.upper, upper, strict=True))


def _in_float32(point: Point) -> Point | None:
    """The nearest float32 point; None where a coordinate is out of range."""
    if any(abs(x) > _FLOAT32_END for x in point):
        return None
    return tuple(Fraction(float(np.float32(float(x)))) for x in point)
