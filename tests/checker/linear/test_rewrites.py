"""The parts of a node compute what the node computes, at exact points, in every form that can be read."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.linear import rewrites
from dokimos.checker.linear.lines import UNITS
from dokimos.checker.linear.rewrites import REWRITES, Parts, rewrite
from dokimos.core.errors import UnsupportedOp
from dokimos.networks.graph import CORE_OPS, Attribute, Network, Node, Shape, output_shape
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from tests.networks.graphs import ONE_OF_EACH, models, network_of

AFFINE = frozenset(
    {
        *("Add", "AveragePool", "BatchNormalization", "Concat", "Conv", "Expand", "Gather", "Neg", "Pad"),
        *("ReduceMean", "ReduceSum", "Reshape", "Slice", "Sub", "Transpose"),
    }
)
#: Affine in forms that `rewrite` leaves as they are.
AFFINE_WITH_A_CONSTANT = frozenset({"Mul", "Div", "MatMul", "Gemm"})
NARROW = Fraction(1, 2**100)


def test_every_core_operator_is_affine_or_has_lines_or_parts() -> None:
    assert set(CORE_OPS) == AFFINE | set(UNITS) | set(REWRITES)
    assert not AFFINE & set(UNITS) | AFFINE & set(REWRITES) | set(UNITS) & set(REWRITES)
    assert set(REWRITES) >= AFFINE_WITH_A_CONSTANT


def rewritten(network: Network) -> Network:
    """The network with the parts of every node that has parts; all of them are what a walk can bound."""
    nodes: list[Node] = []
    constants, shapes = dict(network.constants), dict(network.shapes)
    for node in network.nodes:
        parts = rewrite(node, network.shapes, network.constants)
        if parts is None:
            nodes.append(node)
            continue
        assert_whole(node, parts)
        nodes += parts.nodes
        constants |= parts.constants
        shapes |= parts.shapes
    fixed = set(constants)
    for node in nodes:
        given_shapes = [shapes[name] if name else () for name in node.inputs]
        assert output_shape(node, given_shapes) == shapes[node.output]
        assert rewrite(node, shapes, fixed) is None
        varying = [name for name in node.inputs if name and name not in fixed]
        fixed |= set() if varying else {node.output}
        if node.op in AFFINE_WITH_A_CONSTANT and len(varying) > 1 and set(varying) >= set(node.inputs[:2]):
            assert node.op == "Mul"
            assert shapes[varying[0]] == shapes[varying[1]] == shapes[node.output]
        assert node.op in AFFINE | set(UNITS) | AFFINE_WITH_A_CONSTANT
    return replace(
        network, nodes=tuple(nodes), constants=constants, shapes=shapes, dtype=np.dtype(np.float64)
    )


def assert_whole(node: Node, parts: Parts) -> None:
    """All that is new has a name of its own and a shape, and constants are float64."""
    made = [each.output for each in parts.nodes]
    assert made[-1] == node.output
    assert len(set(made)) == len(made)
    assert set(made[:-1]) | set(parts.constants) == set(parts.shapes)
    assert not set(made[:-1]) & set(parts.constants)
    assert all(name.startswith(f"{node.output}/") for name in parts.shapes)
    for name, array in parts.constants.items():
        assert array.dtype == np.float64
        assert array.shape == parts.shapes[name]


def assert_same(network: Network, rng: np.random.Generator, points: int = 3, least: int = -16) -> None:
    other = rewritten(network)
    for _ in range(points):
        at = [Fraction(int(n), 8) for n in rng.integers(least, 17, network.input_size)]
        before, after = (evaluate(each, at, relative_width=NARROW) for each in (network, other))
        if before.is_exact and after.is_exact:
            assert before == after
        else:
            ends = zip(before.lower, before.upper, after.lower, after.upper, strict=True)
            assert all(a <= d and c <= b for a, b, c, d in ends)
            assert max(before.width, after.width) <= NARROW * (1 + max(map(abs, before.upper), default=0))


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name.endswith(("@8", "@22"))])
def test_what_can_be_read_is_what_its_parts_compute(name: str) -> None:
    network = network_of(name)
    assert_same(network, np.random.default_rng(len(name)), points=1)


@settings(max_examples=30, deadline=None)
@given(model=models(), seed=st.integers(0, 99))
def test_chains_are_what_their_parts_compute(model: object, seed: int) -> None:
    network = read_onnx(model.SerializeToString())  # type: ignore[attr-defined]
    assert_same(network, np.random.default_rng(seed), points=1)


def net(
    op: str,
    shapes: dict[str, Shape],
    *,
    constants: dict[str, np.ndarray] | None = None,
    order: tuple[str, ...] | None = None,
    **attributes: Attribute,
) -> Network:
    """One node, each of whose varying inputs is cut from one long input of the network."""
    constants = constants or {}
    nodes, known, start = [], {name: array.shape for name, array in constants.items()}, 0
    size = sum(int(np.prod(shape)) for shape in shapes.values())
    for name, shape in shapes.items():
        end = start + int(np.prod(shape))
        cut: dict[str, Attribute] = {"starts": (start,), "ends": (end,), "axes": (0,), "steps": (1,)}
        nodes += [
            Node("Slice", ("x",), f"{name}!", cut),
            Node("Reshape", (f"{name}!",), name, {"shape": shape}),
        ]
        known |= {f"{name}!": (end - start,), name: shape}
        start = end
    order = order or (*shapes, *constants)
    node = Node(op, order, "y", attributes)
    known |= {"x": (size,), "y": output_shape(node, [known[name] for name in order])}
    return Network("x", "y", (*nodes, node), constants, known)


def parts_of(network: Network) -> Parts | None:
    return rewrite(network.nodes[-1], network.shapes, network.constants)


C = np.array([[0.5], [-1.25]])
POOLS: list[dict[str, Attribute]] = [
    {"kernel": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)},
    {"kernel": (3, 2), "strides": (2, 3), "pads": (1, 0, 2, 1), "dilations": (1, 1)},
    {"kernel": (2, 3), "strides": (1, 2), "pads": (1, 1, 1, 1), "dilations": (3, 2)},
    {"kernel": (1, 1), "strides": (2, 2), "pads": (0, 0, 0, 0), "dilations": (1, 1)},
    {"kernel": (5, 4), "strides": (1, 1), "pads": (2, 3, 2, 3), "dilations": (1, 1)},
]
GEMM: dict[str, Attribute] = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
INF = float("inf")
NETWORKS = {
    "Max, broadcast": net("Max", {"a": (3, 1, 2), "b": (4, 1), "c": (1,)}),
    "Max, seven": net("Max", dict.fromkeys("abcdefg", (2,))),
    "Max, constants": net("Max", {"a": (1, 3), "b": (3,)}, constants={"c": C, "d": np.array(0.25)}),
    "Max, constant first": net("Max", {"a": (2, 3)}, constants={"c": C}, order=("c", "a")),
    "Max, twice": net("Max", {"a": (2,)}, order=("a", "a")),
    "Max, one": net("Max", {"a": (2,)}),
    "Min, broadcast": net("Min", {"a": (3, 1, 2), "b": (4, 1), "c": (1,)}),
    "Min, constants": net("Min", {"a": (1, 3), "b": (3,)}, constants={"c": C, "d": np.array(0.25)}),
    "Min, twice": net("Min", {"a": (2,)}, order=("a", "a")),
    "LeakyRelu": net("LeakyRelu", {"a": (2, 3)}, alpha=0.25),
    "LeakyRelu, float32": net("LeakyRelu", {"a": (2, 3)}, alpha=float(np.float32(0.01))),
    "LeakyRelu, tiny": net("LeakyRelu", {"a": (2, 3)}, alpha=float(np.float32(1e-30))),
    "LeakyRelu, negative": net("LeakyRelu", {"a": (2, 3)}, alpha=-1.5),
    "LeakyRelu, zero": net("LeakyRelu", {"a": (2, 3)}, alpha=0.0),
    "Clip": net("Clip", {"a": (9,)}, min=float(np.float32(-0.3)), max=0.75),
    "Clip, default": net("Clip", {"a": (9,)}, min=-3.4028234663852886e38, max=0.5),
    "Clip, below": net("Clip", {"a": (9,)}, min=0.5, max=INF),
    "Clip, above": net("Clip", {"a": (9,)}, min=-INF, max=0.5),
    "Clip, nothing": net("Clip", {"a": (9,)}, min=-INF, max=INF),
    "Clip, one number": net("Clip", {"a": (9,)}, min=0.5, max=0.5),
    **{f"MaxPool {k}": net("MaxPool", {"a": (2, 2, 5, 4)}, **pool) for k, pool in enumerate(POOLS)},
    "MaxPool, line": net(
        "MaxPool", {"a": (1, 3, 7)}, kernel=(3,), strides=(2,), pads=(1, 1), dilations=(2,)
    ),
    **{f"Softmax {axis}": net("Softmax", {"a": (2, 3, 4)}, axis=axis) for axis in range(3)},
    "Softmax, one": net("Softmax", {"a": (3, 1)}, axis=1),
    "Div, broadcast": net("Div", {"a": (2, 1), "b": (3,)}),
    "Div, of a constant": net("Div", {"b": (3,)}, constants={"c": C}, order=("c", "b")),
    "Mul, itself": net("Mul", {"a": (2, 3)}, order=("a", "a")),
    "Mul, broadcast": net("Mul", {"a": (2, 1), "b": (3,)}),
    "MatMul": net("MatMul", {"a": (2, 3), "b": (3, 4)}),
    "MatMul, itself": net("MatMul", {"a": (3, 3)}, order=("a", "a")),
    "MatMul, stacks": net("MatMul", {"a": (2, 1, 2, 3), "b": (3, 3, 2)}),
    "MatMul, vector": net("MatMul", {"a": (2, 4, 3), "b": (3,)}),
    "MatMul, of a vector": net("MatMul", {"a": (3,), "b": (2, 3, 2)}),
    "MatMul, vectors": net("MatMul", {"a": (3,), "b": (3,)}),
    "Gemm": net("Gemm", {"a": (2, 3), "b": (3, 4)}, **GEMM),
    "Gemm, bias": net("Gemm", {"a": (3, 2), "b": (3, 4), "c": (4,)}, **(GEMM | {"transA": 1})),
    "Gemm, scaled": net(
        "Gemm",
        {"a": (2, 3), "b": (4, 3)},
        constants={"c": C},
        **(GEMM | {"alpha": 0.5, "beta": -0.25, "transB": 1}),
    ),
    "Gemm, all vary": net(
        "Gemm", {"a": (3, 2), "b": (4, 3), "c": (1, 1)}, alpha=2.0, beta=3.0, transA=1, transB=1
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_parts_have_names_of_their_own(name: str) -> None:
    network = NETWORKS[name]
    first = parts_of(network)
    if first is None:
        return
    taken = {**network.shapes, **first.shapes}
    second = rewrite(network.nodes[-1], taken, network.constants)
    assert second is not None
    assert not set(second.shapes) & set(taken)
    assert len(second.nodes) == len(first.nodes)
    assert len(second.shapes) == len(first.shapes)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_node_is_what_its_parts_compute(name: str) -> None:
    network = NETWORKS[name]
    assert parts_of(network) is not None
    least = 1 if name.startswith("Div") else -16  # in eighths
    assert_same(network, np.random.default_rng(3), least=least)


@pytest.mark.parametrize(
    "network",
    [
        net("Mul", {"a": (2, 3), "b": (2, 3)}),
        net("Mul", {"a": (2, 3)}, constants={"c": C}),
        net("Div", {"a": (2, 3)}, constants={"c": C}),
        net("MatMul", {"a": (2, 2)}, constants={"c": C}),
        net("Gemm", {"a": (2, 2)}, constants={"c": C}, **GEMM),
        net("Sub", {"a": (2, 3), "b": (3,)}),
        net("Neg", {"a": (2, 3)}),
        net("Sigmoid", {"a": (2, 3)}),
    ],
)
def test_affine_nodes_units_and_products_stay(network: Network) -> None:
    assert parts_of(network) is None


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (net("Softmax", {"a": (65,)}, axis=0), "64 numbers"),
        (net("Softmax", {"a": (60, 60)}, axis=1), "pairs of numbers"),
        (net("MatMul", {"a": (50, 50), "b": (50, 41)}), "100000 terms"),
        (net("Gemm", {"a": (50, 50), "b": (50, 41)}, **GEMM), "100000 terms"),
        (net("Clip", {"a": (2,)}, min=1.0, max=0.5), "no finite number"),
        (net("Clip", {"a": (2,)}, min=INF, max=INF), "no finite number"),
        (
            net("MaxPool", {"a": (1, 1, 3)}, kernel=(2,), strides=(1,), pads=(2, 0), dilations=(1,)),
            "entirely in the padding",
        ),
    ],
)
def test_forms_without_parts_are_refused(network: Network, reason: str) -> None:
    with pytest.raises(UnsupportedOp, match=reason) as refused:
        parts_of(network)
    assert network.nodes[-1].op in str(refused.value)


def test_a_product_just_small_enough_has_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    network = net("MatMul", {"a": (2, 3), "b": (3, 4)})
    monkeypatch.setattr(rewrites, "MOST_TERMS", 24)
    assert parts_of(network) is not None
    monkeypatch.setattr(rewrites, "MOST_TERMS", 23)
    with pytest.raises(UnsupportedOp, match="23 terms"):
        parts_of(network)
