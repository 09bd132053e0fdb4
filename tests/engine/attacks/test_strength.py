"""What the attacks must find: otherwise "hidden" says nothing about a counterexample."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.draft import ball, first_class_loses
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget, luby
from dokimos.networks.chain import Chain, Layer
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import write_chain
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib

ONE_SECOND = Budget(cpu_seconds=1, until_found=True)
INPUTS, BLOCKS = 25, 5


def needle(seed: int) -> tuple[Network, Property]:
    """Class 0 loses where the bumps of five blocks of five inputs are on, all of them nearly full."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-0.8, 0.8, INPUTS)
    sums = np.zeros((BLOCKS, 2 * INPUTS))
    for block, members in enumerate(np.split(rng.permutation(INPUTS), BLOCKS)):
        sums[block, members] = sums[block, INPUTS + members] = -2.0
    sides = np.vstack([np.eye(INPUTS), -np.eye(INPUTS)])
    layers = [
        (sides, np.concatenate([-centre, centre])),
        (sums, np.ones(BLOCKS)),
        (np.ones((1, BLOCKS)), np.array([0.5 - BLOCKS])),
        (np.array([[-4.0], [0.0]]), np.array([1.0, 0.0])),
    ]
    made = tuple(
        Layer(weight.astype(np.float32), bias.astype(np.float32), k < 3)
        for k, (weight, bias) in enumerate(layers)
    )
    box = ball([Fraction(0)] * INPUTS, Fraction(1))
    return read_onnx(write_chain(Chain((INPUTS,), made))), first_class_loses(box, 2)


def test_needles_of_five_blocks_are_found() -> None:
    for seed in range(10):
        assert ATTACKS["units-leaky"](*needle(seed), seed=0, budget=ONE_SECOND).witness is not None


def test_plain_pgd_does_not_find_them() -> None:
    for seed in range(10):
        assert ATTACKS["pgd"](*needle(seed), seed=0).broken == 0


def test_a_lock_whose_equations_have_one_bit_each_is_opened() -> None:
    """The positive control: without it, nobody may call a lock hidden."""
    for seed in range(3):
        _, twin = CONSTRUCTIONS["parity-lock"](seed=seed, weight=1)
        network = read_onnx(twin.instance.network_file)
        question = read_vnnlib(twin.instance.property_file, file="twin")
        found = ATTACKS["coordinate-units"](network, question, seed=0, budget=ONE_SECOND)
        assert found.witness is not None


def test_long_searches_have_their_turn() -> None:
    assert [luby(k) for k in range(1, 16)] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]
