"""L_CROWN: a lower bound of the margin by backward linear relaxation (CROWN), in float64.

Theorem (Zhang et al., Efficient Neural Network Robustness Certification with General Activation Functions,
2018). For l <= z <= u with l < 0 < u and 0 <= α <= 1, max(z, αz) lies below its chord over [l, u] and above
s·z for both s = α and s = 1. In λ·max(z, αz) put the lower line where λ > 0 and the chord where λ < 0:
the result is linear in z and nowhere above it. Going back from g = λ·t + c, node by node, this and the
transposes of affine operators lead to g >= λ₀·x + c₀, whose least value on the box is known exactly.

The lower line has slope 1 where u > −l and α elsewhere. l and u are those of interval propagation,
improved, ReLU layer by ReLU layer, by the same bound for each unstable unit, where for all layers this
costs no more than the passes through all samples do; otherwise only the first ones are, and the others
keep their intervals. So do constraints of the property whose interval bound is the better one. Sums are
rounded to nearest in float64: the bound is sound up to their rounding. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

from dokimos.difficulty.sampling import Floats
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.differentiable import BATCH_BYTES, TABLE, one_thread
from dokimos.networks.semantics.outward import Interval
from dokimos.properties.margins import MarginForm, float_ends
from dokimos.properties.model import Box

RECTIFIERS = ("Relu", "LeakyRelu")
#: What improving bounds may cost, in evaluations of the network for each sample (a forward and a backward
#: pass are about three): where this is enough for all layers, and where it is not.
PURSE, SMALL_PURSE = 2.0, 0.25
#: Affine in all their inputs together, and affine in one of them while the others are constant.
_JOINTLY = frozenset(
    {
        *("Add", "AveragePool", "Concat", "Expand", "Gather", "Neg", "Pad", "ReduceMean", "ReduceSum"),
        *("Reshape", "Slice", "Sub", "Transpose"),
    }
)
_ONE_BY_ONE = frozenset({"BatchNormalization", "Conv", "Div", "Gemm", "MatMul", "Mul"})


@dataclass(frozen=True)
class CrownBound:
    """The bound, and what qualifies it."""

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
    reason = beyond(network)
    if reason is not None:
        return reason
    bounds, kept = [], 0
    with one_thread(), torch.no_grad():
        for form, enclosure, box, known in zip(forms, enclosures, boxes, intervals, strict=True):
            relaxation = _Relaxation(network, enclosure, box)
            kept = max(kept, relaxation.improve(samples))
            bounds.append(form.least(np.fmax(relaxation.of_margin(form), known)))
    layers = sum(node.op in RECTIFIERS for node in network.nodes)
    return CrownBound(
        min(bounds), f"{kept} of {layers} ReLU layers keep their interval bounds" if kept else None
    )


def beyond(network: Network) -> str | None:
    """The first operator that has no linear relaxation here, as a reason; None where all have one."""
    for node in network.nodes:
        varying = [i for i, name in enumerate(node.inputs) if name and name not in network.constants]
        if node.op in _JOINTLY or (node.op == "Relu"):
            continue
        if node.op == "LeakyRelu" and 0 <= node.real("alpha") <= 1:
            continue
        if node.op in _ONE_BY_ONE and len(varying) == 1 and not (node.op == "Div" and varying == [1]):
            continue
        return f"{node.op} has no linear relaxation here"
    return None


class _Relaxation:
    """The bounds of every ReLU's input over one box, and functionals bounded from below with them."""

    def __init__(self, network: Network, enclosure: Mapping[str, Interval], box: Box) -> None:
        self._network = network
        self._constants = {
            name: torch.from_numpy(np.array(array, dtype=np.float64))
            for name, array in network.constants.items()
        }
        self._graphs: dict[str, tuple[dict[str, Tensor], Tensor]] = {}
        lower, upper = (torch.from_numpy(end) for end in float_ends(box))
        self._centre, self._radius = (lower + upper) / 2, (upper - lower) / 2
        self._bounds: dict[str, tuple[Tensor, Tensor]] = {}
        for node in network.nodes:
            if node.op in RECTIFIERS:
                interval = enclosure[node.inputs[0]]
                ends = np.array(interval.lower), np.array(interval.upper)
                self._bounds[node.inputs[0]] = (torch.from_numpy(ends[0]), torch.from_numpy(ends[1]))

    def improve(self, samples: int) -> int:
        """Improve the bounds of unstable units, layer by layer; how many layers were too costly."""
        costs = [_cost(self._network, node) for node in self._network.nodes]
        layers = [
            (node.inputs[0], place, 2.0 * sum(costs[:place]))
            for place, node in enumerate(self._network.nodes)
            if node.op in RECTIFIERS
        ]
        passes, kept = float(samples * sum(costs)), 0
        everything = sum(price * len(self._unstable(name)) for name, _, price in layers)
        purse = passes * (PURSE if everything <= PURSE * passes else SMALL_PURSE)
        for name, place, price in layers:
            units = self._unstable(name)
            if price * len(units) > purse:
                kept += 1
                continue
            purse -= price * len(units)
            self._improve(name, place, units)
        return kept

    def _unstable(self, name: str) -> Tensor:
        lower, upper = (end.reshape(-1) for end in self._bounds[name])
        return torch.nonzero((lower < 0) & (upper > 0))[:, 0]

    def _improve(self, name: str, place: int, units: Tensor) -> None:
        lower, upper = (end.reshape(-1).clone() for end in self._bounds[name])
        shape = self._network.shapes[name]
        batch = self._batch()
        for start in range(0, len(units), batch):
            chosen = units[start : start + batch]
            ones = torch.zeros((len(chosen), prod(shape)), dtype=torch.float64)
            ones[torch.arange(len(chosen)), chosen] = 1.0
            directions = ones.reshape(-1, *shape)
            below = self.lower(name, directions, place)
            above = -self.lower(name, -directions, place)
            sound = below <= above  # not so for nan, nor where rounding crossed them
            lower[chosen] = torch.where(sound, torch.maximum(lower[chosen], below), lower[chosen])
            upper[chosen] = torch.where(sound, torch.minimum(upper[chosen], above), upper[chosen])
        crossed = lower > upper
        middle = (lower + upper) / 2
        lower, upper = torch.where(crossed, middle, lower), torch.where(crossed, middle, upper)
        self._bounds[name] = (lower.reshape(shape), upper.reshape(shape))

    def _batch(self) -> int:
        """How many functionals are bounded at a time: each holds a few copies of a tensor."""
        largest = max((prod(self._network.shapes[node.output]) for node in self._network.nodes), default=1)
        return max(1, BATCH_BYTES // (8 * 8 * max(largest, self._network.input_size)))

    def of_margin(self, form: MarginForm) -> Floats:
        """A lower bound of each constraint's g."""
        network, found = self._network, []
        batch = self._batch()
        for start in range(0, len(form.bounds), batch):
            part = slice(start, start + batch)
            weights = torch.from_numpy(form.outputs[part]).reshape(-1, *network.output_shape)
            inputs = torch.from_numpy(form.inputs[part])
            found.append(self.lower(network.output, weights, len(network.nodes), inputs))
        return np.asarray(torch.cat(found).numpy() - form.bounds)

    def lower(self, name: str, weights: Tensor, place: int, inputs: Tensor | None = None) -> Tensor:
        """The least of weights·(tensor `name`) + inputs·x over the box, from nodes before `place`."""
        pending = {name: weights}
        constant = torch.zeros(len(weights), dtype=torch.float64)
        for node in reversed(self._network.nodes[:place]):
            functional = pending.pop(node.output, None)
            if functional is None:
                continue
            if node.op in RECTIFIERS:
                earlier, offset = self._relaxed(node, functional)
            else:
                earlier, offset = self._transposed(node, functional)
            constant = constant + offset
            for source, part in earlier.items():
                pending[source] = pending[source] + part if source in pending else part
        slope = pending.get(self._network.input)
        total = torch.zeros_like(self._centre) if slope is None else slope.reshape(len(weights), -1)
        total = total if inputs is None else total + inputs
        return constant + total @ self._centre - total.abs() @ self._radius

    def _relaxed(self, node: Node, functional: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        lower, upper = self._bounds[node.inputs[0]]
        alpha = node.real("alpha") if node.op == "LeakyRelu" else 0.0
        unstable = (lower < 0) & (upper > 0)
        chord = torch.where(unstable, (upper - alpha * lower) / (upper - lower), 1.0)
        chord = torch.where(upper <= 0, alpha, chord)
        line = torch.where(unstable & (upper <= -lower), alpha, torch.where(upper <= 0, alpha, 1.0))
        height = torch.where(unstable, alpha * lower - chord * lower, 0.0)
        positive, negative = functional.clamp(min=0), functional.clamp(max=0)
        offset = (negative * height).flatten(1).sum(1)
        return {node.inputs[0]: positive * line + negative * chord}, offset

    def _transposed(self, node: Node, functional: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """λ·A(u) = Aᵀλ·u + λ·A(0), by pulling λ back through the operator at 0."""
        sources, at_zero = self._at_zero(node)
        parts = torch.autograd.grad(
            at_zero, list(sources.values()), functional, is_grads_batched=True, retain_graph=True
        )
        offset = (functional * at_zero.detach()).flatten(1).sum(1)
        return dict(zip(sources, parts, strict=True)), offset

    def _at_zero(self, node: Node) -> tuple[dict[str, Tensor], Tensor]:
        """The varying inputs of an affine operator, all 0, and its output there, joined by autograd."""
        if node.output not in self._graphs:
            sources = {
                name: torch.zeros(self._network.shapes[name], dtype=torch.float64, requires_grad=True)
                for name in node.inputs
                if name and name not in self._constants
            }
            known = {**self._constants, **sources}
            with torch.enable_grad():
                output = TABLE[node.op](node, [known[name] if name else None for name in node.inputs])
            self._graphs[node.output] = sources, output
        return self._graphs[node.output]


def _cost(network: Network, node: Node) -> int:
    """How many multiplications a node takes, about."""
    size = prod(network.shapes[node.output])
    if node.op == "Conv":
        return size * prod(network.shapes[node.inputs[1]][1:])
    if node.op in ("Gemm", "MatMul"):
        shape = network.shapes[node.inputs[0]]
        return size * shape[0 if node.op == "Gemm" and node.integer("transA") else -1]
    return size
