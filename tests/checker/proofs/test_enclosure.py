"""Boxes cut into pieces: every piece counts, and no tree proves what is false."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from dokimos.checker.base import Proven
from dokimos.checker.check import prove
from dokimos.checker.proofs.enclosure import LEAF, MOST_PIECES, halves, pieces
from dokimos.constructions.operators import VARIANTS
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.runtimes.sessions import replay
from dokimos.suites.instance import Certificate, Instance, Label, LabelledInstance
from dokimos.suites.vnnlib.model import Box
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.suites.vnnlib.writer import exact_decimal
from tests.checker.files import instance_of, model, question
from tests.making import shipped_once

#: Operators that take every number to a number, and what they read beside the tensor.
SMOOTH: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Relu", "Sigmoid", "Tanh", "Exp", "Neg", "LeakyRelu"), ()),
    **dict.fromkeys(("Pow", "Mul", "Sub", "Max"), ("k",)),
}


def parabola(threshold: Any, *, unsafe: str = "") -> Instance:
    """Y = x·(1 − x) on [0, 1], at most 1/4; unsafe from `threshold` on."""
    network = model([("Sub", ["one", "X"], "r"), ("Mul", ["X", "r"], "Y")], {"one": [[1]]}, [1, 1], [1, 1])
    return instance_of(network, question([(0, 1)], 1, unsafe or f"(>= Y_0 {threshold})"))


def attempt(instance: Instance, *trees: list[int]) -> Proven:
    return prove(instance, Certificate("enclosure", {"trees": list(trees)}), Label.UNSAT, None)


def balanced(depth: int) -> list[int]:
    """The tree that halves one coordinate `depth` times."""
    return [LEAF] if depth == 0 else [0, *balanced(depth - 1), *balanced(depth - 1)]


def test_more_pieces_prove_more() -> None:
    with pytest.raises(InvalidProof, match="a piece's bound"):
        attempt(parabola("0.5"), balanced(0))
    margins = [attempt(parabola("0.5"), balanced(depth)).real for depth in (2, 3, 4, 5)]
    assert margins == sorted(set(margins))
    assert margins[0] > 0
    assert margins[-1] <= Fraction(1, 4)


def test_no_tree_proves_a_bound_that_is_reached() -> None:
    for depth in range(9):
        with pytest.raises(InvalidProof):
            attempt(parabola("0.25"), balanced(depth))
    assert attempt(parabola("0.26"), balanced(8)).real <= Fraction(1, 100)


def test_every_piece_counts() -> None:
    """The one piece that holds the top, left whole, is not proven by the others."""
    fine = balanced(5)
    assert attempt(parabola("0.3"), fine).real > 0
    coarse = [0, *balanced(1), *balanced(4)]
    with pytest.raises(InvalidProof, match="a piece's bound"):
        attempt(parabola("0.3"), coarse)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([], "ends before"),
        (balanced(5)[:-1], "ends before"),
        ([*balanced(5), LEAF], "continues"),
        ([0, *balanced(4)], "ends before"),
        ([1, LEAF, LEAF], "no coordinate 1"),
        ([0] * (2 * MOST_PIECES + 1), "more than"),
    ],
)
def test_trees_must_fit(tree: list[int], message: str) -> None:
    with pytest.raises(InvalidProof, match=message):
        attempt(parabola("0.5"), tree)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"trees": 1},
        {"trees": []},
        {"trees": [[-1], [-1]]},
        {"trees": [-1]},
        {"trees": [[-2]]},
        {"trees": [[True, -1, -1]]},
        {"trees": [["0", -1, -1]]},
        {"trees": [[-1]], "more": 1},
    ],
)
def test_data_of_the_wrong_shape_is_unreadable(data: dict[str, Any]) -> None:
    with pytest.raises(UnreadableFile):
        prove(parabola("2"), Certificate("enclosure", data), Label.UNSAT, None)


def test_every_conjunction_has_a_tree_and_one_constraint_must_fail_on_each_piece() -> None:
    both = parabola(0, unsafe="(or (and (>= Y_0 2)) (and (<= Y_0 -2) (>= X_0 0)))")
    assert Fraction(999, 1000) < attempt(both, [LEAF], [LEAF]).real <= 1
    with pytest.raises(UnreadableFile, match="a list of 2"):
        attempt(both, [LEAF])


def test_an_empty_box_leaves_nothing_to_prove() -> None:
    empty = instance_of(parabola("2").network_file, question([(1, 0)], 1, "(>= Y_0 2)"))
    with pytest.raises(InvalidProof, match="nothing to prove"):
        attempt(empty)


def test_on_different_pieces_different_constraints_may_fail() -> None:
    same = model([("Mul", ["X", "one"], "Y")], {"one": [[1]]}, [1, 1], [1, 1])
    apart = instance_of(same, question([(0, 1)], 1, "(and (>= Y_0 0.75) (<= Y_0 0.25))"))
    assert Fraction(249, 1000) < attempt(apart, [0, LEAF, LEAF]).real <= Fraction(1, 4)
    with pytest.raises(InvalidProof):
        attempt(apart, [LEAF])
    touching = instance_of(same, question([(0, 1)], 1, "(and (>= Y_0 0.5) (<= Y_0 0.5))"))
    with pytest.raises(InvalidProof):
        attempt(touching, balanced(6))


def test_what_is_undefined_somewhere_is_not_bounded() -> None:
    network = model([("Div", ["one", "X"], "Y")], {"one": [[1]]}, [1, 1], [1, 1])
    for bounds in ((-1, 1), (0, 1)):
        with pytest.raises(InvalidProof):
            attempt(instance_of(network, question([bounds], 1, "(>= Y_0 1000)")), balanced(3))
    assert attempt(instance_of(network, question([(1, 2)], 1, "(>= Y_0 2)")), [LEAF]).real <= 1


def test_float32_needs_more_than_the_reals() -> None:
    """A margin below the rounding of float32 is proven for the reals only."""
    network = model(
        [("Mul", ["X", "third"], "Y")], {"third": [[np.float32(1) / np.float32(3)]]}, [1, 1], [1, 1]
    )
    third = Fraction(float(np.float32(1) / np.float32(3)))
    near, far = third + Fraction(1, 2**40), third + Fraction(1, 2**10)
    shown = [
        attempt(instance_of(network, question([(0, 1)], 1, f"(>= Y_0 {exact_decimal(t)})")), [LEAF])
        for t in (near, far)
    ]
    assert shown[0].float32 is None
    assert shown[1].float32 is not None
    assert shown[1].float32 < shown[1].real


def test_halves_make_the_whole() -> None:
    box = Box((Fraction(0), Fraction(-1, 3)), (Fraction(1), Fraction(2, 7)))
    low, high = halves(box, 1)
    assert (low.lower, high.upper) == (box.lower, box.upper)
    assert low.upper[1] == high.lower[1]
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 2, 5)
    parts = list(pieces(box, tree))
    assert sum(volume(part) for part in parts) == volume(box)
    for _ in range(50):
        at = [Fraction(int(k), 64) for k in rng.integers(0, 65, size=2)]
        point = tuple(a + (b - a) * t for a, b, t in zip(box.lower, box.upper, at, strict=True))
        assert any(point in part for part in parts)


def volume(box: Box) -> Fraction:
    sides = [b - a for a, b in zip(box.lower, box.upper, strict=True)]
    return sides[0] * sides[1]


def random_tree(rng: np.random.Generator, inputs: int, depth: int) -> list[int]:
    if depth == 0 or rng.random() < 0.2:
        return [LEAF]
    parts = (random_tree(rng, inputs, depth - 1) for _ in range(2))
    return [int(rng.integers(inputs)), *(step for part in parts for step in part)]


def random_network(rng: np.random.Generator) -> bytes:
    """Two affine layers around an operator of the table, and a product of two inputs beside them."""
    op = str(rng.choice(list(SMOOTH)))
    constant = float(rng.integers(1, 4))
    weights = {
        "w": rng.integers(-4, 5, size=(2, 3)) / 4,
        "b": rng.integers(-4, 5, size=3) / 4,
        "v": rng.integers(-4, 5, size=(3, 1)) / 4,
        "k": constant,
        "t": [[0, 1], [1, 0]],
        "o": [[1], [1]],
    }
    nodes: list[tuple[Any, ...]] = [
        ("Gemm", ["X", "w", "b"], "z"),
        (op, ["z", *SMOOTH[op]], "h"),
        ("Gemm", ["h", "v"], "a"),
        ("MatMul", ["X", "t"], "s"),
        ("Mul", ["X", "s"], "p"),
        ("MatMul", ["p", "o"], "q"),
        ("Add", ["a", "q"], "Y"),
    ]
    return model(nodes, weights, [1, 2], [1, 1])


def grid_values(network: bytes) -> list[Fraction]:
    """The lower ends of Y on a grid over [−1, 1]²."""
    net = read_onnx(network)
    ticks = [Fraction(k, 2) for k in range(-2, 3)]
    return [evaluate(net, (a, b)).lower[0] for a in ticks for b in ticks]


@pytest.mark.no_cover
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_whatever_is_chosen_the_margin_is_below_every_value_on_the_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    most = max(grid_values(network))
    above = Fraction(int(rng.integers(-64, 256)), 32)
    threshold = Fraction(round(most * 2**20), 2**20) + above
    asked = question([(-1, 1)] * 2, 1, f"(>= Y_0 {exact_decimal(threshold)})")
    try:
        proven = attempt(instance_of(network, asked), random_tree(rng, 2, 5))
    except InvalidProof:
        return
    assert 0 < proven.real <= threshold - most
    assert proven.float32 is None or proven.float32 <= proven.real


@pytest.mark.no_cover
def test_many_random_trees_prove_something_and_none_a_false_label() -> None:
    proven = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        network = random_network(rng)
        most = max(grid_values(network))
        false = Fraction(int(most * 2**12) - 1, 2**12)
        asked = question([(-1, 1)] * 2, 1, f"(>= Y_0 {exact_decimal(false)})")
        with pytest.raises(InvalidProof):
            attempt(instance_of(network, asked), random_tree(rng, 2, 6))
        loose = question([(-1, 1)] * 2, 1, f"(>= Y_0 {exact_decimal(false + 8)})")
        try:
            attempt(instance_of(network, loose), random_tree(rng, 2, 6))
        except InvalidProof:
            continue
        proven += 1
    assert proven >= 20


@pytest.fixture(scope="module")
def proven_variants(run_folder: Path) -> dict[str, LabelledInstance]:
    """The robust instance of each variant in the shipped suite, which other tests need, too."""
    found = {}
    for entry in shipped_once(run_folder, "ops").entries:
        instance, truth = entry.read_instance(), entry.read_truth()
        if truth is not None and truth.label is Label.UNSAT:
            made = json.loads(entry.truth_path.read_text(encoding="utf-8"))["origin"]["parameters"]
            found[made["variant"]] = LabelledInstance(instance, truth)
    assert set(found) == set(VARIANTS)
    return found


def changed(network: bytes, rng: np.random.Generator) -> bytes:
    """The network with one float changed by far, or by a little."""
    made = onnx.load_from_string(network)
    floats = [t for t in made.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    tensor = floats[int(rng.integers(len(floats)))]
    array = numpy_helper.to_array(tensor).copy()
    flat = array.reshape(-1)
    at = int(rng.integers(len(flat)))
    flat[at] = flat[at] * np.float32(rng.choice([-1, 0.5, 2])) + np.float32(rng.choice([0, 0.25, -0.25]))
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return bytes(made.SerializeToString(deterministic=True))


def known_to_be_sat(instance: Instance) -> bool:
    """Whether a corner of the box is unsafe, exactly."""
    asked = read_vnnlib(instance.property_file, file="p")
    (case,) = asked.cases
    rng = np.random.default_rng(0)
    ends = [np.array([float(x) for x in end]) for end in (case.box.lower, case.box.upper)]
    points = np.where(rng.random((300, case.box.size)) < 0.5, *ends).astype(np.float32)
    outputs = replay(instance.network_file, points)
    order = np.argsort(-(outputs[:, 0] - (outputs[:, 1] if outputs.shape[1] > 1 else 0)))
    best = tuple(Fraction(float(x)) for x in points[order[0]])
    return violation_at(read_onnx(instance.network_file), asked, best).violates


@pytest.mark.no_cover
def test_mutants_of_every_variant_are_not_proven_where_they_are_false(
    proven_variants: dict[str, LabelledInstance],
) -> None:
    """Changed weights, with the proof of the unchanged network."""
    refused = kept = 0
    for name in VARIANTS:
        base = proven_variants[name]
        assert base.truth is not None
        data = base.truth.certificate
        rng = np.random.default_rng(list(name.encode()))
        for _ in range(4):
            mutant = instance_of(changed(base.instance.network_file, rng), base.instance.property_file)
            try:
                prove(mutant, data, Label.UNSAT, None)
            except (InvalidProof, UnreadableFile):
                refused += 1
                continue
            assert not known_to_be_sat(mutant)
            kept += 1
    assert refused >= 60
    assert kept >= 40


@pytest.mark.parametrize("name", ["softmax-coerced", "conv-pads", "max-pool-negative", "pow-square"])
def test_a_moved_bound_is_not_proven(name: str, proven_variants: dict[str, LabelledInstance]) -> None:
    """The threshold moved to where a corner reaches it."""
    base = proven_variants[name]
    assert base.truth is not None
    text = base.instance.property_file.decode()
    head, _, bound = text.rpartition("(assert (>= Y_0 ")
    wanted = Fraction(bound.partition(")")[0])
    asked = read_vnnlib(base.instance.property_file, file="p")
    (case,) = asked.cases
    rng = np.random.default_rng(0)
    ends = [np.array([float(x) for x in end]) for end in (case.box.lower, case.box.upper)]
    points = np.where(rng.random((300, case.box.size)) < 0.5, *ends).astype(np.float32)
    most = Fraction(float(replay(base.instance.network_file, points).max()))
    assert most < wanted
    moved = f"{head}(assert (>= Y_0 {exact_decimal(most - Fraction(1, 2**10))}))\n".encode()
    mutant = instance_of(base.instance.network_file, moved)
    with pytest.raises(InvalidProof):
        prove(mutant, base.truth.certificate, Label.UNSAT, None)


@pytest.mark.parametrize(
    "steps",
    [
        [("Div", ["one", "X"], "t"), ("Tanh", ["t"], "Y")],
        [("Div", ["one", "X"], "t"), ("Mul", ["t", "zero"], "Y")],
        [("Div", ["X", "X"], "t"), ("Clip", ["t", "least", "most"], "Y")],
        [("Pow", ["X", "half"], "t"), ("Sigmoid", ["t"], "Y")],
        [("Div", ["one", "X"], "t"), ("Min", ["t", "one"], "Y")],
    ],
)
def test_nothing_is_proven_where_the_network_is_undefined(steps: list[tuple[str, list[str], str]]) -> None:
    """A bounded operator after one that is undefined at 0 does not make the network a function there."""
    read = {name for _, names, _ in steps for name in names}
    constants = {"one": [[1]], "zero": [[0]], "least": 0, "most": 1, "half": 0.5}
    network = model(steps, {k: v for k, v in constants.items() if k in read}, [1, 1], [1, 1])
    assert attempt(instance_of(network, question([(1, 2)], 1, "(>= Y_0 2)")), [LEAF]).real > 0
    for tree in ([LEAF], balanced(3)):
        with pytest.raises(InvalidProof, match="a piece's bound"):
            attempt(instance_of(network, question([(-1, 1)], 1, "(>= Y_0 2)")), tree)
