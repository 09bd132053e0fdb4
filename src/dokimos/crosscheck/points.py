"""The points at which a network is compared: few, and chosen so that a misreading shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dokimos.networks.semantics.replay import nearest_float
from dokimos.properties.model import Box, Point, Property

_FLOAT32 = np.dtype(np.float32)


def points_to_compare(
    question: Property, witness: Point | None, *, few: bool, dtype: np.dtype[Any] = _FLOAT32
) -> Mapping[str, Point]:
    """The witness, the centre of the first box, and a corner of the first and of the last box, by name.

    The ends of a corner are drawn at random with a fixed seed: if all were lower ends, a window in the
    wrong place might see the same numbers. Every point is rounded to the nearest point of type `dtype` and
    may leave its box; the network has a value there as well. With `few`, only the witness and one corner.
    """
    named = {name: _in_type(point, dtype) for name, point in _named(question, witness, few=few)}
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


def _in_type(point: Point, dtype: np.dtype[Any]) -> Point | None:
    """The nearest point of type `dtype`; None if a coordinate is out of range."""
    near = [nearest_float(x, dtype) for x in point]
    within = tuple(x for x in near if x is not None)
    return within if len(within) == len(point) else None
