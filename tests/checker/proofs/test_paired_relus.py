"""ReLUs bounded in pairs: sound for any pairs, and tight enough for two copies of a network."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.check import prove
from dokimos.checker.lemmas.relu_layers import HalfSpaces, ReluLayer, relu_layers
from dokimos.checker.proofs.enclosure import MOST_PIECES
from dokimos.checker.proofs.paired_relus import (
    MOST_SUMS,
    MOST_USED,
    bounding,
    paired,
    through_difference,
    through_slopes,
)
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.engine.paired_halving import pairs_of, prove_in_pairs
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import Floats, Interval, point
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate, Instance, Label
from dokimos.suites.lower import lower
from dokimos.suites.vnnlib.model import Linear
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import write_vnnlib1
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
        ({"pairs": [], "sums": [[]], "used": []}, "a piece's bound"),
        ({"sums": [[]], "used": []}, "a piece's bound"),
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


INSIDE = "(or (and (<= Y_1 Y_0) (<= Y_2 Y_3) (<= (+ X_0 X_1) 1.0)))"


def within(seed: int, *, unsafe: str = INSIDE, network: bytes | None = None) -> Instance:
    """The same of a network that rises up to 5/4 only, asked about inputs up to 1."""
    content = twins(seed, falls=True) if network is None else network
    return instance_of(content, question([(-1, 1), ("0.25", 1)], 4, unsafe))


@pytest.mark.parametrize("seed", range(3))
def test_a_constraint_on_inputs_keeps_the_other_copy_in_its_domain(seed: int) -> None:
    instance = within(seed)
    data = found(instance)
    proven = prove(instance, Certificate("paired-relus", data), Label.UNSAT, None)
    assert proven.float32 is not None and 0 < proven.real <= Fraction(data["slack"])
    loose = found(instance, slack="1/64")
    assert Fraction(data["slack"]) < attempt(instance, loose) <= Fraction(1, 64)
    for damage in ({"used": []}, {"used": [[]]}, {"used": [[0, 1]]}, {"slack": "2"}):
        with pytest.raises(InvalidProof, match="a piece's bound"):
            attempt(instance, data | damage)


def test_a_proof_that_uses_constraints_is_one_of_these_only() -> None:
    """Moved bounds, other weights, the other sign, and no constraint at all: rejected."""
    data = found(within(1))
    steeper = twins(1, falls=True).replace(
        np.float32(-1.25).tobytes(), np.float32(-0.25).tobytes()
    )  # it falls from 1/4 on
    assert steeper != twins(1, falls=True)
    for instance in (
        within(1, unsafe=INSIDE.replace("1.0", "1.75")),
        within(1, unsafe=INSIDE.replace("(<= (+ X_0 X_1) 1.0)", "(>= (+ X_0 X_1) 1.0)")),
        within(1, unsafe=INSIDE.replace("(<= (+ X_0 X_1) 1.0)", "(<= (+ X_0 (* -1.0 X_1)) 1.0)")),
        within(1, unsafe=INSIDE.replace("(<= Y_2 Y_3)", "(<= Y_3 Y_2)")),
        within(1, network=steeper),
    ):
        with pytest.raises(InvalidProof, match="a piece's bound"):
            attempt(instance, data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slack": "0"}, "not above 0"),
        ({"slack": "-1/2"}, "not above 0"),
        ({"used": [[3]]}, "no number 3"),
        ({"used": [[2] * (MOST_USED + 1)]}, "more than"),
        ({"trees": [[0, -1]]}, "ends before"),
    ],
)
def test_what_is_used_must_be_there_with_room(changes: dict[str, Any], message: str) -> None:
    instance = within(1)
    with pytest.raises(InvalidProof, match=message):
        attempt(instance, found(instance, **changes))


@pytest.mark.parametrize("changes", [{"used": [[0], [0]]}, {"used": [[-1]]}, {"used": 1}, {"slack": 0.5}])
def test_what_is_used_has_its_shape(changes: dict[str, Any]) -> None:
    instance = within(1)
    with pytest.raises(UnreadableFile):
        attempt(instance, found(instance, **changes))


@pytest.mark.no_cover
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**20), deep=st.booleans(), slack=st.sampled_from([0, 1, 20]))
def test_bounds_hold_at_every_point_that_satisfies_what_is_used(seed: int, deep: bool, slack: int) -> None:
    """Whatever the constraints on inputs and outputs: at the points that satisfy them."""
    rng = np.random.default_rng(seed)
    layers = relu_layers(read_onnx(twins(seed % 50, deep=deep, falls=not deep)))
    ends = np.sort(rng.integers(-16, 17, (2, 3, 1, 2)) / 8, axis=0)
    tried = ends[0] + rng.random((3, 60, 2)) * (ends[1] - ends[0])
    inputs, outputs = rng.integers(-2, 3, (4, 2)), rng.integers(-1, 2, (4, 4)) * rng.integers(0, 2, (4, 1))
    made = [values(layers, each) for each in tried]
    left = [each @ inputs.T + own[-1] @ outputs.T for each, own in zip(tried, made, strict=True)]
    bounds = [Fraction(int(8 * np.median(each)) + slack, 8) for each in np.concatenate(left).T]
    known = tuple(
        Linear(_terms(i), _terms(o), bound) for i, o, bound in zip(inputs, outputs, bounds, strict=True)
    )
    over = bounding(paired(layers, pairs_of(layers)), known)(Interval(*ends))
    rows = rng.integers(-3, 4, (5, 4)).astype(np.float64)
    found = over.lower_bounds(point(rows), over.silent(1))
    for k in range(3):
        kept = (left[k] <= np.array([float(b) for b in bounds])).all(axis=1)
        assert ((made[k][-1] @ rows.T >= found[k] - 1e-9).all(axis=1) | ~kept).all()
        for arguments, seen in zip(over.plain.arguments, made[k], strict=False):
            assert ((seen >= arguments.lower[k, 0] - 1e-9).all(axis=1) | ~kept).all()
            assert ((seen <= arguments.upper[k, 0] + 1e-9).all(axis=1) | ~kept).all()


def _terms(row: Any) -> tuple[tuple[int, Fraction], ...]:
    return tuple((k, Fraction(int(c))) for k, c in enumerate(row) if c)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**20), size=st.integers(1, 5), sides=st.integers(1, 3))
def test_half_spaces_raise_bounds_and_stay_below_what_is_there(seed: int, size: int, sides: int) -> None:
    """Exactly: rows·x >= rows'·x + shift − lost at every point of the box in the half-spaces."""
    rng = np.random.default_rng(seed)
    box = Interval(*np.sort(rng.normal(size=(2, 1, size)) * 10.0 ** rng.integers(-3, 4), axis=0))
    factors = rng.normal(size=(sides, size)) * 10.0 ** rng.integers(-3, 4)
    x = box.lower[0] + rng.random(size) * (box.upper - box.lower)[0]
    limits = np.array([float(_product(f, x)) for f in factors]) + rng.random(sides)
    rows = rng.normal(size=(4, size))
    turned, shift, lost = HalfSpaces(factors, limits).added(rows, box)
    for row, new, moved, loss in zip(rows, turned, shift, lost, strict=True):
        assert _product(row, x) >= _product(new, x) + Fraction(moved) - Fraction(loss)
        assert loss <= 1e-9 * (1.0 + np.abs(new).max() + np.abs(moved)) * (1.0 + box.magnitude.max())


def _product(a: Floats, b: Floats) -> Fraction:
    return sum(
        (Fraction(p) * Fraction(q) for p, q in zip(a.tolist(), b.tolist(), strict=True)), Fraction(0)
    )


def test_a_half_space_gives_the_bound_of_its_knapsack() -> None:
    """The sum of two inputs, 0..20 and 1..20, is at most 20 where a half-space says so, else 40."""
    box = Interval(np.array([[0.0, 1.0]]), np.array([[20.0, 20.0]]))
    half = HalfSpaces(np.array([[1.0, 1.0]]), np.array([20.0]))
    for rows, least in (
        ([-1.0, -1.0], -20.0),
        ([1.0, 1.0], 1.0),
        ([-3.0, -1.0], -58.0),
        ([0.0, -2.0], -40.0),
    ):
        turned, shift, _ = half.added(np.array([rows]), box)
        corner = np.minimum(turned * box.lower, turned * box.upper).sum()
        assert corner + shift[0] == pytest.approx(least)


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
