"""Interval arithmetic against exact rationals, on the nastiest floats hypothesis can think of."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dokimos.networks.graph import Node
from dokimos.networks.semantics.interval import conv_product
from dokimos.networks.semantics.outward import (
    Interval,
    add,
    bilinear,
    divide,
    gamma,
    matrix_product,
    multiply,
    point,
    square_root,
    subtract,
    total,
)

LARGEST = float(np.finfo(np.float64).max)
NASTY = [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1.0, -1.0, 0.1, 1e154, -1e200, LARGEST, -LARGEST]
finite = st.one_of(
    st.sampled_from(NASTY),
    st.floats(-4, 4),
    st.floats(allow_nan=False, allow_infinity=False),
)


def contains(x: Interval, index: tuple[int, ...], value: Fraction) -> bool:
    low, high = float(x.lower[index]), float(x.upper[index])
    assert not np.isnan(low) and not np.isnan(high) and low < np.inf and high > -np.inf
    return (low == -np.inf or Fraction(low) <= value) and (high == np.inf or Fraction(high) >= value)


@st.composite
def intervals(draw: st.DrawFn, *shape: int) -> Interval:
    """Intervals of any width, unbounded ones and single points included."""
    size = int(np.prod(shape))
    ends = []
    for _ in range(size):
        a, b = sorted((draw(finite), draw(finite)))
        kind = draw(st.sampled_from(["between", "point", "up", "down"]))
        ends.append({"between": (a, b), "point": (a, a), "up": (a, np.inf), "down": (-np.inf, b)}[kind])
    lower, upper = (np.array(side, dtype=np.float64).reshape(shape) for side in zip(*ends, strict=True))
    return Interval(lower, upper)


def members(x: Interval, rng: np.random.Generator) -> np.ndarray:
    """Exact members of each interval: an end, something in between, or what is nearest to 0."""
    chosen = np.empty(x.shape, dtype=object)
    for index in np.ndindex(*x.shape):
        low = max(float(x.lower[index]), -LARGEST)
        high = min(float(x.upper[index]), LARGEST)
        between = Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(int(rng.integers(0, 8)), 7)
        options = [
            Fraction(low),
            Fraction(high),
            between,
            min(max(Fraction(0), Fraction(low)), Fraction(high)),
        ]
        chosen[index] = options[int(rng.integers(0, 4))]
    return chosen


ONE = (1,)


@pytest.mark.parametrize(
    ("enclosure", "exact"),
    [
        (add, lambda x, y: x + y),
        (subtract, lambda x, y: x - y),
        (multiply, lambda x, y: x * y),
        (divide, lambda x, y: x / y),
    ],
)
@given(a=intervals(1), b=intervals(1), seed=st.integers(0, 99))
@example(
    a=Interval(np.array([1.0]), np.array([np.inf])), b=Interval(np.array([1.0]), np.array([np.inf])), seed=0
)
@example(a=Interval(np.array([-np.inf]), np.array([0.0])), b=point(np.array([0.0])), seed=0)
@settings(deadline=None, max_examples=75)
def test_operations_hold_every_exact_result(
    enclosure: Callable[[Interval, Interval], Interval],
    exact: Callable[[Fraction, Fraction], Fraction],
    a: Interval,
    b: Interval,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        result = enclosure(a, b)
    for _ in range(6):
        x, y = members(a, rng)[0], members(b, rng)[0]
        if enclosure is divide and y == 0:
            continue
        assert contains(result, (0,), exact(x, y))


def test_a_divisor_that_holds_zero_gives_the_whole_line() -> None:
    with np.errstate(all="ignore"):
        result = divide(point(np.ones(3)), Interval(np.array([0.0, -1.0, -0.0]), np.array([1.0, 0.0, 0.0])))
    assert (result.lower == -np.inf).all() and (result.upper == np.inf).all()


@given(x=finite.filter(lambda v: v >= 0))
@settings(deadline=None)
def test_square_roots_are_enclosed_and_tight(x: float) -> None:
    root = square_root(point(np.array([x])))
    low, high = Fraction(float(root.lower[0])), Fraction(float(root.upper[0]))
    assert low >= 0 and low**2 <= Fraction(x) <= high**2
    assert high <= low * (1 + Fraction(1, 2**50)) + Fraction(1, 2**1070)


def test_the_square_root_of_something_negative_is_unknown() -> None:
    root = square_root(Interval(np.array([-1e-300]), np.array([4.0])))
    assert root.lower[0] == -np.inf and root.upper[0] == np.inf


@given(x=intervals(2, 5), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=80)
def test_sums_hold_every_exact_sum(x: Interval, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        result = total(x, (1,), keepdims=True)
    for _ in range(4):
        chosen = members(x, rng)
        for row in range(2):
            assert contains(result, (row, 0), sum(chosen[row], Fraction(0)))


def test_long_cancelling_sums_stay_enclosed() -> None:
    rng = np.random.default_rng(0)
    half = rng.uniform(-1, 1, 5000) * 10.0 ** rng.integers(-12, 12, 5000)
    values = rng.permutation(np.concatenate([half, -half, [1e-9]]))
    result = total(point(values), (0,), keepdims=False)
    assert contains(result, (), sum(map(Fraction, values.tolist()), Fraction(0)))


def _dot(x: np.ndarray, y: np.ndarray) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


@given(
    a=intervals(2, 4),
    b=intervals(4, 2),
    seed=st.integers(0, 99),
    points=st.sampled_from(["", "a", "b", "ab"]),
)
@settings(deadline=None, max_examples=60)
def test_matrix_products_hold_every_exact_product(a: Interval, b: Interval, seed: int, points: str) -> None:
    rng = np.random.default_rng(seed)
    if "a" in points:
        a = point(np.where(np.isinf(a.lower), 0.0, a.lower))
    if "b" in points:
        b = point(np.where(np.isinf(b.lower), 0.0, b.lower))
    with np.errstate(all="ignore"):
        results = bilinear(a, b, np.matmul, 4), matrix_product(a, b)
    for _ in range(4):
        x, y = members(a, rng), members(b, rng)
        for i, j in itertools.product(range(2), range(2)):
            for result in results:
                assert contains(result, (i, j), _dot(x[i], y[:, j]))


ends_of = st.tuples(st.integers(-8, 8), st.integers(0, 8)).map(lambda p: (p[0] / 7, (p[0] + p[1]) / 7))


@settings(deadline=None, max_examples=40)
@given(st.data(), st.integers(1, 3), st.sampled_from([(2, 2), (1, 2), (2, 1), (1, 1), (3, 2)]))
def test_where_both_factors_vary_their_product_is_as_wide_as_its_corners(
    data: st.DataObject, inner: int, ranks: tuple[int, int]
) -> None:
    """Of each sum of products, the least and greatest value over all corners, by trying them all."""

    def drawn(shape: tuple[int, ...]) -> Interval:
        count = int(np.prod(shape))
        ends = np.array(data.draw(st.lists(ends_of, min_size=count, max_size=count))).reshape(-1, 2)
        return Interval(ends[:, 0].reshape(shape), ends[:, 1].reshape(shape))

    a = drawn({1: (inner,), 2: (2, inner), 3: (2, 2, inner)}[ranks[0]])
    b = drawn({1: (inner,), 2: (inner, 2)}[ranks[1]])
    found = matrix_product(a, b)
    rows, columns = (np.stack([x.lower, x.upper], axis=-1) for x in (a, b))
    shape = np.matmul(a.lower, b.lower).shape
    assert found.shape == shape
    left = rows.reshape(-1, inner, 2)
    right = columns.reshape(inner, -1, 2)
    for place, (i, j) in enumerate(np.ndindex(len(left), right.shape[1])):
        least, greatest = Fraction(0), Fraction(0)
        for k in range(inner):
            products = [Fraction(x) * Fraction(y) for x in left[i, k] for y in right[k, j]]
            least, greatest = least + min(products), greatest + max(products)
        index = np.unravel_index(place, shape) if shape else ()
        assert contains(found, tuple(index), least)
        assert contains(found, tuple(index), greatest)
        assert found.lower[index] == pytest.approx(float(least), rel=1e-12, abs=1e-13)
        assert found.upper[index] == pytest.approx(float(greatest), rel=1e-12, abs=1e-13)


def test_a_product_of_matrices_without_a_common_number_is_zero() -> None:
    nothing = np.zeros((2, 0)), np.ones((2, 0))
    found = matrix_product(Interval(*nothing), Interval(*(end.T for end in nothing)))
    assert found.shape == (2, 2)
    assert not found.magnitude.any()


def test_a_product_of_two_matrices_that_vary_holds_every_exact_product() -> None:
    rng = np.random.default_rng(0)
    a = Interval(np.array([[-np.inf, 0.0]]), np.array([[1.0, 0.0]]))
    b = Interval(np.array([[2.0], [-np.inf]]), np.array([[3.0], [np.inf]]))
    with np.errstate(all="ignore"):
        result = matrix_product(a, b)
    assert (result.lower[0, 0], result.upper[0, 0]) == (-np.inf, pytest.approx(3.0, rel=1e-15))
    for _ in range(20):
        x, y = members(a, rng), members(b, rng)
        assert contains(result, (0, 0), _dot(x[0], y[:, 0]))


def test_an_unbounded_factor_that_only_meets_zeros_is_harmless() -> None:
    a = Interval(np.array([[-np.inf, 1.0]]), np.array([[np.inf, 2.0]]))
    with np.errstate(all="ignore"):
        result = bilinear(a, point(np.array([[0.0, 1.0], [3.0, 3.0]])), np.matmul, 2)
    assert 2.9 < result.lower[0, 0] <= 3 and 6 <= result.upper[0, 0] < 6.1
    assert result.lower[0, 1] == -np.inf and result.upper[0, 1] == np.inf


def test_a_cancelling_dot_product_in_float64_is_enclosed_closely() -> None:
    a = np.array([[1e16, 1.0, -1e16]])
    result = bilinear(point(a), point(np.ones((3, 1))), np.matmul, 3)
    assert contains(result, (0, 0), Fraction(1))
    assert result.upper[0, 0] - result.lower[0, 0] < 100


def test_a_product_that_overflows_midway_is_unknown() -> None:
    a = np.array([[1e200, 1e200, 1.0]])
    b = np.array([[1e200], [-1e200], [1.0]])
    with np.errstate(all="ignore"):
        result = bilinear(point(a), point(b), np.matmul, 3)
    assert result.lower[0, 0] == -np.inf and result.upper[0, 0] == np.inf


def test_products_that_underflow_are_not_lost() -> None:
    a = point(np.full((1, 8), 1e-200))
    result = bilinear(a, point(np.full((8, 1), 1e-200)), np.matmul, 8)
    assert contains(result, (0, 0), 8 * Fraction(1e-200) ** 2)


@given(seed=st.integers(0, 10**6), group=st.sampled_from([1, 2]), rank=st.sampled_from([1, 2]))
@settings(deadline=None, max_examples=25)
def test_convolutions_are_the_sums_of_the_definition(seed: int, group: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, strides, dilations = ([int(v) for v in rng.integers(1, 3, rank)] for _ in range(3))
    pads = [int(v) for v in rng.integers(0, 2, 2 * rank)]
    node = Node(
        "Conv",
        ("x", "w"),
        "y",
        {"strides": tuple(strides), "dilations": tuple(dilations), "pads": tuple(pads), "group": group},
    )
    x = rng.integers(-9, 10, (1, 4, *[5] * rank)).astype(np.float64)
    w = rng.integers(-9, 10, (2, 4 // group, *kernel)).astype(np.float64)
    result = conv_product(node)(x, w)
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    for output, *place in np.ndindex(*result.shape[1:]):
        expected = 0.0
        for channel, *tap in np.ndindex(*w.shape[1:]):
            source = output * group // 2 * (4 // group) + channel
            where = [p * s + t * d for p, s, t, d in zip(place, strides, tap, dilations, strict=True)]
            expected += padded[(0, source, *where)] * w[(output, channel, *tap)]
        assert result[(0, output, *place)] == expected


def test_gamma_is_rounded_up_and_gives_up_where_it_means_nothing() -> None:
    for terms in (0, 1, 7, 784, 10**6):
        share = Fraction(terms) / 2**53
        assert (
            share / (1 - share) <= Fraction(gamma(terms)) <= share / (1 - share) * (1 + Fraction(1, 2**40))
        )
    assert gamma(2**24, 2.0**-24) == np.inf


def test_many_products_that_each_round_to_zero_still_count() -> None:
    """Each product is 0.49·2^-1074, so their float64 sum is 0 and the exact one is almost 4·2^-1074."""
    a, b = np.full((1, 8), 2.0**-540), np.full((8, 1), 0.98 * 2.0**-535)
    result = bilinear(point(a), point(b), np.matmul, 8)
    assert contains(result, (0, 0), 8 * Fraction(2.0**-540) * Fraction(0.98 * 2.0**-535))


@pytest.mark.parametrize("unbounded", [False, True])
def test_sums_that_overflow_in_some_order_only(unbounded: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        values = rng.permutation(np.array([1.7e308] * 8 + [-1.7e308] * 8))
        lower, upper = np.append(values, -1.0)[None], np.append(values, 1.0)[None]
        if unbounded:
            lower[0, -1], upper[0, -1] = -np.inf, np.inf
        with np.errstate(all="ignore"):
            # Several rows and columns, as a BLAS adds up a single one in another order.
            rows = Interval(np.repeat(lower, 3, axis=0), np.repeat(upper, 3, axis=0))
            result = bilinear(rows, point(np.array([[1.0] * 5] * 16 + [[0.0] * 5])), np.matmul, 17)
        assert contains(result, (0, 0), Fraction(0))
