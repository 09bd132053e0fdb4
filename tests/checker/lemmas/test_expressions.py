"""Affine expressions as integers over one denominator, against dictionaries of fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from dokimos.checker.lemmas.piecewise_linear import (
    AffineExpression,
    combine,
    piecewise_linear,
    variable,
)
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.rounding import rounding_bounds

NUMBERS = st.builds(Fraction, st.integers(-(10**6), 10**6) | st.just(0), st.integers(1, 60))
TERMS = st.dictionaries(st.integers(0, 4), NUMBERS, max_size=4)
EXPRESSIONS = st.builds(AffineExpression, NUMBERS, TERMS)
POINTS = st.lists(NUMBERS, min_size=6, max_size=6)


def value(e: AffineExpression, point: list[Fraction]) -> Fraction:
    return e.constant + sum((c * point[v] for v, c in e.terms.items()), Fraction(0))


@given(constant=NUMBERS, terms=TERMS)
def test_what_goes_in_comes_out_without_zeros(constant: Fraction, terms: dict[int, Fraction]) -> None:
    e = AffineExpression(constant, terms)
    assert (e.constant, e.terms) == (constant, {v: c for v, c in terms.items() if c})
    assert set(e.variables) == set(e.terms)
    assert all(e.factor(v) == terms.get(v, 0) for v in range(6))


@given(parts=st.lists(st.tuples(NUMBERS, EXPRESSIONS), max_size=4), constant=NUMBERS, point=POINTS)
def test_a_combination_has_the_value_of_its_parts(
    parts: list[tuple[Fraction, AffineExpression]], constant: Fraction, point: list[Fraction]
) -> None:
    e = combine(parts, constant)
    assert value(e, point) == constant + sum((f * value(p, point) for f, p in parts), Fraction(0))
    assert all(e.terms.values())
    assert e == combine([(Fraction(1), e)]) and (e == AffineExpression(e.constant + 1, e.terms)) is False


@given(
    e=EXPRESSIONS,
    others=st.lists(st.tuples(NUMBERS, EXPRESSIONS), max_size=2),
    gone=st.sets(st.integers(0, 4)),
)
def test_equal_expressions_are_one_key_and_variables_are_left_out(
    e: AffineExpression, others: list[tuple[Fraction, AffineExpression]], gone: set[int]
) -> None:
    away = [(-factor, each) for factor, each in others]
    same = combine([(Fraction(1), e), *others, *away])  # the same numbers over another denominator
    assert e == same and hash(e) == hash(same)
    left = {v: c for v, c in e.terms.items() if v not in gone}
    assert e.without(gone) == AffineExpression(e.constant, left)
    assert (e == e.without(gone)) == (e.terms == left)


@given(e=EXPRESSIONS, share=NUMBERS, by=EXPRESSIONS, point=POINTS)
def test_a_variable_is_replaced_by_a_share_of_an_expression(
    e: AffineExpression, share: Fraction, by: AffineExpression, point: list[Fraction]
) -> None:
    for v in e.variables:
        there = list(point)
        there[v] = share * value(by, point)
        assert value(e.replace(v, share, by), point) == value(e, there)


@given(e=EXPRESSIONS, ends=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=5, max_size=5))
def test_the_minimum_is_that_of_the_corners(
    e: AffineExpression, ends: list[tuple[Fraction, Fraction]]
) -> None:
    lower, upper = ({v: f(pair) for v, pair in enumerate(ends)} for f in (min, max))
    corner = [lower[v] if e.factor(v) > 0 else upper[v] for v in range(5)]
    assert e.minimum(lower, upper) == value(e, corner)


def test_long_denominators_are_shortened_and_names_change() -> None:
    e = variable(3)
    for _ in range(40):
        e = combine([(Fraction(1, 2**24), e)])
    for _ in range(40):
        e = combine([(Fraction(2**24), e)])
    assert e.as_variable == 3 and e == variable(3) and "AffineExpression" in repr(e)
    assert e.renamed([0, 0, 0, 7]).as_variable == 7
    assert e.plus_variable(5).terms == {3: 1, 5: 1} and e.plus_variable(5).as_variable is None
    assert AffineExpression().as_variable is None and AffineExpression() != 0


def test_a_product_with_constants_is_affine_over_the_reals_and_in_float32() -> None:
    """x / 3 · 0.1 + 1, entry by entry, and 2 − x in front: exact, and off by no more than its noise."""
    constants = {
        "three": np.array([3.0, -7.0], np.float32),
        "tenth": np.array([0.1], np.float32),
        "two": np.array([2.0], np.float32),
    }
    nodes = [
        helper.make_node("Sub", ["two", "x"], ["d"]),
        helper.make_node("Div", ["d", "three"], ["q"]),
        helper.make_node("Mul", ["tenth", "q"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "scaled",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(each, name) for name, each in constants.items()],
    )
    content = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    ).SerializeToString()
    network = read_onnx(content, name="scaled")
    tenth = Fraction(float(constants["tenth"][0]))
    real = piecewise_linear(network)
    assert [value(e, [Fraction(5), Fraction(11)]) for e in real.outputs] == [-tenth, tenth * 9 / 7]
    box = [Fraction(-4)] * 2, [Fraction(4)] * 2
    rounded = piecewise_linear(network, rounding=rounding_bounds(network, *box))
    for x in np.random.default_rng(0).uniform(-4, 4, (200, 2)).astype(np.float32):
        computed = constants["tenth"] * ((constants["two"] - x) / constants["three"])
        for exact, noisy, found in zip(real.outputs, rounded.outputs, computed.tolist(), strict=True):
            point = [Fraction(float(each)) for each in x]
            off = abs(Fraction(found) - value(exact, point))
            assert off <= sum(
                abs(c) * rounded.noise[v] for v, c in noisy.terms.items() if v in rounded.noise
            )
