"""A constraint on a polynomial network as a sum of powers of affine functions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.errors import InvalidProof
from dokimos.networks.graph import Network, Node
from dokimos.properties.model import Linear

#: Exact powers of rationals grow with the degree; no honest network comes near this one.
MOST_DEGREE = 256


@dataclass(frozen=True)
class PowerSum:
    """μ(x) = constant + ℓ·x + Σ_j c_j·z_j^d with z_j = w_j·x + b_j: left side − bound of a constraint.

    Weights and biases are those of the file, exact in float64; c_j and ℓ are exact rationals.
    """

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    coefficients: tuple[Fraction, ...]
    degree: int
    linear: tuple[Fraction, ...]
    constant: Fraction


def power_sum(network: Network, constraint: Linear) -> PowerSum:
    """The constraint's left side − bound, for a network of the form Gemm, Pow, Gemm.

    Raises InvalidProof for any other network.
    """
    if [node.op for node in network.nodes] != ["Gemm", "Pow", "Gemm"]:
        raise InvalidProof("the network is not an affine layer, a power and an affine layer")
    first, power, last = network.nodes
    chained = (network.input, first.output, power.output)
    if tuple(node.inputs[0] for node in network.nodes) != chained or last.output != network.output:
        raise InvalidProof("the three layers do not follow one another")
    weights, biases = _affine(network, first)
    head, offsets = _affine(network, last)
    exponent = power.real("exponent")
    if exponent != int(exponent) or not 1 <= exponent <= MOST_DEGREE:
        raise InvalidProof(f"the exponent {exponent:g} is not a whole number from 1 to {MOST_DEGREE}")
    rows = [(d, head[j], offsets[j]) for j, d in constraint.outputs]
    linear = [Fraction(0)] * weights.shape[1]
    for i, c in constraint.inputs:
        linear[i] = c
    return PowerSum(
        weights=weights,
        biases=biases,
        coefficients=tuple(
            sum((d * Fraction(float(row[k])) for d, row, _ in rows), Fraction(0))
            for k in range(len(weights))
        ),
        degree=int(exponent),
        linear=tuple(linear),
        constant=sum((d * Fraction(float(b)) for d, _, b in rows), -constraint.bound),
    )


def _affine(network: Network, node: Node) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights [outputs, inputs] and biases of a Gemm whose first factor is one row."""
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


def _finite(array: Any) -> NDArray[np.float64]:
    exact: NDArray[np.float64] = np.asarray(array, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise InvalidProof("a weight is not a finite number")
    return exact
