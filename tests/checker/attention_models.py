"""Small networks with attention, node by node, and random constraints on them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dokimos.checker.base import LowerBound
from dokimos.suites.vnnlib.model import Box, Linear
from tests.checker.files import model
from tests.checker.search_oracle import outputs_of

Nodes = list[tuple[Any, ...]]
Rng = np.random.Generator


@dataclass(frozen=True)
class Parts:
    """A network as a list of nodes and its weights, to be changed and built."""

    nodes: Nodes
    weights: dict[str, Any]
    tokens: int
    width: int
    classes: int

    def build(self, **changes: tuple[Any, ...]) -> bytes:
        """The file, with the nodes that write the named tensors replaced."""
        nodes = [changes.get(node[2], node) for node in self.nodes]
        return model(nodes, self.weights, [1, self.tokens, self.width], [1, self.classes])


def _dyadic(rng: Rng, *shape: int, scale: float = 1.0) -> Any:
    return np.round(rng.normal(size=shape) * scale * 256) / 256


def _common(
    rng: Rng, *, tokens: int, width: int, hinges: int, features: int
) -> tuple[Nodes, dict[str, Any]]:
    values, classes = int(rng.integers(1, 3)), 2
    weights = {
        "WQ": _dyadic(rng, width, features),
        "WK": _dyadic(rng, width, features),
        "WV": _dyadic(rng, width, values),
        "PQ": _dyadic(rng, 1, tokens, features),
        "PK": _dyadic(rng, tokens, features),
        "PV": _dyadic(rng, values),
        "head": _dyadic(rng, classes, tokens * values + hinges),
        "bias": _dyadic(rng, classes),
    }
    nodes: Nodes = [("MatMul", ("X", f"W{p}"), f"{p}0") for p in "QKV"]
    nodes += [("Add", (f"{p}0", f"P{p}"), f"{p}1") for p in "QV"]
    nodes += [("Add", ("PK", "K0"), "K1")]
    return nodes, weights


def _ending(hinges: int, rng: Rng, weights: dict[str, Any], inputs: int) -> Nodes:
    nodes: Nodes = [("MatMul", ("A", "V1"), "Z"), ("Flatten", ("Z",), "F")]
    if not hinges:
        return [*nodes, ("Gemm", ("F", "head", "bias"), "Y", {"transB": 1})]
    weights |= {"HW": _dyadic(rng, inputs, hinges), "HB": _dyadic(rng, hinges)}
    return [
        *nodes,
        ("Flatten", ("X",), "XF"),
        ("Gemm", ("XF", "HW", "HB"), "H0"),
        ("Relu", ("H0",), "H"),
        ("Concat", ("F", "H"), "FH", {"axis": 1}),
        ("Gemm", ("FH", "head", "bias"), "Y", {"transB": 1}),
    ]


def softmax_parts(rng: Rng, *, tokens: int, width: int, hinges: int) -> Parts:
    nodes, weights = _common(rng, tokens=tokens, width=width, hinges=hinges, features=width)
    way = int(rng.integers(3))
    weights["scale"] = np.array([-0.75, 3.0, 0.625])[way].reshape((1,) * int(rng.integers(4)))
    nodes += [("Transpose", ("K1",), "KT", {"perm": [0, 2, 1]}), ("MatMul", ("Q1", "KT"), "S")]
    if way:
        nodes.append((("Mul", "Div")[way - 1], ("S", "scale"), "S1"))
    else:
        del weights["scale"]
    nodes.append(("Softmax", ("S1" if way else "S",), "A", {"axis": -1}))
    nodes += _ending(hinges, rng, weights, tokens * width)
    return Parts(nodes, weights, tokens, width, 2)


def linear_parts(rng: Rng, *, tokens: int, width: int, hinges: int) -> Parts:
    nodes, weights = _common(rng, tokens=tokens, width=width, hinges=hinges, features=3)
    weights["PQ"] = np.abs(weights["PQ"]) + rng.integers(0, 3)
    weights["PK"] = np.abs(weights["PK"]) + rng.integers(0, 3)
    weights["i_axes"] = np.array([2], dtype=np.int64)
    nodes += [
        ("Relu", ("Q1",), "Q"),
        ("Relu", ("K1",), "K"),
        ("Transpose", ("K",), "KT", {"perm": [0, 2, 1]}),
        ("MatMul", ("Q", "KT"), "W"),
        ("ReduceSum", ("W", "i_axes"), "R", {"keepdims": 1}),
        ("Div", ("W", "R"), "A"),
    ]
    nodes += _ending(hinges, rng, weights, tokens * width)
    return Parts(nodes, weights, tokens, width, 2)


def random_box(rng: Rng, size: int, radius: float) -> Box:
    """A box of this radius at most in each coordinate, some of them points."""
    centre = [Fraction(int(k), 64) for k in rng.integers(-64, 65, size=size)]
    radii = [Fraction(float(rng.choice([0.0, 0.25, 1.0]))) * Fraction(radius) for _ in centre]
    return Box(
        tuple(c - r for c, r in zip(centre, radii, strict=True)),
        tuple(c + r for c, r in zip(centre, radii, strict=True)),
    )


def random_constraint(rng: Rng, inputs: int) -> Linear:
    def number() -> Fraction:
        return Fraction(int(rng.integers(1, 9)) * int(rng.choice([-1, 1])), 3)

    taken = sorted(rng.choice(inputs, size=int(rng.integers(0, 2)), replace=False).tolist())
    outputs = ((0, number()), (1, number()))[: int(rng.integers(1, 3))]
    return Linear(tuple((i, number()) for i in taken), outputs, number())


def sampled_minimum(network: bytes, constraint: Linear, box: Box, rng: Rng) -> float:
    """The smallest left side − bound over corners and uniform points, in float64."""
    lower = np.array([float(x) for x in box.lower])
    upper = np.array([float(x) for x in box.upper])
    shares = np.vstack([rng.uniform(size=(300, box.size)), rng.integers(0, 2, size=(300, box.size))])
    points = lower + shares * (upper - lower)
    outputs = outputs_of(network, points)
    left = sum(float(c) * points[:, i] for i, c in constraint.inputs)
    left = left + sum(float(d) * outputs[:, j] for j, d in constraint.outputs)
    return float((left - float(constraint.bound)).min())


def assert_sound(
    network: bytes, bound: LowerBound, constraint: Linear, box: Box, rng: Rng
) -> tuple[float, float]:
    """The bound and the sampled minimum, after comparing them."""
    lower, found = float(bound(constraint, box)), sampled_minimum(network, constraint, box, rng)
    assert lower <= found + 1e-9 * (1 + abs(found))
    return lower, found
