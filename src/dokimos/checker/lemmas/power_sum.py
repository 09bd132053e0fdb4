"""A constraint on a polynomial network as a sum of powers of affine functions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.affine import affine_layer, in_a_row
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.properties.model import Linear

#: Exact powers of rationals grow with the degree; no honest network comes close to this degree.
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
    if not in_a_row(network):
        raise InvalidProof("the three layers do not follow each other")
    weights, biases = affine_layer(network, first)
    head, offsets = affine_layer(network, last)
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
