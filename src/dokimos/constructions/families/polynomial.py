"""Polynomial networks: boxes that stay just clear of an algebraic decision boundary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dokimos.checker.lemmas.float_ends import box_floats
from dokimos.constructions.base import Construction, Unusable, dyadic
from dokimos.constructions.draft import Draft
from dokimos.constructions.knobs import knob
from dokimos.constructions.parts.polynomial_draw import (
    FINE_BITS,
    Needle,
    Units,
    checked_depth,
    draw_units,
    minimiser,
    on_grid,
)
from dokimos.constructions.parts.robustness import inward, random_point
from dokimos.core.errors import ConstructionFailed
from dokimos.properties.nearest import nearest_point
from dokimos.provers.polynomial_plans import Dip, plan
from dokimos.suites.instance import Certificate

#: The share of the largest depth that a robust needle has: the rest is room for the proof.
ROOM = 0.9
#: Which share of the buffer's margin the proof must establish.
PROVEN_SHARE = 0.25
#: The least violation of the twin, as a share of the largest output.
LEAST_VIOLATION = 2e-3
#: The twin's counterexample lies where |z| of the needle is at least this share of its largest.
FAR = 0.75
#: How far inside the box the twin's counterexample lies, as a share of the radius.
INSET = 1 / 16


@dataclass(frozen=True)
class Knobs:
    """The knobs of polynomial networks."""

    inputs: int = knob(30, "how many inputs", least=2, most=500)
    degree: int = knob(6, "the power of the hidden layer", least=2, most=30)
    width: int = knob(20, "how many hidden units", least=2, most=1000)
    buffer: float = knob(
        0.005, "how far the box stays from a boundary point; 1e-6 is the edge", least=1e-6, most=0.1
    )
    epsilon: float = knob(0.015625, "radius of the box", least=0.001, most=0.25)
    reach: float = knob(1.0, "the sum of a unit's absolute weights", least=0.05, most=16.0)
    concave: float = knob(
        0.5, "share of units that bend downward; 0 makes the margin convex", least=0.0, most=1.0
    )
    sign: int = knob(1, "1: the polynomial stays positive; -1: negative", least=-1, most=1)


class Polynomial(Construction[Knobs]):
    """Y_0 − Y_1 = μ(x) = Σ c_j·(w_j·x + b_j)^d + c₀, and the box stays `buffer` away from μ = 0.

    A point p is drawn and c₀ chosen so that μ(p) = 0; the box touches p + buffer·sign(∇μ(p)) from the
    side where μ > 0, so its margin is about m = buffer·‖∇μ(p)‖₁. With `concave` = 0 every unit is convex on
    the box, and the tangent plane at the minimiser proves the margin. Otherwise the signs are mixed and
    one more unit, the needle −D·z^d, dips at a random pair of opposite corners of the box (one corner, if
    d is odd): D is about as large as it can be while m remains there. The proof slices the needle's z, and
    pins coordinates. For `sign` = −1 everything is negated, and class 1 must win.

    In the twin one number differs: the needle's depth (c₀, if there is no needle), so that the class
    loses near the needle's corner. Gradients lead to p instead, for the needle is flat away from its
    corner. With degrees 2 and 3 the needle is not flat, and descent finds it; without a needle
    (`concave` = 0) a descent cannot miss the minimum of a convex function (docs/families.md).

    The edge: with `buffer` = 1e-6 rounding may exceed the margin, and the label is proven for the reals
    only.
    """

    family: ClassVar[str] = "polynomial"
    summary: ClassVar[str] = "polynomials whose boundary passes close to the box and dips at one corner"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the polynomial; one number of the last layer differs between the two drafts."""
        if knobs.sign == 0:
            raise ConstructionFailed(f"{self.family}: sign must be 1 or -1.")
        units = draw_units(
            random_point(knobs.inputs, rng),
            width=knobs.width,
            degree=knobs.degree,
            reach=knobs.reach,
            concave=knobs.concave,
            radius=inward(knobs.epsilon),
            buffer=max(dyadic(knobs.buffer, FINE_BITS), Fraction(1, 2**FINE_BITS)),
            rng=rng,
        )
        violation = max(units.margin, LEAST_VIOLATION * units.largest_output(rng))
        make = _convex if knobs.concave == 0 else _with_needle
        robust, certificate, twin, at = make(units, violation, rng)
        question = units.question(knobs.sign)
        return (
            Draft(robust.build(knobs.sign), question, certificate),
            Draft(twin.build(knobs.sign), question, Certificate("witness"), on_grid(at)),
        )


Made = tuple[Units, Certificate, Units, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]


def _convex(units: Units, violation: float, rng: np.random.Generator) -> Made:
    """The convex polynomial itself, and its twin with a smaller c₀."""
    lowest = minimiser(units)
    middle = np.array(units.centre, dtype=np.float64)
    inside = np.array(on_grid(middle + (lowest - middle) * (1 - INSET)), dtype=np.float64)
    fall = float(units.values(inside[None])[0]) + violation
    twin = replace(units, offset=units.offset - dyadic(fall, FINE_BITS))
    at = nearest_point((dyadic(float(x), 40) for x in lowest), units.box)
    return units, Certificate("convex-tangent", {"point": [str(x) for x in at]}), twin, inside


def _with_needle(units: Units, violation: float, rng: np.random.Generator) -> Made:
    """The polynomial with a shallow needle, and with a deep one."""
    needle = Needle(units, rng)
    inset = INSET / units.degree
    shallow, _ = needle.path(inset=0.0).depth(units.margin / 2, units.degree)
    path = needle.path(inset=inset)
    deep, at = path.depth(-violation, units.degree, beyond=FAR)
    robust = needle.with_depth(checked_depth(ROOM * shallow))
    twin = needle.with_depth(checked_depth(deep * (1 + 2.0**-12)))
    if not np.isfinite(shallow) or robust.coefficients == twin.coefficients:
        raise Unusable("there is no room for a needle")
    lower, upper = box_floats(units.box)
    dip = Dip(len(units.rows), -float(robust.coefficients[-1]), units.degree)
    data = plan(robust.terms(), dip, lower, upper, PROVEN_SHARE * units.margin)
    return robust, Certificate("pinning", data), twin, path.points[at]
