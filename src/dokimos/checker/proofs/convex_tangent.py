"""A convex polynomial lies above its tangent planes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.data import read_data
from dokimos.checker.lemmas.power_sum import PowerSum, power_sum
from dokimos.checker.lemmas.rounding_slack import margins
from dokimos.core.errors import InvalidProof
from dokimos.properties.model import Box, Linear
from dokimos.suites.instance import Label

#: Longer denominators improve nothing and make exact powers slow.
MOST_BITS = 256


class ConvexTangentData(Struct, frozen=True, forbid_unknown_fields=True):
    """The point at which the tangent plane touches."""

    point: tuple[Fraction, ...]


class ConvexTangent(CertificateKind):
    """`unsat` for polynomial networks with convex margins.

    Theorem. Let μ(x) = a(x) + Σ c_j·z_j(x)^d with a, z_j affine. A term is convex on a box if c_j >= 0
    and d is even, if d = 1, or if d is odd and z_j >= 0 there with c_j >= 0 or z_j <= 0 there with
    c_j <= 0: its second derivative d(d−1)·c_j·z_j^(d−2) is not negative. If all terms are convex, so is
    μ, and μ(x) >= μ(p) + ∇μ(p)·(x − p) for every x of the box and every p in it. The right side is
    affine, and its minimum over the box is exact.

    The data is the point p, best chosen near the minimiser. All arithmetic is exact. In float32 the
    outputs are within the rounding bound of the reals; the margin is what that leaves.
    """

    name: ClassVar[str] = "convex-tangent"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Minimise the tangent plane of every constraint, exactly."""
        point = read_data(data, ConvexTangentData).point
        if len(point) != problem.network.input_size:
            raise InvalidProof(
                f"{len(point)} coordinates are given for {problem.network.input_size} inputs"
            )
        if any(x.denominator.bit_length() > MOST_BITS or abs(x) > 2**MOST_BITS for x in point):
            raise InvalidProof(f"a coordinate has more than {MOST_BITS} bits")

        def bound(constraint: Linear, box: Box) -> Fraction:
            return tangent_minimum(power_sum(problem.network, constraint), point, box)

        return margins(problem, bound)


def tangent_minimum(margin: PowerSum, point: Sequence[Fraction], box: Box) -> Fraction:
    """The minimum over the box of the tangent plane at `point`, if the theorem applies; or InvalidProof."""
    if tuple(point) not in box:
        raise InvalidProof("the point lies outside the box")
    rows = [[Fraction(w) for w in row] for row in margin.weights.tolist()]
    biases = [Fraction(b) for b in margin.biases.tolist()]
    for c, row, bias in zip(margin.coefficients, rows, biases, strict=True):
        if not _is_convex(c, row, bias, margin.degree, box):
            raise InvalidProof("a term is not convex on the box")
    inside = [b + _dot(row, point) for row, b in zip(rows, biases, strict=True)]
    powers = [z ** (margin.degree - 1) for z in inside]
    value = margin.constant + _dot(margin.linear, point)
    value += _dot(margin.coefficients, [p * z for p, z in zip(powers, inside, strict=True)])
    slopes = [margin.degree * c * p for c, p in zip(margin.coefficients, powers, strict=True)]
    gradient = [g + a for g, a in zip(_transposed_product(rows, slopes), margin.linear, strict=True)]
    fall = (
        g * ((low if g > 0 else high) - x)
        for g, x, low, high in zip(gradient, point, box.lower, box.upper, strict=True)
    )
    return value + sum(fall, Fraction(0))


def _is_convex(c: Fraction, row: Sequence[Fraction], bias: Fraction, degree: int, box: Box) -> bool:
    if c == 0 or degree == 1:
        return True
    if degree % 2 == 0:
        return c > 0
    ends = list(zip(row, box.lower, box.upper, strict=True))
    if c > 0:
        return bias + sum((w * (low if w > 0 else high) for w, low, high in ends), Fraction(0)) >= 0
    return bias + sum((w * (high if w > 0 else low) for w, low, high in ends), Fraction(0)) <= 0


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True) if x), Fraction(0))


def _transposed_product(rows: Sequence[Sequence[Fraction]], factors: Sequence[Fraction]) -> list[Fraction]:
    """Σ_j factors[j]·rows[j], over common denominators: integers are much faster than fractions."""
    below = lcm(*(f.denominator for f in factors))
    scale = lcm(*(w.denominator for row in rows for w in row))
    matrix = np.array([[int(w * scale) for w in row] for row in rows], dtype=object)
    vector = np.array([int(f * below) for f in factors], dtype=object)
    return [Fraction(int(total), below * scale) for total in vector.dot(matrix)]
