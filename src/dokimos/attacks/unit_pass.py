"""The ReLUs of a network for attacks: their arguments at points, and the gradients of these.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from dokimos.attacks.backward import EXACT, OPEN, Backward
from dokimos.attacks.margin_pass import batch_size, torch_margin, torch_precision
from dokimos.attacks.surrogates import backward_table
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.differentiable import lifted_constants, one_thread
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.propagation import propagate
from dokimos.properties.margins import MarginForm
from dokimos.properties.model import Box

#: From points [k, n] and additions to the value of each ReLU [k, units]: the outputs, and the arguments.
_Function = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class AliveUnits:
    """The ReLUs whose arguments may have either sign in a box, by interval bounds.

    `numbers` are their indices among all ReLUs, in the order of the network's nodes; `layers` says which
    node each belongs to, from 0; `lower` and `upper` bound their arguments.
    """

    numbers: NDArray[np.int64]
    layers: NDArray[np.int64]
    lower: NDArray[Any]
    upper: NDArray[Any]

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class UnitValues:
    """At each point of a batch: the margin, the arguments of the units, and a gradient.

    The gradient is that of a weighted sum of arguments.
    """

    margins: NDArray[Any]
    arguments: NDArray[Any]
    gradients: NDArray[Any]


@dataclass(frozen=True, eq=False)
class UnitEffects:
    """At each point of a batch: the margin, and its derivative by each unit's value with all ReLUs on."""

    margins: NDArray[Any]
    effects: NDArray[Any]


def alive_units(network: Network, box: Box) -> AliveUnits:
    """The ReLUs that interval bounds leave undecided in the box."""
    enclosure = enclose(network, box.lower, box.upper)
    ends = [enclosure[node.inputs[0]] for node in _relus(network)]
    lower = np.concatenate([np.zeros(0), *(x.lower.reshape(-1) for x in ends)])
    upper = np.concatenate([np.zeros(0), *(x.upper.reshape(-1) for x in ends)])
    layers = np.repeat(np.arange(len(ends)), [x.lower.size for x in ends])
    alive = np.flatnonzero((lower < 0) & (upper > 0))
    return AliveUnits(alive, layers[alive], lower[alive], upper[alive])


class UnitPass:
    """The arguments of some ReLUs, with the margin of one form, as functions of batches of points."""

    def __init__(
        self, network: Network, form: MarginForm, units: AliveUnits, *, dtype: DTypeLike = np.float32
    ) -> None:
        self._network = network
        self._precision = torch_precision(dtype)
        self._margin = torch_margin(form, dtype=self._precision)
        self._numbers = torch.from_numpy(units.numbers)
        self._size = sum(prod(network.shapes[node.output]) for node in _relus(network))
        self._batch = batch_size(network)
        self._functions: dict[Backward, _Function] = {}

    def __call__(
        self, points: NDArray[Any], weights: NDArray[Any], *, backward: Backward = EXACT
    ) -> UnitValues:
        """Margins and arguments at `points`, and in row i the gradient of Σ_u weights[i, u]·argument u."""
        margins, arguments, gradients = [], [], []
        function = self._function(backward)
        with one_thread():
            for rows in self._batches(points):
                x = torch.from_numpy(points[rows]).requires_grad_(True)
                y, z = function(x, x.new_zeros((len(x), self._size)))
                value, _ = self._margin(x, y, None)
                goal = (z * torch.from_numpy(weights[rows])).sum() + 0 * x.sum()
                (slope,) = torch.autograd.grad(goal, x)
                margins.append(value.detach().numpy())
                arguments.append(z.detach().numpy())
                gradients.append(slope.numpy())
        return UnitValues(*(np.concatenate(part) for part in (margins, arguments, gradients)))

    def arguments(self, points: NDArray[Any]) -> UnitValues:
        """Margins and arguments at `points`, by a forward pass; the gradients are 0."""
        margins, arguments = [], []
        with one_thread(), torch.no_grad():
            for rows in self._batches(points):
                x = torch.from_numpy(points[rows])
                y, z = self._function(EXACT)(x, x.new_zeros((len(x), self._size)))
                margins.append(self._margin(x, y, None)[0].numpy())
                arguments.append(z.numpy())
        return UnitValues(np.concatenate(margins), np.concatenate(arguments), np.zeros_like(points))

    def effects(self, points: NDArray[Any], aims: NDArray[np.int64] | None = None) -> UnitEffects:
        """The margins at `points`, and their derivatives by the units' values, as if all ReLUs were on.

        If a row of `aims` names a conjunction, the derivatives are of how far that one is from holding.
        """
        margins, effects = [], []
        function = self._function(OPEN)
        with one_thread():
            for rows in self._batches(points):
                x = torch.from_numpy(points[rows])
                added = x.new_zeros((len(x), self._size)).requires_grad_(True)
                y, _ = function(x, added)
                value, goal = self._margin(x, y, None if aims is None else torch.from_numpy(aims[rows]))
                (slope,) = torch.autograd.grad(goal.sum() + 0 * added.sum(), added)
                margins.append(value.detach().numpy())
                effects.append(slope[:, self._numbers].numpy())
        return UnitEffects(np.concatenate(margins), np.concatenate(effects))

    def _batches(self, points: NDArray[Any]) -> list[slice]:
        return [slice(start, start + self._batch) for start in range(0, len(points), self._batch)]

    def _function(self, backward: Backward) -> _Function:
        if backward not in self._functions:
            self._functions[backward] = self._make(backward)
        return self._functions[backward]

    def _make(self, backward: Backward) -> _Function:
        network, plain = self._network, backward_table(backward)
        lift = lifted_constants(network, dtype=self._precision)
        relus, starts, total = _relus(network), dict[str, int](), 0
        for node in relus:
            starts[node.output] = total
            total += prod(network.shapes[node.output])

        def one(x: Tensor, added: Tensor) -> tuple[Tensor, Tensor]:
            def relu(node: Node, given: Sequence[Tensor | None]) -> Tensor:
                value = plain["Relu"](node, given)
                start = starts[node.output]
                return value + added[start : start + value.numel()].reshape(value.shape)

            values = propagate(
                network,
                x.reshape(network.input_shape),
                lift=lift,
                table={**plain, "Relu": relu},
                semantics="gradient",
            )
            z = torch.cat([x.new_zeros(0), *(values[node.inputs[0]].reshape(-1) for node in relus)])
            return values[network.output].reshape(-1), z[self._numbers]

        batched: _Function = torch.vmap(one)
        return batched


def _relus(network: Network) -> list[Node]:
    """The ReLU nodes whose inputs are not constant."""
    return [node for node in network.nodes if node.op == "Relu" and node.inputs[0] not in network.constants]
