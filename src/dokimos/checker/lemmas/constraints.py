"""From a constraint and a network to the numbers that proofs work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from dokimos.checker.base import LowerBound, Problem, Proven, refute
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.outward import FLOAT32, Floats, Interval, down, up
from dokimos.networks.semantics.rounding import rounded_outputs
from dokimos.suites.vnnlib.model import Box, Linear

# From a margin over the reals to one in float32, by the rounding bound on the outputs


def output_errors(problem: Problem) -> LowerBound:
    """How far rounding in floats may move the left side of a constraint, over a box.

    The network is traversed once for each box. Raises InvalidProof if there is no finite bound.
    """
    network = problem.network

    @cache
    def errors(box: Box) -> list[float]:
        found = rounded_outputs(network, box.lower, box.upper, problem.ulps, problem.form)
        return [float(bound) for bound in found.error.reshape(-1)]

    def error(constraint: Linear, box: Box) -> Fraction:
        bounds = errors(box)
        if not np.isfinite([bounds[j] for j, _ in constraint.outputs]).all():
            raise InvalidProof(f"{problem.form.name} evaluation may overflow on this box")
        return sum((abs(d) * Fraction(bounds[j]) for j, d in constraint.outputs), Fraction(0))

    return error


def margins(problem: Problem, bound: LowerBound, error: LowerBound | None = None) -> Proven:
    """The margin that the bound over the reals gives, and what rounding leaves of it in floats.

    `error` bounds how far rounding in float32 moves the left side of a constraint (default, and in other
    types: that of `output_errors`).
    """
    bound = cache(bound)
    error = output_errors(problem) if error is None or problem.form != FLOAT32 else error
    return Proven(
        real=refute(problem.property, bound),
        floats=problem.in_floats(
            lambda: refute(problem.property, lambda c, box: bound(c, box) - error(c, box))
        ),
    )


# Exact numbers and boxes, rounded outward to float64


def outward(values: Sequence[Fraction]) -> Interval:
    """These numbers: exact if they are float64 numbers, otherwise between two neighbours."""
    if any(abs(v) >= 2**1000 for v in values):
        raise InvalidProof("a number is too large for float64 intervals")
    near = np.array([float(v) for v in values])
    exact = np.array([Fraction(x) == v for x, v in zip(near.tolist(), values, strict=True)])
    return Interval(np.where(exact, near, down(near)), np.where(exact, near, up(near)))


def box_floats(box: Box) -> tuple[Floats, Floats]:
    """The ends of the box, each rounded outward to float64."""
    return outward(box.lower).lower, outward(box.upper).upper


# The affine layers of a network, as matrices


def affine_layer(network: Network, node: Node) -> tuple[Floats, Floats]:
    """Weights [outputs, inputs] and biases of a Gemm with constant weights that reads one row.

    They are exact in float64. Raises InvalidProof for any other Gemm.
    """
    constants = [network.constants.get(name) for name in node.inputs[1:] if name]
    if not constants or any(c is None for c in constants):
        raise InvalidProof("the weights of an affine layer are not constant")
    if node.real("alpha") != 1 or node.real("beta") != 1 or node.integer("transA"):
        raise InvalidProof("an affine layer scales or transposes what it reads")
    if len(network.shapes[node.inputs[0]]) != 2 or network.shapes[node.inputs[0]][0] != 1:
        raise InvalidProof("an affine layer reads more than one row")
    exact = [_finite(c) for c in constants]
    weights = exact[0] if node.integer("transB") else exact[0].T
    biases = np.zeros(len(weights)) if len(exact) < 2 else exact[1].reshape(-1)
    return weights, np.broadcast_to(biases, (len(weights),))


def in_a_row(network: Network) -> bool:
    """Whether each node reads the one before, from the input to the output."""
    before = network.input
    for node in network.nodes:
        if node.inputs[0] != before:
            return False
        before = node.output
    return before == network.output


def _finite(array: Any) -> Floats:
    exact: Floats = np.asarray(array, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise InvalidProof("a weight is not a finite number")
    return exact


# Cuts a network in two at a tensor that everything behind it is computed from


def before(network: Network, tensor: str) -> Network:
    """The network from the input to `tensor`: only the nodes that it is computed from."""
    if all(node.output != tensor for node in network.nodes):
        raise InvalidProof(f"the network has no tensor {tensor!r}")
    needed = {tensor}
    nodes = []
    for node in reversed(network.nodes):
        if node.output in needed:
            nodes.append(node)
            needed.update(node.inputs)
    return replace(network, output=tensor, nodes=tuple(reversed(nodes)))


def behind(network: Network, tensor: str) -> Network:
    """The network from `tensor` to the output.

    Raises InvalidProof if the output is computed from more than `tensor` and constants.
    """
    known = {tensor, *network.constants}
    nodes = []
    for node in network.nodes:
        if node.output != tensor and all(not name or name in known for name in node.inputs):
            nodes.append(node)
            known.add(node.output)
    if network.output not in known:
        raise InvalidProof(f"the output depends on more than {tensor!r}")
    return replace(network, input=tensor, nodes=tuple(nodes))
