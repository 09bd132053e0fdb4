"""Branch and bound for one question: a cover by cuts with choices for its leaves, or points to try.

What is found here is proven by the checker's own arithmetic, leaf by leaf, before it is handed on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dokimos.checker.linear.cover import USUAL_BYTE, QuestionData
from dokimos.checker.linear.proof import BoundedQuestion
from dokimos.checker.linear.walk import Steps
from dokimos.engine.differentiable import Adam, one_thread
from dokimos.engine.fast_walk import Batch, Ends, FastCuts, FastWalk
from dokimos.engine.open_cover import (
    ChosenCut,
    CutTree,
    NothingToCut,
    OpenCover,
    OpenPart,
    cover_of,
    kept_cover,
    leaves_of,
)
from dokimos.engine.outcome import SearchEffort
from dokimos.engine.pairs import sums_of
from dokimos.engine.part_program import AffineUnits, solve
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval

#: How often choices are improved at the root and at other nodes, and how fast.
ROOT_ROUNDS, ROUNDS, PACE = 60, (4, 12), 0.12
#: How many cuts are tried for each node.
TRIED = 3
#: What the checker's arithmetic leaves open so often, part by part, is given up for float32. Until then
#: more is asked of bounds, by no more than this factor at once, but not of what so many cuts do not help.
REOPENED, REOPENED_PACE, PATIENCE = 4, 1.5, 3
#: So many leaves are checked at first, and then whenever so many more than before are closed.
FIRST_CHECKED, CHECKED_OF_INPUTS, CHECKED_OF_UNITS = 64, 0.5, 3.0
#: How much functionals count for a cut that are not the best of their part.
OTHERS = 0.25
#: How many nodes are looked at together.
TOGETHER = 256
#: Networks of so few units, none above another, have a linear program for every part.
MOST_IN_PROGRAM = 1000
#: Bounds are told apart by so many parts of the first one, when the next nodes are chosen.
GRAINS = 64

Points = NDArray[np.float32]
#: Whether one of these points, exactly evaluated, is a counterexample.
Asked = Callable[[Points], bool]


@dataclass(frozen=True)
class Closed:
    """How a search ended: with `data` that the checker accepts, or with the least bound that is left."""

    data: QuestionData | None
    bound: float
    found: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to search."""
        return self.found or self.data is not None


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
        least_margin: float = 0.0,
        kept: OpenCover | None = None,
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
        self._weighings = np.array(
            [*np.eye(self.constraints).tolist(), *sums_of(question.conjunction)], dtype=np.uint8
        )
        goals = question.goals(self._weighings[None])
        self._goals = {name: torch.tensor(rows, dtype=torch.float32) for name, rows in goals.rows.items()}
        self._limits = torch.tensor([float(limit) for limit in goals.limits], dtype=torch.float32)
        self._totals = torch.tensor(goals.totals, dtype=torch.float32)
        self._weighs = len(self._weighings) > 1
        self._cut_inputs, self._root_rounds = cuts_inputs, root_rounds
        self._least = self._needed = least_margin
        self._proven, self._reserve = set[int](), effort.reserve
        written = question.bounded.facts[network.output].magnitude.max()
        self._grain, self._least_grain = 0.0, float(max(written * 1e-6, 1e-30))
        self._tree, parts, closed = self._start() if kept is None else self._started(kept)
        self._closed = {part.node: part for part in closed}
        self._queue: list[tuple[float, int, OpenPart]] = []
        for part in parts:
            self._push(part)
        self._affine_units: AffineUnits | None = None
        self._usual = {name: fast.usual(name) for name in (*fast.relus, *fast.curves)}
        self._is_shallow = (
            not cuts_inputs
            and self._unit_count <= MOST_IN_PROGRAM
            and all(
                name in fast.relus and not fast.before(fast.argument[name][0]) for name in fast.argument
            )
        )
        self._refinable = [
            name for number, name in enumerate(steps.tensors) if number in set(data.refined) and number
        ]

    def run(self, most_steps: float = inf) -> Closed:
        """Search until every leaf is closed, a point is found, or the effort or these steps are used up.

        Called again, it goes on. Raises NothingToCut.
        """
        queue, most_steps = self._queue, self._effort.steps + most_steps
        with one_thread():
            while True:
                if self._effort.end is not None or self._effort.steps >= most_steps:
                    return Closed(None, min((part.bound for _, _, part in queue), default=0.0))
                parts = [heapq.heappop(queue)[2] for _ in range(min(self._together, len(queue)))]
                self._effort.steps += len(parts)
                left = self._bound(parts) if parts else []
                if left is None:
                    return Closed(None, -np.inf, found=True)
                for child in self._split(left) if self._effort.end is None else left:
                    self._push(child)
                if not queue or self._is_check_due:
                    self._check()
                if not queue and len(self._proven) == len(self._closed):
                    return Closed(self._cover(level=9), 0.0)
                self._effort.pause()

    def _push(self, part: OpenPart) -> None:
        heapq.heappush(self._queue, (*self._order(part), part))

    @property
    def closed_share(self) -> float:
        """How much of the tree is closed, where each side of a cut is half of what was cut."""
        return 1.0 - sum(2.0 ** -self._tree.depths[part.node] for _, _, part in self._queue)

    @property
    def undecided(self) -> int:
        """How many units are neither on nor off all over the box, as far as is known."""
        bounded = self._question.bounded
        arguments = {self._fast.argument[name][0] for name in self._fast.argument}
        return sum(int(bounded.undecided(name, bounded.facts[name]).sum()) for name in arguments)

    def _start(self) -> tuple[CutTree, list[OpenPart], list[OpenPart]]:
        """The whole box."""
        box, none = self._question.box, np.zeros(0, np.float32)
        whole = OpenPart(0, box.lower, box.upper, np.zeros(0, np.int64), none, none, None, none, None, -inf)
        return CutTree(), [whole], []

    def _started(self, kept: OpenCover) -> tuple[CutTree, list[OpenPart], list[OpenPart]]:
        """Where an earlier search ended."""
        return leaves_of(kept, self._steps, self._question.box, self.constraints)

    def kept(self) -> OpenCover | None:
        """What this search has found so far, to go on from: what is not proven is open."""
        unproven = {node: part for node, part in self._closed.items() if node not in self._proven}
        return kept_cover(
            self._data,
            self._tree,
            {part.node: part for _, _, part in self._queue} | unproven,
            {node: self._closed[node] for node in self._proven},
            cuts_inputs=self._cut_inputs,
            weighs=self._weighs,
        )

    def _order(self, part: OpenPart) -> tuple[float, int]:
        """The least bounds first; of those that are nearly equal, the newest, so that few are open."""
        if not np.isfinite(part.bound):
            return (-np.inf, -part.node)
        self._grain = self._grain or max(abs(part.bound) / GRAINS, self._least_grain)
        return (float(np.floor(part.bound / self._grain)), -part.node)

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
        batch = Batch(len(parts), {**facts, **self._signed(parts)}, {}, {}, torch.zeros(0))
        with torch.no_grad():
            for name in self._refinable:
                batch = self._fast.refine(batch, name)
            bounds, factors = self._fast.lower_bounds(self._goals, batch)
            slack = (bounds - self._limits) / self._totals
            best, which = slack.max(1)
            own = factors.expand(len(parts), -1, -1)[torch.arange(len(parts)), which]
            corner = torch.where(own > 0, lower, upper)
        ends = [[end.flatten(1) for end in batch.facts[name]] for name in self._refinable]
        signs = [(low >= 0).to(torch.int8) - (high <= 0).to(torch.int8) for low, high in ends]
        known = torch.cat(signs, 1).numpy() if signs else [None] * len(parts)
        left = []
        # A cut for the best functional alone may go on for ever where another one closes what is left.
        steep = own.abs() + OTHERS * (factors.abs() / self._totals[:, None]).amax(1)
        worth = ((steep + 1e-12) * (upper - lower)).numpy() * self._share(parts)
        for k, part in enumerate(parts):
            part.bound, part.known = float(best[k]), known[k]
            part.weights = self._weighings[int(which[k])].astype(np.float32)
            if self._suffices(part):
                self._closed[part.node] = part
            else:
                part.split = ChosenCut(int(np.argmax(worth[k])))
                left.append(k)
        if left:
            points = torch.cat([corner[left], (lower[left] + upper[left]) / 2]).numpy()
            if self._asked(points):
                return None
        return [parts[k] for k in left]

    def _signed(self, parts: Sequence[OpenPart]) -> dict[str, Ends]:
        """What is known of refined tensors: the signs of entries that were decided before the last cut."""
        if any(part.known is None for part in parts):
            return {}
        signs, found, first = torch.from_numpy(np.stack([part.known for part in parts])), {}, 0  # type: ignore[misc]
        for name in self._refinable:
            shape = self._steps.shapes[name]
            own = signs[:, first : (first := first + prod(shape))].reshape(-1, *shape)
            lower, upper = self._fast.facts[name]
            found[name] = (
                torch.where(own > 0, lower.clamp(min=0), lower),
                torch.where(own < 0, upper.clamp(max=0), upper),
            )
        return found

    def _share(self, parts: Sequence[OpenPart]) -> Floats:
        """√ of what is left of the width of each input: what was cut often already is cut less readily."""
        whole = self._question.box.upper - self._question.box.lower
        left = np.stack([part.upper - part.lower for part in parts])
        return np.sqrt(np.divide(left, whole, out=np.zeros_like(left), where=whole > 0))

    def _bound_units(self, parts: Sequence[OpenPart]) -> list[OpenPart] | None:
        """Improve the choices of parts, by gradients and programs; those left open, with cuts chosen."""
        open_ = list(parts)
        for rounds in self._phases(parts[0]):
            corner = self._improve(open_, rounds).numpy()[[not self._suffices(part) for part in open_]]
            open_ = self._left_open(open_)
            if not open_ or self._effort.end is not None:
                break
        if open_ and self._asked(corner):
            return None
        for part in open_:
            part.split = None
        if self._effort.end is not None:
            return open_
        if self._is_shallow:
            if self._solve_all(open_):
                return None
            open_ = self._left_open(open_)
        if scored := [part for part in open_ if part.split is None]:
            self._choose_cuts(scored)
            stuck = [part for part in scored if part.split is None]
            if self._solve_all(stuck):
                return None
            if self._left_open(stuck) and self._effort.end is None:
                raise NothingToCut
        return [part for part in open_ if part.node not in self._closed]

    def _phases(self, part: OpenPart) -> tuple[int, ...]:
        """How often choices are improved: what a few rounds close costs no more of them."""
        if not len(part.cuts):
            return (self._root_rounds,)
        return ROUNDS[:1] if self._is_shallow else ROUNDS

    def _left_open(self, parts: Sequence[OpenPart]) -> list[OpenPart]:
        """Close the parts whose bounds suffice; the others."""
        for part in parts:
            if self._suffices(part):
                self._closed[part.node] = part
        return [part for part in parts if part.node not in self._closed]

    def _suffices(self, part: OpenPart) -> bool:
        """Whether the bound of a part is worth asking the checker's arithmetic."""
        return part.bound > (self._least if part.waited >= PATIENCE else self._needed)

    def _solve_all(self, parts: Sequence[OpenPart]) -> bool:
        """Solve the programs of parts, and choose the cuts worth most; whether a point was found."""
        points = [self._solve(part) for part in parts if self._effort.end is None]
        return bool(points) and self._asked(np.stack(points))

    def _improve(self, parts: Sequence[OpenPart], rounds: int) -> Tensor:
        """Improve the choices of parts by gradients; where the last linear functions are least."""
        batch = self._batch(parts)
        known = torch.full((len(parts),), -torch.inf)
        lines = {name: each.clone().requires_grad_() for name, each in batch.lines.items()}
        scales = torch.from_numpy(np.concatenate([part.scales for part in parts]))
        shares = (batch.multipliers / scales).requires_grad_()
        weights = self._weights(parts, batch)
        leaves = [*lines.values(), shares, *([weights] if weights.requires_grad else [])]
        best = [each.detach().clone() for each in leaves]
        steps = Adam(leaves, rate=PACE)
        corner = torch.zeros(0)
        for turn in range(rounds + 1):
            goal, limit = self._objective(weights)
            now = Batch(batch.count, batch.facts, batch.cuts, lines, shares * scales)
            bounds, factors = self._fast.lower_bounds(goal, now)
            slack = bounds[:, 0] - limit
            better = slack.detach() > known
            known = torch.where(better, slack.detach(), known)
            self._keep(best, leaves, better, batch)
            is_over = turn == rounds or not slack.requires_grad or self._effort.end is not None
            if is_over or bool((known > self._needed).all()):
                corner = self._corner(factors, batch)
                break
            for leaf in leaves:
                leaf.grad = None
            (-slack[known <= self._needed].sum()).backward()
            steps.rate = PACE * (1.0 - turn / rounds)
            steps.step()
            with torch.no_grad():
                for each in lines.values():
                    each.clamp_(0.0, 1.0)
                shares.clamp_(min=0.0)
                if weights.requires_grad:
                    weights.clamp_(min=0.0)
                    weights /= weights.sum(1, keepdim=True).clamp(min=1e-9)
        chosen = dict(zip(lines, best, strict=False))
        self._store(
            parts, chosen, best[len(lines)] * scales, best[-1] if weights.requires_grad else weights, batch
        )
        for part, bound in zip(parts, known.tolist(), strict=True):
            part.bound = bound
        return corner

    def _solve(self, part: OpenPart) -> Points:
        """The best choices by a linear program, where all arguments of open units are affine.

        Its solution; in a shallow network, the unit is chosen to be cut whose miss there is worth most.
        """
        box = Interval(part.lower, part.upper)
        if self._is_shallow:
            self._affine_units = self._affine_units or self._open_units(self._batch(self._start()[1]))
            units, cuts = self._affine_units.decided(part.cuts, part.signs)
        else:
            batch = self._batch([part])
            units, cuts = self._open_units(batch), self._cut_rows(batch)
        program = units.program(box, cuts)
        solution = solve(program, self._effort.left)
        if solution is None:
            return self._question.box.lower.astype(np.float32)
        assert part.lines is not None
        total = float(solution.weights.sum()) or 1.0
        weights = (solution.weights / total).astype(np.float32)
        multipliers = (solution.multipliers / total).astype(np.float32)
        lines = part.lines.copy()
        lines[units.units] = np.rint(solution.lines * 254.0).astype(np.uint8)
        if self._is_shallow:
            bytes_ = np.rint(255.0 * solution.weights / max(solution.weights.max(), 1e-30))
            shares = bytes_ / max(bytes_.sum(), 1.0)
            own = multipliers.astype(np.float64)
            bound = units.bound(box, shares, lines[units.units] / 254.0, own, cuts)
        else:
            bound = self._value(replace(part, lines=lines, multipliers=multipliers, weights=weights))
        if bound > part.bound:
            part.lines, part.multipliers, part.weights, part.bound = lines, multipliers, weights, bound
        worth = program.worth(solution.gaps)
        if self._is_shallow and worth.max(initial=0.0) > 0.0:
            part.split = ChosenCut(int(units.entries[np.argmax(worth)]))
        return solution.point.astype(np.float32)

    def _open_units(self, batch: Batch) -> AffineUnits:
        """The open units of one part, with their arguments as lines make them affine in the input."""
        free = replace(batch, cuts={}, lines={name: torch.zeros_like(e) for name, e in batch.lines.items()})
        seen: dict[str, Tensor] = {}
        with torch.no_grad():
            goals = {name: each[:, : self.constraints] for name, each in self._goals.items()}
            goal = self._affine(goals, free, seen)
            numbers, entries, ends, weighs, found = [], [], [], [], []
            for name in sorted(self._fast.relus & seen.keys()):
                functional, (source, *_) = seen[name], self._fast.argument[name]
                lower, upper = (end.flatten() for end in self._fast.ends(batch, source))
                places = torch.nonzero((lower < 0) & (upper > 0))[:, 0]
                if not len(places):
                    continue
                numbers.append(self._spans[name][0] + places.numpy())
                entries.append(self._starts[source] + places.numpy())
                ends.append((lower[places].numpy()[:, None], upper[places].numpy()))
                weighs.append(functional[0].flatten(1)[:, places].numpy())
                found.append(self._affine({source: self._entries(source, places)}, free))
        factors, constants = _stacked(found, self._network.input_size)
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
            goal[1] - self._limits[: self.constraints].numpy(),
        )
        above = np.minimum(weigh, 0.0) * units.chord
        return replace(
            units, own=units.own - above @ factors, rest=units.rest - above @ (constants - low[:, 0])
        )

    def _cut_rows(self, batch: Batch) -> tuple[Floats, Floats]:
        """The cuts of one part, in order, as functions of the input that are >= 0."""
        free = replace(batch, cuts={}, lines={name: torch.zeros_like(e) for name, e in batch.lines.items()})
        rows = np.zeros((len(batch.multipliers), self._network.input_size))
        constants = np.zeros(len(rows))
        with torch.no_grad():
            for name, cut in batch.cuts.items():
                factors, own = self._affine({name: self._entries(name, cut.entries)}, free)
                signs, numbers = cut.signs.numpy(), cut.numbers.numpy()
                rows[numbers], constants[numbers] = signs[:, None] * factors, signs * own
        return rows, constants

    def _value(self, part: OpenPart) -> float:
        """The bound that the choices of a part give."""
        with torch.no_grad():
            assert part.weights is not None
            goal, limit = self._objective(torch.from_numpy(part.weights)[None])
            bounds, _ = self._fast.lower_bounds(goal, self._batch([part]))
        return float(bounds[0, 0] - limit[0])

    def _entries(self, name: str, entries: Tensor) -> Tensor:
        """One row for each of some entries of a tensor."""
        shape = self._steps.shapes[name]
        rows = torch.zeros((1, len(entries), prod(shape)))
        rows[0, torch.arange(len(entries)), entries] = 1.0
        return rows.reshape(1, -1, *shape)

    def _affine(
        self, rows: dict[str, Tensor], batch: Batch, seen: dict[str, Tensor] | None = None
    ) -> tuple[Floats, Floats]:
        """Factors and constants of functionals as lines make them affine in the input."""
        bounds, factors = self._fast.lower_bounds(rows, batch, seen)
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
                which = ((bounds - self._limits) / self._totals).argmax(1)
            chosen = torch.from_numpy(self._weighings.astype(np.float32))[which]
            found = 0.8 / self.constraints + 0.2 * chosen / chosen.sum(1, keepdim=True)
        else:
            found = torch.tensor(np.stack([p.weights for p in parts if p.weights is not None]))
        return found.requires_grad_()

    def _objective(self, weights: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The weighted constraints: rows [parts, 1, *shape], and limits [parts].

        Weighed by the bytes that a certificate has; gradients take them for the numbers that they round.
        """
        if self._weighs:
            most = weights.detach().amax(1, keepdim=True).clamp(min=1e-30)
            bytes_ = (255 * weights.detach() / most).round()
            bytes_ = bytes_ / bytes_.sum(1, keepdim=True).clamp(min=1.0)
            weights = weights + (bytes_ - weights).detach()
        rows = {
            name: (weights @ each[0, : self.constraints].flatten(1)).reshape(-1, 1, *each.shape[2:])
            for name, each in self._goals.items()
        }
        return rows, weights @ self._limits[: self.constraints]

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
        """The lines of ReLUs and curves: those of before, or the usual ones."""
        table: Tensor | None = None
        if all(part.lines is not None for part in parts):
            table = torch.from_numpy(np.stack([part.lines for part in parts if part.lines is not None]))
        found = {}
        for name, (first, last) in self._spans.items():
            if name in self._fast.relus or name in self._fast.curves:
                usual = self._usual[name]
                found[name] = usual.expand(len(parts), *usual.shape[1:])
                if table is not None:
                    found[name] = (table[:, first:last] / 254.0).reshape(-1, *usual.shape[1:])
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
            open_ = ((lower < 0) & (upper > 0) | (name in self._fast.curves)).flatten(1).numpy()
            rounded = np.rint(each.detach().flatten(1).numpy() * 254.0).astype(np.uint8)
            table[:, first:last] = np.where(open_, rounded, 0)
        ends = np.cumsum([len(part.cuts) for part in parts])
        own = np.split(multipliers.detach().numpy().astype(np.float32), ends[:-1])
        for k, part in enumerate(parts):
            part.lines = table[k]
            part.multipliers = own[k]
            part.weights = weights.detach()[k].numpy().copy()

    # Cuts

    def _candidates(self, parts: Sequence[OpenPart]) -> list[tuple[int, ChosenCut]]:
        """For each part, by number, cuts of the units with the largest gaps.

        Where a unit is bounded from below by α·e, the multipliers that a cut begins with lose nothing:
        λ·α·e is λ·0 + (λ·α)·e where the unit is off, and λ·e − (λ·(1 − α))·e where it is on.
        """
        batch = self._batch(parts)
        weights = torch.from_numpy(np.stack([part.weights for part in parts]))  # type: ignore[misc]
        seen: dict[str, Tensor] = {}
        with torch.no_grad():
            self._fast.lower_bounds(self._objective(weights)[0], batch, seen)
        found: list[tuple[Tensor, ...]] = []
        for name, functional in seen.items():
            (source,) = self._fast.argument[name][:1]
            lower, upper = (end.flatten(1) for end in self._fast.ends(batch, source))
            gap = torch.where(
                (lower < 0) & (upper > 0), -lower * upper / (upper - lower).clamp(min=1e-30), 0.0
            )
            pull = functional[:, 0].flatten(1).expand(len(parts), -1)
            size = pull.abs() + 1e-4 * pull.abs().mean(1, keepdim=True) + 1e-9  # none is left out for good
            entry = (self._starts[source] + torch.arange(gap.shape[1])).expand(len(parts), -1)
            off = torch.zeros_like(pull)
            if name in self._fast.relus:
                off = pull.clamp(min=0.0) * batch.lines[name].flatten(1)
            score = (size - pull.clamp(min=0.0)) * gap
            found.append((score, entry, size, off, pull.clamp(min=0.0) - off))
        score, *rest = (torch.cat(each, 1) for each in zip(*found, strict=True))
        value, place = score.topk(min(TRIED, score.shape[1]), dim=1)
        fields = [each.gather(1, place).tolist() for each in rest]
        return [
            (k, ChosenCut(*(field[k][c] for field in fields)))
            for k, row in enumerate(value.tolist())
            for c, each in enumerate(row)
            if each > 0
        ]

    def _choose_cuts(self, parts: Sequence[OpenPart]) -> None:
        """For each part the cut whose two sides have the best bounds."""
        asked = self._candidates(parts)
        for part in parts:
            part.split = None
        if not asked:
            return
        with torch.no_grad():
            wide = self._batch([side for k, cut in asked for side in _sides(parts[k], cut)])
            weights = torch.from_numpy(np.stack([parts[k].weights for k, _ in asked]))  # type: ignore[misc]
            weights = weights.repeat_interleave(2, 0)
            goal, limit = self._objective(weights)
            bounds = (self._fast.lower_bounds(goal, wide)[0][:, 0] - limit).reshape(-1, 2)
        best: dict[int, float] = {}
        for (k, cut), pair in zip(asked, bounds.tolist(), strict=True):
            worth = sum(min(each, self._needed) for each in pair) + min(pair)
            if k not in best or worth > best[k]:
                best[k] = worth
                parts[k].split = cut

    def _split(self, parts: Sequence[OpenPart]) -> Iterator[OpenPart]:
        """The two sides of each part at its cut."""
        for part in parts:
            assert part.split is not None
            entry, part.waited = part.split.entry, part.waited + (part.bound > self._least)
            below, above = self._tree.cut(part.node, entry)
            if self._cut_inputs:
                middle = 0.5 * part.lower[entry] + 0.5 * part.upper[entry]
                upper, lower = part.upper.copy(), part.lower.copy()
                upper[entry] = lower[entry] = middle
                yield replace(part, node=below, upper=upper)
                yield replace(part, node=above, lower=lower)
            else:
                for side, node in zip(_sides(part, part.split), (below, above), strict=True):
                    yield replace(side, node=node)

    # What is proven

    @property
    def _is_check_due(self) -> bool:
        """Whether so much is closed that it is time to see what the checker's arithmetic says of it."""
        share = CHECKED_OF_INPUTS if self._cut_inputs else CHECKED_OF_UNITS
        return len(self._closed) - len(self._proven) > max(FIRST_CHECKED, share * len(self._proven))

    def _cover(self, level: int = 1) -> QuestionData:
        """The tree as a certificate, open leaves with what is chosen for them so far."""
        parts = {part.node: part for _, _, part in self._queue}
        leaves = [self._closed.get(node) or parts[node] for node in self._tree.leaves()]
        ways: dict[str, bool] = {"cuts_inputs": self._cut_inputs, "weighs": self._weighs}
        return cover_of(self._data, self._tree, leaves, **ways, level=level)

    def _check(self) -> None:
        """Prove closed leaves in the checker's arithmetic; those that it leaves open are opened again.

        What they lack is asked of all leaves from then on. What checking takes is kept in reserve.
        """
        began, nodes = self._effort.clock(), self._tree.leaves()
        question = self._question.with_cover(self._cover())
        asked = [k for k, node in enumerate(nodes) if node in self._closed and node not in self._proven]
        for start in range(0, len(asked), TOGETHER):
            if self._effort.end is not None:
                return
            some = asked[start : start + TOGETHER]
            for number, slack in zip(some, question.slacks(some), strict=True):
                node = nodes[number]
                if slack is None or slack > 0:
                    self._proven.add(node)
                else:
                    self._reopen(self._closed.pop(node), float(slack))
            rate = (self._effort.clock() - began) / (start + len(some))
            self._effort.reserve = self._reserve + rate * len(nodes)

    def _reopen(self, part: OpenPart, slack: float) -> None:
        """Open a leaf again of which the checker's arithmetic proves nothing."""
        part.failures, part.waited = part.failures + 1, 0
        if part.failures < REOPENED:
            self._needed = max(self._needed, min(part.bound - slack, REOPENED_PACE * part.bound))
        else:  # what is left may hold over the reals alone
            self._question, self._needed = self._question.over_the_reals(), self._least
            part.failures = 0
        self._push(part)


def _stacked(pairs: Sequence[tuple[Floats, Floats]], width: int) -> tuple[Floats, Floats]:
    """Rows and numbers, one pair after the other, as float64."""
    first = np.concatenate([np.zeros((0, width)), *(each[0] for each in pairs)])
    return first, np.concatenate([np.zeros(0), *(each[1] for each in pairs)])


def _sides(part: OpenPart, cut: ChosenCut) -> Iterator[OpenPart]:
    """The two sides of a part that is cut at an entry: below, and above."""
    for sign, multiplier in ((-1.0, cut.below), (1.0, cut.above)):
        yield replace(
            part,
            cuts=np.append(part.cuts, cut.entry),
            signs=np.append(part.signs, np.float32(sign)),
            scales=np.append(part.scales, np.float32(cut.scale)),
            multipliers=np.append(part.multipliers, np.float32(multiplier)),
        )
