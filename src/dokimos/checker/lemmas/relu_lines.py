"""One ReLU in a linear bound, and what is lost by rounding in float64."""

from __future__ import annotations

import numpy as np

from dokimos.networks.semantics.outward import Floats, Interval, gamma

#: What the last rounding of a float64 sum loses, relative to the sum; and more than all underflows lose.
ROUNDED, FLUSHED = 2.0**-52, 2.0**-900
#: The phase of a ReLU about which a case says nothing, and the corresponding multiplier.
UNDECIDED = np.zeros(1)


def at_most(total: Floats, terms: int) -> Floats:
    """An upper bound, up to underflow, of a sum of `terms` products >= 0 that was computed as `total`."""
    return total * (1.0 + 2.0 * gamma(terms + 2))


def loss_of_sum(terms: Floats) -> Floats:
    """What a sum of n terms, each computed in at most two roundings, may be off by.

    Theorem. Each term is within γ_3 of the one meant, relative to itself (the third rounding for which of
    two is the smaller); adding up loses γ_{n−1} Σ|terms|, and γ_{n−1} + γ_3 <= γ_{n+2}.
    """
    count = terms.shape[-1]
    return np.asarray(gamma(count + 2) * at_most(np.abs(terms).sum(-1), count) + FLUSHED)


def through_relu(
    factors: Floats,
    arguments: Interval,
    slopes: Floats,
    phases: Floats = UNDECIDED,
    multipliers: Floats = UNDECIDED,
) -> tuple[Floats, Floats]:
    """Coefficients of ReLUs turned into coefficients of their arguments, and what is added for each.

    The theorem stands at `BoundedLayers.lines`.
    """
    low, high = arguments.lower, arguments.upper
    silent = phases == 0
    on, off = (phases > 0) | (silent & (low >= 0)), (phases < 0) | (silent & (low < 0) & (high <= 0))
    chord = np.nan_to_num(np.clip(high / (high - low), 0.0, 1.0))
    if_positive, if_negative = (np.where(on, 1.0, np.where(off, 0.0, each)) for each in (slopes, chord))
    turned = factors * np.where(factors < 0, if_negative, if_positive) - phases * multipliers
    low, high = (np.where(on | off, 0.0, end) for end in (low, high))
    shift = np.minimum(-turned * low, (factors - turned) * high)
    return turned, np.minimum(shift, 0.0)
