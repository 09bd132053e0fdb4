"""Whatever network a kind of proof is put to, what it proves is true, or it ends in one of our errors."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from flint import fmpq
from onnx import TensorProto, helper

from dokimos.checker import CERTIFICATES
from dokimos.checker.linear.rational_walk import RationalWalk
from dokimos.checker.trees.covers import TreeZones
from dokimos.core.errors import DokimosError
from dokimos.networks.graph import CORE_OPS
from dokimos.networks.reading.onnx_file import read_onnx
from tests.checker.files import model
from tests.fuzz.graphs import anything, attention
from tests.fuzz.kinds import Drawn, Side, Tally, certificates, draw, put_to_all
from tests.fuzz.trees import put_to_trees

FEW, MANY = 100, 20_000


def without_nodes() -> bytes:
    kind = helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 2])
    made = helper.make_model(helper.make_graph([], "g", [kind], [kind]), ir_version=8)
    made.opset_import[0].version = 13
    return bytes(made.SerializeToString())


def relu_behind(*nodes: tuple[Any, ...], shape: tuple[int, ...], **weights: Any) -> bytes:
    """The nodes from X to "a", then a ReLU, whose shape ONNX infers."""
    draft = model([*nodes, ("Relu", ["a"], "Y")], weights, shape, shape)
    proto = onnx.load_from_string(draft)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    found = onnx.shape_inference.infer_shapes(proto, strict_mode=True)
    return bytes(found.SerializeToString())


def one_token(dtype: Any) -> bytes:
    """Attention of one token to itself: the sum of the inputs."""
    nodes = [
        ("MatMul", ["X", "zero"], "q"),
        ("MatMul", ["q", "q"], "s"),
        ("Softmax", ["s"], "w", {"axis": 1}),
        ("MatMul", ["X", "one"], "v"),
        ("MatMul", ["w", "v"], "Y"),
    ]
    return model(nodes, {"zero": np.zeros((2, 1)), "one": np.ones((2, 1))}, [1, 2], [1, 1], dtype=dtype)


#: Networks at the edges of what can be read.
EDGES: dict[str, bytes] = {
    "no node": without_nodes(),
    "constant output": relu_behind(
        ("Mul", ["X", "c"], "b"), ("Add", ["d", "d"], "a"), shape=(1, 2), c=[2.0], d=[[1.0, 2.0]]
    ),
    "constant behind the input": relu_behind(("Mul", ["X", "c"], "a"), shape=(1, 2), c=[0.0]),
    "batch of two": relu_behind(("Gemm", ["X", "c"], "a"), shape=(2, 2), c=np.eye(2)),
    "convolution of two": relu_behind(
        ("Conv", ["X", "c"], "a"), shape=(2, 1, 2, 2), c=np.ones((2, 1, 1, 1))
    ),
    "convolution in groups": relu_behind(
        ("Conv", ["X", "c"], "a", {"group": 2}), shape=(1, 2, 2, 1), c=np.ones((2, 1, 1, 1))
    ),
    "product with the constant first": relu_behind(("Mul", ["c", "X"], "a"), shape=(1, 2), c=[[2.0, -1.0]]),
    "sum with the constant first": relu_behind(("Add", ["c", "X"], "a"), shape=(1, 2), c=[[2.0, -1.0]]),
    "difference from a constant": relu_behind(("Sub", ["c", "X"], "a"), shape=(1, 2), c=[[2.0, -1.0]]),
    "matrix on the left": relu_behind(("MatMul", ["c", "X"], "a"), shape=(2, 2), c=[[1.0, -1.0]]),
    "larger by broadcasting": relu_behind(("Add", ["X", "c"], "a"), shape=(1, 2), c=np.ones((2, 1, 2))),
    "input read twice": relu_behind(("Add", ["X", "X"], "a"), shape=(1, 2)),
    "scalar": relu_behind(("Add", ["X", "c"], "a"), shape=(), c=1.0),
    "entry of a vector": relu_behind(("Gather", ["X", "i_0"], "a"), shape=(2,), i_0=np.array(1)),
    "scalar that is padded": relu_behind(
        ("Pad", ["X", "i_0"], "a"), shape=(), i_0=np.zeros(0, np.int64)
    ),
    "vector": relu_behind(("MatMul", ["X", "c"], "a"), shape=(2,), c=[[1.0], [-1.0]]),
    "empty part": relu_behind(("Concat", ["X", "c"], "a", {"axis": 1}), shape=(1, 2), c=np.zeros((1, 0))),
    "empty product": relu_behind(
        ("Slice", ["X", "i_0", "i_0", "i_1"], "e"), ("MatMul", ["e", "c"], "a"), shape=(1, 2),
        c=np.zeros((0, 2)), i_0=np.array([0]), i_1=np.array([1]),
    ),
    "one token": one_token(np.float32),
    "one token in float64": one_token(np.float64),
}  # fmt: skip


@pytest.mark.parametrize("edge", EDGES)
def test_at_the_edges_every_kind_proves_what_is_true_or_refuses(edge: str) -> None:
    """On [−1, 1]^n, for an output that is bounded from below by less than, and by more than, its values."""
    if edge.startswith("empty"):
        with pytest.raises(DokimosError, match="no numbers"):
            read_onnx(EDGES[edge])
        return
    network = read_onnx(EDGES[edge])
    bounds = ((Fraction(-1), Fraction(1)),) * network.input_size
    rng = np.random.default_rng(0)
    shares = np.vstack([np.ones(network.input_size), rng.integers(0, 3, size=(12, network.input_size))]) - 1
    points = tuple(tuple(Fraction(int(x)) for x in row) for row in shares)
    tally = Tally()
    for output in range(network.output_size):
        drawn = Drawn(EDGES[edge], network, bounds, points, [[Side({output: 1})]], rng)
        for bound in (min(drawn.exact) - 1, min(drawn.exact) - Fraction(1, 8), max(drawn.exact)):
            for kind, data in [*certificates(drawn), ("witness", {})]:
                tally.put(kind, drawn, bound, data, edge)
    assert not tally.faults, "\n".join(tally.faults)
    assert set(tally.tried) == set(CERTIFICATES)
    assert tally.accepted["witness"]


@cache
def few() -> Tally:
    return put_to_all(3, FEW)


def test_no_kind_proves_what_a_few_networks_refute() -> None:
    assert not few().faults, "\n".join(few().faults)


def test_the_few_networks_are_many_enough_to_mean_something() -> None:
    """Kinds for one architecture are seldom met by chance: their own tests draw these."""
    assert set(few().tried) == set(CERTIFICATES)
    assert sum(few().accepted.values()) > 250
    assert len(few().accepted) > 8


def test_every_operator_and_both_types_are_drawn() -> None:
    met: set[str] = set()
    for number in range(6000):
        if drawn := draw(np.random.default_rng([3, number]), [anything]):
            met |= {str(drawn.network.dtype), *(node.op for node in drawn.network.nodes)}
        if met == {*CORE_OPS, "float32", "float64"}:
            return
    assert met == {*CORE_OPS, "float32", "float64"}


def test_a_false_margin_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests above can fail: a proof that loses how the input varies."""
    from dokimos.checker.proofs import fixed_routing as routing

    def first_only(rows: np.ndarray, route: np.ndarray) -> np.ndarray:
        return np.concatenate([rows[:1], 0 * rows[1:]])

    monkeypatch.setattr(routing, "_taken", first_only)
    assert any("fixed-routing: margin" in fault for fault in put_to_all(2, 40, [attention]).faults)


def test_a_constant_that_is_lost_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that networks with constants inside are drawn: exact walks that take steps of constants for 0."""
    own = RationalWalk._at_zero

    def lost(walk: RationalWalk, step: Any) -> Any:
        return own(walk, step) if step.sources else np.array(fmpq(0))

    monkeypatch.setattr(RationalWalk, "_at_zero", lost)
    assert any("linear: margin" in fault for fault in put_to_all(43, 18, [anything]).faults)


def test_no_cover_proves_what_a_case_of_trees_refutes() -> None:
    tried, accepted, faults = put_to_trees(1, 40)
    assert not faults, "\n".join(faults)
    assert tried > 100 and accepted > 50


def test_a_false_proof_about_trees_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test above can fail: no comparison of scores ever holds."""
    monkeypatch.setattr(TreeZones, "_can_hold", lambda *given: np.zeros(len(given[-1]), np.bool_))
    assert any("violates" in fault for fault in put_to_trees(1, 12)[2])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_kind_proves_what_many_networks_refute(seed: int) -> None:
    found = put_to_all(seed, MANY)
    assert not found.faults, "\n".join(found.faults[:20])
