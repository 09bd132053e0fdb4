"""One forward and one backward pass over a batch of points: the margins and their gradients.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from dokimos.engine.differentiable import BATCH_BYTES, TABLE, one_thread, to_torch
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.propagation import Rule
from dokimos.suites.vnnlib.margins import MarginForm

# How gradients pass back through units that are flat at a point. Values are never changed


class Loss(Enum):
    """The function whose gradient is taken. All of them fall as a conjunction of the property comes closer.

    Let m_c be how far conjunction c is from holding; the property is violated where some m_c <= 0. For a
    property "another class wins", m_c is the margin by which class c loses, and these are the losses of the
    same names in the literature, with the sign for descent.
    """

    MARGIN = "margin"  #: min_c m_c
    CROSS_ENTROPY = "cross-entropy"  #: −log(1 + Σ_c exp(−m_c))
    RATIO = "dlr"  #: min_c m_c over the difference of the largest and third largest logit


@dataclass(frozen=True)
class Backward:
    """The slope that a ReLU has in the backward pass, instead of 0 where it is off and 1 where it is on.

    It is 1 where it is on, and `leak` where it is off. The flat parts of Clip are treated alike.
    """

    leak: float = 0.0


EXACT = Backward()
#: Every ReLU counts as on: the effect that a unit would have if nothing blocked it.
OPEN = Backward(leak=1.0)
LEAKY = Backward(leak=0.1)


# Rules for torch whose values are exact and whose derivatives are those that `Backward` describes


def backward_table(backward: Backward) -> Mapping[str, Rule[Tensor]]:
    """The operator table with these derivatives of Relu and Clip."""
    if backward == EXACT:
        return TABLE

    def relu(node: Node, arguments: Sequence[Tensor | None]) -> Tensor:
        z = _only(arguments)
        return _with_slope(torch.relu(z), nnf.leaky_relu(z, backward.leak))

    def clip(node: Node, arguments: Sequence[Tensor | None]) -> Tensor:
        z, low, high = _only(arguments), node.real("min"), node.real("max")
        clipped = torch.clamp(z, low, high)
        return _with_slope(clipped, backward.leak * z + (1 - backward.leak) * clipped)

    return MappingProxyType({**TABLE, "Relu": relu, "Clip": clip})


def _only(arguments: Sequence[Tensor | None]) -> Tensor:
    assert arguments[0] is not None
    return arguments[0]


def _with_slope(value: Tensor, stand_in: Tensor) -> Tensor:
    """The value of `value`, with the derivative of `stand_in`."""
    return value.detach() + (stand_in - stand_in.detach())


#: From points [k, n], outputs [k, m] and the conjunction that each row aims at: μ, and the loss to descend.
TorchMargin = Callable[[Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class MarginValues:
    """At each point of a batch, the margin and its gradient."""

    margins: NDArray[Any]
    gradients: NDArray[Any]


class MarginPass:
    """The margin of one form as a function of batches of points (default: in float64).

    If several constraints decide the margin, or a unit has no derivative, the gradient is a subgradient
    chosen by torch. It uses one thread, so that the same call gives the same numbers.
    """

    def __init__(self, network: Network, form: MarginForm, *, dtype: DTypeLike = np.float64) -> None:
        self._network, self._form, self._precision = network, form, torch_precision(dtype)
        self._functions: dict[Backward, Callable[[Tensor], Tensor]] = {}
        self._margins: dict[Loss, TorchMargin] = {}
        self._batch = batch_size(network)

    def __call__(
        self,
        points: NDArray[Any],
        aims: NDArray[np.int64] | None = None,
        *,
        loss: Loss = Loss.MARGIN,
        backward: Sequence[Backward] = (EXACT,),
    ) -> MarginValues:
        """The margins at `points`, and gradients; a row of `aims` may name the conjunction to take it of.

        The gradient is that of `loss`; the backward pass of row i is as `backward[i % len(backward)]` says.
        """
        margins = np.empty(len(points), dtype=points.dtype)
        gradients = np.empty_like(points)
        with one_thread():
            for number, way in enumerate(backward):
                chosen = np.arange(number, len(points), len(backward))
                for start in range(0, len(chosen), self._batch):
                    rows = chosen[start : start + self._batch]
                    x = torch.from_numpy(points[rows]).requires_grad_(True)
                    aim = None if aims is None else torch.from_numpy(aims[rows])
                    value, goal = self._margin(loss)(x, self._function(way)(x), aim)
                    (slope,) = torch.autograd.grad(goal.sum(), x)
                    margins[rows], gradients[rows] = value.detach().numpy(), slope.numpy()
        return MarginValues(margins, gradients)

    def margins(self, points: NDArray[Any]) -> NDArray[Any]:
        """Only the margins, by a forward pass."""
        found = [np.empty(0, dtype=points.dtype)]
        with one_thread(), torch.no_grad():
            for start in range(0, len(points), self._batch):
                x = torch.from_numpy(points[start : start + self._batch])
                found.append(self._margin(Loss.MARGIN)(x, self._function(EXACT)(x), None)[0].numpy())
        return np.concatenate(found)

    def _function(self, backward: Backward) -> Callable[[Tensor], Tensor]:
        if backward not in self._functions:
            table = backward_table(backward)
            self._functions[backward] = to_torch(self._network, dtype=self._precision, table=table)
        return self._functions[backward]

    def _margin(self, loss: Loss) -> TorchMargin:
        if loss not in self._margins:
            self._margins[loss] = torch_margin(self._form, dtype=self._precision, loss=loss)
        return self._margins[loss]


def torch_precision(dtype: DTypeLike) -> torch.dtype:
    """The torch type for float32 or float64."""
    return torch.float32 if np.dtype(dtype) == np.float32 else torch.float64


def torch_margin(
    form: MarginForm, *, dtype: torch.dtype = torch.float64, loss: Loss = Loss.MARGIN
) -> TorchMargin:
    """μ, and the loss to descend: from μ itself, or from how far the targeted conjunction is from holding.

    The gradient of a maximum or minimum is that of one deciding constraint.
    """
    inputs = torch.from_numpy(form.inputs.T.copy()).to(dtype) if form.inputs.any() else None
    outputs = torch.from_numpy(form.outputs.T.copy()).to(dtype)
    bounds, members = torch.from_numpy(form.bounds).to(dtype), torch.from_numpy(form.members)

    def margin(x: Tensor, y: Tensor, aims: Tensor | None = None) -> tuple[Tensor, Tensor]:
        sides = y @ outputs - bounds
        # The product with the inputs makes the result a function of them, whatever the network is.
        sides = sides + (0 * x[:, :1] if inputs is None else x @ inputs)
        worst, which = sides[:, members].max(dim=2)

        def deciding(conjunctions: Tensor) -> Tensor:
            rows = members[conjunctions, which.gather(1, conjunctions[:, None])[:, 0]]
            return sides.gather(1, rows[:, None])[:, 0]

        nearest = worst.argmin(dim=1)
        least = deciding(nearest)
        aimed = least if aims is None else deciding(torch.where(aims < 0, nearest, aims))
        return least, _lost(loss, worst, aimed, aims)

    return margin


def _lost(loss: Loss, worst: Tensor, aimed: Tensor, aims: Tensor | None) -> Tensor:
    """The loss to descend, from how far each conjunction and the targeted one are from holding.

    The underlying logits are 0 for "safe", and −m_c for conjunction c.
    """
    if loss is Loss.MARGIN or (loss is Loss.RATIO and worst.shape[1] < 2):
        return aimed
    logits = torch.cat([torch.zeros_like(worst[:, :1]), -worst], dim=1)
    if loss is Loss.RATIO:
        top = logits.topk(3, dim=1).values
        return aimed / (top[:, 0] - top[:, 2]).clamp(min=1e-12)
    total = torch.logsumexp(logits, dim=1)
    return -total if aims is None else torch.where(aims < 0, -total, total + aimed)


def batch_size(network: Network) -> int:
    """How many points go through the network at a time."""
    numbers = sum(_held(network, node) for node in network.nodes) + network.input_size
    return max(1, BATCH_BYTES // (8 * 2 * numbers))


def _held(network: Network, node: Node) -> int:
    """How many numbers a node keeps for the backward pass, for one sample."""
    size = prod(network.shapes[node.output])
    if node.op == "Conv":
        weights = network.shapes[node.inputs[1]]
        positions = prod(network.shapes[node.output][2:])
        return size + positions * prod(weights[1:]) * node.integer("group")
    if node.op in ("MaxPool", "AveragePool"):
        return size * (1 + prod(node.integers("kernel")))
    return size
