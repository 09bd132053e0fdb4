"""The walk of the kind `linear` in torch, float32 and differentiable: it finds choices, and proves nothing.

Importing this module imports torch, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi, prod, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import Tensor

from dokimos.checker.linear.lines import planes_of
from dokimos.checker.linear.transposes import Places, Windows
from dokimos.checker.linear.walk import BoundedNetwork, Pair, Steps, WalkStep, steps_of
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval

_SPREAD = {1: nnf.conv_transpose1d, 2: nnf.conv_transpose2d, 3: nnf.conv_transpose3d}
#: How many numbers the functionals of one batch may have in the largest tensor.
MOST_NUMBERS = 1 << 20


class TorchArrays:
    """Torch's float32."""

    def constant(self, values: Floats) -> Tensor:
        """A tensor of its own."""
        return torch.tensor(np.ascontiguousarray(values), dtype=torch.float32)

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


#: How often an interval is halved to find a tangent.
HALVINGS = 24

Line = tuple[Tensor, ...]
"""Slopes, one for each argument, and a shift."""
Ends = tuple[Tensor, Tensor]
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
    facts: Mapping[str, Ends]
    cuts: Mapping[str, FastCuts]
    lines: Mapping[str, Tensor]
    multipliers: Tensor


class FastWalk:
    """Backward walks over a network whose facts on the whole box are known."""

    def __init__(self, network: Network, bounded: BoundedNetwork, pairs: Sequence[Pair] = ()) -> None:
        self.steps: Steps = replace(steps_of(network, TorchArrays(), pairs), pause=bounded.steps.pause)
        self.facts: dict[str, Ends] = {
            name: (_tensor(fact.lower)[None], _tensor(fact.upper)[None])
            for name, fact in bounded.facts.items()
        }
        self._biases = {
            step.node.output: _tensor(bounded.bias(step.node.output)).reshape(-1)
            for step in self.steps.steps
            if step.transposes is not None
        }
        self.largest = bounded.largest
        self.argument = {
            s.node.output: s.sources for s in self.steps.steps if s.node.output in self.steps.units
        }
        self._kept: dict[str, tuple[tuple[Tensor, ...], Any]] = {}
        ops = {s.node.output: s.node.op for s in self.steps.steps if s.node.output in self.argument}
        self.relus = {name for name, op in ops.items() if op == "Relu"}
        read = {name: {w for w, sources in self.argument.items() if name in sources} for name in self.facts}
        self._only_signs = {name for name, writes in read.items() if writes <= self.relus}
        self.curves = {name: op for name, op in ops.items() if op in CURVES}

    def ends(self, batch: Batch, name: str) -> Ends:
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
            functional = None if step.is_opaque else pending.pop(name, None)
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
        ends = [self.ends(batch, name) for name in step.sources]
        choice = batch.lines.get(step.node.output)
        if step.node.op == "Relu":
            on, open_, usual, over, shift = self._until_changed(step, ends, _relu_lines)
            turned, constant = _Rectified.apply(
                functional, torch.addcmul(on, open_, usual if choice is None else choice), over, shift
            )
            return [turned], constant
        above, below = functional.clamp(min=0), functional.clamp(max=0)
        lines = self._lines(step, ends, choice)
        parts: list[Tensor] = []
        shift = torch.zeros((1, 1))
        for side, (*slopes, offset) in ((above, lines[0]), (below, lines[1])):
            shift = shift + _dot(side.flatten(2), offset.flatten(1))
            turned_by = [side * slope[:, None] for slope in slopes]
            parts = [a + b for a, b in zip(parts, turned_by, strict=True)] if parts else turned_by
        return parts, shift

    def _lines(self, step: WalkStep, ends: Sequence[Ends], choice: Tensor | None) -> tuple[Line, Line]:
        """The lines of a unit that is no ReLU."""
        curve = CURVES.get(step.node.op)
        if curve is None:
            lines: tuple[Line, Line] = self._until_changed(step, ends, lambda *e: _fixed_lines(step, e))
            return lines
        last = self._until_changed(step, ends, lambda pair: _last_tangents(curve, *pair))
        return _bent_lines(curve, ends[0], last, choice)

    def _until_changed(self, step: WalkStep, ends: Sequence[Ends], made: Callable[..., Any]) -> Any:
        """What a unit's lines have from the ends alone, kept until these change."""
        flat, known = [end for pair in ends for end in pair], self._kept.get(step.node.output)
        if known is None or any(a is not b for a, b in zip(known[0], flat, strict=True)):
            known = self._kept[step.node.output] = (tuple(flat), made(*ends))
        return known[1]

    def usual(self, name: str) -> Tensor:
        """The usual choice of a unit on the whole box; for curves the mean of those below and above."""
        lower, upper = self.facts[self.argument[name][0]]
        if name in self.relus:
            return (upper > -lower).to(torch.float32)
        middle, shares = 0.5 * (lower + upper), []
        lasts = _last_tangents(CURVES[self.curves[name]], lower, upper)
        for first, center, last in ((lower, middle, lasts[0]), (-upper, -middle, lasts[1])):
            shares.append(((center - first) / (last - first).clamp(min=1e-30)).clamp(0.0, 1.0))
        return 0.5 * (shares[0] + shares[1])

    def before(self, name: str) -> list[str]:
        """The ReLUs and curves that a tensor is computed from, by what they write."""
        behind, found = {name}, []
        for step in reversed(self.steps.steps):
            if step.node.output in behind:
                behind.update(step.sources)
                if step.node.output in self.relus or step.node.output in self.curves:
                    found.append(step.node.output)
        return found

    def refine(self, batch: Batch, name: str) -> Batch:
        """The batch with better bounds of what is undecided of a tensor in each region."""
        shape = self.steps.shapes[name]
        size = (batch.count, prod(shape))
        lower, upper = (end.reshape(len(end), -1).expand(size).clone() for end in self.ends(batch, name))
        wanted = (lower < 0) & (upper > 0) if name in self._only_signs else lower < upper
        order = torch.argsort((~wanted).to(torch.uint8), dim=1, stable=True)
        order = order[:, : int(wanted.sum(1).max())]
        most = max(1, MOST_NUMBERS // (2 * batch.count * self.largest))
        for chosen in order.split(most, 1) if order.numel() else ():
            rows = torch.zeros((batch.count, 2, chosen.shape[1], size[1]))
            rows[:, 0].scatter_(2, chosen[..., None], 1.0)
            rows[:, 1].scatter_(2, chosen[..., None], -1.0)
            found, _ = self.lower_bounds({name: rows.reshape(batch.count, -1, *shape)}, batch)
            low, high = found.split(chosen.shape[1], 1)
            lower.scatter_(1, chosen, torch.maximum(lower.gather(1, chosen), low))
            upper.scatter_(1, chosen, torch.minimum(upper.gather(1, chosen), -high))
        fact = (lower.reshape(-1, *shape), upper.reshape(-1, *shape))
        return replace(batch, facts={**batch.facts, name: fact})


class _Rectified(torch.autograd.Function):  # type: ignore[misc]
    """Functionals of ReLUs [n, rows, *shape] as those of their arguments, and constants [n, rows].

    Factors above 0 take the slopes of the lines below, others those above; `shift` is what these have at 0.
    """

    @staticmethod
    def forward(
        context: Any, functional: Tensor, under: Tensor, over: Tensor, shift: Tensor
    ) -> tuple[Tensor, Tensor]:
        context.save_for_backward(functional, under, over, shift)
        above = functional.clamp(min=0)
        turned = torch.addcmul(functional * over[:, None], above, (under - over)[:, None])
        return turned, _dot((functional - above).flatten(2), shift.flatten(1))

    @staticmethod
    def backward(
        context: Any, turned: Tensor, constant: Tensor
    ) -> tuple[Tensor | None, Tensor | None, None, None]:
        functional, under, over, shift = context.saved_tensors
        above, of_functional, of_under = functional > 0, None, None
        if context.needs_input_grad[0]:
            below = torch.addcmul(
                constant.reshape(*constant.shape, *(1,) * (functional.ndim - 2)) * shift[:, None],
                turned,
                over[:, None],
            )
            of_functional = torch.where(above, turned * under[:, None], below).sum_to_size(functional.shape)
        if context.needs_input_grad[1]:
            of_under = (turned * functional.clamp(min=0)).sum(1).sum_to_size(under.shape)
        return of_functional, of_under, None, None


def _relu_lines(ends: Ends) -> tuple[Tensor, ...]:
    """1 where units are on, 1 where they are open; the usual slopes; slopes and shifts of lines above."""
    lower, upper = ends
    on, off = lower >= 0, upper <= 0
    open_ = ~(on | off)
    over = torch.where(open_, upper / (upper - lower).clamp(min=1e-30), on.to(torch.float32))
    shift = torch.where(open_, -over * lower, 0.0)
    return on.to(torch.float32), open_.to(torch.float32), (upper > -lower).to(torch.float32), over, shift


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


def _fixed_lines(step: WalkStep, ends: Sequence[Ends]) -> tuple[Line, Line]:
    """The usual lines of the checker's table, as numbers."""
    facts = [Interval(*(end.numpy().astype(np.float64) for end in pair)) for pair in ends]
    under, over = planes_of(step.node, facts, np.full((1,), np.nan))
    return tuple(map(_tensor, under)), tuple(map(_tensor, over))


@dataclass(frozen=True)
class Curve:
    """A function that is convex left of 0 and concave right of it, with f(x) + f(−x) = total."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    total: float


CURVES: Mapping[str, Curve] = MappingProxyType(
    {
        "Erf": Curve(torch.erf, lambda x: 2.0 / sqrt(pi) * torch.exp(-x.square()), 0.0),
        "Sigmoid": Curve(torch.sigmoid, lambda x: torch.sigmoid(x) * torch.sigmoid(-x), 1.0),
        "Tanh": Curve(torch.tanh, lambda x: 1.0 - torch.tanh(x).square(), 0.0),
    }
)


def _last_tangents(curve: Curve, lower: Tensor, upper: Tensor) -> Ends:
    """For lines below and, mirrored, above: the last point whose tangent stays on its side."""
    with torch.no_grad():
        return _last_tangent(curve, lower, upper), _last_tangent(curve, -upper, -lower)


def _last_tangent(curve: Curve, lower: Tensor, upper: Tensor) -> Tensor:
    """From the lower end to 0, by halving, the last tangent that is below the curve at the upper end."""
    goal = curve.value(upper)

    def reaches(at: Tensor) -> Tensor:
        return curve.value(at) + curve.slope(at) * (upper - at) <= goal

    good, bad = lower, torch.where(reaches(lower), upper.clamp(max=0.0), lower)
    for _ in range(HALVINGS):
        middle = 0.5 * (good + bad)
        fine = reaches(middle)
        good, bad = torch.where(fine, middle, good), torch.where(fine, bad, middle)
    return torch.where(upper <= 0, upper, torch.where(lower >= 0, lower, good))


def _bent_lines(curve: Curve, ends: Ends, last: Ends, choice: Tensor | None) -> tuple[Line, Line]:
    """The lines of the checker's `_bent` for such a curve; those above are those below, mirrored."""
    lower, upper = ends
    slope, shift = _line_below(curve, lower, upper, last[0], choice)
    mirrored, from_total = _line_below(curve, -upper, -lower, last[1], choice)
    return (slope, shift), (mirrored, curve.total - from_total)


def _line_below(curve: Curve, lower: Tensor, upper: Tensor, last: Tensor, choice: Tensor | None) -> Line:
    """The chord where no tangent stays below; otherwise the tangent at a point up to `last`."""
    if choice is None:
        touched = torch.minimum(0.5 * (lower + upper), last)
    else:
        touched = lower + choice * (last - lower)
    value = curve.value(lower)
    chord = (curve.value(upper) - value) / (upper - lower).clamp(min=1e-30)
    is_chord = last == lower
    slope = torch.where(is_chord, chord, curve.slope(touched))
    return slope, torch.where(is_chord, value - chord * lower, curve.value(touched) - slope * touched)


def _tensor(values: Floats) -> Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32)
