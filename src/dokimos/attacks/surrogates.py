"""Rules for torch whose values are exact and whose derivatives are those that `Backward` describes.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from types import MappingProxyType

import torch
import torch.nn.functional as nnf
from torch import Tensor

from dokimos.attacks.backward import EXACT, Backward
from dokimos.networks.graph import Node
from dokimos.networks.semantics.differentiable import TABLE
from dokimos.networks.semantics.propagation import Rule


def backward_table(backward: Backward) -> Mapping[str, Rule[Tensor]]:
    """The operator table with these derivatives of Relu and Clip."""
    if backward == EXACT:
        return TABLE

    def relu(node: Node, arguments: Sequence[Tensor | None]) -> Tensor:
        z = _only(arguments)
        return _with_slope(torch.relu(z), _rectified(z, _scale(z, backward), backward))

    def clip(node: Node, arguments: Sequence[Tensor | None]) -> Tensor:
        z, low, high = _only(arguments), node.real("min"), node.real("max")
        clipped = torch.clamp(z, low, high)
        if not backward.temperature:
            return _with_slope(clipped, backward.leak * z + (1 - backward.leak) * clipped)
        scale = _scale(z, backward)
        stand_in = _rectified(z - low, scale, backward) if isfinite(low) else z
        if isfinite(high):
            stand_in = stand_in - _rectified(z - high, scale, backward)
        return _with_slope(clipped, stand_in)

    return MappingProxyType({**TABLE, "Relu": relu, "Clip": clip})


def _only(arguments: Sequence[Tensor | None]) -> Tensor:
    assert arguments[0] is not None
    return arguments[0]


def _with_slope(value: Tensor, stand_in: Tensor) -> Tensor:
    """The value of `value`, with the derivative of `stand_in`."""
    return value.detach() + (stand_in - stand_in.detach())


def _scale(z: Tensor, backward: Backward) -> Tensor:
    return (backward.temperature * z.detach().abs().mean()).clamp(min=torch.finfo(z.dtype).tiny)


def _rectified(z: Tensor, scale: Tensor, backward: Backward) -> Tensor:
    """A function of z whose derivative is the slope of a ReLU in the backward pass."""
    if backward.temperature:
        return nnf.softplus(z / scale) * scale
    return nnf.leaky_relu(z, backward.leak)
