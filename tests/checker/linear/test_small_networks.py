"""Random covers of small ReLU networks, any choices: what is accepted is true, by z3 and on grids."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.check import prove
from dokimos.constructions.draft import float32_above, float32_below
from dokimos.core.errors import InvalidProof
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Certificate, Label
from dokimos.suites.vnnlib.writer import exact_decimal
from tests.checker.files import instance_of, question
from tests.checker.small_networks import SmallReluNetwork
from tests.fuzz.kinds import linear_data


def drawn(small: SmallReluNetwork, rng: np.random.Generator, constraints: int = 1) -> Certificate:
    """Any cover with any choices."""
    return Certificate("linear", linear_data(read_onnx(small.instance().network_file), rng, constraints))


def attempt(small: SmallReluNetwork, certificate: Certificate) -> Fraction:
    return prove(small.instance(), certificate, Label.UNSAT, None).real


def exact_question(small: SmallReluNetwork) -> z3.Solver:
    """Is there a point of the box with margin <= 0? In real arithmetic, by z3."""
    solver = z3.Solver()
    values = [z3.Real(f"x{i}") for i in range(len(small.layers[0][0][0]))]
    radius = z3.Q(small.radius.numerator, small.radius.denominator)
    solver.add(*(z3.And(-radius <= x, x <= radius) for x in values))
    for number, (rows, biases) in enumerate(small.layers):
        values = [z3.If(v > 0, v, 0) for v in values] if number else values
        values = [
            sum(
                (z3.Q(w.numerator, w.denominator) * v for w, v in zip(row, values, strict=True)),
                z3.Q(b.numerator, b.denominator),
            )
            for row, b in zip(rows, biases, strict=True)
        ]
    solver.add(values[0] <= values[1])
    return solver


@pytest.mark.no_cover
def test_whatever_is_chosen_what_is_proven_is_true() -> None:
    """Accepted labels hold by z3, and their margins are below every value on the grid."""
    accepted = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        small = SmallReluNetwork.draw(rng)
        lifted = small.lifted(float32_above(2 * abs(small.grid_minimum()) + int(rng.integers(1, 20))))
        try:
            margin = attempt(lifted, drawn(lifted, rng))
        except InvalidProof:
            continue
        assert 0 < margin <= lifted.grid_minimum()
        assert exact_question(lifted).check() == z3.unsat
        accepted += 1
    assert accepted >= 10


@pytest.mark.no_cover
@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_cover_proves_a_false_label(seed: int) -> None:
    """The margin is not positive on the grid, so the label is false, whatever the certificate says."""
    rng = np.random.default_rng(seed)
    small = SmallReluNetwork.draw(rng)
    false = small.lifted(float32_below(-small.grid_minimum()))
    assert false.grid_minimum() <= 0
    with pytest.raises(InvalidProof):
        attempt(false, drawn(false, rng))


@pytest.mark.no_cover
def test_the_float32_margin_is_below_what_the_runtime_computes() -> None:
    checked = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        small = SmallReluNetwork.draw(rng)
        lifted = small.lifted(float32_above(4 * abs(small.grid_minimum()) + 30))
        instance = lifted.instance()
        try:
            proven = prove(instance, drawn(lifted, rng), Label.UNSAT, None)
        except InvalidProof:
            continue
        assert proven.floats is not None
        assert proven.floats < proven.real
        size = float(small.radius)
        points = rng.uniform(-size, size, size=(200, 2)).astype(np.float32)
        outputs = replay(instance.network_file, points).astype(np.float64)
        assert float(proven.floats) <= (outputs[:, 0] - outputs[:, 1]).min()
        checked += 1
    assert checked >= 5


@pytest.mark.no_cover
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_weights_prove_what_is_false(seed: int) -> None:
    """Two constraints that hold together at a point of the box, whatever their weights and the cover."""
    rng = np.random.default_rng(seed)
    small = SmallReluNetwork.draw(rng)
    point = [Fraction(int(rng.integers(-4, 5)), 4) * small.radius for _ in range(2)]
    y = small.outputs(point)
    bounds = [float32_above(y[0] + Fraction(1, 8)), float32_above(y[1] + Fraction(1, 8))]
    written = [f"(<= Y_{j} {exact_decimal(bound)})" for j, bound in enumerate(bounds)]
    side = exact_decimal(small.radius)
    asked = question([(f"-{side}", side)] * 2, 2, *written)
    with pytest.raises(InvalidProof):
        prove(instance_of(small.instance().network_file, asked), drawn(small, rng, 2), Label.UNSAT, None)
