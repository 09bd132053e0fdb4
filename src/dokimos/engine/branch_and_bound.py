"""Branch and bound for one question: a cover by cuts with choices for its leaves, or points to try.

What is found here is proven by the checker's own arithmetic, leaf by leaf, before it is handed on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod

import numpy as np
import torch
from msgspec import structs
from numpy.typing import NDArray
from torch import Tensor

from dokimos.checker.linear.cover import LEAF, USUAL_BYTE, QuestionData, pack
from dokimos.checker.linear.proof import BoundedQuestion
from dokimos.checker.linear.walk import Steps
from dokimos.engine.differentiable import Adam, one_thread
from dokimos.engine.fast_walk import Batch, FastCuts, FastWalk
from dokimos.engine.outcome import SearchEffort
from dokimos.engine.relu_relaxation import least
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval

#: How often choices are improved at the root and at other nodes, and how fast.
ROOT_ROUNDS, ROUNDS, PACE = 60, 16, 0.12
#: How many cuts are tried for each node.
TRIED = 3
#: After so many rounds in which the checker's arithmetic leaves something open, float32 is given up.
REOPENED = 4
#: How many nodes are looked at together.
TOGETHER = 256

Points = NDArray[np.float32]
#: Whether one of these points, exactly evaluated, is a counterexample.
Asked = Callable[[Points], bool]


@dataclass
class OpenPart:
    """A node of the cover that is not closed yet, or a leaf that is."""

    node: int
    lower: Floats
    upper: Floats
    cuts: NDArray[np.int64]
    signs: NDArray[np.float32]
    lines: NDArray[np.uint8] | None
    multipliers: NDArray[np.float32]
    weights: NDArray[np.float32] | None
    bound: float
    split: int | None = None


@dataclass
class CutTree:
    """The cuts of all nodes, and their children: the part below first."""

    cuts: list[int] = field(default_factory=lambda: [LEAF])
    children: list[tuple[int, int] | None] = field(default_factory=lambda: [None])

    def cut(self, node: int, entry: int) -> tuple[int, int]:
        """Cut a leaf in two."""
        self.cuts[node] = entry
        self.children[node] = pair = (len(self.cuts), len(self.cuts) + 1)
        self.cuts += [LEAF, LEAF]
        self.children += [None, None]
        return pair

    def preorder(self) -> Iterator[int]:
        """The nodes in the order of a certificate."""
        pending = [0]
        while pending:
            node = pending.pop()
            yield node
            if (pair := self.children[node]) is not None:
                pending += reversed(pair)


@dataclass(frozen=True)
class Closed:
    """How a search ended: with `data` that the checker accepts, or with the least bound that is left."""

    data: QuestionData | None
    bound: float
    found: bool = False


class BranchAndBound:
    """The search for a cover of one question."""

    def __init__(
        self,
        network: Network,
        question: BoundedQuestion,
        data: QuestionData,
        fast: FastWalk,
        effort: SearchEffort,
        asked: Asked,
        *,
        cuts_inputs: bool,
        root_rounds: int = ROOT_ROUNDS,
    ) -> None:
        self._network, self._question, self._data = network, question, data
        self._fast, self._effort, self._asked = fast, effort, asked
        steps = fast.steps
        self._steps: Steps = steps
        sizes = [prod(steps.shapes[name]) for name in steps.tensors]
        self._starts = dict(zip(steps.tensors, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        units = steps.units
        self._spans = dict(
            zip(units, pairwise(np.cumsum([0, *map(prod, units.values())]).tolist()), strict=True)
        )
        self._unit_count = sum(map(prod, units.values()))
        self.constraints = len(question.conjunction)
        goals = question.goals(np.eye(self.constraints, dtype=np.uint8)[None])
        self._goals = {name: torch.tensor(rows, dtype=torch.float32) for name, rows in goals.rows.items()}
        self._limits = torch.tensor([float(limit) for limit in goals.limits], dtype=torch.float32)
        self._tree = CutTree()
        self._closed: dict[int, OpenPart] = {}
        self._cut_inputs, self._root_rounds = cuts_inputs, root_rounds
        self._needed, self._reopened, self._proven_nodes = 0.0, 0, set[int]()
        self._refinable = [
            name for number, name in enumerate(steps.tensors) if number in set(data.refined) and number
        ]

    def run(self) -> Closed:
        """Search until every leaf is closed, a point is found, or the effort is used up."""
        with one_thread():
            box = self._question.box
            none = np.zeros(0, np.float32)
            start = OpenPart(
                0, box.lower, box.upper, np.zeros(0, np.int64), none, None, none, None, -np.inf
            )
            queue: list[tuple[float, int, OpenPart]] = [(-np.inf, 0, start)]
            while True:
                while queue:
                    if self._effort.end is not None:
                        return Closed(None, min(each[0] for each in queue))
                    parts = [heapq.heappop(queue)[2] for _ in range(min(self._together, len(queue)))]
                    self._effort.steps += len(parts)
                    left = self._bound(parts)
                    if left is None:
                        return Closed(None, -np.inf, found=True)
                    for child in self._split(left):
                        heapq.heappush(queue, (child.bound, child.node, child))
                data, failed = self._proven()
                if not failed:
                    return Closed(data, 0.0)
                self._reopened += 1
                if self._reopened == REOPENED:  # what is left may hold over the reals alone
                    self._question, self._needed = self._question.over_the_reals(), 0.0
                    continue
                for part in failed:
                    del self._closed[part.node]
                    heapq.heappush(queue, (part.bound, part.node, part))
                    self._needed = max(self._needed, 1.5 * part.bound)

    @property
    def _together(self) -> int:
        rows = 64 if self._cut_inputs else 2 * TRIED
        return max(1, min(TOGETHER, 4 * (1 << 20) // (rows * self._fast.largest)))

    # Bounds

    def _bound(self, parts: Sequence[OpenPart]) -> list[OpenPart] | None:
        """Close the parts that can be; the others, with cuts chosen. None if a point was found."""
        return self._bound_inputs(parts) if self._cut_inputs else self._bound_units(parts)

    def _bound_inputs(self, parts: Sequence[OpenPart]) -> list[OpenPart] | None:
        """Bound parts of the box with everything bounded anew, by the usual lines."""
        shape = self._steps.shapes[self._network.input]
        lower, upper = (
            torch.tensor(np.stack([getattr(p, end) for p in parts]), dtype=torch.float32)
            for end in ("lower", "upper")
        )
        facts = {self._network.input: (lower.reshape(-1, *shape), upper.reshape(-1, *shape))}
        batch = Batch(len(parts), facts, {}, {}, torch.zeros(0))
        with torch.no_grad():
            for name in self._refinable:
                known = self._question.bounded.facts[name]
                batch = self._fast.refine(batch, name, self._question.bounded.undecided(name, known))
            bounds, factors = self._fast.lower_bounds(self._goals, batch)
            slack = bounds - self._limits
            best, which = slack.max(1)
            own = factors.expand(len(parts), -1, -1)[torch.arange(len(parts)), which]
            corner = torch.where(own > 0, lower, upper)
        left = []
        worth = ((own.abs() + 1e-12) * (upper - lower)).numpy() * self._share(parts)
        for k, part in enumerate(parts):
            part.bound = float(best[k])
            if part.bound > self._needed:
                self._closed[part.node] = part
            else:
                part.split = int(np.argmax(worth[k]))
                left.append(k)
        if left:
            points = torch.cat([corner[left], (lower[left] + upper[left]) / 2]).numpy()
            if self._asked(points):
                return None
        return [parts[k] for k in left]

    def _share(self, parts: Sequence[OpenPart]) -> Floats:
        """√ of what is left of the width of each input: what was cut often already is cut less readily."""
        whole = self._question.box.upper - self._question.box.lower
        left = np.stack([part.upper - part.lower for part in parts])
        return np.sqrt(np.divide(left, whole, out=np.zeros_like(left), where=whole > 0))

    def _bound_units(self, parts: Sequence[OpenPart]) -> list[OpenPart] | None:
        """Improve lines, multipliers and weights of parts with decided units."""
        batch = self._batch(parts)
        rounds = ROUNDS if len(parts[0].cuts) else self._root_rounds
        known = torch.full((len(parts),), -torch.inf)
        lines = {name: each.clone().requires_grad_() for name, each in batch.lines.items()}
        multipliers = batch.multipliers.clone().requires_grad_()
        weights = self._weights(parts, batch)
        leaves = [*lines.values(), multipliers, *([weights] if weights.requires_grad else [])]
        best = [each.detach().clone() for each in leaves]
        steps = Adam(leaves, rate=PACE)
        seen: dict[str, Tensor] = {}
        corner = torch.zeros(0)
        for turn in range(rounds + 1):
            seen = {}
            goal, limit = self._objective(weights)
            now = Batch(batch.count, batch.facts, batch.cuts, lines, multipliers)
            bounds, factors = self._fast.lower_bounds(goal, now, seen)
            slack = bounds[:, 0] - limit
            better = slack.detach() > known
            known = torch.where(better, slack.detach(), known)
            self._keep(best, leaves, better, batch)
            if turn == rounds or bool((known > self._needed).all()) or self._effort.end is not None:
                corner = self._corner(factors, batch)
                break
            for leaf in leaves:
                leaf.grad = None
            (-slack[known <= self._needed].sum()).backward()
            steps.step()
            with torch.no_grad():
                for each in lines.values():
                    each.clamp_(0.0, 1.0)
                multipliers.clamp_(min=0.0)
                if weights.requires_grad:
                    weights.clamp_(min=0.0)
                    weights /= weights.sum(1, keepdim=True).clamp(min=1e-9)
        chosen = dict(zip(lines, best, strict=False))
        self._store(parts, chosen, best[len(lines)], best[-1] if weights.requires_grad else weights, batch)
        left = []
        for k, part in enumerate(parts):
            part.bound = float(known[k])
            if part.bound > self._needed:
                self._closed[part.node] = part
            else:
                left.append(k)
        if left:
            if self._asked(corner[left].numpy()):
                return None
            self._choose_cuts([parts[k] for k in left], {n: f.detach()[left] for n, f in seen.items()})
        open_ = [parts[k] for k in left]
        for part in [part for part in open_ if part.split is None]:
            point = self._solve(part)
            if point is not None and self._asked(point[None]):
                return None
            if part.bound <= self._needed:
                raise NothingToCut
            self._closed[part.node] = part
            open_.remove(part)
        return open_

    def _solve(self, part: OpenPart) -> Points | None:
        """Where every unit is decided, the best multipliers by a linear program, and its solution.

        On such a part the goal and the arguments of the units are affine in the input, and cuts are
        half-spaces.
        """
        batch = self._batch([part])
        cuts = [(name, cut) for name, cut in batch.cuts.items()]
        with torch.no_grad():
            assert part.weights is not None
            goal, limit = self._objective(torch.from_numpy(part.weights)[None])
            free = Batch(1, batch.facts, {}, batch.lines, batch.multipliers)
            target = self._affine(goal, free)
            rows = [self._affine({name: self._entries(name, cut.entries)}, free) for name, cut in cuts]
        lower, upper = part.lower, part.upper
        factors = np.concatenate([each[0] for each in rows])
        constants = np.concatenate([each[1] for each in rows])
        signs = np.concatenate([cut.signs.numpy() for _, cut in cuts])
        numbers = np.concatenate([cut.numbers.numpy() for _, cut in cuts])
        solved = least(target[0][0], Interval(lower, upper), signs[:, None] * factors, -signs * constants)
        if solved is None:
            return None
        point, duals = solved
        part.multipliers = part.multipliers.copy()
        part.multipliers[numbers] = np.maximum(duals, 0.0)
        with torch.no_grad():
            bounds, _ = self._fast.lower_bounds(goal, self._batch([part]))
        part.bound = float(bounds[0, 0] - limit[0])
        return point.astype(np.float32)

    def _entries(self, name: str, entries: Tensor) -> Tensor:
        """One row for each of some entries of a tensor."""
        shape = self._steps.shapes[name]
        rows = torch.zeros((1, len(entries), prod(shape)))
        rows[0, torch.arange(len(entries)), entries] = 1.0
        return rows.reshape(1, -1, *shape)

    def _affine(self, rows: dict[str, Tensor], batch: Batch) -> tuple[Floats, Floats]:
        """Factors and constants of functionals that are affine in the input."""
        bounds, factors = self._fast.lower_bounds(rows, batch)
        lower, upper = (end.flatten(1)[0] for end in self._fast.ends(batch, self._network.input))
        own = factors[0]
        constants = bounds[0] - own.clamp(min=0) @ lower - own.clamp(max=0) @ upper
        return own.numpy().astype(np.float64), constants.numpy().astype(np.float64)

    def _corner(self, factors: Tensor, batch: Batch) -> Tensor:
        """Where the last linear function is least."""
        lower, upper = (
            end.flatten(1).expand(batch.count, -1) for end in self._fast.ends(batch, self._network.input)
        )
        return torch.where(factors.detach()[:, 0] > 0, lower, upper)

    def _keep(self, best: Sequence[Tensor], leaves: Sequence[Tensor], better: Tensor, batch: Batch) -> None:
        """Keep what gave a better bound, part by part."""
        for kept, leaf in zip(best, leaves, strict=True):
            if leaf.ndim == 1:  # multipliers: one for each cut
                owners = self._owners(batch)
                kept.copy_(torch.where(better[owners], leaf.detach(), kept))
            else:
                mask = better.reshape(-1, *(1,) * (leaf.ndim - 1))
                kept.copy_(torch.where(mask, leaf.detach(), kept))

    def _owners(self, batch: Batch) -> Tensor:
        owners = torch.zeros(len(batch.multipliers), dtype=torch.long)
        for cut in batch.cuts.values():
            owners[cut.numbers] = cut.regions
        return owners

    def _weights(self, parts: Sequence[OpenPart], batch: Batch) -> Tensor:
        """Weights of the constraints: those of before, or the constraint with the best bound."""
        if self.constraints == 1:
            return torch.ones((len(parts), 1))
        if any(part.weights is None for part in parts):
            with torch.no_grad():
                bounds, _ = self._fast.lower_bounds(self._goals, batch)
                which = (bounds - self._limits).argmax(1)
            found = 0.1 / self.constraints + 0.9 * torch.eye(self.constraints)[which]
        else:
            found = torch.tensor(np.stack([p.weights for p in parts if p.weights is not None]))
        return found.requires_grad_()

    def _objective(self, weights: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The weighted constraints: rows [parts, 1, *shape], and limits [parts]."""
        rows = {
            name: (weights @ each[0].flatten(1)).reshape(-1, 1, *each.shape[2:])
            for name, each in self._goals.items()
        }
        return rows, weights @ self._limits

    def _batch(self, parts: Sequence[OpenPart]) -> Batch:
        """The parts as a batch."""
        counts = [len(part.cuts) for part in parts]
        entries = np.concatenate([part.cuts for part in parts])
        signs = torch.from_numpy(np.concatenate([part.signs for part in parts]))
        multipliers = torch.from_numpy(np.concatenate([part.multipliers for part in parts]))
        regions = np.repeat(np.arange(len(parts)), counts)
        names = list(self._starts)
        starts = np.array(list(self._starts.values()))
        tensors = np.searchsorted(starts, entries, side="right") - 1
        facts, cuts = {}, {}
        for tensor in np.unique(tensors).tolist():
            name, here = names[tensor], np.flatnonzero(tensors == tensor)
            own, inside = (torch.from_numpy(each[here]) for each in (regions, entries - starts[tensor]))
            numbers = torch.from_numpy(here)
            side = signs[numbers]
            lower, upper = (end.flatten(1).expand(len(parts), -1).clone() for end in self._fast.facts[name])
            above = side > 0
            lower[own[above], inside[above]] = lower[own[above], inside[above]].clamp(min=0.0)
            upper[own[~above], inside[~above]] = upper[own[~above], inside[~above]].clamp(max=0.0)
            shape = self._steps.shapes[name]
            facts[name] = (lower.reshape(-1, *shape), upper.reshape(-1, *shape))
            cuts[name] = FastCuts(own, inside, side, torch.zeros(len(here)), numbers)
        return Batch(len(parts), facts, cuts, self._lines(parts), multipliers)

    def _lines(self, parts: Sequence[OpenPart]) -> dict[str, Tensor]:
        """The slopes of ReLUs: those of before, or the usual ones."""
        table: Tensor | None = None
        if all(part.lines is not None for part in parts):
            table = torch.from_numpy(np.stack([part.lines for part in parts if part.lines is not None]))
        found = {}
        for step in self._steps.steps:
            name = step.node.output
            if step.transposes is not None or step.node.op != "Relu":
                continue
            lower, upper = self._fast.facts[step.sources[0]]
            if table is None:
                found[name] = (upper > -lower).to(torch.float32).expand(len(parts), *lower.shape[1:])
            else:
                first, last = self._spans[name]
                found[name] = (table[:, first:last] / 254.0).reshape(-1, *lower.shape[1:])
        return found

    def _store(
        self,
        parts: Sequence[OpenPart],
        lines: dict[str, Tensor],
        multipliers: Tensor,
        weights: Tensor,
        batch: Batch,
    ) -> None:
        """Write the choices into the parts, as the bytes of a certificate."""
        table = np.full((len(parts), self._unit_count), USUAL_BYTE, dtype=np.uint8)
        for name, each in lines.items():
            first, last = self._spans[name]
            lower, upper = self._fast.facts[self._fast.argument[name][0]]
            open_ = ((lower < 0) & (upper > 0)).flatten(1).numpy()
            rounded = np.rint(each.detach().flatten(1).numpy() * 254.0).astype(np.uint8)
            table[:, first:last] = np.where(open_, rounded, 0)
        ends = np.cumsum([len(part.cuts) for part in parts])
        own = np.split(multipliers.detach().numpy().astype(np.float32), ends[:-1])
        for k, part in enumerate(parts):
            part.lines = table[k]
            part.multipliers = own[k]
            part.weights = weights.detach()[k].numpy().copy()

    # Cuts

    def _choose_cuts(self, parts: Sequence[OpenPart], seen: dict[str, Tensor]) -> None:
        """For each part the unit whose two sides have the best bounds, of those with the largest gaps."""
        scores, entries = [], []
        batch = self._batch(parts)
        for name, functional in seen.items():
            (source,) = self._fast.argument[name][:1]
            lower, upper = (end.flatten(1) for end in self._fast.ends(batch, source))
            gap = torch.where(
                (lower < 0) & (upper > 0), -lower * upper / (upper - lower).clamp(min=1e-30), 0.0
            )
            scores.append((functional[:, 0].flatten(1).abs() + 1e-9) * gap)  # none is left out for good
            entries.append(self._starts[source] + torch.arange(gap.shape[1]))
        score, entry = torch.cat(scores, 1), torch.cat(entries)
        count = min(TRIED, score.shape[1])
        value, place = score.topk(count, dim=1)
        tried = entry[place]
        asked = [(k, int(tried[k, c])) for k in range(len(parts)) for c in range(count) if value[k, c] > 0]
        if not asked:
            for part in parts:
                part.split = None
            return
        sides = [(k, e, sign) for k, e in asked for sign in (-1.0, 1.0)]
        with torch.no_grad():
            wide = self._batch([_side(parts[k], e, sign) for k, e, sign in sides])
            weights = torch.tensor(np.stack([parts[k].weights for k, _, _ in sides]))  # type: ignore[misc]
            goal, limit = self._objective(weights)
            bounds = (self._fast.lower_bounds(goal, wide)[0][:, 0] - limit).reshape(-1, 2)
        best: dict[int, tuple[float, int]] = {}
        for (k, e), pair in zip(asked, bounds.tolist(), strict=True):
            worth = sum(min(each, self._needed) for each in pair) + min(pair)
            if k not in best or worth > best[k][0]:
                best[k] = (worth, e)
        for k, part in enumerate(parts):
            part.split = best[k][1] if k in best else None

    def _split(self, parts: Sequence[OpenPart]) -> Iterator[OpenPart]:
        """The two sides of each part at its cut."""
        for part in parts:
            assert part.split is not None
            below, above = self._tree.cut(part.node, part.split)
            if self._cut_inputs:
                middle = 0.5 * part.lower[part.split] + 0.5 * part.upper[part.split]
                upper, lower = part.upper.copy(), part.lower.copy()
                upper[part.split] = lower[part.split] = middle
                yield replace(part, node=below, upper=upper)
                yield replace(part, node=above, lower=lower)
            else:
                yield replace(_side(part, part.split, -1.0), node=below)
                yield replace(_side(part, part.split, 1.0), node=above)

    # What is proven

    def _proven(self) -> tuple[QuestionData, list[OpenPart]]:
        """The certificate, and the leaves that the checker's arithmetic leaves open."""
        order = list(self._tree.preorder())
        leaves = [self._closed[node] for node in order if self._tree.children[node] is None]
        data = self._certificate([self._tree.cuts[node] for node in order], leaves)
        asked = [number for number, leaf in enumerate(leaves) if leaf.node not in self._proven_nodes]
        slacks = self._question.with_cover(data).slacks(asked)
        failed = []
        for number, slack in zip(asked, slacks, strict=True):
            if slack is None or slack > 0:
                self._proven_nodes.add(leaves[number].node)
            else:
                failed.append(leaves[number])
        return data, failed

    def _certificate(self, tree: Sequence[int], leaves: Sequence[OpenPart]) -> QuestionData:
        known = self._data
        if self._cut_inputs:
            again = known.refined if len(tree) > 1 else ()
            return structs.replace(known, tree=tuple(tree), again=again)
        lines = np.stack([leaf.lines for leaf in leaves if leaf.lines is not None])
        lines = np.diff(lines, axis=0, prepend=np.zeros((1, lines.shape[1]), np.uint8))
        multipliers = np.concatenate([leaf.multipliers for leaf in leaves]).astype("<f4")
        weights = b""
        if self.constraints > 1:
            shares = np.stack([leaf.weights for leaf in leaves if leaf.weights is not None])
            weights = np.rint(255 * shares / shares.max(1, keepdims=True)).astype(np.uint8).tobytes()
        return structs.replace(
            known,
            tree=tuple(tree),
            lines=pack(lines.astype(np.uint8).tobytes()),
            multipliers=pack(multipliers.tobytes()) if len(multipliers) else "",
            weights=pack(weights) if weights else "",
        )


def _side(part: OpenPart, entry: int, sign: float) -> OpenPart:
    """One side of a part that is cut at an entry; the multiplier of the cut is 0 so far."""
    return replace(
        part,
        cuts=np.append(part.cuts, entry),
        signs=np.append(part.signs, np.float32(sign)),
        multipliers=np.append(part.multipliers, np.float32(0)),
    )


class NothingToCut(Exception):
    """A part of the box is open although everything in it is decided: it is too close to call."""
