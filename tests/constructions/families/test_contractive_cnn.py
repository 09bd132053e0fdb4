"""The family of contractive CNNs: a lead at the centre that no move uses up, and a needle in the twin."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dokimos.checker import check
from dokimos.checker.proofs.contraction import lipschitz_constants
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from dokimos.suites.instance import Instance
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
    scores,
    truth_of,
    weights_of,
)

FAMILY = "contractive-cnn"
SMALL: dict[str, Any] = {"size": 6, "channels": 2, "depth": 2}
OTHER_KNOBS: dict[str, Any] = {
    "size": 7,
    "depth": 4,
    "channels": 3,
    "contraction": 0.7,
    "front": 2.0,
    "unstable": 1.0,
    "centred": 0,
    "slack": 0.1,
    "cut": 0.125,
    "epsilon": 0.05,
    "classes": 5,
}


def relus_at_their_kink(instance: Instance) -> int:
    network, box = read_onnx(instance.network_file, name="net"), box_of(instance)
    bounds = enclose(network, box.lower, box.upper)
    before = [bounds[n.inputs[0]] for n in network.nodes if n.op == "Relu"]
    return sum(int(((b.lower < 0) & (b.upper > 0)).sum()) for b in before)


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("seed", range(2))
def test_both_siblings_are_proven_for_both_semantics(seed: int, centred: int) -> None:
    pair = draw(FAMILY, seed, centred=centred)
    assert_both_are_proven(pair)


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, again, other = (draw_anew(FAMILY, seed, **SMALL) for seed in (5, 5, 6))
    assert [x.instance for x in first] == [x.instance for x in again]
    assert first[0].instance.network_file != other[0].instance.network_file


@pytest.mark.parametrize("centred", [0, 1])
def test_the_twin_differs_in_one_offset_and_is_hidden(centred: int) -> None:
    pair = draw(FAMILY, 3, centred=centred)
    assert differing_weights(pair) == 1
    offsets = [list(weights_of(x.instance).values())[-1] for x in pair]
    assert offsets[0][0] > offsets[1][0]
    assert_well_hidden(pair[1])


def test_the_norms_are_what_the_knobs_say() -> None:
    robust, _ = draw(FAMILY, **SMALL, front=2.0, contraction=0.75)
    network = read_onnx(robust.instance.network_file, name="net")
    constants = lipschitz_constants(network)
    layers = [constants[n.output] for n in network.nodes if n.op == "Conv"]
    assert layers == [2, Fraction(3, 2), Fraction(9, 8)]


def test_interval_bounds_prove_the_centred_family() -> None:
    robust, _ = draw(FAMILY, slack=0.05)
    network, box = read_onnx(robust.instance.network_file, name="net"), box_of(robust.instance)
    outputs = enclose(network, box.lower, box.upper)[network.output]
    assert (outputs.lower[0, 0] - outputs.upper[0, 1:]).min() > 0


def test_unstable_biases_put_relus_at_their_kink() -> None:
    counts = [relus_at_their_kink(draw(FAMILY, unstable=share)[0].instance) for share in (0.0, 0.5, 1.0)]
    assert counts[0] < counts[1] < counts[2]


def test_a_centred_head_leaves_the_other_classes_constant() -> None:
    for centred in (0, 1):
        seen = scores(draw(FAMILY, **SMALL, centred=centred)[0].instance, samples=50, corners=0)
        spread = np.ptp(seen[:, 1:], axis=0)
        assert (spread == 0).all() if centred else (spread > 0).all()


@pytest.mark.parametrize("name", OTHER_KNOBS)
def test_every_knob_changes_the_instance_and_keeps_it_proven(name: str) -> None:
    other = draw(FAMILY, **{**SMALL, name: OTHER_KNOBS[name]})
    assert_another_knob_gives_other_files(draw(FAMILY, **SMALL), other)


def test_the_margin_is_the_slack() -> None:
    for slack in (1e-3, 0.3, 5.0):
        assert slack <= margin_of(draw(FAMILY, **SMALL, slack=slack)[0]) < slack * 1.01


def test_at_the_edge_only_the_reals_are_proven() -> None:
    for labelled in draw(FAMILY, slack=1e-7):
        check(labelled.instance, truth_of(labelled))
        assert not proven_in_float32(labelled)


def test_networks_too_large_to_prove_are_refused() -> None:
    with pytest.raises(ConstructionFailed, match="lower one"):
        draw(FAMILY, size=64, channels=128, depth=20)
