"""Branch and bound finds proofs that the checker accepts, or points that violate; oracles agree."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dokimos.checker.base import Problem
from dokimos.checker.linear.proof import LinearProof
from dokimos.constructions.parts.robustness import ball, first_class_loses
from dokimos.engine.linear import LinearSearch
from dokimos.engine.outcome import SearchEffort
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from tests.checker.files import model, question
from tests.checker.small_networks import SmallReluNetwork

#: Cutting inputs, and cutting units.
MODES = {"inputs": 12, "units": 0}


def search(network: Network, asked: Property, few_inputs: int, seconds: float = 60.0) -> LinearSearch:
    def settles(point: Point) -> bool:
        return violation_at(network, asked, point).violates is True

    return LinearSearch(network, asked, SearchEffort(seconds), settles, few_inputs=few_inputs)


@pytest.mark.parametrize("mode", MODES)
def test_small_networks_are_decided_as_their_grids_are(mode: str) -> None:
    """Lifted above 0 on a grid, or pushed below it: proven, or violated at a point."""
    proven = violated = 0
    for seed in range(12):
        small = SmallReluNetwork.draw(np.random.default_rng(seed), sizes=(2, 4, 3, 2))
        change = Fraction(1, 4) if seed % 2 else Fraction(-1, 4)
        lifted = small.lifted(change - small.grid_minimum())
        network = read_onnx(lifted.instance().network_file)
        asked = first_class_loses(ball([Fraction(0)] * 2, lifted.radius), 2)
        found = search(network, asked, MODES[mode]).run()
        assert found.settled or found.data is not None or seed % 2, found
        if found.data is not None:
            proven += 1
            margin = LinearProof().prove(Problem(network, asked), found.data)
            assert margin.float32 is not None and margin.real <= lifted.grid_minimum()
        violated += found.settled
        assert not (found.data is not None and lifted.grid_minimum() <= 0)
    assert proven >= 4 and violated >= 6


def test_the_same_seed_gives_the_same_certificate() -> None:
    small = SmallReluNetwork.draw(np.random.default_rng(3), sizes=(2, 4, 3, 2))
    lifted = small.lifted(Fraction(1, 8) - small.grid_minimum())
    network = read_onnx(lifted.instance().network_file)
    asked = first_class_loses(ball([Fraction(0)] * 2, lifted.radius), 2)
    for few in MODES.values():
        one, two = (search(network, asked, few).run() for _ in range(2))
        assert one == two


@pytest.mark.parametrize(
    ("node", "unsafe"),
    [
        (("Sigmoid", ["h"], "r"), "(>= Y_0 1.9)"),
        (("Tanh", ["h"], "r"), "(>= Y_0 1.5)"),
        (("Exp", ["h"], "r"), "(>= Y_0 6.0)"),
        (("Sin", ["h"], "r"), "(>= Y_0 2.0)"),
        (("Mul", ["h", "X"], "r"), "(>= Y_0 2.2)"),
        (("Max", ["h", "X"], "r"), "(<= Y_0 -2.2)"),
        (("Softmax", ["h"], "r", {"axis": 1}), "(>= Y_0 1.0001)"),
        (("Div", ["h", "four"], "r"), "(>= Y_0 0.6)"),
        (("Floor", ["h"], "r"), "(>= Y_0 2.5)"),
    ],
)
def test_every_kind_of_operator_is_decided(node: tuple[object, ...], unsafe: str) -> None:
    """Y = the sum of an operator of a rotated input: true by a little, where intervals may lose it."""
    weights = {
        "w": np.array([[0.75, -0.25], [0.25, 0.75]]),
        "one": np.ones((2, 1)),
        "four": np.array([4.0]),
    }
    nodes = [("MatMul", ["X", "w"], "h"), node, ("MatMul", ["r", "one"], "Y")]
    read = {str(name) for each in nodes for name in each[1]}  # type: ignore[attr-defined]
    used = {name: array for name, array in weights.items() if name in read}
    network = read_onnx(model(nodes, used, [1, 2], [1, 1]))
    asked = read_vnnlib(question([(-1, 1), (-1, 1)], 1, unsafe), file="p")
    found = search(network, asked, 12).run()
    assert found.data is not None, found
    assert LinearProof().prove(Problem(network, asked), found.data).real > 0


def test_time_ends_a_search_and_what_is_left_is_said() -> None:
    small = SmallReluNetwork.draw(np.random.default_rng(3), sizes=(2, 8, 8, 2))
    lifted = small.lifted(Fraction(1, 1024) - small.grid_minimum())
    network = read_onnx(lifted.instance().network_file)
    asked = first_class_loses(ball([Fraction(0)] * 2, lifted.radius), 2)
    found = LinearSearch(network, asked, SearchEffort(0.0)).run()
    assert found.data is None and not found.settled
    assert "did not finish in time" in found.reason and found.bound < 0
