"""The walk of the kind `linear` in torch, float32 and differentiable: it finds choices, and proves nothing.

Importing this module imports torch, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
import torch.nn.functional as nnf
from numpy.typing import NDArray
from torch import Tensor

from dokimos.checker.linear.lines import UNITS, product_lines
from dokimos.checker.linear.transposes import Places, Windows
from dokimos.checker.linear.walk import BoundedNetwork, Steps, WalkStep, steps_of
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval

_SPREAD = {1: nnf.conv_transpose1d, 2: nnf.conv_transpose2d, 3: nnf.conv_transpose3d}
#: How many numbers the functionals of one batch may have in the largest tensor.
MOST_NUMBERS = 1 << 20


class TorchArrays:
    """Torch's float32."""

    def constant(self, values: Floats) -> Tensor:
        """A tensor of its own."""
        return torch.tensor(values, dtype=torch.float32)

    def permute(self, rows: Tensor, axes: Sequence[int]) -> Tensor:
        """A view."""
        return rows.permute(*axes)

    def scatter(self, rows: Tensor, places: Places, size: int) -> Tensor:
        """By index."""
        return rows.new_zeros((len(rows), size)).index_add(1, torch.from_numpy(places), rows)

    def spread(self, rows: Tensor, weights: Tensor, reads: Windows) -> Tensor:
        """A transposed convolution without the padding, and with zeros where no window reads."""
        rank = len(reads.kernel)
        found: Tensor = _SPREAD[rank](rows, weights, stride=reads.strides, dilation=reads.dilations)
        widths: list[int] = []
        for k in reversed(range(rank)):
            before = reads.pads[k]
            widths += [-before, reads.space[k] + before - found.shape[2 + k]]
        return nnf.pad(found, widths)


Pair = tuple[Tensor, Tensor]
"""The ends of a tensor in each of many regions: [regions or 1, *shape]."""


@dataclass(frozen=True)
class FastCuts:
    """Cuts of one tensor: which region, which entry, sign, value; and which multiplier is each one's."""

    regions: Tensor
    entries: Tensor
    signs: Tensor
    values: Tensor
    numbers: Tensor


@dataclass(frozen=True)
class Batch:
    """Many regions: ends of tensors, cuts by tensor, choices by unit, and multipliers."""

    count: int
    facts: Mapping[str, Pair]
    cuts: Mapping[str, FastCuts]
    lines: Mapping[str, Tensor]
    multipliers: Tensor


class FastWalk:
    """Backward walks over a network whose facts on the whole box are known."""

    def __init__(self, network: Network, bounded: BoundedNetwork) -> None:
        self.steps: Steps = steps_of(network, TorchArrays())
        self.facts: dict[str, Pair] = {
            name: (_tensor(fact.lower)[None], _tensor(fact.upper)[None])
            for name, fact in bounded.facts.items()
        }
        self._biases = {
            step.node.output: _tensor(bounded.bias(step.node.output)).reshape(-1)
            for step in self.steps.steps
            if step.transposes is not None
        }
        self.largest = bounded.largest
        self.argument = {s.node.output: s.sources for s in self.steps.steps if s.transposes is None}

    def ends(self, batch: Batch, name: str) -> Pair:
        """The ends of a tensor in every region."""
        return batch.facts.get(name) or self.facts[name]

    def lower_bounds(
        self, rows: Mapping[str, Tensor], batch: Batch, seen: dict[str, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Bounds [regions, rows], and the coefficients of the input [regions or 1, rows, inputs].

        `seen` collects the functionals of what every unit writes.
        """
        pending = dict(rows)
        constant: Tensor = torch.zeros((1, 1))
        for step in reversed(self.steps.steps):
            name = step.node.output
            functional = pending.pop(name, None)
            if functional is None:
                continue
            wide = functional.shape[1]
            if (cut := batch.cuts.get(name)) is not None:
                functional, shift = _pulled(functional, cut, batch)
                constant = constant + shift
            if step.transposes is not None:
                flat = functional.reshape(-1, *self.steps.shapes[name])
                constant = constant + (flat.reshape(len(flat), -1) @ self._biases[name]).reshape(-1, wide)
                parts = [each(flat) for each in step.transposes]
            else:
                if seen is not None:
                    seen[name] = functional
                parts, shift = self._through(step, functional, batch)
                constant = constant + shift
            for source, part in zip(step.sources, parts, strict=True):
                shaped = part.reshape(-1, wide, *self.steps.shapes[source])
                pending[source] = pending[source] + shaped if source in pending else shaped
        last: Tensor | None = None
        for name, functional in pending.items():
            lower, upper = (end.reshape(len(end), -1) for end in self.ends(batch, name))
            flat = functional.reshape(*functional.shape[:2], -1)
            constant = constant + _dot(flat.clamp(min=0), lower) + _dot(flat.clamp(max=0), upper)
            if name == self.steps.network.input:
                last = flat
        if last is None:
            last = torch.zeros((1, constant.shape[1], self.steps.network.input_size))
        return constant.expand(batch.count, -1), last

    def _through(self, step: WalkStep, functional: Tensor, batch: Batch) -> tuple[list[Tensor], Tensor]:
        above, below = functional.clamp(min=0), functional.clamp(max=0)
        ends = [self.ends(batch, name) for name in step.sources]
        choice = batch.lines.get(step.node.output)
        if step.node.op == "Relu":
            lower, upper = ends[0]
            on, off = lower >= 0, upper <= 0
            chord = upper / (upper - lower).clamp(min=1e-30)
            usual = (upper > -lower).to(torch.float32)
            under = torch.where(on, 1.0, torch.where(off, 0.0, usual if choice is None else choice))
            over = torch.where(on, 1.0, torch.where(off, 0.0, chord))
            shift = torch.where(on | off, 0.0, -chord * lower)
            turned = above * under[:, None] + below * over[:, None]
            return [turned], _dot(below.flatten(2), shift.flatten(1))
        lines = _fixed_lines(step, ends, choice)
        parts: list[Tensor] = []
        shift = torch.zeros((1, 1))
        for side, (*slopes, offset) in ((above, lines[0]), (below, lines[1])):
            shift = shift + _dot(side.flatten(2), offset.flatten(1))
            turned_by = [side * slope[:, None] for slope in slopes]
            parts = [a + b for a, b in zip(parts, turned_by, strict=True)] if parts else turned_by
        return parts, shift

    def before(self, name: str) -> list[str]:
        """The ReLUs that a tensor is computed from, by what they write."""
        behind, found = {name}, []
        for step in reversed(self.steps.steps):
            if step.node.output in behind:
                behind.update(step.sources)
                if step.transposes is None and step.node.op == "Relu":
                    found.append(step.node.output)
        return found

    def refine(self, batch: Batch, name: str, entries: NDArray[np.int64]) -> Batch:
        """The batch with bounds of these entries of a tensor, where they are better."""
        shape = self.steps.shapes[name]
        size = (batch.count, prod(shape))
        lower, upper = (end.reshape(len(end), -1).expand(size).clone() for end in self.ends(batch, name))
        most = max(1, MOST_NUMBERS // (2 * batch.count * self.largest))
        for start in range(0, len(entries), most):
            chosen = torch.from_numpy(entries[start : start + most])
            rows = torch.zeros((1, 2 * len(chosen), prod(shape)))
            place = torch.arange(len(chosen))
            rows[0, place, chosen] = 1.0
            rows[0, len(chosen) + place, chosen] = -1.0
            found, _ = self.lower_bounds({name: rows.reshape(1, -1, *shape)}, batch)
            lower[:, chosen] = torch.maximum(lower[:, chosen], found[:, : len(chosen)])
            upper[:, chosen] = torch.minimum(upper[:, chosen], -found[:, len(chosen) :])
        fact = (lower.reshape(-1, *shape), upper.reshape(-1, *shape))
        return replace(batch, facts={**batch.facts, name: fact})


def _pulled(functional: Tensor, cut: FastCuts, batch: Batch) -> tuple[Tensor, Tensor]:
    """A functional with −β·σ·(e − v) for each cut."""
    flat = functional.expand(batch.count, *functional.shape[1:]).flatten(2)
    pull = cut.signs * batch.multipliers[cut.numbers]
    taken = torch.zeros_like(flat[:, 0]).index_put((cut.regions, cut.entries), pull, accumulate=True)
    shift = torch.zeros(batch.count).index_put((cut.regions,), pull * cut.values, accumulate=True)
    return (flat - taken[:, None]).reshape(batch.count, *functional.shape[1:]), shift[:, None]


def _dot(functional: Tensor, vectors: Tensor) -> Tensor:
    """Σ functional·vector for functionals [n or 1, rows, size] and vectors [n or 1, size]."""
    if len(functional) == 1:
        return (functional[0] @ vectors.T).T
    return (functional @ vectors[..., None])[..., 0]


def _fixed_lines(
    step: WalkStep, ends: Sequence[Pair], choice: Tensor | None
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The lines of the checker's table, as numbers."""
    facts = [Interval(*(end.numpy().astype(np.float64) for end in pair)) for pair in ends]
    chosen = np.full((1,), np.nan) if choice is None else choice.detach().numpy().astype(np.float64)
    if len(facts) == 2:
        planes = product_lines(facts[0], facts[1], chosen)
        under, over = planes.lower, planes.upper
        return tuple(map(_tensor, under)), tuple(map(_tensor, over))
    lines = UNITS[step.node.op](step.node, facts[0], chosen)
    return (
        (_tensor(lines.lower_slope), _tensor(lines.lower_shift)),
        (_tensor(lines.upper_slope), _tensor(lines.upper_shift)),
    )


def _tensor(values: Floats) -> Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32)
