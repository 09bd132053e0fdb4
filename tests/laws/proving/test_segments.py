"""Decisions along segments and near rows: those of the network at every point that is tried."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from dokimos.laws.studies.domains.mnist import blur_batch, blurred

from dokimos.checker.lemmas.relu_layers import ReluLayer, relu_layers
from dokimos.laws.proving.network_closing import NetworkReach
from dokimos.laws.proving.picture_zones import possible_decisions
from dokimos.laws.proving.segments import SegmentReach
from dokimos.networks.reading.onnx_file import read_onnx
from tests.laws.proving.small import domain
from tests.laws.proving.test_networks import network


def _reach(content: bytes) -> NetworkReach:
    layout = domain().layout
    assert layout is not None
    return NetworkReach(content, layout, name="n")


@pytest.mark.parametrize("seed", range(4))
def test_every_point_of_a_segment_has_the_decision_of_its_piece(seed: int) -> None:
    content = network(seed, hidden=6)
    rng = np.random.default_rng(seed)
    ends = [[Fraction(int(v)) for v in rng.integers(-9, 10, 5)] for _ in range(2)]
    found = SegmentReach(relu_layers(read_onnx(content, name="n"))).decisions(*ends)
    assert found[0].low == found[0].high == 0 and found[-1].low == found[-1].high == 1
    assert [each.high for each in found[:-1]] == [each.low for each in found[1:]]
    assert [each.low == each.high for each in found] == [k % 2 == 0 for k in range(len(found))]
    reach = _reach(content)
    for each in found:
        for share in (Fraction(1, 1000), Fraction(1, 2), Fraction(999, 1000)):
            at = each.low + share * (each.high - each.low)
            columns = [a + at * (b - a) for a, b in zip(*ends, strict=True)]
            assert reach.decided(columns) == each.decision
    assert len(found) > 3


def test_a_tie_at_a_breakpoint_goes_to_the_first_class() -> None:
    """Scores s and 1/2: the first class has the larger one from 1/2 on, the point itself included."""
    layer = ReluLayer(np.array([[1.0], [0.0]]), np.array([0.0, 0.5]), np.zeros(2))
    found = SegmentReach([layer]).decisions([Fraction(0)], [Fraction(1)])
    assert [(each.low, each.high, each.decision) for each in found] == [
        (0, 0, 1),
        (0, Fraction(1, 2), 1),
        (Fraction(1, 2), Fraction(1, 2), 0),
        (Fraction(1, 2), 1, 0),
        (1, 1, 0),
    ]
    with pytest.raises(ValueError, match="exactly"):
        SegmentReach([ReluLayer(layer.weights, layer.biases, np.array([0.0, 1e-9]))])


def test_no_decision_in_a_box_is_ruled_out_that_is_taken_there() -> None:
    content = network(2, hidden=6)
    layers, reach, rng = (
        relu_layers(read_onnx(content, name="n")),
        _reach(content),
        np.random.default_rng(3),
    )
    ruled_out = 0
    for _ in range(20):
        middle = rng.integers(-4, 5, 5).astype(np.float64)
        can = possible_decisions(layers, middle[None] - 0.25, middle[None] + 0.25)[0]
        ruled_out += int((~can).sum())
        for _ in range(20):
            x = middle + rng.integers(-64, 65, 5) / 256
            decided = reach.decided([Fraction(float(v)) for v in x])
            assert decided is not None and can[decided]
    assert ruled_out > 10


def test_a_blurred_picture_before_it_is_rounded() -> None:
    picture = np.random.default_rng(0).integers(0, 256, 784).astype(np.int16)
    exact = blurred(picture)
    rounded = blur_batch(picture[None])[0]
    assert all(abs(a - int(b)) <= Fraction(1, 2) for a, b in zip(exact, rounded, strict=True))
