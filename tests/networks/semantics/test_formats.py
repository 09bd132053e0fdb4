"""Types of 16 bits: which numbers they hold, and bounds on their rounding against runs of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import UnreadableFile, UnsupportedOp
from dokimos.engine.runtimes.narrow import stored_in
from dokimos.engine.runtimes.sessions import Replayer
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
    Format,
    dot_rounding,
)
from dokimos.networks.semantics.rounding import require_format, rounding_bounds
from tests.networks.graphs import models
from tests.networks.sampling import exactly, random_box
from tests.networks.semantics.test_rounding import assert_within, bounds, network

NARROW = (FLOAT16, BFLOAT16)
DTYPES: dict[str, Any] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}


def every_number(form: Format) -> list[float]:
    with np.errstate(invalid="ignore"):
        bits = np.arange(2**16, dtype=np.uint16).view(DTYPES[form.name]).astype(np.float64)
    return sorted(set(bits[np.isfinite(bits)].tolist()))


@pytest.mark.parametrize("form", NARROW, ids=lambda form: form.name)
def test_a_type_holds_all_its_numbers_and_nothing_between_them(form: Format) -> None:
    numbers = every_number(form)
    assert numbers[-1] == form.largest
    assert min(x for x in numbers if x > 0) == form.least
    for low, high in pairwise(numbers):
        assert form.holds(Fraction(low))
        assert not form.holds((Fraction(low) + Fraction(high)) / 2)
    assert not form.holds(Fraction(2 * form.largest))
    assert not form.holds(Fraction(1, 3))


def nearest(form: Format, exact: Fraction, *, flush: bool) -> Fraction:
    """By numpy's cast of a float64, which these numbers are, or are near enough to."""
    if flush and abs(exact) < form.tiny:
        return Fraction(0)
    with np.errstate(over="ignore"):
        near = float(np.float64(float(exact)).astype(DTYPES[form.name]))
    return Fraction(near) if np.isfinite(near) else Fraction(10**50)


WAYS: tuple[Callable[[Format, Fraction, bool], Fraction], ...] = (
    lambda form, exact, flush: nearest(form, exact, flush=flush),
    lambda form, exact, flush: nearest(FLOAT32, exact, flush=flush),
    lambda form, exact, flush: nearest(form, nearest(FLOAT32, exact, flush=flush), flush=flush),
)
pairs_of = st.tuples(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1))


@given(
    form=st.sampled_from(NARROW),
    pairs=st.lists(pairs_of, min_size=1, max_size=8),
    fused=st.booleans(),
    flush=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(deadline=None, max_examples=200)
def test_any_order_in_either_type_stays_within_the_bound(
    form: Format, pairs: list[tuple[int, int]], fused: bool, flush: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    with np.errstate(invalid="ignore"):
        values = np.array(pairs, dtype=np.uint16).view(DTYPES[form.name]).astype(np.float64)
    values = np.where(np.isfinite(values), values, 1.0)
    values = np.clip(values, -200, 200)
    exact = [Fraction(a) * Fraction(b) for a, b in values.tolist()]

    def rounded(number: Fraction) -> Fraction:
        return WAYS[rng.integers(3)](form, number, flush)

    terms = exact if fused else [rounded(product) for product in exact]
    while len(terms) > 1:
        i, j = rng.choice(len(terms), 2, replace=False)
        terms = [rounded(terms[i] + terms[j]), *(t for k, t in enumerate(terms) if k not in (i, j))]
    found = WAYS[2](form, terms[0], flush)  # what is stored is of the type
    size = sum((abs(product) for product in exact), Fraction(0))
    bound = dot_rounding(len(pairs), float(np.nextafter(float(size), np.inf)), form)
    assert bound == np.inf or abs(found - sum(exact, Fraction(0))) <= Fraction(bound)


def test_one_rounding_less_is_not_enough() -> None:
    """Rounded to float32 and then to float16, a number moves by more than half an ulp."""
    exact = 1 + Fraction(1, 2**11) + Fraction(1, 2**40)
    twice = nearest(FLOAT16, nearest(FLOAT32, exact, flush=False), flush=False)
    assert twice == 1 and nearest(FLOAT16, exact, flush=False) > 1
    moved = abs(twice - exact) / exact
    assert Fraction(1, 2**11) / (1 + Fraction(1, 2**11)) < moved <= Fraction(FLOAT16.unit)


def test_more_terms_than_a_type_can_add_have_no_bound() -> None:
    assert dot_rounding(512, 1.0, FLOAT16) == np.inf
    assert dot_rounding(64, 1.0, BFLOAT16) == np.inf
    assert np.isfinite([dot_rounding(500, 1.0, FLOAT16), dot_rounding(60, 1.0, BFLOAT16)]).all()


@given(model=models(), seed=st.integers(0, 10**6), scale=st.sampled_from([1e-6, 0.01, 1.0, 30.0, 3000.0]))
@settings(deadline=None, max_examples=20)
@pytest.mark.parametrize("form", NARROW, ids=lambda form: form.name)
def test_runs_stored_in_the_type_are_within_the_bound(
    form: Format, model: onnx.ModelProto, seed: int, scale: float
) -> None:
    content = model.SerializeToString()
    net = read_onnx(content)
    rng = np.random.default_rng(seed)
    lower, upper = random_box(rng, net.input_size, scale, 0.5)
    try:
        bound = rounding_bounds(net, exactly(lower), exactly(upper), form=form)[net.output]
    except UnsupportedOp:
        return
    try:
        run = Replayer(stored_in(content, form))
    except UnreadableFile:
        return
    with np.errstate(over="ignore"):
        drawn = rng.uniform(lower, upper, size=(4, net.input_size)).astype(DTYPES[form.name])
    drawn = drawn.astype(np.float64)
    inside = drawn[((drawn >= lower) & (drawn <= upper)).all(1)]
    for point in inside:
        assert_within(net, bound, exactly(point), run(point[None].astype(np.float32))[0])


def test_constants_are_rounded_to_the_type() -> None:
    net = network([1], ("Add", ("x", "c"), {}), c=[0.1])
    at = exactly(np.array([0.0]))
    assert rounding_bounds(net, at, at)[net.output].error[0] < 1e-8
    error = rounding_bounds(net, at, at, form=FLOAT16)[net.output].error[0]
    assert abs(float(np.float16(0.1)) - float(np.float32(0.1))) <= error < 1e-3
    exact = network([1], ("Mul", ("x", "c"), {}), c=[0.5])
    assert rounding_bounds(exact, at, at, form=FLOAT16)["c"].error[0] == 0


def test_what_overflows_or_is_subnormal_is_bounded_so() -> None:
    net = network([1], ("Mul", ("x", "c"), {}), c=[256.0])
    one, beyond = (exactly(np.array([x])) for x in (255.0, 256.0))
    assert np.isfinite(rounding_bounds(net, one, one, form=FLOAT16)[net.output].error[0])
    assert rounding_bounds(net, beyond, beyond, form=FLOAT16)[net.output].error[0] == np.inf
    assert np.isfinite(rounding_bounds(net, beyond, beyond, form=BFLOAT16)[net.output].error[0])
    tiny = network([1], ("Mul", ("x", "c"), {}), c=[2.0**-10])
    small = exactly(np.array([2.0**-5]))
    assert rounding_bounds(tiny, small, small, form=FLOAT16)[tiny.output].error[0] >= 2.0**-15
    large = network([1], ("Add", ("x", "c"), {}), c=[1e6])
    assert rounding_bounds(large, one, one, form=FLOAT16)[large.output].error[0] == np.inf


def test_what_has_no_meaning_in_a_type_is_refused() -> None:
    leaky = network([1], ("LeakyRelu", ("x",), {"alpha": 0.1}))
    with pytest.raises(UnsupportedOp, match=r"its alpha 0\.1 is not a number of float16"):
        require_format(leaky, FLOAT16)
    require_format(network([1], ("LeakyRelu", ("x",), {"alpha": 0.125})), FLOAT16)
    idle = network([1], ("Clip", ("x",), {"min": -FLOAT32.largest, "max": 0.5}))
    require_format(idle, FLOAT16)
    with pytest.raises(UnsupportedOp, match=r"Clip: its max 0\.1 is not a number of bfloat16"):
        require_format(network([1], ("Clip", ("x",), {"min": 0.0, "max": 0.1})), BFLOAT16)
    plain = network([1], ("Relu", ("x",), {}))
    with pytest.raises(UnsupportedOp, match="the network is float32, and its rounding is bounded in that"):
        require_format(plain, FLOAT64)
    beside = Network("x", "1", plain.nodes, {}, {"x": (1,)}, beside=frozenset({"quantisation"}))
    with pytest.raises(UnsupportedOp, match="operators of quantisation, which are not read in float16"):
        require_format(beside, FLOAT16)
    narrow = Network("x", "1", plain.nodes, {}, {"x": (1,)}, dtype=np.dtype(np.float16))
    with pytest.raises(UnsupportedOp, match="the network is float16"):
        require_format(narrow, FLOAT32)
    soft = network([1, 3], ("Softmax", ("x",), {"axis": 1}))
    assert (bounds(soft, [[0] * 3], [[0] * 3], form=FLOAT16).error == np.inf).all()  # type: ignore[arg-type]
    assert set(FORMATS) == {"float16", "bfloat16", "float32", "float64"}
