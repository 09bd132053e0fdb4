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
from dokimos.runtimes.sessions import replay
from dokimos.suites.instance import Certificate, Label
from dokimos.suites.vnnlib.writer import exact_decimal
from tests.checker.files import instance_of, model, question
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


@pytest.mark.no_cover
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


@pytest.mark.no_cover
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


@pytest.mark.no_cover
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
        assert proven.float32 < proven.real
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


def test_conjunctions_are_refuted_together() -> None:
    """y0 <= −1/2 and y1 <= −1/2 cannot hold together, for y0 + y1 = 0, though each can alone."""
    weights = {"w": [[1.0]], "b": [0.0], "v": [[1.0, -1.0]], "c": [-1.0, 1.0]}
    nodes = [("Gemm", ["X", "w", "b"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "v", "c"], "Y")]
    asked = question([(0, 2)], 2, "(<= Y_0 -0.5)", "(<= Y_1 -0.5)")
    instance = instance_of(model(nodes, weights, [1, 1], [1, 2]), asked)

    def margin(*constraints: str) -> Fraction:
        leaf = {**NO_CHOICES, "constraints": list(constraints)}
        return prove(instance, certificate({"splits": [-1], "leaves": [leaf]}), Label.UNSAT, None).real

    assert Fraction(499, 1000) < margin("1", "1") <= Fraction(1, 2)
    assert margin("3", "3") == pytest.approx(margin("1", "1"))
    for alone in (("1", "0"), ("0", "1"), ("1", "3"), ("0", "0")):
        with pytest.raises(InvalidProof, match="not above 0"):
            margin(*alone)


def test_constraints_on_inputs_count_only_with_a_weight_of_0() -> None:
    nodes = [("Gemm", ["X", "w"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "w"], "Y")]
    network = model(nodes, {"w": [[1.0]]}, [1, 1], [1, 1])
    instance = instance_of(network, question([(1, 2)], 1, "(<= Y_0 0.5)", "(<= (+ X_0 Y_0) 0.5)"))
    for weights, message in ((["1", "0"], None), (["1", "1"], "involves inputs")):
        chosen = certificate({"splits": [-1], "leaves": [{**NO_CHOICES, "constraints": weights}]})
        if message is None:
            assert prove(instance, chosen, Label.UNSAT, None).real > Fraction(49, 100)
        else:
            with pytest.raises(InvalidProof, match=message):
                prove(instance, chosen, Label.UNSAT, None)


def test_an_empty_case_may_be_closed_without_weights() -> None:
    """On [1/2, 1] no argument is negative: there 0 >= β·x, which is positive for β > 0."""
    nodes = [("Gemm", ["X", "w"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "w"], "Y")]
    network = model(nodes, {"w": [[1.0]]}, [1, 1], [1, 1])
    instance = instance_of(network, question([("0.5", 1)], 1, "(<= Y_0 0.25)"))
    empty = {**leaf_with(multipliers={"0": "1"}), "constraints": ["0"]}
    splits = [0, -1, -1]
    proven = prove(
        instance, certificate({"splits": splits, "leaves": [NO_CHOICES, empty]}), Label.UNSAT, None
    )
    assert Fraction(24, 100) < proven.real <= Fraction(1, 4)
    for leaves in ([empty, empty], [NO_CHOICES, {**NO_CHOICES, "constraints": ["0"]}]):
        with pytest.raises(InvalidProof, match="not above 0"):
            prove(instance, certificate({"splits": splits, "leaves": leaves}), Label.UNSAT, None)


def test_too_many_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.checker.proofs.relu_cases.MOST_LEAVES", 1)
    small = SmallReluNetwork.draw(np.random.default_rng(0)).lifted(Fraction(1000))
    with pytest.raises(InvalidProof, match="more than 1 leaves"):
        attempt(small, {"splits": [0, -1, -1], "leaves": [NO_CHOICES] * 2})


def test_a_property_without_inputs_has_no_proof() -> None:
    nodes = [("Gemm", ["X", "w"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "w"], "Y")]
    network = model(nodes, {"w": [[1.0]]}, [1, 1], [1, 1])
    with pytest.raises(InvalidProof, match="nothing to prove"):
        prove(instance_of(network, question([(1, -1)], 1, "(<= Y_0 0)")), certificate(), Label.UNSAT, None)


@pytest.mark.no_cover
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_weights_prove_what_is_false(seed: int) -> None:
    """Two constraints that hold together at a point of the box, whatever their weights and the tree."""
    rng = np.random.default_rng(seed)
    small = SmallReluNetwork.draw(rng)
    point = [Fraction(int(rng.integers(-4, 5)), 4) * small.radius for _ in range(2)]
    y = small.outputs(point)
    bounds = [float32_above(y[0] + Fraction(1, 8)), float32_above(y[1] + Fraction(1, 8))]
    written = [f"(<= Y_{j} {exact_decimal(bound)})" for j, bound in enumerate(bounds)]
    side = exact_decimal(small.radius)
    asked = question([(f"-{side}", side)] * 2, 2, *written)
    tree = random_tree(rng, small.relus())
    for leaf in tree["leaves"]:
        leaf["constraints"] = [str(Fraction(int(rng.integers(0, 9)), 4)) for _ in range(2)]
    with pytest.raises(InvalidProof):
        prove(instance_of(small.instance().network_file, asked), certificate(tree), Label.UNSAT, None)
