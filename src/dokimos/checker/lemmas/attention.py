"""Recognises attention in a graph, operator by operator, and refuses everything else.

Both shapes of attention start from tokens x_1, ..., x_n (the rows of the input [1, n, d]), project them,
mix the values V_j by weights a_ij into rows Z_i = Σ_j a_ij·V_j, and end in an affine head that reads all
Z_i and, optionally, hinges (ReLUs of affine functions of the whole input) as well:

    y = Σ_i H_i·Z_i + Σ_h c_h·max(0, p_h(x)) + constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from dokimos.checker.base import LowerBound
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network, Node, Shape
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.exact import bounds_of
from dokimos.networks.semantics.propagation import propagate
from dokimos.suites.vnnlib.model import Box, Linear

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Projection:
    """The tensor `name` is [x_i·weight + a constant of its own] for every token x_i; weight is [d, m]."""

    name: str
    weight: Array


@dataclass(frozen=True)
class AttentionHinges:
    """`inside` [1, h] is affine in the flat input, rows `weight` [h, n·d]; `name` is its ReLU."""

    name: str
    inside: str
    weight: Array


@dataclass(frozen=True)
class Head:
    """The layers around the attention: `mixed` names Z [1, n, m], the product of `weights` and `values`.

    The outputs read Z by `of_mixed` [outputs, n, m] and the hinges by `of_hinges` [outputs, h].
    """

    mixed: str
    weights: str
    values: Projection
    of_mixed: Array
    hinges: AttentionHinges | None
    of_hinges: Array


@dataclass(frozen=True)
class SoftmaxAttentionGraph:
    """Weights softmax_j(factor·q_i·k_j)."""

    queries: Projection
    keys: Projection
    scores: str
    factor: Fraction
    head: Head


@dataclass(frozen=True)
class LinearAttentionGraph:
    """Weights w_ij / Σ_l w_il, w_ij = φ(q_i)·φ(k_j), φ the ReLU; `queries`, `keys` name φ(q), φ(k)."""

    queries: str
    keys: str
    head: Head


class GraphReader:
    """Walks back from the output of a network; every method raises InvalidProof if the graph differs."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._writer: Mapping[str, Node] = {node.output: node for node in network.nodes}
        if len(network.input_shape) != 3 or network.input_shape[0] != 1 or 0 in network.input_shape:
            raise InvalidProof("the input is not one sequence of tokens, of shape [1, n, d]")

    def softmax_attention(self) -> SoftmaxAttentionGraph:
        """The whole network as softmax attention; the factor of the scores may be left out."""
        head = self._head()
        softmax = self._node(head.weights, "Softmax")
        if softmax.integer("axis") != 2:
            raise InvalidProof("the softmax does not run along the keys")
        scores, factor = softmax.inputs[0], Fraction(1)
        product = self._writer.get(scores)
        if product is not None and product.op in ("Mul", "Div"):
            factor = self._factor(product)
            product = self._writer.get(product.inputs[0])
        if product is None or product.op != "MatMul":
            raise InvalidProof("the scores are not a product of queries and keys")
        queries = self._projection(product.inputs[0])
        keys = self._projection(self._transposed(product.inputs[1]))
        return SoftmaxAttentionGraph(queries, keys, scores, factor, head)

    def linear_attention(self) -> LinearAttentionGraph:
        """The whole network as linear attention with its row normalisation."""
        head = self._head()
        division = self._node(head.weights, "Div")
        sums = self._node(division.inputs[1], "ReduceSum")
        if (
            sums.inputs[0] != division.inputs[0]
            or sums.integers("axes") != (2,)
            or not sums.integer("keepdims")
        ):
            raise InvalidProof("the weights are not divided by the sums of their rows")
        product = self._node(division.inputs[0], "MatMul")
        queries, keys = product.inputs[0], self._transposed(product.inputs[1])
        for name in (queries, keys):
            self._projection(self._node(name, "Relu").inputs[0])
        return LinearAttentionGraph(queries, keys, head)

    def _head(self) -> Head:
        gemm = self._node(self._network.output, "Gemm")
        rows = self._gemm_rows(gemm)
        joined = self._writer.get(gemm.inputs[0])
        hinges: AttentionHinges | None = None
        flat = gemm.inputs[0]
        if joined is not None and joined.op == "Concat":
            if len(joined.inputs) != 2 or joined.integer("axis") != 1:
                raise InvalidProof("the head does not read the mixed values followed by the hinges")
            flat, hinges = joined.inputs[0], self._hinges(joined.inputs[1])
        mixed = self._flattened(flat)
        mixing = self._node(mixed, "MatMul")
        shape = self._network.shapes[mixed]
        if len(shape) != 3:
            raise InvalidProof("the mixed values are not of shape [1, n, m]")
        count = shape[1] * shape[2]
        return Head(
            mixed=mixed,
            weights=mixing.inputs[0],
            values=self._projection(mixing.inputs[1]),
            of_mixed=rows[:, :count].reshape(len(rows), *shape[1:]),
            hinges=hinges,
            of_hinges=rows[:, count:],
        )

    def _hinges(self, name: str) -> AttentionHinges:
        relu = self._node(name, "Relu")
        gemm = self._node(relu.inputs[0], "Gemm")
        if self._flattened(gemm.inputs[0]) != self._network.input:
            raise InvalidProof("the hinges do not read the flat input")
        return AttentionHinges(name, gemm.output, self._gemm_rows(gemm))

    def _gemm_rows(self, gemm: Node) -> Array:
        """The rows [outputs, inputs] of x ↦ W·x + constant."""
        if gemm.real("alpha") != 1 or gemm.real("beta") != 1 or gemm.integer("transA"):
            raise InvalidProof("a Gemm has a factor or reads its input transposed")
        for name in gemm.inputs[2:]:
            if name:
                self._constant(name)
        weight = self._constant(gemm.inputs[1])
        return weight if gemm.integer("transB") else weight.T.copy()

    def _projection(self, name: str) -> Projection:
        node = self._writer.get(name)
        product = name
        if node is not None and node.op == "Add":
            product, constant = node.inputs
            if product in self._network.constants:
                product, constant = constant, product
            self._constant(constant)
            if self._network.shapes[product] != self._network.shapes[name]:
                raise InvalidProof(f"adding a constant changes the shape of {name!r}")
        matmul = self._node(product, "MatMul")
        weight = self._constant(matmul.inputs[1])
        if matmul.inputs[0] != self._network.input or weight.ndim != 2:
            raise InvalidProof(f"{name!r} is not the input times a constant matrix")
        return Projection(name, weight)

    def _transposed(self, name: str) -> str:
        node = self._node(name, "Transpose")
        if node.integers("perm") != (0, 2, 1):
            raise InvalidProof("the keys are not transposed from [1, n, m] to [1, m, n]")
        return node.inputs[0]

    def _flattened(self, name: str) -> str:
        node = self._node(name, "Reshape")
        source = self._network.shapes[node.inputs[0]]
        if self._network.shapes[name] != (1, int(np.prod(source))):
            raise InvalidProof(f"{name!r} is not flat")
        return node.inputs[0]

    def _factor(self, node: Node) -> Fraction:
        constant = self._constant(node.inputs[1])
        if constant.size != 1 or constant.ndim > 3:
            raise InvalidProof("the scores are scaled by more than one number")
        value = Fraction(float(constant.reshape(-1)[0]))
        if node.op == "Mul":
            return value
        if value == 0:
            raise InvalidProof("the scores are divided by zero")
        return 1 / value

    def _node(self, name: str, op: str) -> Node:
        node = self._writer.get(name)
        if node is None or node.op != op:
            raise InvalidProof(f"{name!r} is not the output of a {op}, so the proof does not apply")
        return node

    def _constant(self, name: str) -> Array:
        if name not in self._network.constants:
            raise InvalidProof(f"{name!r} is not constant")
        return self._network.constants[name].astype(np.float64)


# A constraint on a network with attention, as a function of what the attention mixes


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
    return _balls([value], (1,))[0]


def _balls(values: Sequence[Fraction], shape: Shape) -> Balls:
    return ball.around(ball.from_fractions(values, shape))


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
        centre = _balls(box.centre, shape)
        halves = [(b - a) / 2 for a, b in zip(box.lower, box.upper, strict=True)]
        tensors = propagate(network, centre, lift=ball.lift, table=ball.TABLE, semantics="ball")
        return cls(tensors, centre[0], _balls(halves, shape[1:]))

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
        factors = _balls([d for _, d in constraint.outputs], (len(constraint.outputs),))
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
