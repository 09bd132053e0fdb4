"""ReLUs bounded in pairs: sound for any pairs, and tight enough for two copies of a network."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.check import prove
from dokimos.checker.lemmas.relu_layers import ReluLayer, relu_layers
from dokimos.checker.lemmas.relu_pairs import paired, through_difference, through_slopes
from dokimos.checker.proofs.enclosure import MOST_PIECES
from dokimos.checker.proofs.paired_relus import MOST_SUMS
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import Floats, Interval, point
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.properties.lowering import lower
from dokimos.properties.reading import read_vnnlib
from dokimos.properties.writing import write_vnnlib1
from dokimos.provers.linear_halving import prove_by_linear_halving
from dokimos.provers.paired_halving import pairs_of, prove_in_pairs
from dokimos.suites.instance import Certificate, Instance, Label
from tests.checker.files import instance_of, question
from tests.checker.statements import twins

HALF = ["1/2", "1/2"]
UNSAFE = "(or (and (<= Y_1 Y_0) (<= Y_2 Y_3)))"


def asked(seed: int, *, deep: bool = False, least: str = "0.25") -> Instance:
    """Whether a larger input, by at least that much, may lower the decision."""
    return instance_of(twins(seed, deep=deep), question([(-1, 1), (least, 1)], 4, UNSAFE))


def found(instance: Instance, **changes: Any) -> dict[str, Any]:
    property_ = read_vnnlib(instance.property_file, file="p")
    data = prove_in_pairs(read_onnx(instance.network_file), property_, seconds=60)
    assert data is not None
    return data | changes


def attempt(instance: Instance, data: dict[str, Any]) -> Fraction:
    return prove(instance, Certificate("paired-relus", data), Label.UNSAT, None).real


def values(layers: tuple[ReluLayer, ...], x: Floats) -> list[Floats]:
    """The arguments of the ReLUs, layer by layer, and the outputs."""
    made = []
    for number, layer in enumerate(layers):
        x = (np.maximum(x, 0.0) if number else x) @ layer.weights.T + layer.biases
        made.append(x)
    return made


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_copies_are_proven_in_few_pieces(seed: int, deep: bool) -> None:
    instance = asked(seed, deep=deep)
    data = found(instance)
    proven = prove(instance, Certificate("paired-relus", data), Label.UNSAT, None)
    assert proven.real > 0 and proven.float32 is not None
    alone = prove_by_linear_halving(
        read_onnx(instance.network_file), read_vnnlib(instance.property_file, file="p"), seconds=60
    )
    assert alone.data is None or len(alone.data["trees"][0]) >= len(data["trees"][0])


@pytest.mark.parametrize("seed", range(3))
def test_what_can_be_equal_is_not_proven(seed: int) -> None:
    """With the same input the copies decide the same: where both are tied, both constraints hold."""
    instance = asked(seed, least="0")
    data = {**found(asked(seed)), "trees": [[0, 1, -1, -1, 1, -1, -1]]}
    with pytest.raises(InvalidProof, match="a piece's bound"):
        attempt(instance, data)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**20), deep=st.booleans(), choice=st.data())
def test_bounds_hold_at_every_point_whatever_the_pairs(
    seed: int, deep: bool, choice: st.DataObject
) -> None:
    layers = relu_layers(read_onnx(twins(seed % 50, deep=deep)))
    rng = np.random.default_rng(seed)
    pairs, start = [], 0
    for layer in layers[:-1]:
        size = len(layer.biases)
        order = rng.permutation(size) + start
        count = choice.draw(st.integers(0, size // 2))
        pairs += [(int(order[2 * k]), int(order[2 * k + 1])) for k in range(count)]
        start += size
    ends = np.sort(rng.integers(-16, 17, (2, 3, 1, 2)) / 8, axis=0)
    try:
        over = paired(layers, pairs).over(Interval(*ends))
    except InvalidProof as error:
        assert "no float64 number" in str(error)
        return
    rows = rng.integers(-3, 4, (5, 4)).astype(np.float64)
    bounds = over.lower_bounds(point(rows), over.silent(1))
    by_slopes = over.slope_bounds(point(rows))
    assert (by_slopes <= bounds).all()
    tried = ends[0] + rng.random((3, 40, 2)) * (ends[1] - ends[0])
    tried[:, 0], tried[:, 1] = ends[0][:, 0], ends[1][:, 0]
    for k in range(3):
        made = values(layers, tried[k])
        assert (made[-1] @ rows.T >= bounds[k] - 1e-9).all()
        for arguments, bases, seen in zip(over.arguments, paired(layers, pairs).bases, made, strict=False):
            for q, p in enumerate(bases):
                shown = seen[:, q] - (seen[:, p] if p >= 0 else 0.0)
                assert (shown >= arguments.lower[k, 0, q] - 1e-9).all()
                assert (shown <= arguments.upper[k, 0, q] + 1e-9).all()


@settings(deadline=None, max_examples=100)
@given(
    factor=st.floats(-8, 8),
    first=st.floats(-4, 4),
    second=st.floats(-4, 4),
    slack=st.tuples(*[st.floats(0, 3)] * 4),
    steps=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_a_difference_is_above_its_line(
    factor: float, first: float, second: float, slack: tuple[float, ...], steps: tuple[float, float]
) -> None:
    """At every pair of arguments in their ranges, whether both are known to be on or off, or not."""
    ranges = [(first - slack[0], first + slack[1]), (second - slack[2], second + slack[3])]
    least, most = (min(r[0] for r in ranges), max(r[1] for r in ranges))
    steady = 1.0 if least >= 0 else -1.0 if most <= 0 else 0.0
    low, high = ranges[1][0] - ranges[0][1], ranges[1][1] - ranges[0][0]
    turned, shift = through_difference(
        np.array([factor]), Interval(np.array([low]), np.array([high])), np.array([steady])
    )
    e, other = (a + t * (b - a) for (a, b), t in zip(ranges, steps, strict=True))
    value = factor * (max(0.0, other) - max(0.0, e))
    assert value >= turned[0] * (other - e) + shift[0] - 1e-9


def test_slopes_show_what_lines_do_not() -> None:
    """max(0, x + d) − max(0, x) + d/4 is at least d/4: at d = 1, lines over a long range of d miss that."""
    first = ReluLayer(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.zeros(3), np.zeros(3))
    last = ReluLayer(np.array([[-1.0, 1.0, 0.25]]), np.zeros(1), np.zeros(1))
    over = paired((first, last), [(0, 1)]).over(
        Interval(np.array([[[-9.0, 1.0]]]), np.array([[[9.0, 99.0]]]))
    )
    (found,) = over.slope_bounds(point(np.eye(1)))
    assert found == pytest.approx(0.25)
    noisy = ReluLayer(first.weights, first.biases, np.full(3, 0.5))
    over = paired((noisy, last), [(0, 1)]).over(over.box)
    (found,) = over.slope_bounds(point(np.eye(1)))
    assert found == pytest.approx(0.25 - 1.0 - 0.125)


@pytest.mark.parametrize(("steady", "ends"), [(1.0, (-2.0, 3.0)), (-1.0, (0.0, 0.0)), (0.0, (-2.0, 3.0))])
def test_slopes_between_nothing_and_all(steady: float, ends: tuple[float, float]) -> None:
    wide = through_slopes(Interval(np.array([-2.0]), np.array([3.0])), np.array([steady]))
    assert (wide.lower[0], wide.upper[0]) == ends
    above = through_slopes(point(np.array([2.0])), np.array([steady]))
    assert (above.lower[0], above.upper[0]) == ((2.0, 2.0) if steady > 0 else (0.0, 0.0 if steady else 2.0))


def test_the_noise_of_both_is_that_of_their_difference() -> None:
    network = read_onnx(twins(1))
    rounding = rounding_bounds(network, (Fraction(-1), Fraction(0)), (Fraction(1), Fraction(1)))
    layers = relu_layers(network, rounding)
    pairs = pairs_of(layers)
    made = paired(layers, pairs)
    assert pairs == [(0, 3), (1, 4), (2, 5)]
    assert (made.layers[0].noise[3:] >= layers[0].noise[3:] + layers[0].noise[:3]).all()
    assert (made.layers[0].noise[:3] == layers[0].noise[:3]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": [[0, 99]]}, "beyond the network's"),
        ({"pairs": [[0, 3], [1, 3]]}, "second of two pairs"),
        ({"pairs": [[0, 3], [3, 4]]}, "first of one pair and the second"),
        ({"pairs": [], "sums": [[]]}, "a piece's bound"),
        ({"sums": [[]]}, "a piece's bound"),
        ({"sums": [[["1", "1"]]]}, "do not add up to 1"),
        ({"sums": [[["2", "-1"]]]}, "negative"),
        ({"sums": [[HALF] * (MOST_SUMS + 1)]}, "sums"),
        ({"trees": [[0, -1]]}, "ends before"),
        ({"trees": [[-1, -1]]}, "continues after"),
        ({"trees": [[2, -1, -1]]}, "no coordinate 2"),
        ({"trees": [[0] * (2 * MOST_PIECES + 1)]}, "more than"),
    ],
)
def test_what_does_not_prove_is_rejected(changes: dict[str, Any], message: str) -> None:
    instance = asked(1)
    with pytest.raises(InvalidProof, match=message):
        attempt(instance, found(instance, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"pairs": [[0, -1]]},
        {"pairs": [[0, 1, 2]]},
        {"pairs": "all"},
        {"sums": [[["1"]]]},
        {"sums": []},
        {"trees": []},
        {"trees": [[-2]]},
        {"more": 1},
    ],
)
def test_what_has_the_wrong_shape_is_unreadable(changes: dict[str, Any]) -> None:
    instance = asked(1)
    with pytest.raises(UnreadableFile):
        attempt(instance, found(instance, **changes))


def test_pairs_of_two_layers_are_rejected() -> None:
    instance = asked(1, deep=True)
    with pytest.raises(InvalidProof, match="of two layers"):
        attempt(instance, found(instance, pairs=[[0, 6]]))
    with pytest.raises(InvalidProof, match="names no unsafe output"):
        attempt(instance_of(twins(1), question([(1, -1), (0, 1)], 4, UNSAFE)), found(asked(1)))


def test_networks_that_are_not_alike_have_no_pairs() -> None:
    rng = np.random.default_rng(0)
    layers = tuple(
        ReluLayer(rng.normal(size=shape), np.zeros(shape[0]), np.zeros(shape[0]))
        for shape in ((6, 4), (6, 6), (2, 6))
    )
    assert pairs_of(layers) == []


TWO = """(vnnlib-version <2.0>)
(declare-network f (declare-input X real [1,2]) (declare-output Y real [1,2]))
(declare-network g (equal-to f) (declare-input U real [1,2]) (declare-output V real [1,2]))
(assert (>= X[0,0] -1.0)) (assert (<= X[0,0] 1.0)) (assert (>= U[0,0] -1.0)) (assert (<= U[0,0] 1.0))
(assert (>= X[0,1] 0.0)) (assert (<= X[0,1] 1.0)) (assert (== X[0,1] U[0,1]))
(assert (>= U[0,1] 0.0)) (assert (<= U[0,1] 1.0)) (assert (<= (+ X[0,0] LEAST) U[0,0]))
(assert (<= Y[0,1] Y[0,0])) (assert (<= V[0,0] V[0,1]))
"""


def lowered_pair(least: str) -> Instance:
    """A property of two networks, as one network: side by side, and the inputs that conditions are on."""
    rng = np.random.default_rng(3)
    weights, biases = rng.integers(-8, 9, (4, 2)) / 8, rng.integers(-8, 9, 4) / 8
    weights[0], biases[0] = [1.0, 0.0], 2.0
    inner = rng.integers(-4, 5, (3, 4)) / 16
    inner[0] = [1.0, 0.0, 0.0, 0.0]
    head = np.array([[3.0, 0.5, -0.5], [0.0, 0.0, 0.0]])
    builder = ModelBuilder([2]).affine(weights, biases).relu().affine(inner, np.array([0.0, 0.25, 0.25]))
    network = builder.relu().affine(head, np.array([0.0, 6.0])).build(2)
    property_ = read_vnnlib(TWO.replace("LEAST", least).encode(), file="two")
    made = lower(property_, {"f": network})
    return instance_of(made.network, write_vnnlib1(made.property).encode())


def test_a_property_of_two_networks_is_proven_too() -> None:
    instance = lowered_pair("0.5")
    assert len(relu_layers(read_onnx(instance.network_file))) == 3
    data = found(instance)
    proven = prove(instance, Certificate("paired-relus", data), Label.UNSAT, None)
    assert proven.real > 0 and proven.float32 is not None
    with pytest.raises(InvalidProof):
        attempt(lowered_pair("-0.5"), data)
