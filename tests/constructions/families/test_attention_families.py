"""What is particular to the two families with attention."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dokimos.checker.lemmas.attention import GraphReader
from dokimos.checker.proofs.attention import row_weights
from dokimos.constructions import CONSTRUCTIONS
from dokimos.core.errors import ConstructionFailed
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.instance import LabelledInstance, Semantics
from dokimos.suites.vnnlib.model import Box
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.checker.search_oracle import outputs_of
from tests.constructions.siblings import draw

FAMILIES = ("softmax-attention", "linear-attention")
EDGE = 1.000001


@cache
def twins(family: str, **knobs: Any) -> tuple[LabelledInstance, LabelledInstance]:
    return draw(family, 3, **knobs)


def tensors(labelled: LabelledInstance) -> dict[str, Any]:
    model = onnx.load_from_string(labelled.instance.network_file)
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def box_of(labelled: LabelledInstance) -> Box:
    return read_vnnlib(labelled.instance.property_file, file="property").cases[0].box


def margin_of(labelled: LabelledInstance) -> float:
    margin = labelled.truth.claims[Semantics.REAL].margin
    assert margin is not None
    return float(margin)


def centre_margin(labelled: LabelledInstance) -> float:
    point = np.array([[float(x) for x in box_of(labelled).centre]])
    outputs = outputs_of(labelled.instance.network_file, point)[0]
    return float(outputs[0] - outputs[1:].max())


@pytest.mark.parametrize("family", FAMILIES)
def test_twins_differ_in_the_bias_of_one_hinge(family: str) -> None:
    robust, violated = (tensors(half) for half in twins(family))
    changed = [(name, int((robust[name] != violated[name]).sum())) for name in robust]
    ((name, count),) = [(name, count) for name, count in changed if count]
    assert count == 1
    assert robust[name].shape == (4,)
    assert violated[name].max() <= 0 or (violated[name] >= robust[name]).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_hinges_of_the_robust_sibling_are_alive_too(family: str) -> None:
    """A verifier that drops dead ReLUs learns nothing about the label."""
    for half in twins(family):
        network, box = read_onnx(half.instance.network_file), box_of(half)
        head = GraphReader(network).softmax_attention() if "softmax" in family else None
        hinges = (head or GraphReader(network).linear_attention()).head.hinges
        assert hinges is not None
        inside = enclose(network, box.lower, box.upper)[hinges.inside]
        assert (inside.lower < 0).all()
        assert (inside.upper > 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_edge_is_proven_for_the_reals_only(family: str) -> None:
    for half in twins(family, slack=EDGE):
        assert half.truth.claims[Semantics.REAL].proven
        assert not half.truth.claims[Semantics.FLOAT32].proven


@pytest.mark.parametrize("family", FAMILIES)
def test_slack_is_relative_to_the_proven_drift(family: str) -> None:
    """The centre's margin is slack·drift, half of (slack − 1)·drift is left to the hinges."""
    for slack in (1.05, 1.5):
        robust, _ = twins(family, slack=slack)
        drift = centre_margin(robust) / slack
        assert margin_of(robust) == pytest.approx((slack - 1) / 2 * drift, rel=0.02)


@pytest.mark.parametrize("family", FAMILIES)
def test_values_agree_in_every_semantics(family: str) -> None:
    robust, _ = twins(family)
    network, box = read_onnx(robust.instance.network_file), box_of(robust)
    lower, upper = (np.array([float(x) for x in end]) for end in (box.lower, box.upper))
    points = np.random.default_rng(0).uniform(lower, upper, size=(50, box.size)).astype(np.float32)
    floats = replay(robust.instance.network_file, points)
    reals = outputs_of(robust.instance.network_file, points.astype(np.float64))
    bounds = rounding_bounds(network, box.lower, box.upper)[network.output]
    assert np.isfinite(bounds.error).all()
    assert (np.abs(floats - reals) <= bounds.error).all()
    assert (reals >= bounds.lower - 1e-9).all()
    assert (reals <= bounds.upper + 1e-9).all()


def test_every_weight_of_linear_attention_is_positive_on_the_box() -> None:
    for knobs in ({}, {"epsilon": 0.08}, {"gate": 0.3, "tokens": 4}):
        robust, _ = twins("linear-attention", **knobs)
        network, box = read_onnx(robust.instance.network_file), box_of(robust)
        attention = GraphReader(network).linear_attention()
        rows = row_weights(network, attention, box)
        assert sorted(row.key for row in rows) == list(range(len(rows)))
        for row in rows:
            assert all(weight.lower() > 0 for weight in row.lower)


def test_gate_and_noise_decide_dominance() -> None:
    def share(**knobs: float) -> float:
        robust, _ = twins("linear-attention", **knobs)
        network = read_onnx(robust.instance.network_file)
        rows = row_weights(network, GraphReader(network).linear_attention(), box_of(robust))
        return max(float(row.others) for row in rows)

    assert share(gate=2.0) < share() < share(noise=0.2)


def test_unstable_features_are_unstable() -> None:
    robust, _ = twins("linear-attention")
    network, box = read_onnx(robust.instance.network_file), box_of(robust)
    relu = next(n for n in network.nodes if n.op == "Relu")
    inside = enclose(network, box.lower, box.upper)[relu.inputs[0]]
    assert int(((inside.lower < 0) & (inside.upper > 0)).sum()) == 6 * 4


def test_alpha_decides_how_sharp_the_attention_is() -> None:
    def largest_weight(alpha: float) -> float:
        robust, _ = twins("softmax-attention", alpha=alpha)
        network, box = read_onnx(robust.instance.network_file), box_of(robust)
        weights = GraphReader(network).softmax_attention().head.weights
        return float(enclose(network, box.centre, box.centre)[weights].lower.max())

    assert largest_weight(2.0) < 0.5 < largest_weight(5.0) < 0.9 < largest_weight(20.0)


def test_knobs_that_leave_no_instance_say_what_to_change() -> None:
    with pytest.raises(ConstructionFailed, match="raise width or lower tokens"):
        CONSTRUCTIONS["softmax-attention"](seed=0, tokens=40, width=2)
    with pytest.raises(ConstructionFailed, match="noise must be above"):
        CONSTRUCTIONS["linear-attention"](seed=0, noise=0.005)
    with pytest.raises(ConstructionFailed, match="keeps the largest score"):
        CONSTRUCTIONS["softmax-attention"](seed=0, epsilon=1.0)
