"""Bounds on float32 sums against sums that are rounded one operation at a time, in every way allowed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.networks.semantics.outward import (
    FLOAT32,
    FLOAT32_MAX,
    TINY,
    UNIT_ROUNDOFF,
    dot_rounding,
    safe_product,
)

floats = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 2.0**-126, 2.0**-149, 2.0**-75, 1.0 + 2.0**-23, 1e-30, 1e18, -1e18]),
    st.floats(-2, 2, width=32),
    st.floats(-(2.0**60), 2.0**60, width=32),
)


def round32(exact: Fraction, *, flush: bool) -> Fraction:
    """The float32 nearest to `exact`, or 0 where it is subnormal and results are flushed."""
    if flush and abs(exact) < Fraction(TINY):
        return Fraction(0)
    near = np.float32(float(exact))
    around = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    return min((Fraction(float(c)) for c in around if np.isfinite(c)), key=lambda c: abs(c - exact))


@given(
    pairs=st.lists(st.tuples(floats, floats), min_size=1, max_size=8),
    fused=st.booleans(),
    flush=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(deadline=None, max_examples=80)
def test_any_order_fused_or_not_flushed_or_not_stays_within_the_bound(
    pairs: list[tuple[float, float]], fused: bool, flush: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    exact = [Fraction(a) * Fraction(b) for a, b in pairs]
    terms = [round32(product, flush=flush) for product in exact]
    if fused:
        total = terms[0]
        for product in exact[1:]:
            total = round32(total + product, flush=flush)
        terms = [total]
    while len(terms) > 1:
        i, j = rng.choice(len(terms), 2, replace=False)
        merged = round32(terms[i] + terms[j], flush=flush)
        terms = [merged, *(t for k, t in enumerate(terms) if k not in (i, j))]
    size = sum((abs(product) for product in exact), Fraction(0))
    magnitude = float(np.nextafter(float(size), np.inf))
    assert abs(terms[0] - sum(exact, Fraction(0))) <= Fraction(dot_rounding(len(pairs), magnitude, FLOAT32))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_hundred_thousand_terms_in_shuffled_orders(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = (rng.uniform(-1, 1, 100_000) * 10.0 ** rng.integers(-6, 6, 100_000)).astype(np.float32)
    exact = sum(map(Fraction, values.tolist()), Fraction(0))
    bound = Fraction(
        dot_rounding(values.size, float(np.abs(values).astype(np.float64).sum() * (1 + 1e-9)), FLOAT32)
    )
    orders = [values, values[::-1], np.sort(values), *(rng.permutation(values) for _ in range(3))]
    for order in orders:
        sequential = np.add.accumulate(order, dtype=np.float32)[-1]
        pairwise = order.sum(dtype=np.float32)
        assert abs(Fraction(float(sequential)) - exact) <= bound
        assert abs(Fraction(float(pairwise)) - exact) <= bound


def test_the_bound_is_nearly_attained() -> None:
    """1 + n numbers just below u: each is lost, so the error is n·u and no smaller bound would do."""
    count = 4096
    values = np.array([1.0] + [UNIT_ROUNDOFF * 0.999] * count, dtype=np.float32)
    computed = np.add.accumulate(values, dtype=np.float32)[-1]
    error = abs(Fraction(float(computed)) - sum(map(Fraction, values.tolist()), Fraction(0)))
    bound = dot_rounding(count + 1, 1.0 + count * UNIT_ROUNDOFF, FLOAT32)
    assert 0.99 * bound < error <= bound


def test_what_may_overflow_is_unbounded() -> None:
    bounds = dot_rounding(4, np.array([FLOAT32_MAX * 0.99, FLOAT32_MAX, np.inf]), FLOAT32)
    assert np.isfinite(bounds[0]) and bounds[1] == bounds[2] == np.inf
    assert dot_rounding(2**23, 1.0, FLOAT32) == np.inf


def test_an_infinite_factor_counts_even_against_zero() -> None:
    a = np.array([[np.inf, 1.0], [1.0, 1.0]])
    b = np.array([[0.0, 0.0], [1.0, 2.0]])
    bound = safe_product(a, b, np.matmul, 2)
    assert (bound[0] == np.inf).all() and (bound[1] >= [1.0, 2.0]).all() and (bound[1] < [1.1, 2.1]).all()
    assert (safe_product(b, a, np.matmul, 2)[:, 0] == np.inf).all()
    assert safe_product(a[0], b[:, 0], np.matmul, 2) == np.inf
