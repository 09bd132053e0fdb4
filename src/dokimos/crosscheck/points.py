"""The points at which a network is compared, few and chosen so that a misreading shows, and those of a box
at which an `unsat` is put to the test, more of them and drawn at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def drawn_points(box: Box, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Points of type `dtype` in the box, [at most `count`, inputs]: half of them corners, half uniform.

    Every end is rounded inward; there are no points if a coordinate has no number of the type.
    """
    low, high = _ends(box.lower, np.inf, dtype), _ends(box.upper, -np.inf, dtype)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        return np.empty((0, box.size), dtype)
    rng = np.random.default_rng(box.size)
    share = rng.random((count, box.size))
    share[: count // 2] = share[: count // 2] < 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        inside = (1 - share) * low.astype(np.float64) + share * high.astype(np.float64)
    return np.asarray(np.clip(np.nan_to_num(inside).astype(dtype), low, high))


def _ends(ends: Point, towards: float, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The ends of a box, each rounded towards the inside; not finite where there is no such number."""
    near = [nearest_float(x, dtype) for x in ends]
    found = np.array([np.nan if n is None else float(n) for n in near], dtype=dtype)
    outside = [n is not None and (n < x if towards > 0 else n > x) for n, x in zip(near, ends, strict=True)]
    return np.where(outside, np.nextafter(found, dtype.type(towards)), found)


def as_point(row: NDArray[Any]) -> Point:
    """A row of floats as the exact numbers that they are."""
    return tuple(Fraction(float(x)) for x in row)


def _in_type(point: Point, dtype: np.dtype[Any]) -> Point | None:
    """The nearest point of type `dtype`; None if a coordinate is out of range."""
    near = [nearest_float(x, dtype) for x in point]
    within = tuple(x for x in near if x is not None)
    return within if len(within) == len(point) else None
