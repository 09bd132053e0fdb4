"""The families behind a gate: one number apart, at most what they wrap, and hidden from gradients."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dokimos.constructions.draft import violations
from dokimos.constructions.families.ops import caught, draw_range
from dokimos.constructions.operators import VARIANTS
from dokimos.constructions.operators.extremes import EXTREMES
from dokimos.constructions.operators.sketch import HIDING, STEEPNESS, Gate, draw_gate
from dokimos.constructions.recipes import shipped_recipe
from dokimos.engine.attacks.base import Budget
from dokimos.engine.attacks.gradients import PGD
from dokimos.engine.runtimes.cross_check import require_agreement
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.vnnlib.model import Box
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.constructions.siblings import Pair, differing_weights, draw, truth_of

#: Smooth and piecewise, one and several inputs, both ends.
SAMPLE = [
    ("relaxations", "tanh-tilted", "upper"),
    ("relaxations", "relu-difference", "upper"),
    ("relaxations", "max-pool-pads", "lower"),
    ("relaxations", "square-tilted", "lower"),
    ("relaxations", "scatter-nd", "upper"),
    ("wrapped-ops", "conv-dilated", "upper"),
    ("wrapped-ops", "sub-constant-first", "lower"),
    ("wrapped-ops", "several-outputs", "upper"),
]


def pair_of(family: str, variant: str, end: str) -> Pair:
    return draw(family, variant=variant, end=end)


@pytest.mark.parametrize(("family", "variant", "end"), SAMPLE)
def test_siblings_differ_in_one_number_and_no_runtime_contradicts_them(
    family: str, variant: str, end: str
) -> None:
    pair = pair_of(family, variant, end)
    assert differing_weights(pair) == 1
    for each in pair:
        require_agreement(each.instance, truth_of(each))


@pytest.mark.parametrize(("family", "variant", "end"), SAMPLE)
def test_the_counterexample_is_hidden(family: str, variant: str, end: str) -> None:
    """From plain gradient descent 100 × 100, the centre, corners and 10,000 samples."""
    _, twin = pair_of(family, variant, end)
    asked = read_vnnlib(twin.instance.property_file, file="p")
    (case,) = asked.cases
    network = read_onnx(twin.instance.network_file)
    found = PGD(corners=0.0, scales=(1.0,))(network, asked, seed=5, budget=Budget(restarts=100, steps=100))
    assert found.least_margin > 0
    lower, upper = (np.array([float(x) for x in end]) for end in (case.box.lower, case.box.upper))
    rng = np.random.default_rng(6)
    corners = np.where(rng.random((4096, len(lower))) < 0.5, lower, upper)
    points = np.vstack([(lower + upper) / 2, corners, rng.uniform(lower, upper, (10_000, len(lower)))])
    assert not violations(replay(twin.instance.network_file, points.astype(np.float32)), asked).any()


@pytest.mark.parametrize(("family", "variant", "end"), SAMPLE)
def test_away_from_the_hidden_point_nothing_is_unsafe(family: str, variant: str, end: str) -> None:
    """The witness is one; the same with any hiding input moved by 1/K is none."""
    _, twin = pair_of(family, variant, end)
    asked = read_vnnlib(twin.instance.property_file, file="p")
    network, witness = read_onnx(twin.instance.network_file), truth_of(twin).witness
    assert witness is not None

    def unsafe(point: tuple[Fraction, ...]) -> bool:
        return asked.unsafe(point, evaluate(network, point).upper)

    assert unsafe(witness)
    for place in range(HIDING):
        moved = list(witness)
        moved[place] += Fraction(1, STEEPNESS) * (-1 if moved[place] > 0 else 1)
        assert not unsafe(tuple(moved))


def test_a_gate_only_lowers() -> None:
    gate = Gate((Fraction(9, 64), Fraction(-21, 64), Fraction(33, 64)), Fraction(3))
    sketch = gate.sketch((1, 1), seed=0)
    network = sketch.build(gate.attached(sketch, sketch("Identity", "X"), 1, Fraction(1, 2)), 1)
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-1, 1, (500, HIDING + 1)).astype(np.float32)
    inputs[:100, :HIDING] = [float(x) for x in gate.point] + rng.uniform(-0.02, 0.02, (100, HIDING))
    outputs = replay(network, inputs)[:, 0]
    distance = np.abs(inputs[:, :HIDING] - [float(x) for x in gate.point]).sum(axis=1)
    expected = inputs[:, HIDING] + 0.5 - 3 * np.minimum(1, STEEPNESS * distance)
    assert np.allclose(outputs, expected, atol=1e-5)
    assert (outputs <= inputs[:, HIDING] + 0.5).all()
    assert gate.box(Box((Fraction(0),), (Fraction(2),))).size == HIDING + 1


def test_hidden_points_are_no_middles() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        point = draw_gate(rng, Fraction(1)).point
        assert all(1 / 16 < abs(x) < 1 and x.denominator == 64 for x in point)


def test_a_misreading_that_lowers_an_end_is_counted_there() -> None:
    drawn = draw_range(VARIANTS["sub-constant-first"], 0.125, np.random.default_rng(3))
    assert caught(drawn, 1) + caught(drawn, -1) > 0


def test_the_suites_have_every_variant_at_both_ends() -> None:
    for name, variants in (("relaxations", EXTREMES), ("wrapped-ops", VARIANTS)):
        drawn = {(draw.knobs["variant"], draw.knobs["end"]) for draw in shipped_recipe(name).draws}
        assert drawn == {(variant, end) for variant in variants for end in ("upper", "lower")}
