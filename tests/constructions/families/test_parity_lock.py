"""Parity locks: the gate opens in the cell that solves the equations, and nowhere else."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from dokimos.checker.check import prove
from dokimos.constructions.draft import ball
from dokimos.constructions.locked_networks import enlarged_question
from dokimos.constructions.parity_gate import (
    LockShape,
    ParityLock,
    ParitySystem,
    draw_lock,
    draw_system,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.instance import Instance, Label
from dokimos.suites.vnnlib.model import Box
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import write_vnnlib1
from tests.constructions.siblings import differing_weights, draw, truth_of

SMALL: dict[str, Any] = {"inputs": 4, "bits": 8, "levels": 2, "weight": 3, "width": 4}


def solutions(system: ParitySystem) -> list[tuple[int, ...]]:
    return [
        bits
        for bits in product((0, 1), repeat=len(system.solution))
        if all(sum(bits[j] for j in e.bits) % 2 == e.odd for e in system.equations)
    ]


@pytest.mark.parametrize(("bits", "weight"), [(1, 1), (4, 1), (5, 3), (9, 5)])
def test_a_system_has_one_solution_and_with_another_side_none(bits: int, weight: int) -> None:
    for seed in range(5):
        system = draw_system(bits, weight, np.random.default_rng(seed))
        assert len(system.equations) == bits + 1
        assert solutions(system) == [system.solution]
        broken = system.inconsistent()
        assert solutions(broken) == []
        assert [e.bits for e in broken.equations] == [e.bits for e in system.equations]
        assert sum(a != b for a, b in zip(system.equations, broken.equations, strict=True)) == 1
        left: set[int] = set()
        for k in broken.contradiction:
            left ^= set(broken.equations[k].bits)
        assert not left
        assert sum(broken.equations[k].odd for k in broken.contradiction) % 2 == 1


def test_even_weights_have_no_system() -> None:
    with pytest.raises(ConstructionFailed, match="odd weight"):
        draw_system(4, 2, np.random.default_rng(0))


def values(lock: ParityLock, points: Any) -> Any:
    """The gate at points, in float64."""
    v = np.asarray(points, dtype=np.float64)
    for weight, bias in lock.layers:
        v = np.maximum(v @ weight.T + bias, 0.0)
    return v[:, 0]


@pytest.mark.parametrize("penalty", [Fraction(1), Fraction(3, 8)])
def test_the_gate_opens_in_one_cell(penalty: Fraction) -> None:
    """All cells of a small box, at their centres and at random points."""
    box = ball([Fraction(1, 4), Fraction(-1, 8), Fraction(0)], Fraction(1, 8))
    rng = np.random.default_rng(1)
    shape = LockShape(bits=6, levels=2, weight=3, steepness=16, penalty=penalty)
    lock = draw_lock(shape, box, rng)
    centres = [
        tuple(low + Fraction(2 * c + 1, 8) * Fraction(1, 4) for low, c in zip(box.lower, cell, strict=True))
        for cell in product(range(4), repeat=3)
    ]
    opened = values(lock, [[float(x) for x in point] for point in centres])
    assert [centres[int(k)] for k in np.flatnonzero(opened)] == [lock.centre([Fraction(0)] * 3)]
    assert opened.max() == 0.5
    low, high = (np.array([float(x) for x in end]) for end in (box.lower, box.upper))
    points = rng.uniform(low, high, size=(20_000, 3))
    inside = (np.abs(points - np.array([float(x) for x in lock.centre([0] * 3)])) <= 1 / 32).all(axis=1)
    assert (values(lock, points)[~inside] == 0).all()
    assert (values(lock, points)[inside] > 0).any()
    shut = ParityLock(lock.shape, lock.inputs, lock.digits, lock.system.inconsistent())
    assert (values(shut, points) == 0).all()


def test_around_the_witness_the_gate_is_fully_open() -> None:
    """The radius is at least a hundredth of the box; at every corner of that ball class 0 loses."""
    box = ball([Fraction(0)] * 25, Fraction(1, 4))
    rng = np.random.default_rng(0)
    lock = draw_lock(LockShape(), box, rng)
    assert lock.radius == Fraction(1, 2) * (Fraction(1, 16) - Fraction(1, 64))
    centre = np.array([float(x) for x in lock.centre([Fraction(0)] * 25)])
    points = centre + float(lock.radius) * rng.choice([-1.0, 1.0], size=(50, 25))
    assert (values(lock, points) == 0.5).all()
    assert (values(lock, centre + 1.7 * (points - centre)) == 0).any()


def test_both_labels_hold_clearly_and_on_a_larger_box() -> None:
    robust, twin = draw("parity-lock", **SMALL)
    asked = read_vnnlib(robust.instance.property_file, file="p")
    wide = enlarged_question(asked)
    larger = Instance("larger", robust.instance.network_file, write_vnnlib1(wide).encode())
    assert prove(larger, truth_of(robust).certificate, Label.UNSAT, None).real >= 1
    witness = truth_of(twin).witness
    assert witness is not None
    found = evaluate(read_onnx(twin.instance.network_file), witness).lower
    assert found[1] - found[0] >= max(Fraction(1, 1000), max(map(abs, found)) / 10_000)


def test_siblings_differ_in_one_right_hand_side() -> None:
    """Those are the weights of one equation's wave, and a constant."""
    assert 0 < differing_weights(draw("parity-lock", **SMALL)) <= 2 * SMALL["weight"]


def test_the_same_seed_gives_the_same_base_without_a_lock() -> None:
    free, _ = draw("parity-lock", gate="none", **SMALL)
    locked, twin = draw("parity-lock", **SMALL)
    assert truth_of(free).certificate.kind == "linear"
    box: Box = read_vnnlib(free.instance.property_file, file="p").cases[0].box
    assert free.instance.property_file == locked.instance.property_file == twin.instance.property_file
    at = [read_onnx(one.instance.network_file) for one in (free, locked)]
    assert evaluate(at[0], box.centre).lower == evaluate(at[1], box.centre).lower


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"opening": 0.9, "penalty": 0.4}, "raise the penalty"),
        ({"bits": 5, "weight": 7}, "needs at least that many"),
        ({"inputs": 24}, "need 25 inputs"),
        ({"weight": 4}, "odd weight"),
    ],
)
def test_knobs_that_do_not_fit_are_refused(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstructionFailed, match=message):
        draw("parity-lock", **knobs)


def test_a_ramp_that_is_wider_than_a_cell_is_refused() -> None:
    with pytest.raises(ConstructionFailed, match="steepness of at least 32"):
        LockShape(steepness=31)
