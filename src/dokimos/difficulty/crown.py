"""L_CROWN: a lower bound of the margin by backward linear relaxation (`networks.semantics.linear_bounds`).

The bounds of ReLUs' inputs are improved, layer by layer, for each unstable unit, if doing so for all layers
costs no more than evaluating all samples; otherwise only the first layers are improved, and the others keep
their intervals. Constraints of the property also keep their interval bound if that is the better one.
Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch

from dokimos.difficulty.sampling import Floats
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.attention_bounds import ATTENTION_RULES, AttentionBounds
from dokimos.networks.semantics.differentiable import one_thread
from dokimos.networks.semantics.linear_bounds import LinearBounds, rectifiers, without_linear_bound
from dokimos.networks.semantics.outward import Interval
from dokimos.properties.margins import MarginForm, float_ends
from dokimos.properties.model import Box

#: What improving bounds may cost, in evaluations of the network for each sample (a forward and a backward
#: pass are about three): where this is enough for all layers, and where it is not.
ALLOWANCE, SMALL_ALLOWANCE = 2.0, 0.25


@dataclass(frozen=True)
class CrownBound:
    """The bound, and a note that qualifies it."""

    lower: float
    note: str | None


def crown_bound(
    network: Network,
    forms: Sequence[MarginForm],
    enclosures: Sequence[Mapping[str, Interval]],
    boxes: Sequence[Box],
    intervals: Sequence[Floats],
    *,
    samples: int,
) -> CrownBound | str:
    """The least bound over all cases, or why there is none; `intervals` bounds each case's constraints."""
    reason = without_linear_bound(network, ATTENTION_RULES)
    if reason is not None:
        return reason
    least, kept, layers = [], 0, 0
    with one_thread(), torch.no_grad():
        for form, enclosure, box, known in zip(forms, enclosures, boxes, intervals, strict=True):
            bounds = AttentionBounds(network, enclosure, *float_ends(box))
            layers = len(bounds.bounded)
            kept = max(kept, _improve(network, bounds, samples))
            least.append(form.least(np.fmax(_row_bounds(network, bounds, form), known)))
    what = "tensors" if layers > len(rectifiers(network)) else "ReLU layers"
    return CrownBound(min(least), f"{kept} of {layers} {what} keep their interval bounds" if kept else None)


def _improve(network: Network, bounds: LinearBounds, samples: int) -> int:
    """Improve the bounds of unstable units, layer by layer; how many layers were too costly."""
    costs = [_cost(network, node) for node in network.nodes]
    layers = [(name, place, 2.0 * sum(costs[:place])) for name, place in bounds.bounded]
    passes, kept = float(samples * sum(costs)), 0
    everything = sum(price * len(bounds.unstable(name)) for name, _, price in layers)
    left = passes * (ALLOWANCE if everything <= ALLOWANCE * passes else SMALL_ALLOWANCE)
    for name, place, price in layers:
        units = bounds.unstable(name)
        if price * len(units) > left:
            kept += 1
            continue
        left -= price * len(units)
        bounds.tighten(name, place, units)
    return kept


def _row_bounds(network: Network, bounds: LinearBounds, form: MarginForm) -> Floats:
    """A lower bound of each constraint's g."""
    found = []
    for start in range(0, len(form.bounds), bounds.batch):
        part = slice(start, start + bounds.batch)
        weights = torch.from_numpy(form.outputs[part]).reshape(-1, *network.output_shape)
        inputs = torch.from_numpy(form.inputs[part])
        found.append(bounds.lower(network.output, weights, len(network.nodes), inputs))
    return np.asarray(torch.cat(found).numpy() - form.bounds)


def _cost(network: Network, node: Node) -> int:
    """How many multiplications a node takes, about."""
    size = prod(network.shapes[node.output])
    if node.op == "Conv":
        return size * prod(network.shapes[node.inputs[1]][1:])
    if node.op in ("Gemm", "MatMul"):
        shape = network.shapes[node.inputs[0]]
        return size * shape[0 if node.op == "Gemm" and node.integer("transA") else -1]
    return size
