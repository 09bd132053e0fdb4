"""A parity lock on instances of other families: both labels, and what must be refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dokimos.checker.check import prove
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.draft import ball
from dokimos.constructions.locked_networks import VIOLATING_SHARE, lock_branch, shape_of
from dokimos.constructions.parity_gate import draw_lock
from dokimos.core.errors import ConstructionFailed, InvalidProof
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import GraphBuilder
from dokimos.suites.instance import Label, LabelledInstance
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from tests.constructions.siblings import truth_of

SMALL: dict[str, dict[str, Any]] = {
    "convex-corners": {},
    "softmax-attention": {},
    "contractive-cnn": {"size": 6, "depth": 2, "channels": 2},
}


def pair(family: str, **options: Any) -> tuple[LabelledInstance, LabelledInstance]:
    knobs = {"knobs": SMALL.get(family, {}), "lock": 30, "mix": False} | options
    drawn = CONSTRUCTIONS[family].draw(
        seed=0, timeout_seconds=60, disguise=(), with_twin=True, plugin_proofs=False, **knobs
    )
    shut, opened = drawn.instances
    return shut, opened


def constants(file: bytes) -> dict[str, Any]:
    return {i.name: numpy_helper.to_array(i) for i in onnx.load_from_string(file).graph.initializer}


@pytest.mark.parametrize("family", SMALL)
def test_the_pair_differs_in_one_right_hand_side(family: str) -> None:
    shut, opened = pair(family)
    assert (truth_of(shut).label, truth_of(opened).label) == (Label.UNSAT, Label.SAT)
    before, after = constants(shut.instance.network_file), constants(opened.instance.network_file)
    assert before.keys() == after.keys()
    changed = sum(int((before[name] != after[name]).sum()) for name in before)
    assert 0 < changed <= 2 * 7 + 1
    assert shut.instance.property_file == opened.instance.property_file


def test_the_violation_fills_a_hundredth_of_the_box_around_the_witness() -> None:
    _, opened = pair("convex-corners")
    network = read_onnx(opened.instance.network_file)
    question = read_vnnlib(opened.instance.property_file, file="p")
    (box,) = {case.box for case in question.cases}
    witness = truth_of(opened).witness
    assert witness is not None
    rng = np.random.default_rng(0)
    for _ in range(5):
        signs = rng.choice([-1, 1], size=box.size)
        corner = tuple(
            min(max(x + int(s) * VIOLATING_SHARE * (high - low), low), high)
            for x, s, low, high in zip(witness, signs, box.lower, box.upper, strict=True)
        )
        assert violation_at(network, question, corner).violates


def test_a_lock_that_opens_is_not_proven_shut() -> None:
    shut, opened = pair("convex-corners")
    forged = replace(shut.instance, network_file=opened.instance.network_file)
    with pytest.raises(InvalidProof, match=r"not that of the lock|below 0"):
        prove(forged, truth_of(shut).certificate, Label.UNSAT, None)


def test_a_base_that_is_not_robust_is_not_proven_by_a_shut_lock() -> None:
    """The base of the certificate is the network without the branch, whatever it is called."""
    shut, _ = pair("convex-corners")
    model = onnx.load_from_string(shut.instance.network_file)
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if not tensor.name.startswith("lock") and values.ndim == 1:
            last = tensor
    values = numpy_helper.to_array(last).copy()
    values[0] -= 1000
    last.CopyFrom(numpy_helper.from_array(values, last.name))
    forged = replace(shut.instance, network_file=model.SerializeToString())
    with pytest.raises(InvalidProof):
        prove(forged, truth_of(shut).certificate, Label.UNSAT, None)


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("exclusive-pairs", {"knobs": {"inputs": 24}}, "at least 25 inputs"),
        ("parity-lock", {}, "its own parity lock"),
        ("convex-corners", {"lock": 1000}, "at most 256 bits"),
    ],
)
def test_what_cannot_have_a_lock_is_refused(family: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstructionFailed, match=message):
        pair(family, **options)


def test_shapes_keep_to_the_theorem() -> None:
    for bits in (1, 2, 5, 8, 26, 75, 200):
        shape = shape_of(bits, 25)
        assert shape.inputs <= 25
        assert shape.weight % 2 == 1
        assert shape.opening * max(Fraction(1), 1 / (2 * shape.penalty)) < 1


def test_files_of_old_versions_get_a_lock_too() -> None:
    """Version 9 of Gemm needs a bias, and old files list their constants as inputs."""
    graph = GraphBuilder(opset=9)
    weight = graph.constant(np.ones((2, 30)), name="w")
    out = graph.node("Gemm", "X", weight, graph.constant(np.zeros(2), name="b"), transB=1)
    given = {"X": ("float", [1, 30])}
    file = graph.build(given, out, [1, 2], lists_constants_as_inputs=True)
    box = ball([Fraction(0)] * 30, Fraction(1, 4))
    lock = draw_lock(shape_of(30, 30), box, np.random.default_rng(0))
    locked = read_onnx(lock_branch(file, lock, [Fraction(-4), Fraction(4)]))
    centre = lock.centre([Fraction(0)] * 30)
    outside, inside = (evaluate(locked, point).lower for point in ((Fraction(1, 4),) * 30, centre))
    assert outside[0] == outside[1]
    assert inside[1] - inside[0] == 4
