"""Concave margins take their minimum at a corner of the box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.certificates.base import CertificateKind, Problem, Proven, if_provable, refute
from dokimos.certificates.data import expect_keys
from dokimos.certificates.objective import objective, ranges
from dokimos.certificates.rounding_slack import float32_refutation
from dokimos.errors import InvalidProof
from dokimos.instances.model import Label
from dokimos.networks.expressions import Expression
from dokimos.networks.piecewise_linear import PiecewiseLinear, piecewise_linear
from dokimos.properties.model import Box, Linear

#: 2^12 corners are enumerated for one block of inputs that hinges tie together.
MOST_INPUTS_OF_A_BLOCK = 12


class ConvexCorners(CertificateKind):
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
        expect_keys(data)
        form = piecewise_linear(problem.network)

        def bound(constraint: Linear, box: Box) -> Fraction:
            return minimum_at_corners(form, constraint, box)

        return Proven(
            real=refute(problem.property, bound),
            float32=if_provable(lambda: float32_refutation(problem, bound)),
        )


def minimum_at_corners(form: PiecewiseLinear, constraint: Linear, box: Box) -> Fraction:
    """The exact minimum of left side − bound over the box, where the theorem applies."""
    goal = objective(form, constraint)
    hinges: list[tuple[Fraction, Expression]] = []
    for v, factor in goal.terms.items():
        if v in form.relus:
            inside = form.relus[v]
            if factor > 0:
                raise InvalidProof("a hinge enters with a positive factor: the margin is not concave")
            if any(u in form.relus for u in inside.terms):
                raise InvalidProof("a hinge reads another hinge: there is more than one layer")
            hinges.append((factor, inside))
    linear = {v: c for v, c in goal.terms.items() if v not in form.relus}
    lower, upper = ranges(form, box)
    moving = {v for v in lower if lower[v] < upper[v]}
    total = goal.constant
    tied: set[int] = set()
    for block in _blocks([set(e.terms) & moving for _, e in hinges]):
        mine = [(factor, e) for factor, e in hinges if set(e.terms) & block]
        total += _block_minimum(sorted(block), mine, linear, lower, upper)
        tied |= block
    for factor, e in hinges:
        if not set(e.terms) & moving:
            total += factor * max(Fraction(0), e.minimum(lower, upper))
    return total + Expression(Fraction(0), {v: c for v, c in linear.items() if v not in tied}).minimum(
        lower, upper
    )


def _blocks(supports: Iterable[set[int]]) -> list[set[int]]:
    """The finest partition of the inputs in which every support lies in one part."""
    blocks: list[set[int]] = []
    for support in supports:
        touching = [block for block in blocks if block & support]
        if support:
            blocks = [block for block in blocks if not block & support]
            blocks.append(support.union(*touching))
    return blocks


def _block_minimum(
    block: list[int],
    hinges: list[tuple[Fraction, Expression]],
    linear: Mapping[int, Fraction],
    lower: Mapping[int, Fraction],
    upper: Mapping[int, Fraction],
) -> Fraction:
    """min over the block's corners of Σ c_j·max(0, e_j) + the linear terms in the block's inputs."""
    if len(block) > MOST_INPUTS_OF_A_BLOCK:
        raise InvalidProof(
            f"hinges tie {len(block)} inputs together; at most {MOST_INPUTS_OF_A_BLOCK} can be enumerated"
        )
    corners = _corner_choices(len(block))
    inside = [e.constant + sum((c * lower[v] for v, c in e.terms.items()), Fraction(0)) for _, e in hinges]
    steps = [[e.terms.get(v, Fraction(0)) * (upper[v] - lower[v]) for v in block] for _, e in hinges]
    hinge_values, scale = _affine_at(corners, inside, steps)
    factors, factor_scale = _integers([factor for factor, _ in hinges])
    start = sum((linear.get(v, Fraction(0)) * lower[v] for v in block), Fraction(0))
    slopes = [[linear.get(v, Fraction(0)) * (upper[v] - lower[v]) for v in block]]
    plain, plain_scale = _affine_at(corners, [start], slopes)
    rectified = np.where(hinge_values > 0, hinge_values, 0).dot(factors)
    common = scale * factor_scale * plain_scale
    values = rectified * plain_scale + plain[:, 0] * (scale * factor_scale)
    return Fraction(int(values.min()), common)


def _corner_choices(count: int) -> NDArray[Any]:
    """All 2^count rows of zeros (lower end) and ones (upper end), as Python integers."""
    rows = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    return rows.astype(object)


def _integers(values: list[Fraction]) -> tuple[NDArray[Any], int]:
    """Integers and a common denominator."""
    scale = lcm(*(value.denominator for value in values))
    return np.array([int(value * scale) for value in values], dtype=object), scale


def _affine_at(
    corners: NDArray[Any], starts: list[Fraction], steps: list[list[Fraction]]
) -> tuple[NDArray[Any], int]:
    """start_j + Σ step_jv over the chosen v, for every corner (row) and j (column), times a scale."""
    flat, scale = _integers([*starts, *(s for row in steps for s in row)])
    count = len(starts)
    matrix = flat[count:].reshape(count, corners.shape[1])
    return corners.dot(matrix.T) + flat[:count], scale
