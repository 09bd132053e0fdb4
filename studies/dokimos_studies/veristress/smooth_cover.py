"""Proposition 2 of VeriStress-GT as a number: an upper bound of the affine-cover complexity A*_τ.

Theorem (Proposition 2). Where μ is differentiable on the box and its gradient β-Lipschitz,
A*_τ <= d·log(1 + √(2β̃/τ)), β̃ = β·ε/L_c. Here everything is in units of the box's radii, so ε is 1; β is
bounded by Σ_jk sup|∂²μ/∂x_j∂x_k|, layer by layer; and L_c by the largest gradient of a sample from below,
which makes β̃, and with it the bound, only larger.

Layer by layer: for a number z let g(z) >= sup ‖∇z‖₁ and h(z) >= sup Σ|∂²z|. An affine layer with weights W
has g <= |W|·g and h <= |W|·h, a function φ of one number g(φ(z)) <= sup|φ'|·g and
h(φ(z)) <= sup|φ''|·g² + sup|φ'|·h, a product g(ab) <= |a|·g(b) + |b|·g(a) and
h(ab) <= |a|·h(b) + |b|·h(a) + 2·g(a)·g(b).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from dokimos.difficulty.components.measurements import Component
from dokimos.engine.differentiable import TABLE
from dokimos.networks.graph import Node
from dokimos.networks.semantics.outward import Floats, Interval
from dokimos.suites.facts import Measurement
from dokimos.suites.vnnlib.margins import float_ends

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection

#: Affine operators that only move, copy or add up what they read.
_MOVES = ("Concat", "Expand", "Gather", "Pad", "ReduceMean", "ReduceSum", "Reshape", "Slice", "Transpose")
#: Affine operators whose constants are weights, and where their constant biases stand.
_WEIGHTED = {"Conv": 2, "Gemm": 2, "MatMul": 9, "AveragePool": 9}
#: sup|φ'| and sup|φ''| over an interval.
Slopes = Callable[[Node, Interval], tuple[Floats, Floats]]


def _power(node: Node, x: Interval) -> tuple[Floats, Floats]:
    p = node.real("exponent")
    if p != int(p) or p < 0:
        raise NotSmooth(f"it has a power of {p:g}")
    size = x.magnitude
    return abs(p) * size ** max(p - 1, 0), abs(p * (p - 1)) * size ** max(p - 2, 0)


def _relu(node: Node, x: Interval) -> tuple[Floats, Floats]:
    if ((x.lower < 0) & (x.upper > 0)).any():
        raise NotSmooth("a ReLU has its kink in the box")
    return (x.lower >= 0).astype(np.float64), np.zeros(x.shape)


def _at_most(slope: float, bend: float) -> Slopes:
    return lambda node, x: (np.full(x.shape, slope), np.full(x.shape, bend))


SLOPES: Mapping[str, Slopes] = {
    "Cos": _at_most(1.0, 1.0),
    "Exp": lambda node, x: (np.exp(x.upper), np.exp(x.upper)),
    "Pow": _power,
    "Relu": _relu,
    "Sigmoid": _at_most(0.25, 0.0963),
    "Sin": _at_most(1.0, 1.0),
    "Tanh": _at_most(1.0, 0.7699),
}


class NotSmooth(Exception):
    """Why the proposition says nothing about an instance."""


class SmoothCover(Component):
    """d·log(1 + √(2β̃/τ)): by Proposition 2, so many affine pieces at most, in logarithms."""

    name = "smooth_cover"
    symbol = "A_τ bound"
    meaning = "bound of the log of affine pieces (Proposition 2)"
    on_request = True
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The bound, where the margin is one smooth function."""
        if len(seen.forms) != 1 or len(seen.forms[0].members) != 1 or len(seen.forms[0].bounds) != 1:
            return Measurement.not_applicable("the margin is the least of several functions, so not smooth")
        lower, upper = float_ends(seen.boxes[0])
        radius = (upper - lower) / 2
        try:
            bend = second_order(seen, radius)
        except NotSmooth as reason:
            return Measurement.not_applicable(str(reason))
        steepest = float((np.abs(seen.sampled.gradients) * radius).sum(axis=1).max())
        if bend == 0:
            return Measurement(0.0)
        if steepest == 0 or not np.isfinite([bend, steepest]).all():
            return Measurement.not_applicable("every sampled gradient is 0, or one is infinite")
        return Measurement(int((radius > 0).sum()) * log(1 + sqrt(2 * bend / steepest / seen.settings.tau)))


def second_order(seen: Inspection, radius: Floats) -> float:
    """β: an upper bound of Σ|∂²μ| over the box, in units of the radii. Raises NotSmooth."""
    network, enclosure = seen.network, seen.enclosures[0]
    size = radius.reshape(network.input_shape)
    first: dict[str, Floats] = {network.input: size}
    second: dict[str, Floats] = {network.input: np.zeros(size.shape)}
    for node in network.nodes:
        varying = [name for name in node.inputs if name and name not in network.constants]
        if node.op in SLOPES:
            (x,) = varying
            slope, bend = SLOPES[node.op](node, enclosure[x])
            first[node.output] = slope * first[x]
            second[node.output] = bend * first[x] ** 2 + slope * second[x]
        elif node.op in ("Mul", "MatMul", "Gemm") and len(varying) > 1 and node.op != "Gemm":
            a, b = node.inputs[:2]
            product = np.multiply if node.op == "Mul" else np.matmul
            sizes = enclosure[a].magnitude, enclosure[b].magnitude
            first[node.output] = product(sizes[0], first[b]) + product(first[a], sizes[1])
            second[node.output] = (
                product(sizes[0], second[b])
                + product(second[a], sizes[1])
                + 2 * product(first[a], first[b])
            )
        else:
            for values in (first, second):
                values[node.output] = _affine(node, values, network.constants)
    form = seen.forms[0]
    return float(np.abs(form.outputs[0]) @ second[network.output].reshape(-1))


def _affine(node: Node, values: Mapping[str, Floats], constants: Mapping[str, np.ndarray]) -> Floats:
    """What an affine node makes of nonnegative numbers: weights by size, constant terms not at all."""
    if node.op not in (*_MOVES, *_WEIGHTED, "Add", "Sub", "Neg", "Mul", "Div"):
        raise NotSmooth(f"nothing is known here about {node.op}")
    arguments: list[Tensor | None] = []
    for place, name in enumerate(node.inputs):
        if not name:
            arguments.append(None)
        elif name in constants:
            array = np.abs(np.asarray(constants[name], dtype=np.float64))
            dropped = node.op in ("Add", "Sub", "Concat", "Pad") or place >= _WEIGHTED.get(node.op, 9)
            arguments.append(torch.from_numpy(np.zeros_like(array) if dropped else array))
        else:
            arguments.append(torch.from_numpy(values[name]))
    if node.op == "Div" and node.inputs[1] not in constants:
        raise NotSmooth("nothing is known here about division by a variable")
    op = {"Sub": "Add", "Neg": "Add"}.get(node.op, node.op)
    return np.asarray(TABLE[op](Node(op, node.inputs, node.output, node.attributes), arguments))
