"""The transformer family: fixed routes, pairs that cancel, and a twin in the worst corner."""

from __future__ import annotations

from typing import Any

import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.semantics.interval import enclose
from dokimos.testing.statements import drafts_of
from tests.constructions.siblings import (
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

FAMILY = "transformer"
SMALL: dict[str, Any] = {"size": 4, "colours": 1, "patch": 2, "width": 16, "heads": 2, "taps": 4}
OTHER_KNOBS: dict[str, Any] = {
    "size": 6,
    "colours": 2,
    "patch": 1,
    "width": 32,
    "heads": 4,
    "layers": 3,
    "pairs": 2,
    "taps": 6,
    "gain": 0.75,
    "gap": 30.0,
    "noise": 0.01,
    "slack": 0.2,
    "epsilon": 0.0625,
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
def test_every_knob_changes_the_instance(name: str) -> None:
    roomy = {**SMALL, "width": 64}
    plain, other = (
        drafts_of(CONSTRUCTIONS[FAMILY], 1, **knobs)
        for knobs in (roomy, {**roomy, name: OTHER_KNOBS[name]})
    )
    assert all(
        a.network != b.network or a.question != b.question for a, b in zip(plain, other, strict=True)
    )


def test_with_all_knobs_changed_both_are_proven() -> None:
    assert all(
        proven_in_float32(labelled)
        for labelled in draw(FAMILY, **{**OTHER_KNOBS, "patch": 3, "gain": 0.25})
    )


def test_the_theorem_is_tight_and_intervals_are_nowhere_near() -> None:
    """In the corner that the twin's witness points to, the lead is what the proof leaves, hardly more."""
    robust, twin = draw(FAMILY, **SMALL, slack=0.01, classes=2)
    network, box = read_onnx(robust.instance.network_file, name="net"), box_of(robust.instance)
    witness = truth_of(twin).witness
    assert witness is not None
    corner = tuple(
        a if x < c else b for a, b, c, x in zip(box.lower, box.upper, box.centre, witness, strict=True)
    )
    scores = evaluate(network, corner)
    assert margin_of(robust) <= float(scores.lower[0] - scores.upper[1]) <= 1.01 * margin_of(robust)
    outputs = enclose(network, box.lower, box.upper)[network.output]
    assert (outputs.lower[0, 0] - outputs.upper[0, 1:]).min() < -10 * margin_of(robust)


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ({"size": 9}, "change size or patch"),
        ({"width": 15}, "change width or heads"),
        ({"width": 4}, "the gap cannot be reached"),
        ({"size": 64, "patch": 8, "width": 512, "heads": 4}, "lower size, colours, width, pairs or layers"),
        ({"noise": 1.0}, "does not stay open"),
    ],
)
def test_knobs_that_do_not_fit_are_refused_in_a_sentence(knobs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConstructionFailed, match=sentence):
        draw(FAMILY, **{**SMALL, **knobs})
