"""One forward and one backward pass over a batch of points: the margins and their gradients.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.differentiable import BATCH_BYTES, one_thread, to_torch
from dokimos.properties.margins import MarginForm

#: Of points [k, n] and outputs [k, m], with the conjunction that each row aims at: μ, and what to descend.
TorchMargin = Callable[[Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class MarginValues:
    """At each point of a batch, the margin and its gradient."""

    margins: NDArray[Any]
    gradients: NDArray[Any]


class MarginPass:
    """The margin of one form as a function of batches of points, in float64 unless said otherwise.

    Where several constraints decide the margin, or a unit has no derivative, the gradient is a
    subgradient of torch's choosing. One thread computes, so that the same call gives the same numbers.
    """

    def __init__(self, network: Network, form: MarginForm, *, dtype: DTypeLike = np.float64) -> None:
        precision = torch.float32 if np.dtype(dtype) == np.float32 else torch.float64
        self._function = to_torch(network, dtype=precision)
        self._margin = torch_margin(form, dtype=precision)
        self._batch = batch_size(network)

    def __call__(self, points: NDArray[Any], aims: NDArray[np.int64] | None = None) -> MarginValues:
        """The margins at `points`; where a row of `aims` names a conjunction, with the gradient of that."""
        margins, gradients = [], []
        with one_thread():
            for start in range(0, len(points), self._batch):
                part = slice(start, start + self._batch)
                x = torch.from_numpy(points[part]).requires_grad_(True)
                aim = None if aims is None else torch.from_numpy(aims[part])
                value, goal = self._margin(x, self._function(x), aim)
                (slope,) = torch.autograd.grad(goal.sum(), x)
                margins.append(value.detach().numpy())
                gradients.append(slope.numpy())
        return MarginValues(np.concatenate(margins), np.concatenate(gradients))


def torch_margin(form: MarginForm, *, dtype: torch.dtype = torch.float64) -> TorchMargin:
    """μ, with the function to descend: μ itself, or how far the conjunction aimed at is from holding.

    The gradient is that of one deciding constraint.
    """
    inputs = torch.from_numpy(form.inputs.T.copy()).to(dtype) if form.inputs.any() else None
    outputs = torch.from_numpy(form.outputs.T.copy()).to(dtype)
    bounds, members = torch.from_numpy(form.bounds).to(dtype), torch.from_numpy(form.members)

    def margin(x: Tensor, y: Tensor, aims: Tensor | None = None) -> tuple[Tensor, Tensor]:
        sides = y @ outputs - bounds
        # The product with the inputs keeps the result a function of them, whatever the network is.
        sides = sides + (0 * x[:, :1] if inputs is None else x @ inputs)
        worst, which = sides[:, members].max(dim=2)

        def deciding(conjunctions: Tensor) -> Tensor:
            rows = members[conjunctions, which.gather(1, conjunctions[:, None])[:, 0]]
            return sides.gather(1, rows[:, None])[:, 0]

        nearest = worst.argmin(dim=1)
        least = deciding(nearest)
        return least, least if aims is None else deciding(torch.where(aims < 0, nearest, aims))

    return margin


def batch_size(network: Network) -> int:
    """How many points go through the network at a time."""
    numbers = sum(_held(network, node) for node in network.nodes) + network.input_size
    return max(1, BATCH_BYTES // (8 * 2 * numbers))


def _held(network: Network, node: Node) -> int:
    """How many numbers a node keeps for the way back, for one sample."""
    size = prod(network.shapes[node.output])
    if node.op == "Conv":
        weights = network.shapes[node.inputs[1]]
        positions = prod(network.shapes[node.output][2:])
        return size + positions * prod(weights[1:]) * node.integer("group")
    if node.op in ("MaxPool", "AveragePool"):
        return size * (1 + prod(node.integers("kernel")))
    return size
