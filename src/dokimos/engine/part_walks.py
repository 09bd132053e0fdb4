"""Parts of a cover as batches of the walk in floats: what their choices give, and their linear programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np
import torch
from torch import Tensor

from dokimos.checker.linear.cover import USUAL_BYTE
from dokimos.checker.linear.proof import BoundedQuestion
from dokimos.engine.fast_walk import Batch, FastCuts, FastWalk
from dokimos.engine.open_cover import OpenPart
from dokimos.engine.pairs import sums_of
from dokimos.engine.part_program import AffineUnits
from dokimos.networks.semantics.outward import Floats


class PartWalks:
    """The walk for parts of one question.

    `weighings` are the weights of constraints that are tried, with their `goals`, `limits` and `totals`;
    `starts` says where the entries of each tensor begin, `spans` which units are whose.
    """

    def __init__(self, question: BoundedQuestion, fast: FastWalk) -> None:
        self.fast, self.steps = fast, fast.steps
        steps = fast.steps
        sizes = [prod(steps.shapes[name]) for name in steps.tensors]
        self.starts = dict(zip(steps.tensors, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        units = steps.units
        self.spans = dict(
            zip(units, pairwise(np.cumsum([0, *map(prod, units.values())]).tolist()), strict=True)
        )
        self.unit_count = sum(map(prod, units.values()))
        self.constraints = len(question.conjunction)
        self.weighings = np.array(
            [*np.eye(self.constraints).tolist(), *sums_of(question.conjunction)], dtype=np.uint8
        )
        goals = question.goals(self.weighings[None])
        self.goals = {name: torch.tensor(rows, dtype=torch.float32) for name, rows in goals.rows.items()}
        self.limits = torch.tensor([float(limit) for limit in goals.limits], dtype=torch.float32)
        self.totals = torch.tensor(goals.totals, dtype=torch.float32)
        self.weighs = len(self.weighings) > 1
        self.usual = {name: fast.usual(name) for name in (*fast.relus, *fast.curves)}

    def open_units(self, batch: Batch) -> AffineUnits:
        """The open units of one part, with their arguments as lines make them affine in the input."""
        free = replace(batch, cuts={}, lines={name: torch.zeros_like(e) for name, e in batch.lines.items()})
        seen: dict[str, Tensor] = {}
        with torch.no_grad():
            goals = {name: each[:, : self.constraints] for name, each in self.goals.items()}
            goal = self.affine(goals, free, seen)
            numbers, entries, ends, weighs, found = [], [], [], [], []
            for name in sorted(self.fast.relus & seen.keys()):
                functional, (source, *_) = seen[name], self.fast.argument[name]
                lower, upper = (end.flatten() for end in self.fast.ends(batch, source))
                places = torch.nonzero((lower < 0) & (upper > 0))[:, 0]
                if not len(places):
                    continue
                numbers.append(self.spans[name][0] + places.numpy())
                entries.append(self.starts[source] + places.numpy())
                ends.append((lower[places].numpy()[:, None], upper[places].numpy()))
                weighs.append(functional[0].flatten(1)[:, places].numpy())
                found.append(self.affine({source: self.entries(source, places)}, free))
        factors, constants = _stacked(found, self.steps.network.input_size)
        low, high = _stacked(ends, 1)
        weigh = np.concatenate([np.zeros((self.constraints, 0)), *weighs], 1).astype(np.float64)
        none = np.zeros(0, np.int64)
        units = AffineUnits(
            np.concatenate([none, *numbers]),
            np.concatenate([none, *entries]),
            factors,
            constants,
            (low[:, 0], high),
            goal[0],
            weigh,
            goal[1] - self.limits[: self.constraints].numpy(),
        )
        above = np.minimum(weigh, 0.0) * units.chord
        return replace(
            units, own=units.own - above @ factors, rest=units.rest - above @ (constants - low[:, 0])
        )

    def cut_rows(self, batch: Batch) -> tuple[Floats, Floats]:
        """The cuts of one part, in order, as functions of the input that are >= 0."""
        free = replace(batch, cuts={}, lines={name: torch.zeros_like(e) for name, e in batch.lines.items()})
        rows = np.zeros((len(batch.multipliers), self.steps.network.input_size))
        constants = np.zeros(len(rows))
        with torch.no_grad():
            for name, cut in batch.cuts.items():
                factors, own = self.affine({name: self.entries(name, cut.entries)}, free)
                signs, numbers = cut.signs.numpy(), cut.numbers.numpy()
                rows[numbers], constants[numbers] = signs[:, None] * factors, signs * own
        return rows, constants

    def value(self, part: OpenPart) -> float:
        """The bound that the choices of a part give."""
        with torch.no_grad():
            assert part.weights is not None
            goal, limit = self.objective(torch.from_numpy(part.weights)[None])
            bounds, _ = self.fast.lower_bounds(goal, self.batch([part]))
        return float(bounds[0, 0] - limit[0])

    def entries(self, name: str, entries: Tensor) -> Tensor:
        """One row for each of some entries of a tensor."""
        shape = self.steps.shapes[name]
        rows = torch.zeros((1, len(entries), prod(shape)))
        rows[0, torch.arange(len(entries)), entries] = 1.0
        return rows.reshape(1, -1, *shape)

    def affine(
        self, rows: dict[str, Tensor], batch: Batch, seen: dict[str, Tensor] | None = None
    ) -> tuple[Floats, Floats]:
        """Factors and constants of functionals as lines make them affine in the input."""
        bounds, factors = self.fast.lower_bounds(rows, batch, seen)
        lower, upper = (end.flatten(1)[0] for end in self.fast.ends(batch, self.steps.network.input))
        own = factors[0]
        constants = bounds[0] - own.clamp(min=0) @ lower - own.clamp(max=0) @ upper
        return own.numpy().astype(np.float64), constants.numpy().astype(np.float64)

    def corner(self, factors: Tensor, batch: Batch) -> Tensor:
        """Where the last linear function is least."""
        lower, upper = (
            end.flatten(1).expand(batch.count, -1)
            for end in self.fast.ends(batch, self.steps.network.input)
        )
        return torch.where(factors.detach()[:, 0] > 0, lower, upper)

    def keep(self, best: Sequence[Tensor], leaves: Sequence[Tensor], better: Tensor, batch: Batch) -> None:
        """Keep what gave a better bound, part by part."""
        for kept, leaf in zip(best, leaves, strict=True):
            if leaf.ndim == 1:  # multipliers: one for each cut
                owners = self.owners(batch)
                kept.copy_(torch.where(better[owners], leaf.detach(), kept))
            else:
                mask = better.reshape(-1, *(1,) * (leaf.ndim - 1))
                kept.copy_(torch.where(mask, leaf.detach(), kept))

    def owners(self, batch: Batch) -> Tensor:
        """The part that each multiplier belongs to."""
        owners = torch.zeros(len(batch.multipliers), dtype=torch.long)
        for cut in batch.cuts.values():
            owners[cut.numbers] = cut.regions
        return owners

    def weights(self, parts: Sequence[OpenPart], batch: Batch) -> Tensor:
        """Weights of the constraints: those of before, or the constraint with the best bound."""
        if self.constraints == 1:
            return torch.ones((len(parts), 1))
        if any(part.weights is None for part in parts):
            with torch.no_grad():
                bounds, _ = self.fast.lower_bounds(self.goals, batch)
                which = ((bounds - self.limits) / self.totals).argmax(1)
            chosen = torch.from_numpy(self.weighings.astype(np.float32))[which]
            found = 0.8 / self.constraints + 0.2 * chosen / chosen.sum(1, keepdim=True)
        else:
            found = torch.tensor(np.stack([p.weights for p in parts if p.weights is not None]))
        return found.requires_grad_()

    def objective(self, weights: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The weighted constraints: rows [parts, 1, *shape], and limits [parts].

        Weighed by the bytes that a certificate has; gradients take them for the numbers that they round.
        """
        if self.weighs:
            most = weights.detach().amax(1, keepdim=True).clamp(min=1e-30)
            bytes_ = (255 * weights.detach() / most).round()
            bytes_ = bytes_ / bytes_.sum(1, keepdim=True).clamp(min=1.0)
            weights = weights + (bytes_ - weights).detach()
        rows = {
            name: (weights @ each[0, : self.constraints].flatten(1)).reshape(-1, 1, *each.shape[2:])
            for name, each in self.goals.items()
        }
        return rows, weights @ self.limits[: self.constraints]

    def batch(self, parts: Sequence[OpenPart]) -> Batch:
        """The parts as a batch."""
        counts = [len(part.cuts) for part in parts]
        entries = np.concatenate([part.cuts for part in parts])
        signs = torch.from_numpy(np.concatenate([part.signs for part in parts]))
        multipliers = torch.from_numpy(np.concatenate([part.multipliers for part in parts]))
        regions = np.repeat(np.arange(len(parts)), counts)
        names = list(self.starts)
        starts = np.array(list(self.starts.values()))
        tensors = np.searchsorted(starts, entries, side="right") - 1
        facts, cuts = {}, {}
        for tensor in np.unique(tensors).tolist():
            name, here = names[tensor], np.flatnonzero(tensors == tensor)
            own, inside = (torch.from_numpy(each[here]) for each in (regions, entries - starts[tensor]))
            numbers = torch.from_numpy(here)
            side = signs[numbers]
            lower, upper = (end.flatten(1).expand(len(parts), -1).clone() for end in self.fast.facts[name])
            above = side > 0
            lower[own[above], inside[above]] = lower[own[above], inside[above]].clamp(min=0.0)
            upper[own[~above], inside[~above]] = upper[own[~above], inside[~above]].clamp(max=0.0)
            shape = self.steps.shapes[name]
            facts[name] = (lower.reshape(-1, *shape), upper.reshape(-1, *shape))
            cuts[name] = FastCuts(own, inside, side, torch.zeros(len(here)), numbers)
        return Batch(len(parts), facts, cuts, self.lines(parts), multipliers)

    def lines(self, parts: Sequence[OpenPart]) -> dict[str, Tensor]:
        """The lines of ReLUs and curves: those of before, or the usual ones."""
        table: Tensor | None = None
        if all(part.lines is not None for part in parts):
            table = torch.from_numpy(np.stack([part.lines for part in parts if part.lines is not None]))
        found = {}
        for name, (first, last) in self.spans.items():
            if name in self.fast.relus or name in self.fast.curves:
                usual = self.usual[name]
                found[name] = usual.expand(len(parts), *usual.shape[1:])
                if table is not None:
                    found[name] = (table[:, first:last] / 254.0).reshape(-1, *usual.shape[1:])
        return found

    def store(
        self,
        parts: Sequence[OpenPart],
        lines: dict[str, Tensor],
        multipliers: Tensor,
        weights: Tensor,
        batch: Batch,
    ) -> None:
        """Write the choices into the parts, as the bytes of a certificate."""
        table = np.full((len(parts), self.unit_count), USUAL_BYTE, dtype=np.uint8)
        for name, each in lines.items():
            first, last = self.spans[name]
            lower, upper = self.fast.facts[self.fast.argument[name][0]]
            open_ = ((lower < 0) & (upper > 0) | (name in self.fast.curves)).flatten(1).numpy()
            rounded = np.rint(each.detach().flatten(1).numpy() * 254.0).astype(np.uint8)
            table[:, first:last] = np.where(open_, rounded, 0)
        ends = np.cumsum([len(part.cuts) for part in parts])
        own = np.split(multipliers.detach().numpy().astype(np.float32), ends[:-1])
        for k, part in enumerate(parts):
            part.lines = table[k]
            part.multipliers = own[k]
            part.weights = weights.detach()[k].numpy().copy()


def _stacked(pairs: Sequence[tuple[Floats, Floats]], width: int) -> tuple[Floats, Floats]:
    """Rows and numbers, one pair after the other, as float64."""
    first = np.concatenate([np.zeros((0, width)), *(each[0] for each in pairs)])
    return first, np.concatenate([np.zeros(0), *(each[1] for each in pairs)])
