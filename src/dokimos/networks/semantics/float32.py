"""Bounds on the error of one float32 operation, or of a sum of them.

float32 here is IEEE 754 binary32, rounding to nearest, results below 2^-126 in magnitude either rounded
gradually or flushed to zero. (Operands are read unchanged: a processor that also reads subnormal weights or
inputs as zero is not covered.) A result is exact·(1 + δ) + η with |δ| <= u = 2^-24 and |η| <= 2^-126, as
long as it does not overflow.

These bounds are computed in float64 from nonnegative numbers by fewer than 2^10 additions,
multiplications and divisions each (long sums apart, see `safe_product`), so that every one loses at most
a relative 2^-43 to rounding; `safe` makes up for it with a factor 1 + 2^-40. A float64 underflow on the
way loses at most 2^-1074 times numbers below 2^300, which is nothing beside 2^-40 of the term 2^-126 that
every bound on an inexact operation has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dokimos.networks.semantics.outward import Floats, Product, gamma

#: The largest finite float32.
FLOAT32_MAX = float(np.finfo(np.float32).max)
#: u: half the distance from 1 to the next float32.
UNIT_ROUNDOFF = 2.0**-24
#: The smallest normal float32: what flushing one result to zero may lose.
TINY = 2.0**-126
#: The distance between floats in [1, 2): what one ulp may be, relative to the value.
ULP = 2.0**-23


@dataclass(frozen=True)
class Format:
    """What the bounds need to know of a float type: its end, u, and the distance of floats in [1, 2).

    All types lose up to TINY to underflow here. That is far more than float64 loses, so that what is said
    above of underflow in these bounds holds for it as well.
    """

    largest: float
    unit: float
    ulp: float


FLOAT32 = Format(FLOAT32_MAX, UNIT_ROUNDOFF, ULP)
#: To compare runtimes with; no proof is about evaluation in float64.
FLOAT64 = Format(float(np.finfo(np.float64).max), 2.0**-53, 2.0**-52)

_SAFE = 1.0 + 2.0**-40


def safe(bound: NDArray[np.floating]) -> Floats:
    """`bound` times a factor that makes up for its own float64 roundings; nan (∞ − ∞ or 0·∞) becomes ∞."""
    return np.where(np.isnan(bound), np.inf, bound * _SAFE)


def infinite_beyond(magnitude: Floats | float, bound: Floats, form: Format = FLOAT32) -> Floats:
    """`bound`, and ∞ where an intermediate result of this magnitude may overflow."""
    return np.where(safe(np.asarray(magnitude)) <= form.largest, bound, np.inf)


def safe_product(a: Floats, b: Floats, product: Product, terms: int) -> Floats:
    """An upper bound of `product`(a, b) for nonnegative a and b; ∞ wherever an infinite factor enters.

    A sum of n = `terms` nonnegative products is at least (1 − γ_n) of its exact value in float64, but for
    underflow. Infinite factors are counted apart, because a BLAS may leave out what is multiplied by
    zero, whereas 0·∞ is nan to a network.
    """
    a_infinite, b_infinite = np.isinf(a), np.isinf(b)
    value = product(np.where(a_infinite, 0.0, a), np.where(b_infinite, 0.0, b))
    bound = safe(value * (1.0 + 2.0 * gamma(terms)))
    if a_infinite.any():
        bound = np.where(product(a_infinite.astype(np.float64), np.ones_like(b)) > 0, np.inf, bound)
    if b_infinite.any():
        bound = np.where(product(np.ones_like(a), b_infinite.astype(np.float64)) > 0, np.inf, bound)
    return bound


@overload
def dot_rounding(terms: int, magnitude: float, form: Format = ...) -> float: ...
@overload
def dot_rounding(terms: int, magnitude: Floats, form: Format = ...) -> Floats: ...
def dot_rounding(terms: int, magnitude: Floats | float, form: Format = FLOAT32) -> Floats | float:
    """How far a float32 sum of `terms` products may be from the exact one, if Σ|a_i·b_i| <= `magnitude`.

    Theorem (Higham, Accuracy and Stability of Numerical Algorithms, 3.1): in any order of summation, with
    or without fused multiply-add, every product is multiplied by at most n factors 1 + δ, so the sum is
    off by at most γ_n Σ|a_i b_i|, γ_n = n·u/(1 − n·u). Each of the n products and n − 1 sums may also
    lose 2^-126 to underflow, which the later factors increase by at most 1 + γ_n. Σ|a_i b_i|·(1 + γ_n)
    bounds every partial result: where that may overflow, and where n·u > 1/4, the answer is ∞.
    """
    rate = gamma(terms, form.unit)
    exact = np.asarray(magnitude, dtype=np.float64)
    with np.errstate(all="ignore"):
        underflow = 2.0 * terms * TINY * (1.0 + rate)
        bound = safe(rate * exact + underflow) if terms else np.zeros_like(exact)
        bound = infinite_beyond(exact * (1.0 + rate) + underflow, bound, form)
    return float(bound) if isinstance(magnitude, float | int) else bound
