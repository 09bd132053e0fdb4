"""A constraint on a network with attention, as a function of what the attention mixes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from dokimos.checker.base import LowerBound
from dokimos.checker.lemmas.attention_graph import Head
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.exact import bounds_of
from dokimos.networks.semantics.propagation import propagate
from dokimos.properties.model import Box, Linear

#: The precision of every ball in these proofs: far more than the margins need, and still fast.
BITS = 128
Balls = NDArray[Any]
S = TypeVar("S")


def absolute(x: Balls) -> Balls:
    """|x|, entry by entry."""
    return np.asarray(np.frompyfunc(abs, 1, 1)(x), dtype=object)


def product(a: Balls, b: Balls) -> Balls:
    """The product of two matrices of balls, by the fast multiplication of Arb."""
    left = arb_mat(len(a), a.shape[1], list(a.reshape(-1)))
    right = arb_mat(len(b), b.shape[1], list(b.reshape(-1)))
    return np.array((left * right).entries(), dtype=object).reshape(len(a), b.shape[1])


def largest(values: Balls) -> Any:
    """The maximum, as a ball."""
    result, *others = values.reshape(-1)
    for value in others:
        result = result.max(value)
    return result


def smallest(values: Balls) -> Any:
    """The minimum, as a ball."""
    return -largest(-values)


def number(value: Fraction) -> Any:
    """One rational number as a ball."""
    return ball.from_fractions([value], (1,))[0]


def rational_lower(value: Any) -> Fraction:
    """A rational number not above any member of the ball; refuses a ball that is not finite."""
    bounds = bounds_of(value)
    if bounds is None:
        raise InvalidProof("a bound of the proof is not finite on this box")
    return bounds[0]


@dataclass(frozen=True)
class Centred:
    """A box of token sequences: every tensor of the network at its centre, and its radii [n, d]."""

    tensors: dict[str, Balls]
    centre: Balls
    radii: Balls

    @classmethod
    def of(cls, network: Network, box: Box) -> Centred:
        """The centre and the radii in balls of the current precision."""
        shape = network.input_shape
        centre = ball.from_fractions(box.centre, shape)
        halves = [(b - a) / 2 for a, b in zip(box.lower, box.upper, strict=True)]
        tensors = propagate(network, centre, lift=ball.lift, table=ball.TABLE, semantics="ball")
        return cls(tensors, centre[0], ball.from_fractions(halves, shape[1:]))

    def rows(self, name: str) -> Balls:
        """The matrix of a tensor [1, n, m] at the centre."""
        return np.asarray(self.tensors[name][0], dtype=object)


@dataclass(frozen=True)
class Objective:
    """left side − bound of a constraint is  constant + Σ inputs·x + Σ_i mixed_i·Z_i + Σ_h hinges_h·h⁺.

    `inputs` is [n, d], `mixed` [n, m]; `hinge_minimum` is a lower bound on the last sum over the box.
    """

    constant: Any
    inputs: Balls
    mixed: Balls
    hinge_minimum: Any

    @classmethod
    def of(cls, constraint: Linear, network: Network, head: Head, at: Centred) -> Objective:
        """The objective, its constant read off the value of the network at the centre."""
        factors = ball.from_fractions([d for _, d in constraint.outputs], (len(constraint.outputs),))
        chosen = [j for j, _ in constraint.outputs]
        outputs = at.tensors[network.output].reshape(-1)[chosen]
        mixed = _combined(factors, head.of_mixed[chosen])
        hinges = _combined(factors, head.of_hinges[chosen])
        constant = _sum(factors * outputs) - number(constraint.bound)
        constant = constant - _sum(mixed * at.rows(head.mixed))
        minimum = arb(0)
        if head.hinges is not None:
            values = at.tensors[head.hinges.name].reshape(-1)
            constant = constant - _sum(hinges * values)
            inside = at.tensors[head.hinges.inside].reshape(-1)
            reach = absolute(ball.lift(head.hinges.weight)) @ at.radii.reshape(-1)
            minimum = _hinge_minimum(hinges, inside - reach, inside + reach)
        inputs = np.full(at.centre.size, arb(0), dtype=object)
        for i, c in constraint.inputs:
            inputs[i] = number(c)
        return cls(constant, inputs.reshape(at.centre.shape), mixed, minimum)


def attention_bound(
    network: Network,
    head: Head,
    over: Callable[[Centred, Box], S],
    lower: Callable[[Centred, S, Objective], Any],
) -> LowerBound:
    """A lower bound on constraints: `lower` of the objective and of what `over` computes for the box."""

    @cache
    def known(box: Box) -> tuple[Centred, S]:
        at = Centred.of(network, box)
        return at, over(at, box)

    @cache
    def bound(constraint: Linear, box: Box) -> Fraction:
        with ball.precision(BITS):
            at, found = known(box)
            return rational_lower(lower(at, found, Objective.of(constraint, network, head, at)))

    return bound


def _combined(factors: Balls, rows: NDArray[np.float64]) -> Balls:
    """Σ_j factors_j·rows_j, of the shape of one row."""
    total = np.full(rows.shape[1:], arb(0), dtype=object)
    for factor, row in zip(factors, rows, strict=True):
        total = total + factor * ball.lift(row)
    return total


def _sum(values: Balls) -> Any:
    return sum(values.reshape(-1), arb(0))


def _hinge_minimum(factors: Balls, lower: Balls, upper: Balls) -> Any:
    """Σ_h min over [lower_h, upper_h] of factors_h·max(0, t), by the monotonicity of each term."""
    zero = arb(0)
    terms = [
        (f * low.max(zero)).min(f * high.max(zero))
        for f, low, high in zip(factors, lower, upper, strict=True)
    ]
    return sum(terms, zero)
