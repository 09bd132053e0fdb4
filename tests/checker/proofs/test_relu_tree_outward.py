from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.check import prove
from dokimos.constructions.parts.robustness import float32_above, float32_below
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.replay import replay
from dokimos.suites.instance import Certificate, Label
from tests.checker.small_networks import SmallPolynomial, SmallReluNetwork

NO_CHOICES = {"constraints": ["1"], "choices": {"slopes": {}, "multipliers": {}}}


def leaf_with(**choices: Any) -> dict[str, Any]:
    """A leaf of one constraint with some of its choices changed."""
    return {"constraints": ["1"], "choices": {"slopes": {}, "multipliers": {}, **choices}}


STUMP = {"splits": [-1], "leaves": [NO_CHOICES]}


def random_splits(rng: np.random.Generator, relus: Sequence[int], depth: int) -> list[int]:
    if depth == 0 or not relus or rng.random() < 0.2:
        return [-1]
    choice = int(rng.choice(relus))
    rest = [r for r in relus if r != choice]
    parts = (random_splits(rng, rest, depth - 1) for _ in range(2))
    return [choice, *(step for part in parts for step in part)]


def random_tree(rng: np.random.Generator, relus: int, *, depth: int = 6) -> dict[str, Any]:
    splits = random_splits(rng, range(relus), depth)
    leaves = []
    for _ in range(splits.count(-1)):
        slopes = {str(i): repr(float(rng.random())) for i in range(relus) if rng.random() < 0.5}
        multipliers = {str(i): repr(float(rng.exponential())) for i in range(relus) if rng.random() < 0.3}
        leaves.append(leaf_with(slopes=slopes, multipliers=multipliers))
    return {"splits": splits, "leaves": leaves}


def full_tree(relus: int) -> dict[str, Any]:
    """All phases decided."""

    def below(relu: int) -> list[int]:
        return [-1] if relu == relus else [relu, *below(relu + 1), *below(relu + 1)]

    return {"splits": below(0), "leaves": [NO_CHOICES] * 2**relus}


def certificate(*trees: Any) -> Certificate:
    return Certificate("relu-tree", {"arithmetic": "outward", "trees": list(trees)})


def attempt(small: SmallReluNetwork, tree: dict[str, Any]) -> Fraction:
    return prove(small.instance(), certificate(tree), Label.UNSAT, None).real


def exact_question(small: SmallReluNetwork) -> z3.Solver:
    """Is there a point of the box with margin <= 0? In real arithmetic, by z3."""
    solver = z3.Solver()
    values = [z3.Real(f"x{i}") for i in range(len(small.layers[0][0][0]))]
    radius = z3.Q(small.radius.numerator, small.radius.denominator)
    solver.add(*(z3.And(-radius <= x, x <= radius) for x in values))
    for number, (rows, biases) in enumerate(small.layers):
        values = [z3.If(v > 0, v, 0) for v in values] if number else values
        values = [
            sum(
                (z3.Q(w.numerator, w.denominator) * v for w, v in zip(row, values, strict=True)),
                z3.Q(b.numerator, b.denominator),
            )
            for row, b in zip(rows, biases, strict=True)
        ]
    solver.add(values[0] <= values[1])
    return solver


def test_whatever_is_chosen_what_is_proven_is_true() -> None:
    """Accepted labels hold by z3, and their margins are below every value on the grid."""
    accepted = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        small = SmallReluNetwork.draw(rng)
        lifted = small.lifted(float32_above(2 * abs(small.grid_minimum()) + int(rng.integers(1, 20))))
        try:
            margin = attempt(lifted, random_tree(rng, small.relus()))
        except InvalidProof:
            continue
        assert 0 < margin <= lifted.grid_minimum()
        assert exact_question(lifted).check() == z3.unsat
        accepted += 1
    assert accepted >= 10


@settings(deadline=None, max_examples=105)
@given(seed=st.integers(0, 2**32 - 1), depth=st.one_of(st.none(), st.integers(0, 6)))
def test_no_tree_proves_a_false_label(seed: int, depth: int | None) -> None:
    """The margin is not positive on the grid, so the label is false, whatever the certificate says."""
    rng = np.random.default_rng(seed)
    small = SmallReluNetwork.draw(rng)
    false = small.lifted(float32_below(-small.grid_minimum()))
    assert false.grid_minimum() <= 0
    relus = small.relus()
    with pytest.raises(InvalidProof):
        attempt(false, full_tree(relus) if depth is None else random_tree(rng, relus, depth=depth))


def test_the_float32_margin_is_below_what_the_runtime_computes() -> None:
    checked = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        small = SmallReluNetwork.draw(rng)
        lifted = small.lifted(float32_above(4 * abs(small.grid_minimum()) + 30))
        instance = lifted.instance()
        chosen = certificate(random_tree(rng, small.relus()))
        try:
            proven = prove(instance, chosen, Label.UNSAT, None)
        except InvalidProof:
            continue
        assert proven.float32 is not None
        assert proven.float32 <= proven.real
        size = float(small.radius)
        points = rng.uniform(-size, size, size=(200, 2)).astype(np.float32)
        outputs = replay(instance.network_file, points).astype(np.float64)
        assert float(proven.float32) <= (outputs[:, 0] - outputs[:, 1]).min()
        checked += 1
    assert checked >= 5


def test_choices_out_of_range_and_relus_that_do_not_exist_are_refused() -> None:
    small = SmallReluNetwork.draw(np.random.default_rng(0))
    lifted = small.lifted(Fraction(1000))
    assert attempt(lifted, STUMP) > 0
    for leaf, message in (
        (leaf_with(slopes={"0": "1.5"}), "slopes' is negative or above 1"),
        (leaf_with(slopes={"0": "-0.5"}), "slopes' is negative"),
        (leaf_with(multipliers={"0": "-1"}), "multipliers' is negative"),
        (leaf_with(multipliers={"0": "1" + "0" * 40}), "multipliers' is negative or above"),
        (leaf_with(slopes={"99": "1"}), f"beyond the network's {lifted.relus()}"),
        (leaf_with(multipliers={"99": "1"}), f"beyond the network's {lifted.relus()}"),
        ({**NO_CHOICES, "constraints": ["-1"]}, "constraints' is negative"),
        ({**NO_CHOICES, "constraints": ["0"]}, "not above 0"),
    ):
        with pytest.raises(InvalidProof, match=message):
            attempt(lifted, {"splits": [-1], "leaves": [leaf]})
    with pytest.raises(InvalidProof, match="beyond the network's"):
        attempt(lifted, {"splits": [99, -1, -1], "leaves": [NO_CHOICES] * 2})


@pytest.mark.parametrize(
    "tree",
    [
        3,
        {},
        {"splits": [-1]},
        {"splits": -1, "leaves": []},
        {"splits": [-2], "leaves": [NO_CHOICES]},
        {"splits": [True, -1, -1], "leaves": [NO_CHOICES] * 2},
        {"splits": [], "leaves": []},
        {"splits": [0, -1], "leaves": [NO_CHOICES]},
        {"splits": [-1, -1], "leaves": [NO_CHOICES] * 2},
        {"splits": [0, 0, -1, -1, -1], "leaves": [NO_CHOICES] * 3},
        {"splits": [-1], "leaves": []},
        {"splits": [-1], "leaves": [3]},
        {"splits": [-1], "leaves": [{"constraints": ["1"]}]},
        {"splits": [-1], "leaves": [{"constraints": ["1"], "choices": {"slopes": {}}}]},
        {"splits": [-1], "leaves": [{"choices": {"slopes": {}, "multipliers": {}}}]},
        {"splits": [-1], "leaves": [{"constraints": ["1"], "choices": {"below": {}, "above": {}}}]},
        {"splits": [-1], "leaves": [{**NO_CHOICES, "constraints": []}]},
        {"splits": [-1], "leaves": [{**NO_CHOICES, "constraints": ["1", "1"]}]},
        {"splits": [-1], "leaves": [{**NO_CHOICES, "constraints": [1]}]},
        {"splits": [-1], "leaves": [leaf_with(slopes=[])]},
        {"splits": [-1], "leaves": [leaf_with(slopes={"a": "1"})]},
        {"splits": [-1], "leaves": [leaf_with(slopes={"-1": "1"})]},
        {"splits": [-1], "leaves": [leaf_with(slopes={"²": "1"})]},
        {"splits": [-1], "leaves": [leaf_with(slopes={"0": 1})]},
        {"splits": [-1], "leaves": [leaf_with(multipliers={"0": "1" + "0" * 400})]},
        {"splits": [-1], "leaves": [leaf_with(more={})]},
        {"splits": [-1], "leaves": [NO_CHOICES], "more": 7},
    ],
)
def test_data_of_the_wrong_shape_is_unreadable(tree: Any) -> None:
    small = SmallReluNetwork.draw(np.random.default_rng(0)).lifted(Fraction(1000))
    with pytest.raises(UnreadableFile):
        attempt(small, tree)


def test_there_must_be_one_tree_for_each_conjunction() -> None:
    small = SmallReluNetwork.draw(np.random.default_rng(0)).lifted(Fraction(1000))
    for trees, message in (
        ([], "one for each conjunction"),
        ([STUMP, STUMP], "one for each conjunction"),
        (3, "trees: expected"),
    ):
        data = {"arithmetic": "outward", "trees": trees}
        with pytest.raises(UnreadableFile, match=message):
            prove(small.instance(), Certificate("relu-tree", data), Label.UNSAT, None)


def test_other_networks_are_refused() -> None:
    polynomial = SmallPolynomial.draw(np.random.default_rng(0), degree=2)
    with pytest.raises(InvalidProof, match="not affine layers with ReLUs"):
        prove(polynomial.instance(), certificate(STUMP), Label.UNSAT, None)
