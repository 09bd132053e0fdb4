"""Branch and bound finds proofs that the checker accepts, or points that violate; oracles agree."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
import torch

from dokimos.checker.base import Problem
from dokimos.checker.linear.lines import UNITS
from dokimos.checker.linear.proof import LinearProof
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.draft import ball, first_class_loses
from dokimos.engine.branch_and_bound import _sides
from dokimos.engine.fast_walk import CURVES, _bent_lines, _last_tangents
from dokimos.engine.linear import LinearSearch
from dokimos.engine.outcome import SearchEffort
from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import Interval
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.testing.statements import drafts_of
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
            assert margin.floats is not None and margin.real <= lifted.grid_minimum()
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
        (("Erf", ["h"], "r"), "(>= Y_0 1.5)"),
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


@pytest.mark.parametrize(("bound", "is_proven"), [("0.4" + 19 * "9", True), ("0.5", False)])
def test_what_holds_by_less_than_floats_show_is_shown_exactly(bound: str, is_proven: bool) -> None:
    """|x| + ½ <= b, which is false by ½ − b, over the reals."""
    weights = {"w": np.array([[1.0, -1.0]]), "one": np.ones((2, 1)), "half": np.array([0.5])}
    nodes = [("MatMul", ["X", "w"], "h"), ("Relu", ["h"], "r"), ("MatMul", ["r", "one"], "s")]
    read = read_onnx(model([*nodes, ("Add", ["s", "half"], "Y")], weights, [1, 1], [1, 1]))
    asked = read_vnnlib(question([(-1, 1)], 1, f"(<= Y_0 {bound})"), file="q")
    found = LinearSearch(read, asked, SearchEffort(most_steps=400)).run()
    assert (found.data is not None) is is_proven
    if found.data is not None:
        proven = LinearProof().prove(Problem(read, asked), found.data)
        assert proven.real == Fraction(1, 10**20) and proven.floats is None


def test_time_ends_a_search_and_what_is_left_is_said() -> None:
    small = SmallReluNetwork.draw(np.random.default_rng(3), sizes=(2, 8, 8, 2))
    lifted = small.lifted(Fraction(1, 1024) - small.grid_minimum())
    network = read_onnx(lifted.instance().network_file)
    asked = first_class_loses(ball([Fraction(0)] * 2, lifted.radius), 2)
    found = LinearSearch(network, asked, SearchEffort(0.0)).run()
    assert found.data is None and not found.settled
    assert "did not finish in time" in found.reason and found.bound < 0


def test_time_ends_the_bounds_of_the_whole_box_too() -> None:
    small = SmallReluNetwork.draw(np.random.default_rng(3), sizes=(2, 8, 8, 8, 8, 8, 2))
    network = read_onnx(small.instance().network_file)
    asked = first_class_loses(ball([Fraction(0)] * 2, small.radius), 2)
    seconds = count()
    found = LinearSearch(network, asked, SearchEffort(4.0, clock=lambda: float(next(seconds)))).run()
    assert "did not finish in time" in found.reason and found.bound == -np.inf
    assert next(seconds) < 10


def formula(clauses: Sequence[tuple[int, ...]], variables: int) -> tuple[Network, Property]:
    """Clauses (k for variable k, −k for its negation) as a network: Y₀ >= 1 and Y₁ <= 0 where all hold.

    Y₀ = 1 − Σ max(0, 1 − number of literals that hold), and Y₁ = Σ x − max(0, 2x − 1) is 0 at 0 and 1.
    """
    rows = np.zeros((len(clauses) + variables, variables))
    bias = np.full(len(rows), -1.0)
    for row, clause in enumerate(clauses):
        bias[row] = 1.0 - sum(each < 0 for each in clause)
        for each in clause:
            rows[row, abs(each) - 1] = -np.sign(each)
    rows[len(clauses) :] = 2 * np.eye(variables)
    of_relus, of_input = np.zeros((len(rows), 2)), np.zeros((variables, 2))
    of_relus[: len(clauses), 0] = of_relus[len(clauses) :, 1] = -1.0
    of_input[:, 1] = 1.0
    weights = {"w": rows.T, "b": bias, "v": of_relus, "u": of_input, "one": np.array([1.0, 0.0])}
    nodes = [
        ("MatMul", ["X", "w"], "m"),
        ("Add", ["m", "b"], "e"),
        ("Relu", ["e"], "r"),
        ("MatMul", ["r", "v"], "p"),
        ("MatMul", ["X", "u"], "q"),
        ("Add", ["p", "q"], "s"),
        ("Add", ["s", "one"], "Y"),
    ]
    network = read_onnx(model(nodes, weights, [1, variables], [1, 2]))
    asked = read_vnnlib(question([(0, 1)] * variables, 2, "(>= Y_0 1.0)", "(<= Y_1 0.0)"), file="p")
    return network, asked


def test_formulas_are_decided_through_their_units() -> None:
    """All clauses over three variables contradict; without one of them, its negation holds."""
    clauses: list[tuple[int, ...]] = [(a, 2 * b, 3 * c) for a in (1, -1) for b in (1, -1) for c in (1, -1)]
    clauses += [(4, 5), (-4, 6), (1, -6)]
    network, asked = formula(clauses, 6)
    found = search(network, asked, 0).run()
    assert found.data is not None, found
    assert LinearProof().prove(Problem(network, asked), found.data).real > 0
    network, asked = formula(clauses[1:], 6)
    assert search(network, asked, 0).run().settled


def test_a_thin_slice_that_cuts_of_inputs_leave_is_closed_by_cuts_of_units() -> None:
    """Halving inputs soon closes most of the box, and of the rest a little more for ever."""
    robust, _ = drafts_of(CONSTRUCTIONS["exclusive-pairs"], 0, pairs=2, inputs=4)
    network = read_onnx(robust.network)
    assert LinearSearch(network, robust.question, SearchEffort(most_steps=20_000)).run().data is not None


def test_a_side_of_a_cut_is_bounded_no_worse_than_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of units that are bounded from below: their multipliers make up for what the decided unit loses."""
    monkeypatch.setattr("dokimos.engine.branch_and_bound.TRIED", 100)
    cuts = 0
    for seed in range(6):
        small = SmallReluNetwork.draw(np.random.default_rng(seed), sizes=(3, 8, 8, 2))
        lifted = small.lifted(-small.grid_minimum() - Fraction(1, 8))
        network = read_onnx(lifted.instance().network_file)
        asked = first_class_loses(ball([Fraction(0)] * 3, lifted.radius), 2)
        box, conjunction = asked.questions()[0]
        engine = LinearSearch(network, asked, SearchEffort(60.0), few_inputs=0)
        question, start = engine._root(box, conjunction)
        tree = engine._search(box, question, start, SearchEffort(60.0), cuts_inputs=False)
        _, (whole,), _ = tree._start()
        assert tree._bound([whole])
        known = tree._parts.value(whole)
        for _, cut in tree._candidates([whole]):
            if max(cut.below, cut.above) > 0:
                cuts += 1
                assert min(map(tree._parts.value, _sides(whole, cut))) >= known - 1e-4
    assert cuts > 10


@pytest.mark.parametrize("name", CURVES)
def test_lines_of_curves_stay_on_their_sides(name: str) -> None:
    """For any choice, in intervals of all sizes; without one they are those of the checker."""
    rng = np.random.default_rng(0)
    lower = rng.normal(0, 4, size=400)
    upper = lower + rng.exponential(1.0, size=400) ** 3 + 1e-3
    ends = (torch.tensor(lower, dtype=torch.float64), torch.tensor(upper, dtype=torch.float64))
    curve = CURVES[name]
    last = _last_tangents(curve, *ends)
    at = torch.linspace(0, 1, 101, dtype=torch.float64)[:, None] * (ends[1] - ends[0]) + ends[0]
    for choice in (None, *(torch.full((400,), share, dtype=torch.float64) for share in (0.0, 0.3, 1.0))):
        below, above = _bent_lines(curve, ends, last, choice)
        assert (below[0] * at + below[1] <= curve.value(at) + 1e-6).all()
        assert (above[0] * at + above[1] >= curve.value(at) - 1e-6).all()
        chosen = np.full((1,), np.nan) if choice is None else choice.numpy()
        known = UNITS[name](Node(name, ("x",), "y"), Interval(lower, upper), chosen)
        assert np.abs(below[0].numpy() - known.lower_slope).max() < 1e-4
        assert np.abs(above[0].numpy() - known.upper_slope).max() < 1e-4
