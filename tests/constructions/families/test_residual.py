"""The residual family: blocks that move no points apart, all ReLUs at their kink, and a tight twin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dokimos
from dokimos.checker import check
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.semantics.interval import enclose
from tests.constructions.siblings import (
    assert_another_knob_gives_other_files,
    assert_both_are_proven,
    assert_well_hidden,
    box_of,
    differing_weights,
    draw,
    draw_anew,
    margin_of,
    proven_in_float32,
    truth_of,
)

FAMILY = "residual"
SMALL: dict[str, Any] = {"size": 4, "colours": 2, "stages": 1, "blocks": 2, "taps": 4}
OTHER_KNOBS: dict[str, Any] = {
    "size": 8,
    "colours": 3,
    "stages": 2,
    "blocks": 3,
    "hidden": 1,
    "taps": 6,
    "reach": 0,
    "pairs": 0,
    "slack": 0.2,
    "epsilon": 0.125,
    "classes": 5,
}


def test_both_siblings_are_proven_for_both_semantics() -> None:
    pair = draw(FAMILY)
    assert_both_are_proven(pair)
    assert differing_weights(pair) == 1
    assert_well_hidden(pair[1])


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, again, other = (draw_anew(FAMILY, seed, **SMALL) for seed in (5, 5, 6))
    assert [x.instance for x in first] == [x.instance for x in again]
    assert first[0].instance.network_file != other[0].instance.network_file


@pytest.mark.parametrize("name", OTHER_KNOBS)
def test_every_knob_changes_the_instance_and_keeps_it_proven(name: str) -> None:
    other = draw(FAMILY, **{**SMALL, name: OTHER_KNOBS[name]})
    assert_another_knob_gives_other_files(draw(FAMILY, **SMALL), other)


def test_every_relu_of_a_block_is_at_its_kink_at_the_centre() -> None:
    robust, _ = draw(FAMILY, **SMALL, pairs=0)
    network, box = read_onnx(robust.instance.network_file, name="net"), box_of(robust.instance)
    at_centre = enclose(network, box.centre, box.centre)
    over_box = enclose(network, box.lower, box.upper)
    for node in network.nodes:
        if node.op == "Relu":
            here, around = at_centre[node.inputs[0]], over_box[node.inputs[0]]
            assert abs(here.lower).max() < 1e-9 and abs(here.upper).max() < 1e-9
            assert ((around.lower < 0) & (around.upper > 0)).mean() > 0.9


def test_the_theorem_is_tight_and_intervals_are_nowhere_near() -> None:
    """In the corner that the twin's witness points to, the lead is what the proof leaves, hardly more."""
    robust, twin = draw(FAMILY, **SMALL, slack=0.001, classes=2)
    network, box = read_onnx(robust.instance.network_file, name="net"), box_of(robust.instance)
    witness = truth_of(twin).witness
    assert witness is not None
    corner = tuple(
        a if x < c else b for a, b, c, x in zip(box.lower, box.upper, box.centre, witness, strict=True)
    )
    scores = evaluate(network, corner).lower
    assert margin_of(robust) <= float(scores[0] - scores[1]) <= 1.01 * margin_of(robust)
    outputs = enclose(network, box.lower, box.upper)[network.output]
    assert (outputs.lower[0, 0] - outputs.upper[0, 1:]).min() < -10 * margin_of(robust)


def test_at_the_edge_only_the_reals_are_proven() -> None:
    for labelled in draw(FAMILY, **SMALL, slack=1e-6):
        check(labelled.instance, truth_of(labelled))
        assert not proven_in_float32(labelled)


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ({"size": 6, "stages": 2}, "cannot be halved 2 times"),
        ({"colours": 1, "stages": 0}, "raise colours or stages"),
        ({"stages": 4, "size": 64, "blocks": 64}, "lower size, blocks, hidden, reach or stages"),
    ],
)
def test_knobs_that_do_not_fit_are_refused_before_the_work(knobs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConstructionFailed, match=sentence):
        draw(FAMILY, **knobs)


def test_a_large_slack_leaves_the_centre_of_the_twin_to_class_0() -> None:
    _, twin = draw(FAMILY, **SMALL, slack=5.0)
    network, box = read_onnx(twin.instance.network_file, name="net"), box_of(twin.instance)
    scores = evaluate(network, box.centre).lower
    assert scores[0] > max(scores[1:]) and np.sign(margin_of(twin)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("family", [FAMILY, "transformer"])
def test_root_bounds_miss_the_proven_margin_ten_times_over(family: str, tmp_path: Path) -> None:
    dokimos.generate(out=tmp_path / "suite", family=family, jobs=1)
    for outcome in dokimos.profile(tmp_path / "suite", jobs=1).outcomes:
        assert outcome.profile is not None
        for gap in (outcome.profile.extras["crown_gap"], outcome.profile.components["ibp_gap"]):
            assert gap.value is not None
            assert gap.value >= 10
