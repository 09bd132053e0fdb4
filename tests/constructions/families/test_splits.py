"""Instances that must be split: what cancels, where the counterexample lies, and that nothing finds it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dokimos.constructions.families.splits import MARGIN, VARIANTS
from dokimos.constructions.recipes import shipped_recipe
from dokimos.engine.attacks.base import Budget
from dokimos.engine.attacks.gradients import PGD
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.answers import Answer
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.verifiers.planted import bounder
from dokimos.verifiers.planted.base import Task
from tests.constructions.siblings import Pair, differing_weights, draw, truth_of

QUICK = list(VARIANTS)


def pair_of(variant: str) -> Pair:
    return draw("splits", variant=variant)


@pytest.mark.parametrize("variant", QUICK)
def test_siblings_differ_in_one_number_and_the_output_at_the_point_lies_on_both_sides(
    variant: str,
) -> None:
    pair = pair_of(variant)
    assert differing_weights(pair) == 1
    witness = truth_of(pair[1]).witness
    assert witness is not None
    values = [evaluate(read_onnx(each.instance.network_file), witness).upper[0] for each in pair]
    (case, *_) = read_vnnlib(pair[0].instance.property_file, file="p").cases
    ((constraint,),) = case.any_of
    above = 0 if variant == "rounding" else MARGIN
    assert values == [-constraint.bound - MARGIN, -constraint.bound + above]


@pytest.mark.parametrize("variant", QUICK)
def test_away_from_the_point_the_output_is_constant(variant: str) -> None:
    """So that gradients lead nowhere, and what the differences of equal units add is nothing."""
    _, twin = pair_of(variant)
    network, asked = (
        read_onnx(twin.instance.network_file),
        read_vnnlib(twin.instance.property_file, file="p"),
    )
    witness = truth_of(twin).witness
    assert witness is not None
    rng = np.random.default_rng(1)
    drawn = rng.integers(-1024, 1025, size=(20, len(witness)))
    inside = [tuple(Fraction(int(k), 1024) for k in row) for row in drawn]
    values = {evaluate(network, point).upper[0] for point in inside if point != witness}
    assert len(values) == 1
    found = PGD(corners=0.0, scales=(1.0,))(network, asked, seed=5, budget=Budget(restarts=100, steps=100))
    assert found.least_margin > 0


@pytest.mark.parametrize("variant", QUICK)
def test_bounds_on_a_dozen_parts_are_not_enough(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a search that goes on answers."""
    robust, _ = pair_of(variant)
    task = Task(
        read_onnx(robust.instance.network_file),
        read_vnnlib(robust.instance.property_file, file="p"),
        None,
        None,
        60.0,
    )
    monkeypatch.setattr(bounder, "MOST_BOXES_OF_FEW", 12)
    assert bounder.PlainBounder().decide(task).answer is Answer.UNKNOWN
    monkeypatch.undo()
    assert bounder.PlainBounder().decide(task).answer is Answer.UNSAT


def test_the_face_is_that_of_an_early_split() -> None:
    for variant, denominators in (("face", {8}), ("gap", {1}), ("deep", {1024})):
        witness = truth_of(pair_of(variant)[1]).witness
        assert witness is not None
        assert {witness[0].denominator} == denominators
        assert witness[1].denominator == 1024


def test_only_the_last_box_contains_the_point_and_each_is_half_as_wide() -> None:
    _, twin = pair_of("disjunct")
    boxes = [case.box for case in read_vnnlib(twin.instance.property_file, file="p").cases]
    witness = truth_of(twin).witness
    assert witness is not None
    holding = [
        number
        for number, box in enumerate(boxes)
        if all(a <= x <= b for a, x, b in zip(box.lower, witness, box.upper, strict=True))
    ]
    assert holding == [len(boxes) - 1]
    widths = [max(b - a for a, b in zip(box.lower, box.upper, strict=True)) for box in boxes]
    assert widths == sorted(widths, reverse=True)


def test_the_suite_has_every_variant() -> None:
    assert {draw.knobs["variant"] for draw in shipped_recipe("splits").draws} == set(VARIANTS)
