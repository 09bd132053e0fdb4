"""A base network that intervals prove robust on every box: certified training on a handful of points.

The network is trained on the worst outputs that interval arithmetic allows in the boxes (IBP, Gowal et al.,
2018), then its last layer is scaled so that the least proven lead is about 1. Nothing here is trusted: the
checker proves the lead on the exported file. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import Tensor

from dokimos.constructions.hiding.plants import PlantedPoint
from dokimos.constructions.trainable_weights import enclose, trainable, unknown_layers, with_weights
from dokimos.core.errors import ConstructionFailed
from dokimos.engine.differentiable import Adam, one_thread
from dokimos.engine.direct import real_outputs
from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.model import Box

#: First the points alone are learned, then their boxes grow to full size: in so many steps, or more slowly
#: where that does not end well; and at full size a few more steps may be needed.
PLAIN_STEPS, GROWING_STEPS, LAST_STEPS = 100, (600, 2500), 400
#: The boxes of training are this much larger than those of the points.
SPARE = 1.05
#: If the padding of average pools is counted by mistake, the lead is at least this many times larger.
PADDING_LEADS = 1.5


def certified_base(
    network: bytes,
    points: Sequence[PlantedPoint],
    enlarged: Callable[[Box], Box],
    *,
    progress: Callable[[int, int], None] = lambda _step, _proven: None,
) -> tuple[bytes, tuple[tuple[Fraction, Fraction], ...]]:
    """The trained file, and for each point the interval bounds of the right class's lead on its larger box.

    `progress` is called with the step and the number of points that seem to be proven. Raises
    ConstructionFailed if an operator has no interval rule here, or training does not reach a proof.
    """
    graph = read_onnx(network)
    if unknown := unknown_layers(graph):
        raise ConstructionFailed(
            f"Certified training does not support {', '.join(sorted(unknown))}; choose another "
            "architecture, or the `tier` trained."
        )
    with one_thread():
        for growing in GROWING_STEPS:
            weights, proven = train_certified(graph, points, growing=growing, progress=progress)
            if proven == len(points):
                break
        else:
            raise ConstructionFailed(
                f"Certified training proves only {proven} of {len(points)} points; try fewer points, a "
                "smaller epsilon or another seed."
            )
    file = with_weights(network, weights)
    least = min(low for low, _ in leads_on(file, points, enlarged))
    if least <= 0:
        raise ConstructionFailed(
            "Intervals do not prove the base network robust on its boxes; try another seed."
        )
    scale = 2.0 ** -np.floor(np.log2(float(least)))
    file = with_weights(network, weights, last_times=scale)
    return file, leads_on(file, points, enlarged)


def train_certified(
    graph: Network, points: Sequence[PlantedPoint], *, growing: int, progress: Callable[[int, int], None]
) -> tuple[dict[str, Tensor], int]:
    """The weights after training with boxes that grow so slowly, and how many points seem to be proven.

    Where not all are proven in the end, they are those with which most were, perhaps on smaller boxes. A
    network with padded average pools leads by more where padding is counted.
    """
    weights = trainable(graph)
    optimiser = Adam(weights.values(), rate=1e-3)
    centres = torch.tensor([[float(x) for x in p.centre] for p in points])
    labels = torch.tensor([p.label for p in points])
    radius = SPARE * float(points[0].radius)
    misread = _with_padding_counted(graph)
    proven, most_proven = 0, 0
    kept: dict[str, Tensor] = {}
    for step in range(PLAIN_STEPS + growing + LAST_STEPS):
        share = min(1.0, max(0.0, (step - PLAIN_STEPS) / growing))
        low, high = enclose(graph, weights, centres - share * radius, centres + share * radius)
        leads = _least_leads(low, high, labels)
        loss = nnf.softplus(1 - leads).mean()
        good = leads > 0.5
        if misread is not None:
            # What a lock takes away is a quarter more than the lead: with twice the lead it stays ahead.
            most = -_least_leads(low, high, 1 - labels)
            other = enclose(misread, weights, centres - share * radius, centres + share * radius)
            spare = _least_leads(*other, labels) - PADDING_LEADS * most
            loss = loss + nnf.softplus(1 - spare).mean()
            good = good & (spare > 0)
        proven = int(good.sum())
        if proven >= most_proven:
            most_proven = proven
            kept = {name: weight.detach().clone() for name, weight in weights.items()}
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 250 == 0:
            progress(step, proven)
        if share == 1.0 and proven == len(points):
            break
    if proven < len(points):
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(kept[name])
    return weights, proven


def _least_leads(low: Tensor, high: Tensor, labels: Tensor) -> Tensor:
    """By how much each row's class leads the other of the two, at least."""
    return low.gather(1, labels[:, None])[:, 0] - high.gather(1, 1 - labels[:, None])[:, 0]


def _with_padding_counted(graph: Network) -> Network | None:
    """The network as read by a tool that counts the padding of average pools; None if it has no such pool.

    Its leads are trained to be so large that it has no counterexample where the right one has: whether
    there is a violation then depends on the border, and a tool with that bug says `unsat`.
    """

    def counted(node: Node) -> Node:
        if node.op != "AveragePool" or not any(node.integers("pads")) or node.integer("count_include_pad"):
            return node
        return replace(node, attributes={**node.attributes, "count_include_pad": 1})

    nodes = tuple(counted(node) for node in graph.nodes)
    return None if nodes == graph.nodes else replace(graph, nodes=nodes)


def leads_on(
    network: bytes, points: Sequence[PlantedPoint], enlarged: Callable[[Box], Box]
) -> tuple[tuple[Fraction, Fraction], ...]:
    """For each point, the interval bounds of the right class's lead on its larger box."""
    bounds = real_outputs(read_onnx(network))
    found = []
    for point in points:
        both = bounds(enlarged(point.box))
        (low, high), (other_low, other_high) = both[point.label], both[1 - point.label]
        found.append((Fraction(low) - Fraction(other_high), Fraction(high) - Fraction(other_low)))
    return tuple(found)
