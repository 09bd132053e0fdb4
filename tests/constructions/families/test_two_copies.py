"""Two copies of a network: each decides either way, and only their difference tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dokimos.checker import check
from dokimos.checker.check import prove
from dokimos.core.errors import InvalidProof
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.instance import Certificate, Label, Semantics
from tests.constructions.siblings import (
    Pair,
    box_of,
    differing_weights,
    draw,
    draw_anew,
    margin_of,
    proven_in_float32,
    truth_of,
)

FAMILY = "two-copies"
SMALL: dict[str, Any] = {"inputs": 3, "width": 4, "depth": 1}


@pytest.fixture(scope="module")
def pair() -> Pair:
    return draw(FAMILY)


def test_both_siblings_are_proven_for_both_semantics(pair: Pair) -> None:
    for labelled, label in zip(pair, (Label.UNSAT, Label.SAT), strict=True):
        check(labelled.instance, truth_of(labelled))
        assert truth_of(labelled).label is label
        assert proven_in_float32(labelled)
    assert truth_of(pair[0]).certificate.kind == "linear"
    assert truth_of(pair[0]).certificate.data["pairs"]


def test_only_the_slope_that_is_added_differs(pair: Pair) -> None:
    """In both copies: one weight of the last layer each."""
    assert differing_weights(pair) == 2


def test_each_copy_decides_either_way_and_both_are_one_network(pair: Pair) -> None:
    """The second copy at x is the first at x with more of feature 0; each by itself decides 0 and 1."""
    network, box = read_onnx(pair[0].instance.network_file), box_of(pair[0].instance)
    lower, upper = (np.array([float(x) for x in end], np.float32) for end in (box.lower, box.upper))
    rng = np.random.default_rng(0)
    points = lower + rng.random((200, box.size), np.float32) * (upper - lower)
    scores = replay(pair[0].instance.network_file, points)
    for copy in (scores[:, :2], scores[:, 2:]):
        assert len(set(copy.argmax(axis=1).tolist())) == 2
    leads = np.maximum(scores[:, 0] - scores[:, 1], scores[:, 3] - scores[:, 2])
    assert leads.min() >= margin_of(pair[0], Semantics.FLOAT32) > 0
    point = box.centre
    raised = (point[0] + point[-1], *point[1:])
    assert evaluate(network, point).lower[2:] == evaluate(network, raised).lower[:2]


def test_the_twin_falls_from_one_decision_to_the_other(pair: Pair) -> None:
    witness = truth_of(pair[1]).witness
    assert witness is not None and witness in box_of(pair[1].instance)
    scores = evaluate(read_onnx(pair[1].instance.network_file), witness).lower
    assert scores[1] > scores[0] and scores[3] < scores[2]


def test_the_proof_does_not_fit_the_twin_and_none_is_found_without_pairs(pair: Pair) -> None:
    certificate = truth_of(pair[0]).certificate
    with pytest.raises(InvalidProof):
        prove(pair[1].instance, certificate, Label.UNSAT, None)
    alone = Certificate(certificate.kind, {**certificate.data, "pairs": []})
    with pytest.raises(InvalidProof):
        prove(pair[0].instance, alone, Label.UNSAT, None)


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, again, other = (draw_anew(FAMILY, seed, **SMALL) for seed in (5, 5, 6))
    assert [x.instance for x in first] == [x.instance for x in again]
    assert first[0].instance.network_file != other[0].instance.network_file


@pytest.mark.parametrize(
    ("knob", "value"), [("inputs", 4), ("width", 6), ("depth", 2), ("rise", 0.4), ("slack", 0.3)]
)
def test_every_knob_changes_the_instance_and_keeps_it_proven(knob: str, value: float) -> None:
    plain, other = draw(FAMILY, **SMALL), draw(FAMILY, **{**SMALL, knob: value})
    for one, changed in zip(plain, other, strict=True):
        before = one.instance.network_file, one.instance.property_file
        assert before != (changed.instance.network_file, changed.instance.property_file)
    assert all(proven_in_float32(labelled) for labelled in other)
