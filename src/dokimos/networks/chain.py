"""Dense networks as plain lists of layers, which can be rewritten exactly."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnsupportedOp
from dokimos.networks.graph import Network, Node

Weights = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Layer:
    """x ↦ weight·x + bias, rectified or not; `weight` is [outputs, inputs]."""

    weight: Weights
    bias: Weights
    rectified: bool

    def equals(self, other: Layer) -> bool:
        """Whether the other layer has the same numbers."""
        return (
            self.rectified == other.rectified
            and np.array_equal(self.weight, other.weight)
            and np.array_equal(self.bias, other.bias)
        )


@dataclass(frozen=True, eq=False)
class Chain:
    """Layers one after the other, on a flattened input of this shape (without the batch)."""

    input_shape: tuple[int, ...]
    layers: tuple[Layer, ...]

    def equals(self, other: Chain) -> bool:
        """Whether the other chain has the same layers, number for number."""
        return (
            self.input_shape == other.input_shape
            and len(self.layers) == len(other.layers)
            and all(map(Layer.equals, self.layers, other.layers))
        )


def as_chain(network: Network) -> Chain:
    """The chain that computes the same function as the network. Raises UnsupportedOp if there is none."""
    layers: list[Layer] = []
    at = network.input
    for node in network.nodes:
        if not node.inputs or node.inputs[0] != at:
            raise UnsupportedOp(node.op, "the network is not a chain of layers")
        if node.op == "Gemm":
            layers.append(_dense(network, node))
        elif node.op == "Relu" and layers and not layers[-1].rectified:
            layers[-1] = Layer(layers[-1].weight, layers[-1].bias, True)
        elif node.op != "Reshape" or layers or network.shapes[node.output] != (1, network.input_size):
            raise UnsupportedOp(node.op, "only chains of dense layers and ReLUs can be rewritten")
        at = node.output
    if not layers or network.input_shape[:1] != (1,) or at != network.output:
        raise UnsupportedOp("network", "it is not a chain of dense layers on a batch of one")
    return Chain(network.input_shape[1:], tuple(layers))


def _dense(network: Network, node: Node) -> Layer:
    plain = node.real("alpha") == 1 and node.real("beta") == 1 and not node.integer("transA")
    names = [name for name in node.inputs[1:] if name]
    if not plain or any(name not in network.constants for name in names):
        raise UnsupportedOp("Gemm", "only constant weights with alpha = beta = 1 can be rewritten")
    weight = network.constants[names[0]]
    weight = weight if node.integer("transB") else weight.T
    bias = network.constants[names[1]] if len(names) > 1 else np.zeros(len(weight), dtype=np.float32)
    if weight.dtype != np.float32 or bias.shape != (len(weight),):
        raise UnsupportedOp("Gemm", "only float32 weights with one bias for each output can be rewritten")
    return Layer(weight, bias, False)


# Steps that change how a dense network is written, and not what it computes over the reals


Exact = NDArray[Any]


def _exact(values: Weights) -> Exact:
    return np.array([Fraction(float(v)) for v in values.flat], dtype=object).reshape(values.shape)


def _layer(weight: Exact, bias: Exact, *, rectified: bool) -> Layer:
    return Layer(_in_float32(weight), _in_float32(bias), rectified)


def _in_float32(exact: Exact) -> Weights:
    """The same numbers in float32. Raises InputError if float32 does not hold one of them."""
    try:
        with np.errstate(over="ignore"):
            rounded = np.array([float(value) for value in exact.flat], dtype=np.float32)
        kept = all(
            value.as_integer_ratio() == number.as_integer_ratio()
            for value, number in zip(exact.flat, rounded.tolist(), strict=True)
        )
    except OverflowError:
        kept = False
    if not kept:
        raise InputError("a rewritten weight is not exact in float32")
    return rounded.reshape(exact.shape)


class Rewriting(Struct, frozen=True, tag_field="step", forbid_unknown_fields=True):
    """One change to the chain at layer number `layer` (from 0)."""

    layer: int

    @abstractmethod
    def apply(self, chain: Chain) -> Chain:
        """The chain after the step. Raises InputError if the step does not fit the chain."""

    def _hidden(self, chain: Chain) -> tuple[Layer, Layer]:
        """The layer and the one that reads it; it must be rectified."""
        if not 0 <= self.layer < len(chain.layers) - 1 or not chain.layers[self.layer].rectified:
            raise InputError(f"there is no hidden layer {self.layer} to rewrite")
        return chain.layers[self.layer], chain.layers[self.layer + 1]

    def _replaced(self, chain: Chain, count: int, *layers: Layer) -> Chain:
        """The chain with `count` layers from this one on replaced by `layers`."""
        at = self.layer
        return replace(chain, layers=(*chain.layers[:at], *layers, *chain.layers[at + count :]))


class Permute(Rewriting, frozen=True, tag="permute"):
    """Neuron i of the new layer is neuron order[i] of the old one; the next layer reads them in that order.

    A sum does not change with the order of its terms.
    """

    order: tuple[int, ...]

    def apply(self, chain: Chain) -> Chain:
        """Permute the rows of this layer and the columns of the next."""
        here, after = self._hidden(chain)
        if sorted(self.order) != list(range(len(here.bias))):
            raise InputError("step 'permute': the order is not a permutation of the neurons")
        order = list(self.order)
        moved = Layer(here.weight[order], here.bias[order], True)
        return self._replaced(chain, 2, moved, replace(after, weight=after.weight[:, order]))


class Rescale(Rewriting, frozen=True, tag="scale"):
    """Neuron i is multiplied by 2^exponents[i], and what reads it divided by that.

    max(0, c·z) = c·max(0, z) for c > 0.
    """

    exponents: tuple[int, ...]

    def apply(self, chain: Chain) -> Chain:
        """Scale the rows of this layer and the columns of the next."""
        here, after = self._hidden(chain)
        if len(self.exponents) != len(here.bias) or any(abs(e) > 100 for e in self.exponents):
            raise InputError("step 'scale': it needs one exponent of at most 100 for each neuron")
        factors = np.array([Fraction(2) ** e for e in self.exponents], dtype=object)
        scaled = _layer(_exact(here.weight) * factors[:, None], _exact(here.bias) * factors, rectified=True)
        reading = _layer(_exact(after.weight) / factors, _exact(after.bias), rectified=after.rectified)
        return self._replaced(chain, 2, scaled, reading)


class Duplicate(Rewriting, frozen=True, tag="duplicate"):
    """Neuron `neuron` is written twice; the first copy gets a share of 2^-halvings of the outgoing weights.

    v·h = (v·s)·h + (v·(1 − s))·h.
    """

    neuron: int
    halvings: int

    def apply(self, chain: Chain) -> Chain:
        """Append a copy of the row, and share the column that reads it."""
        here, after = self._hidden(chain)
        if not 0 <= self.neuron < len(here.bias) or not 1 <= self.halvings <= 20:
            raise InputError("step 'duplicate': there is no such neuron, or no such share")
        share = Fraction(1, 2**self.halvings)
        column = _exact(after.weight[:, self.neuron])
        weight = np.column_stack([_exact(after.weight), column * (1 - share)])
        weight[:, self.neuron] = column * share
        twice = Layer(
            np.vstack([here.weight, here.weight[self.neuron]]),
            np.append(here.bias, here.bias[self.neuron]),
            True,
        )
        return self._replaced(
            chain, 2, twice, _layer(weight, _exact(after.bias), rectified=after.rectified)
        )


class CancelPair(Rewriting, frozen=True, tag="cancel"):
    """Two neurons are appended, both z = row·h + bias; the next layer reads them by `reading`, + and −.

    v·max(0, z) − v·max(0, z) = 0, whatever z is.
    """

    row: tuple[tuple[int, Fraction], ...]
    bias: Fraction
    reading: tuple[Fraction, ...]

    def apply(self, chain: Chain) -> Chain:
        """Append the row twice, and the two columns that cancel."""
        here, after = self._hidden(chain)
        places = [place for place, _ in self.row]
        inside = all(0 <= place < here.weight.shape[1] for place in places)
        if not inside or len(set(places)) < len(places) or len(self.reading) != len(after.bias):
            raise InputError("step 'cancel': its row or its column does not fit the layers")
        row = np.zeros(here.weight.shape[1], dtype=np.float32)
        row[places] = _in_float32(np.array([weight for _, weight in self.row], dtype=object))
        (bias,) = _in_float32(np.array([self.bias], dtype=object))
        column = _in_float32(np.array(self.reading, dtype=object))
        both = Layer(np.vstack([here.weight, row, row]), np.append(here.bias, [bias, bias]), True)
        reading = np.column_stack([after.weight, column, -column])
        return self._replaced(chain, 2, both, replace(after, weight=reading))


class SplitUnit(Rewriting, frozen=True, tag="split"):
    """Every preactivation z_i goes through two ReLUs first: z = max(0, z − t) − max(0, t − z) + t.

    With t inside the range of z both are unstable.
    """

    thresholds: tuple[Fraction, ...]

    def apply(self, chain: Chain) -> Chain:
        """Put a layer of twice as many neurons before this one."""
        if not 0 <= self.layer < len(chain.layers):
            raise InputError(f"step 'split': there is no layer {self.layer}")
        here = chain.layers[self.layer]
        t = np.array(self.thresholds, dtype=object)
        if len(t) != len(here.bias):
            raise InputError("step 'split': it needs one threshold for each neuron")
        weight, bias, one = _exact(here.weight), _exact(here.bias), np.eye(len(t), dtype=object)
        both = _layer(np.vstack([weight, -weight]), np.concatenate([bias - t, t - bias]), rectified=True)
        joined = _layer(np.hstack([one, -one]), t, rectified=here.rectified)
        return self._replaced(chain, 1, both, joined)


class Identity(Rewriting, frozen=True, tag="identity"):
    """A layer that copies the rectified values of this one: max(0, h) = h for h >= 0."""

    def apply(self, chain: Chain) -> Chain:
        """Insert the copy after this layer."""
        here, _ = self._hidden(chain)
        size = len(here.bias)
        copy = Layer(np.eye(size, dtype=np.float32), np.zeros(size, dtype=np.float32), True)
        return self._replaced(chain, 1, here, copy)


class Merge(Rewriting, frozen=True, tag="merge"):
    """A layer without ReLU and the next become one: V·(W·x + b) + c = (V·W)·x + (V·b + c)."""

    def apply(self, chain: Chain) -> Chain:
        """Multiply the two affine maps out, exactly."""
        if not 0 <= self.layer < len(chain.layers) - 1 or chain.layers[self.layer].rectified:
            raise InputError(f"step 'merge': layer {self.layer} is rectified, or the last")
        here, after = chain.layers[self.layer], chain.layers[self.layer + 1]
        v, w = _exact(after.weight), _exact(here.weight)
        bias = v.dot(_exact(here.bias)) + _exact(after.bias)
        return self._replaced(chain, 2, _layer(v.dot(w), bias, rectified=after.rectified))


Step = Permute | Rescale | Duplicate | CancelPair | SplitUnit | Identity | Merge
"""Any step; its name is under the key "step"."""
