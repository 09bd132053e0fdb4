"""Concave margins take their minimum at a corner of the box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import lcm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.base import CertificateKind, NoData, Problem, Proven, read_data
from dokimos.checker.lemmas.constraints import margins
from dokimos.checker.lemmas.piecewise_linear import (
    AffineExpression,
    PiecewiseLinear,
    objective,
    piecewise_linear,
    ranges,
)
from dokimos.core.errors import InvalidProof
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Linear

#: At most 2^12 corners are enumerated for one block of inputs that hinges tie together.
MOST_INPUTS_OF_A_BLOCK = 12
#: Below this, floats hold every integer.
FLOAT_INTEGERS = 2**53


class ConvexCornersProof(CertificateKind):
    """`unsat` for one layer of hinges.

    Theorem. Let g(x) = a(x) + Σ c_j·max(0, e_j(x)) with a, e_j affine and every c_j <= 0. Then g is
    concave, and a concave function on a box takes its minimum at a corner. If the inputs fall into
    blocks such that each e_j reads inputs of one block only, then g is a sum of functions of one block
    each, and its minimum is the sum of the blocks' minima, each found at a corner of its block.

    In float32 the outputs are within the rounding bound of the reals; the margin is what that leaves.
    The data is empty: the checker derives everything from the files.
    """

    name: ClassVar[str] = "convex-corners"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Minimise every constraint over the corners, exactly."""
        read_data(data, NoData)
        form = piecewise_linear(problem.network)

        @cache
        def corners(box: Box) -> Corners:
            return Corners(form, box)

        @cache
        def bound(constraint: Linear, box: Box) -> Fraction:
            return corners(box).minimum(constraint)

        return margins(problem, bound)


@dataclass(frozen=True)
class _Block:
    """Inputs that hinges tie together, those hinges, and their values at the corners, rectified.

    `values` has a row for each corner and a column for each hinge: integers, as floats where those hold
    them, over `scale`.
    """

    inputs: list[int]
    hinges: list[int]
    values: NDArray[Any]
    scale: int


class Corners:
    """The theorem of `ConvexCornersProof` for one box: work that constraints share is done once."""

    def __init__(self, form: PiecewiseLinear, box: Box) -> None:
        self._form = form
        self._lower, self._upper = ranges(form, box)
        self._moving = {v for v in self._lower if self._lower[v] < self._upper[v]}
        self._known: dict[tuple[int, ...], list[_Block]] = {}

    def minimum(self, constraint: Linear) -> Fraction:
        """The exact minimum of left side − bound over the box, if the theorem applies; or InvalidProof."""
        goal, relus = objective(self._form, constraint), self._form.relus
        factors = {v: factor for v, factor in goal.terms.items() if v in relus}
        if any(factor > 0 for factor in factors.values()):
            raise InvalidProof("a hinge enters with a positive factor: the margin is not concave")
        linear = {v: c for v, c in goal.terms.items() if v not in relus}
        key = tuple(sorted(factors))
        if key not in self._known:
            self._known[key] = self._blocks_of(key)
        total = goal.constant
        free = set(factors)
        for block in self._known[key]:
            slopes = {v: linear.pop(v, Fraction(0)) for v in block.inputs}
            total += self._block_minimum(block, [factors[h] for h in block.hinges], slopes)
            free.difference_update(block.hinges)
        for hinge in free:
            total += factors[hinge] * max(Fraction(0), relus[hinge].minimum(self._lower, self._upper))
        return total + AffineExpression(Fraction(0), linear).minimum(self._lower, self._upper)

    def _blocks_of(self, hinges: Sequence[int]) -> list[_Block]:
        """The blocks that the inputs of these hinges form; none for hinges of fixed inputs."""
        relus = self._form.relus
        if any(u in relus for hinge in hinges for u in relus[hinge].terms):
            raise InvalidProof("a hinge reads another hinge: there is more than one layer")
        supports = {hinge: set(relus[hinge].terms) & self._moving for hinge in hinges}
        found = _blocks(supports.values())
        number = {v: n for n, block in enumerate(found) for v in block}
        members: list[list[int]] = [[] for _ in found]
        for hinge, support in supports.items():
            if support:
                members[number[next(iter(support))]].append(hinge)
        return [self._block(sorted(block), mine) for block, mine in zip(found, members, strict=True)]

    def _block(self, inputs: list[int], hinges: list[int]) -> _Block:
        if len(inputs) > MOST_INPUTS_OF_A_BLOCK:
            raise InvalidProof(
                f"hinges tie {len(inputs)} inputs together; at most {MOST_INPUTS_OF_A_BLOCK} are allowed"
            )
        lower, upper = self._lower, self._upper
        arguments = [self._form.relus[hinge] for hinge in hinges]
        starts = [
            e.constant + sum((c * lower[v] for v, c in e.terms.items()), Fraction(0)) for e in arguments
        ]
        steps = [[e.terms.get(v, Fraction(0)) * (upper[v] - lower[v]) for v in inputs] for e in arguments]
        values, scale = _affine_at_corners(starts, steps)
        return _Block(inputs, hinges, np.where(values > 0, values, 0), scale)

    def _block_minimum(
        self, block: _Block, factors: list[Fraction], slopes: Mapping[int, Fraction]
    ) -> Fraction:
        """min over the block's corners of Σ c_j·max(0, e_j) + Σ slopes_v·v."""
        whole, factor_scale = _integers(factors)
        scale = block.scale * factor_scale
        values = _times(block.values, whole)
        if any(slopes.values()):
            lower, upper = self._lower, self._upper
            start = sum((c * lower[v] for v, c in slopes.items()), Fraction(0))
            steps = [c * (upper[v] - lower[v]) for v, c in slopes.items()]
            plain, plain_scale = _affine_at_corners([start], [steps])
            values = values * plain_scale + _long(plain[:, 0]) * scale
            scale *= plain_scale
        return Fraction(int(values.min()), scale)


def _blocks(supports: Iterable[set[int]]) -> list[set[int]]:
    """The finest partition of the inputs in which every support lies in one part."""
    blocks: list[set[int]] = []
    for support in supports:
        touching = [block for block in blocks if block & support]
        if support:
            blocks = [block for block in blocks if not block & support]
            blocks.append(support.union(*touching))
    return blocks


def _corner_choices(count: int) -> NDArray[np.int64]:
    """All 2^count rows of zeros (lower end) and ones (upper end)."""
    return (np.arange(2**count)[:, None] >> np.arange(count)) & 1


def _integers(values: Sequence[Fraction]) -> tuple[NDArray[Any], int]:
    """Integers and a common denominator."""
    scale = lcm(*(value.denominator for value in values))
    return np.array([int(value * scale) for value in values], dtype=object), scale


def _long(values: NDArray[Any]) -> NDArray[Any]:
    """Python integers, from those or from floats that hold integers."""
    return values if values.dtype == object else values.astype(np.int64).astype(object)


def _affine_at_corners(starts: list[Fraction], steps: list[list[Fraction]]) -> tuple[NDArray[Any], int]:
    """start_j + Σ step_jv over the chosen v, for every corner (row) and j (column), times a scale.

    In floats if the absolute values that may be added up stay below 2^53, so that nothing is rounded.
    """
    count = len(starts)
    flat, scale = _integers([*starts, *(s for row in steps for s in row)])
    first, matrix = flat[:count], flat[count:].reshape(count, -1)
    exact = int((abs(first) + abs(matrix).sum(axis=1)).max()) < FLOAT_INTEGERS
    kind = np.float64 if exact else object
    corners = _corner_choices(matrix.shape[1]).astype(kind)
    return corners.dot(matrix.T.astype(kind)) + first.astype(kind), scale


def _times(values: NDArray[Any], factors: NDArray[Any]) -> NDArray[Any]:
    """values·factors in Python integers, by way of floats if no sum can reach 2^53."""
    if values.dtype != object:
        # At least 1: even if all values are 0, factors may be too long for a float.
        largest = max(int(values.max()), 1) * int(abs(factors).sum())
        if largest < FLOAT_INTEGERS:
            return _long(values.dot(factors.astype(np.float64)))
    return np.asarray(_long(values).dot(factors), dtype=object)
