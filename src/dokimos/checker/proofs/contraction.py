"""The value of the network at the centre of the box, and how far it can move from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.base import CertificateKind, NoData, Problem, Proven, read_data
from dokimos.checker.lemmas.constraints import margins
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.exact import Enclosure, evaluate
from dokimos.networks.semantics.propagation import REARRANGE, propagate
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Linear
from dokimos.suites.vnnlib.violation import slack_range

Array = NDArray[Any]
#: A tensor as this proof sees it: how far it moves when the input moves by 1, or a constant's entries.
Moved = Fraction | Array

#: Entry by entry, or over windows, these operators move no further than their input.
NON_EXPANSIVE = ("AveragePool", "Clip", "MaxPool", "Neg", "Pad", "Relu", "Sigmoid", "Tanh", *REARRANGE)


class Contraction(CertificateKind):
    """`unsat` by Lipschitz constants.

    Theorem. Measure tensors by their largest entry, ‖·‖∞. A linear map moves its value by at most its
    operator norm, the largest sum of absolute weights that one output reads (for a convolution: over the
    taps of a channel's filter that fall inside the image), times the move of its argument; adding
    constants moves nothing; ReLU, maxima, averages and the like move no further than what they read. So
    the features Φ before the last affine layer obey ‖Φ(x) − Φ(c)‖∞ <= L·‖x − c‖∞ with L the product of
    the norms, and Σ d_j·y_j, which is affine in Φ with row v = Σ d_j·w_j, obeys
    |Σ d_j·(y_j(x) − y_j(c))| <= ‖v‖₁·L·r on a box with centre c and largest half-width r. The outputs at
    c are computed in exact rationals (in balls, if the network is not rational), the norms in rationals.

    In float32 the outputs are within the rounding bound of the reals; the margin is what that leaves.
    The data is empty: the checker derives everything from the files.
    """

    name: ClassVar[str] = "contraction"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """The value at the centre minus the largest move, for every constraint."""
        read_data(data, NoData)
        network = problem.network
        constants = lipschitz_constants(network)

        @cache
        def at_centre(box: Box) -> Enclosure:
            return evaluate(network, box.centre)

        rate = cache(_rates(network, constants))

        def bound(constraint: Linear, box: Box) -> Fraction:
            outputs, centre = at_centre(box), box.centre
            widths = [high - x for x, high in zip(centre, box.upper, strict=True)]
            moved = rate(constraint) * max(widths) + sum(
                (abs(c) * widths[i] for i, c in constraint.inputs), Fraction(0)
            )
            return -slack_range(constraint, centre, outputs)[1] - moved

        return margins(problem, bound)


def lipschitz_constants(network: Network) -> dict[str, Fraction]:
    """For every tensor that is not constant, an upper bound on its Lipschitz constant in ‖·‖∞."""

    def conv(node: Node, arguments: Sequence[Moved | None]) -> Moved:
        moved, weights = arguments[0], arguments[1]
        shape = network.shapes[node.inputs[0]]
        return _variable(moved) * _conv_norm(node, _constant(weights), shape)

    start: Moved = Fraction(1)
    found = propagate(
        network,
        start,
        lift=lambda array: array,
        table={**_RULES, "Conv": conv},
        semantics="Lipschitz",
    )
    return {name: value for name, value in found.items() if isinstance(value, Fraction)}


def _rates(network: Network, constants: Mapping[str, Fraction]) -> Callable[[Linear], Fraction]:
    """How far Σ d_j·y_j moves when the input moves by 1: through ‖Σ d_j·w_j‖₁ behind an affine layer."""
    last = next((n for n in network.nodes if n.output == network.output), None)
    if last is not None and last.op == "Gemm" and network.shapes[network.output][0] == 1:
        exact = ball.exactly(_gemm_weights(last, network.constants.get(last.inputs[1])))
        before = constants[last.inputs[0]] * abs(Fraction(last.real("alpha")))

        def through_head(constraint: Linear) -> Fraction:
            factors = ball.from_fractions([d for _, d in constraint.outputs], (len(constraint.outputs),))
            row = (exact[:, [j for j, _ in constraint.outputs]] * factors).sum(axis=1)
            return ball.fraction(abs(row).sum() + ball.ZERO) * before

        return through_head
    alone = constants.get(network.output, Fraction(0))  # a constant output does not move
    return lambda constraint: alone * sum((abs(d) for _, d in constraint.outputs), Fraction(0))


def _conv_norm(node: Node, weights: Array, shape: tuple[int, ...]) -> Fraction:
    """The response to an image of ones of a convolution with absolute weights and without bias."""
    ones = ball.exactly(np.ones(shape, dtype=np.float32))
    return ball.fraction(ball.TABLE["Conv"](node, [ones, ball.stored(abs(weights))]).max())


def _column_norm(weights: Array) -> Fraction:
    """The largest sum of absolute weights in a column."""
    ones = ball.exactly(np.ones((1, len(weights)), dtype=np.float32))
    return ball.fraction(ball.product(ones, ball.stored(abs(weights))).max())


def _gemm_weights(node: Node, weights: Moved | None) -> Array:
    """The matrix [inputs, outputs] of a Gemm that is affine in its first input."""
    if node.integer("transA"):
        raise InvalidProof("a Gemm with transA has no operator norm here")
    return _constant(weights).T if node.integer("transB") else _constant(weights)


def _gemm(node: Node, arguments: Sequence[Moved | None]) -> Moved:
    weights = _gemm_weights(node, arguments[1])
    if len(arguments) > 2 and arguments[2] is not None:
        _constant(arguments[2])
    return _variable(arguments[0]) * _column_norm(weights) * abs(Fraction(node.real("alpha")))


def _matmul(node: Node, arguments: Sequence[Moved | None]) -> Moved:
    weights = _constant(arguments[1])
    if weights.ndim != 2:
        raise InvalidProof("a MatMul has an operator norm here only with a constant matrix on its right")
    return _variable(arguments[0]) * _column_norm(weights)


def _sum(node: Node, arguments: Sequence[Moved | None]) -> Moved:
    return sum((_move(value) for value in arguments), Fraction(0))


def _largest(node: Node, arguments: Sequence[Moved | None]) -> Moved:
    return max(_move(value) for value in arguments)


def _unchanged(node: Node, arguments: Sequence[Moved | None]) -> Moved:
    return _variable(arguments[0])


def _move(value: Moved | None) -> Fraction:
    return value if isinstance(value, Fraction) else Fraction(0)


def _variable(value: Moved | None) -> Fraction:
    if not isinstance(value, Fraction):
        raise InvalidProof("an operator reads a constant where this proof needs a varying tensor")
    return value


def _constant(value: Moved | None) -> Array:
    if value is None or isinstance(value, Fraction) or not np.isfinite(value).all():
        raise InvalidProof("the weights of a layer are not constant finite numbers")
    return value


_RULES: Mapping[str, Callable[[Node, Sequence[Moved | None]], Moved]] = MappingProxyType(
    {
        **dict.fromkeys(NON_EXPANSIVE, _unchanged),
        "Add": _sum,
        "Concat": _largest,
        "Gemm": _gemm,
        "MatMul": _matmul,
        "Max": _largest,
        "Min": _largest,
        "Sub": _sum,
    }
)
