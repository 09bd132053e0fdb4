"""One forward and one backward pass over all samples: the margins and their gradients, in float64.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

from dokimos.core.errors import InputError
from dokimos.difficulty.margin_form import MarginForm
from dokimos.difficulty.sampling import Floats
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.differentiable import to_torch

#: How much memory the tensors of one batch may take; smaller ones also stay closer to the processor.
BATCH_BYTES = 64 * 2**20
#: How many numbers the gradients of all samples together may hold (800 MB).
MOST_NUMBERS = 10**8


@dataclass(frozen=True, eq=False)
class Sampled:
    """At each sample, the margin and its gradient, 0 along inputs that the box fixes."""

    margins: Floats
    gradients: Floats


def look(
    network: Network, forms: Sequence[MarginForm], points: Sequence[Floats], free: Sequence[Floats]
) -> Sampled:
    """The margins of each form at its points; `free` is 1 for inputs that its box leaves free, else 0.

    Where several constraints decide the margin, or a unit has no derivative, the gradient is a
    subgradient of torch's choosing. One thread computes, so that the same call gives the same numbers.
    """
    count = sum(map(len, points))
    if count * network.input_size > MOST_NUMBERS:
        most = MOST_NUMBERS // network.input_size
        raise InputError(
            f"{count} samples of {network.input_size} inputs need too much memory; ask for {most} at most."
        )
    function = to_torch(network, dtype=torch.float64)
    batch = batch_size(network)
    margins, gradients = [], []
    with one_thread():
        for form, its_points, its_free in zip(forms, points, free, strict=True):
            margin = torch_margin(form)
            for start in range(0, len(its_points), batch):
                x = torch.from_numpy(its_points[start : start + batch]).requires_grad_(True)
                value = margin(x, function(x))
                (slope,) = torch.autograd.grad(value.sum(), x)
                margins.append(value.detach().numpy())
                gradients.append(slope.numpy() * its_free)
    return Sampled(np.concatenate(margins), np.concatenate(gradients))


def torch_margin(form: MarginForm) -> Callable[[Tensor, Tensor], Tensor]:
    """μ as a function of inputs [k, n] and outputs [k, m]; its gradient is of a deciding constraint."""
    inputs = torch.from_numpy(form.inputs.T.copy()) if form.inputs.any() else None
    outputs, bounds = torch.from_numpy(form.outputs.T.copy()), torch.from_numpy(form.bounds)
    members = torch.from_numpy(form.members)

    def margin(x: Tensor, y: Tensor) -> Tensor:
        sides = y @ outputs - bounds
        # The product with the inputs keeps the result a function of them, whatever the network is.
        sides = sides + (0 * x[:, :1] if inputs is None else x @ inputs)
        worst, which = sides[:, members].max(dim=2)
        nearest = worst.argmin(dim=1, keepdim=True)
        deciding = members[nearest[:, 0], which.gather(1, nearest)[:, 0]]
        return sides.gather(1, deciding[:, None])[:, 0]

    return margin


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread of torch: sums in one order, and processes beside each other undisturbed."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def batch_size(network: Network) -> int:
    """How many samples go through the network at a time."""
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
