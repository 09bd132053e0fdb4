"""Differences of ReLUs: planes and intervals hold wherever they are asked, and pairs change no network."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.base import Problem
from dokimos.checker.linear.lines import DIFFERENCE, difference_interval, difference_lines
from dokimos.checker.linear.proof import LinearProof
from dokimos.checker.linear.rewrites import in_pairs
from dokimos.checker.linear.walk import BoundedNetwork, BoxRegions, steps_of
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.semantics.interval import INTERVAL_RULES
from dokimos.networks.semantics.outward import Floats, Interval, down, point, up
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.checker.files import model, question
from tests.checker.statements import twins

#: Ends of every kind: beside and across 0, tiny, equal, huge.
ENDS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-300, 0.5, -0.5, 1e150, -1e150, 2.0**53]),
    st.floats(-4, 4),
    st.floats(-1e200, 1e200, allow_nan=False),
)
CHOICES = st.sampled_from([0.0, 1.0, 0.5, 127 / 254, np.nan, -3.0, 7.0, np.inf, -np.inf])


def exact(x: object) -> Fraction:
    return Fraction(float(np.asarray(x).item()))


def relu(x: Fraction) -> Fraction:
    return max(Fraction(0), x)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Interval, Interval, Interval, list[tuple[Fraction, Fraction]]]:
    """Intervals of a − b, a and b, the first perhaps narrower than the others tell, with points in all."""
    ends = [sorted(draw(st.tuples(ENDS, ENDS))) for _ in range(2)]
    if draw(st.booleans()):
        ends[draw(st.integers(0, 1))] = [0.0, 0.0]
    a, b = (Interval(np.array([low]), np.array([high])) for low, high in ends)
    shares = [draw(st.tuples(*[st.sampled_from([0, 1, 2, 3, 4])] * 2)) for _ in range(6)]
    pairs = [
        tuple(
            Fraction(low) + (Fraction(high) - Fraction(low)) * share / 4
            for (low, high), share in zip(ends, each, strict=True)
        )
        for each in shares
    ]
    points = [(x, y) for x, y in pairs]
    if draw(st.booleans()):
        points = points[: draw(st.integers(1, 3))]
        apart = [x - y for x, y in points]
    else:
        apart = [Fraction(ends[0][0]) - Fraction(ends[1][1]), Fraction(ends[0][1]) - Fraction(ends[1][0])]
    near = np.array([float(min(apart))]), np.array([float(max(apart))])
    return Interval(down(near[0]), up(near[1])), a, b, points


@settings(deadline=None, max_examples=300)
@given(drawn=asked(), choice=CHOICES)
def test_planes_and_intervals_hold_at_every_point(
    drawn: tuple[Interval, Interval, Interval, list[tuple[Fraction, Fraction]]], choice: float
) -> None:
    d, a, b, points = drawn
    known = difference_interval(d, a, b)
    try:
        lower, upper = difference_lines(d, a, b, np.array([choice]))
    except InvalidProof:
        lower = upper = None  # type: ignore[assignment]
    for x, y in points:
        value = relu(x) - relu(y)
        assert exact(known.lower) <= value <= exact(known.upper)
        if lower is not None:
            below, above = (
                sum((exact(p) * v for p, v in zip(plane, (x - y, x, y, 1), strict=True)), Fraction(0))
                for plane in (lower, upper)
            )
            assert below <= value <= above


def test_planes_of_a_wide_pair_are_those_of_its_difference() -> None:
    """a and b in [−9, 9], a − b in [0, 1]: w lies in [0, 1], and its planes leave no more than that."""
    wide, d = Interval(np.array([-9.0]), np.array([9.0])), Interval(np.array([0.0]), np.array([1.0]))
    lower, upper = difference_lines(d, wide, wide, np.array([np.nan]))
    assert [part.item() for part in lower] == pytest.approx([0.0] * 4)
    assert [part.item() for part in upper] == pytest.approx([1.0, 0.0, 0.0, 0.0])
    steady = Interval(np.array([1.0]), np.array([9.0]))
    for both in difference_lines(d, steady, steady, np.array([0.25])):
        assert [part.item() for part in both] == [1.0, 0.0, 0.0, 0.0]
    off = Interval(np.array([-9.0]), np.array([0.0]))
    for both in difference_lines(d, off, off, np.array([0.25])):
        assert [part.item() for part in both] == [0.0] * 4


def test_infinite_differences_have_no_planes() -> None:
    huge = Interval(np.array([-1.7e308]), np.array([1.7e308]))
    d = Interval(np.array([-np.inf]), np.array([np.inf]))
    with pytest.raises(InvalidProof, match=DIFFERENCE):
        difference_lines(d, huge, huge, np.array([np.nan]))


def pairs_among(rng: np.random.Generator, size: int) -> list[tuple[int, int]]:
    """Random pairs of which no second is a first; several may share their first."""
    order = rng.permutation(size)
    firsts = order[: max(1, size // 3)]
    return [(int(rng.choice(firsts)), int(q)) for q in order[len(firsts) :] if rng.random() < 0.7]


@settings(deadline=None, max_examples=80)
@given(shape=st.lists(st.integers(1, 3), min_size=0, max_size=4), seed=st.integers(0, 2**32 - 1))
def test_parts_compute_the_relu_whatever_the_pairs(shape: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape, dtype=int))
    bases = np.full(size, -1, dtype=np.int64)
    for p, q in pairs_among(rng, size):
        bases[q] = p
    parts = in_pairs(Node("Relu", ("x",), "y"), {"x": tuple(shape), "y": tuple(shape)}, (), bases)
    values: dict[str, Floats] = {"x": rng.integers(-9, 10, shape).astype(np.float64)}
    for node in parts.nodes:
        given = [values[name] for name in node.inputs]
        if node.op == DIFFERENCE:
            assert (given[0] == given[1] - given[2]).all()
            values[node.output] = np.maximum(given[1], 0.0) - np.maximum(given[2], 0.0)
        else:
            found = INTERVAL_RULES[node.op](node, [point(each) for each in given])
            values[node.output] = np.rint(found.lower)
            assert (np.abs(found.upper - found.lower) < 1e-9).all()
    assert (values["y"] == np.maximum(values["x"], 0.0)).all()
    assert values["y"].shape == tuple(shape)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**20), deep=st.booleans())
def test_bounds_hold_at_every_point_whatever_the_pairs(seed: int, deep: bool) -> None:
    rng = np.random.default_rng(seed)
    network = read_onnx(twins(seed % 50, deep=deep))
    first, second = np.sort(rng.integers(-16, 17, (2, 2)) / 8, axis=0)
    pairs = pairs_among(rng, 6)
    steps = steps_of(network, pairs=pairs)
    own = {name: rng.random((1, *shape)) for name, shape in steps.units.items()}
    refined = {name: (own, {}) for name in steps.tensors[1:] if rng.random() < 0.6}
    over = BoundedNetwork(steps, Interval(first, second), refined=refined, ulps=None)
    size = network.output_size
    rows = np.vstack([np.eye(size), -np.eye(size)]).reshape(1, 2 * size, *network.shapes[network.output])
    goals = {network.output: rows}
    walked, facts = over.lower_bounds(goals, BoxRegions(1), own)[0], over.by_facts(goals, BoxRegions(1))[0]
    for share in ((0, 0), (1, 1), (0, 1), (1, 0), *rng.random((4, 2))):
        x = first + np.array(share) * (second - first)
        seen = evaluate(network, [Fraction(float(each)) for each in x])
        for k in range(size):
            for bounds in (walked, facts):
                assert Fraction(bounds[k]) <= seen.upper[k] and seen.lower[k] <= -Fraction(bounds[size + k])


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_choice_proves_a_bound_that_is_reached(seed: int) -> None:
    """Random pairs, trees and own boxes for a label that a point of the box makes false."""
    rng = np.random.default_rng(seed)
    content = twins(seed % 50, deep=bool(seed % 2))
    network = read_onnx(content)
    x = [Fraction(int(k), 8) for k in rng.integers(-8, 9, 2)]
    reached = evaluate(network, x).upper[0]
    level = Fraction(round(reached * 2**20) + 1, 2**20)
    unsafe = f"(<= Y_0 {float(level):.20f})"
    tree = [[-1], [0, -1, -1], [1, 0, -1, -1, -1]][int(rng.integers(3))]
    data = {
        "questions": [{"tree": tree, "own": bool(rng.random() < 0.5), "refined": [1, 5]}],
        "pairs": [list(pair) for pair in pairs_among(rng, 6)],
    }
    property_ = read_vnnlib(question([(-1, 1)] * 2, network.output_size, unsafe), file="p")
    with pytest.raises(InvalidProof):
        LinearProof().prove(Problem(network, property_), data)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_own_boxes_are_bounded_below_every_value_in_them(seed: int) -> None:
    """The margin over random trees of halvings is below the margin at every point of a grid."""
    rng = np.random.default_rng(seed)
    weights = {
        "w": rng.integers(-4, 5, (2, 3)) / 4,
        "v": rng.integers(-4, 5, (3, 1)) / 4,
        "s": [[0, 1], [1, 0]],
        "o": [[1], [1]],
    }
    op = str(rng.choice(["Relu", "Tanh", "Sigmoid", "Exp", "Floor", "Sin", "Erf"]))
    nodes = [
        ("MatMul", ["X", "w"], "z"),
        (op, ["z"], "h"),
        ("MatMul", ["h", "v"], "a"),
        ("MatMul", ["X", "s"], "t"),
        ("Mul", ["X", "t"], "p"),
        ("MatMul", ["p", "o"], "q"),
        ("Add", ["a", "q"], "Y"),
    ]
    network = read_onnx(model(nodes, weights, [1, 2], [1, 1]))
    ticks = [Fraction(k, 2) for k in range(-2, 3)]
    least = min(evaluate(network, (a, b)).lower[0] for a in ticks for b in ticks)
    level = Fraction(round(least * 2**12) - int(rng.integers(-64, 4096)), 2**12)

    def grown(depth: int) -> list[int]:
        if depth == 0 or rng.random() < 0.2:
            return [-1]
        return [int(rng.integers(2)), *grown(depth - 1), *grown(depth - 1)]

    asked = read_vnnlib(question([(-1, 1)] * 2, 1, f"(<= Y_0 {float(level):.12f})"), file="p")
    data = {"questions": [{"tree": grown(4), "own": True}]}
    try:
        proven = LinearProof().prove(Problem(network, asked), data)
    except InvalidProof:
        return
    assert 0 < proven.real <= least - level + Fraction(1, 2**20)
    assert proven.floats is None or proven.floats <= proven.real


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 99)], "beyond the network's"),
        ([(99, 0)], "not of one tensor"),
        ([(0, 3), (1, 3)], "second of two pairs"),
        ([(0, 3), (3, 4)], "first of one and second"),
        ([(2, 2)], "first of one and second"),
        ([(0, 6)], "not of one tensor"),
        ([(6, 0)], "not of one tensor"),
    ],
)
def test_what_is_no_pair_is_refused(pairs: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(InvalidProof, match=message):
        steps_of(read_onnx(twins(1, deep=True)), pairs=pairs)
