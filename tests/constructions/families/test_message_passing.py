"""Message passing: averages that move no points apart, and a direction along which nothing else moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dokimos.constructions.families.residual import averaging, regular_graph
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from tests.constructions.siblings import (
    assert_another_knob_gives_other_files,
    assert_both_are_proven,
    assert_well_hidden,
    box_of,
    differing_weights,
    draw,
)

FAMILY = "message-passing"
SMALL: dict[str, Any] = {"nodes": 4, "degree": 2, "rounds": 1}
OTHER_KNOBS: dict[str, Any] = {
    "nodes": 6,
    "degree": 3,
    "features": 5,
    "rounds": 2,
    "hidden": 1,
    "taps": 6,
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


@pytest.mark.parametrize("name", OTHER_KNOBS)
def test_every_knob_changes_the_instance_and_keeps_it_proven(name: str) -> None:
    other = draw(FAMILY, **{**SMALL, name: OTHER_KNOBS[name]})
    assert_another_knob_gives_other_files(draw(FAMILY, **SMALL), other)


@pytest.mark.parametrize(("nodes", "degree"), [(4, 2), (4, 3), (8, 7), (10, 4), (20, 15)])
def test_a_graph_is_regular_connected_and_averages(nodes: int, degree: int) -> None:
    graph = regular_graph(nodes, degree, np.random.default_rng(nodes))
    assert np.array_equal(graph, graph.T) and (graph.sum(axis=0) == degree).all()
    assert set(graph.ravel()) == {0.0, 1.0} and not graph.trace()
    assert (np.linalg.matrix_power(np.eye(nodes) + graph, nodes) > 0).all()
    average = averaging(graph, degree)
    assert (average >= 0).all() and (average.sum(axis=0) == 1).all() and (average.sum(axis=1) == 1).all()


def test_every_relu_of_an_update_is_at_its_kink_at_the_centre() -> None:
    robust, _ = draw(FAMILY, **{**SMALL, "rounds": 3}, pairs=0)
    network, box = read_onnx(robust.instance.network_file, name="net"), box_of(robust.instance)
    here, around = enclose(network, box.centre, box.centre), enclose(network, box.lower, box.upper)
    relus = [node.inputs[0] for node in network.nodes if node.op == "Relu"]
    assert len(relus) == 3
    for name in relus:
        assert max(abs(here[name].lower).max(), abs(here[name].upper).max()) < 1e-9
        assert ((around[name].lower < 0) & (around[name].upper > 0)).mean() > 0.7


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ({"nodes": 5}, "make nodes even"),
        ({"nodes": 4, "degree": 4}, "degree smaller than nodes"),
        ({"rounds": 6, "degree": 8}, "lower rounds, degree or pairs"),
    ],
)
def test_knobs_that_do_not_fit_are_refused_before_the_work(knobs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConstructionFailed, match=sentence):
        draw(FAMILY, **knobs)
