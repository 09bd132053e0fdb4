"""Branch and bound for one question: a cover by cuts with choices for its leaves, or points to try.

What is found here is proven by the checker's own arithmetic, leaf by leaf, before it is handed on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dokimos.checker.linear.cover import QuestionData
from dokimos.checker.linear.proof import BoundedQuestion
from dokimos.engine.differentiable import Adam, one_thread
from dokimos.engine.fast_walk import Batch, Ends, FastWalk
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
from dokimos.engine.part_program import AffineUnits, solve
from dokimos.engine.part_walks import PartWalks
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval

#: How often choices are improved at the root and at other nodes, and how fast.
ROOT_ROUNDS, ROUNDS, PACE = 60, (4, 12), 0.12
#: How many cuts are tried for each node.
TRIED = 3
#: What the checker's arithmetic leaves open so often, part by part, is given up for float32. Until then
#: more is asked of bounds, by no more than this factor at once, but not of what so many cuts do not help.
REOPENED, REOPENED_PACE, PATIENCE = 4, 1.5, 3
#: A bound this near to enough, relative to what is added up, may be enough exactly, where so many cuts have
#: not helped.
CLOSE, CLOSE_PATIENCE = 2.0**-18, 6
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
        self._effort, self._asked, steps = effort, asked, fast.steps
        self._parts = PartWalks(question, fast)
        self._cut_inputs, self._root_rounds = cuts_inputs, root_rounds
        self._least = self._needed = least_margin
        goals = question.goals(np.eye(len(question.conjunction), dtype=np.uint8)[None])
        self._nearly = least_margin - CLOSE * float(question.reach(goals).max())
        self._is_real = False
        self._proven, self._reserve = set[int](), effort.reserve
        written = question.bounded.facts[network.output].magnitude.max()
        self._grain, self._least_grain = 0.0, float(max(written * 1e-6, 1e-30))
        self._tree, parts, closed = self._start() if kept is None else self._started(kept)
        self._closed = {part.node: part for part in closed}
        self._queue: list[tuple[float, int, OpenPart]] = []
        for part in parts:
            self._push(part)
        self._affine_units: AffineUnits | None = None
        self._is_shallow = (
            not cuts_inputs
            and self._parts.unit_count <= MOST_IN_PROGRAM
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
        arguments = {self._parts.fast.argument[name][0] for name in self._parts.fast.argument}
        return sum(int(bounded.undecided(name, bounded.facts[name]).sum()) for name in arguments)

    def _start(self) -> tuple[CutTree, list[OpenPart], list[OpenPart]]:
        """The whole box."""
        box, none = self._question.box, np.zeros(0, np.float32)
        whole = OpenPart(0, box.lower, box.upper, np.zeros(0, np.int64), none, none, None, none, None, -inf)
        return CutTree(), [whole], []

    def _started(self, kept: OpenCover) -> tuple[CutTree, list[OpenPart], list[OpenPart]]:
        """Where an earlier search ended."""
        return leaves_of(kept, self._parts.steps, self._question.box, self._parts.constraints)

    def kept(self) -> OpenCover | None:
        """What this search has found so far, to go on from: what is not proven is open."""
        unproven = {node: part for node, part in self._closed.items() if node not in self._proven}
        return kept_cover(
            self._data,
            self._tree,
            {part.node: part for _, _, part in self._queue} | unproven,
            {node: self._closed[node] for node in self._proven},
            cuts_inputs=self._cut_inputs,
            weighs=self._parts.weighs,
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
        return max(1, min(TOGETHER, 4 * (1 << 20) // (rows * self._parts.fast.largest)))

    # Bounds

    def _bound(self, parts: Sequence[OpenPart]) -> list[OpenPart] | None:
        """Close the parts that can be; the others, with cuts chosen. None if a point was found."""
        return self._bound_inputs(parts) if self._cut_inputs else self._bound_units(parts)

    def _bound_inputs(self, parts: Sequence[OpenPart]) -> list[OpenPart] | None:
        """Bound parts of the box with everything bounded anew, by the usual lines."""
        shape = self._parts.steps.shapes[self._network.input]
        lower, upper = (
            torch.tensor(np.stack([getattr(p, end) for p in parts]), dtype=torch.float32)
            for end in ("lower", "upper")
        )
        facts = {self._network.input: (lower.reshape(-1, *shape), upper.reshape(-1, *shape))}
        batch = Batch(len(parts), {**facts, **self._signed(parts)}, {}, {}, torch.zeros(0))
        with torch.no_grad():
            for name in self._refinable:
                batch = self._parts.fast.refine(batch, name)
            bounds, factors = self._parts.fast.lower_bounds(self._parts.goals, batch)
            slack = (bounds - self._parts.limits) / self._parts.totals
            best, which = slack.max(1)
            own = factors.expand(len(parts), -1, -1)[torch.arange(len(parts)), which]
            corner = torch.where(own > 0, lower, upper)
        ends = [[end.flatten(1) for end in batch.facts[name]] for name in self._refinable]
        signs = [(low >= 0).to(torch.int8) - (high <= 0).to(torch.int8) for low, high in ends]
        known = torch.cat(signs, 1).numpy() if signs else [None] * len(parts)
        left = []
        # A cut for the best functional alone may go on for ever where another one closes what is left.
        steep = own.abs() + OTHERS * (factors.abs() / self._parts.totals[:, None]).amax(1)
        worth = ((steep + 1e-12) * (upper - lower)).numpy() * self._share(parts)
        for k, part in enumerate(parts):
            part.bound, part.known = float(best[k]), known[k]
            part.weights = self._parts.weighings[int(which[k])].astype(np.float32)
            if self._suffices(part):
                self._close(part)
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
            shape = self._parts.steps.shapes[name]
            own = signs[:, first : (first := first + prod(shape))].reshape(-1, *shape)
            lower, upper = self._parts.fast.facts[name]
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
                self._close(part)
        return [part for part in parts if part.node not in self._closed]

    def _close(self, part: OpenPart) -> None:
        """Close a part, until it is checked: one that is close to call only once for float32."""
        if part.bound <= self._least:
            part.failures = max(part.failures, REOPENED - 1)
        self._closed[part.node] = part

    def _suffices(self, part: OpenPart) -> bool:
        """Whether the bound of a part is worth asking the checker's arithmetic."""
        if part.bound > self._needed:
            return True
        if part.waited < PATIENCE or part.bound <= self._nearly:
            return False
        return part.bound > self._least or part.waited >= CLOSE_PATIENCE

    def _solve_all(self, parts: Sequence[OpenPart]) -> bool:
        """Solve the programs of parts, and choose the cuts worth most; whether a point was found."""
        points = [self._solve(part) for part in parts if self._effort.end is None]
        return bool(points) and self._asked(np.stack(points))

    def _improve(self, parts: Sequence[OpenPart], rounds: int) -> Tensor:
        """Improve the choices of parts by gradients; where the last linear functions are least."""
        batch = self._parts.batch(parts)
        known = torch.full((len(parts),), -torch.inf)
        lines = {name: each.clone().requires_grad_() for name, each in batch.lines.items()}
        scales = torch.from_numpy(np.concatenate([part.scales for part in parts]))
        shares = (batch.multipliers / scales).requires_grad_()
        weights = self._parts.weights(parts, batch)
        leaves = [*lines.values(), shares, *([weights] if weights.requires_grad else [])]
        best = [each.detach().clone() for each in leaves]
        steps = Adam(leaves, rate=PACE)
        corner = torch.zeros(0)
        for turn in range(rounds + 1):
            goal, limit = self._parts.objective(weights)
            now = Batch(batch.count, batch.facts, batch.cuts, lines, shares * scales)
            bounds, factors = self._parts.fast.lower_bounds(goal, now)
            slack = bounds[:, 0] - limit
            better = slack.detach() > known
            known = torch.where(better, slack.detach(), known)
            self._parts.keep(best, leaves, better, batch)
            is_over = turn == rounds or not slack.requires_grad or self._effort.end is not None
            if is_over or bool((known > self._needed).all()):
                corner = self._parts.corner(factors, batch)
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
        self._parts.store(
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
            self._affine_units = self._affine_units or self._parts.open_units(
                self._parts.batch(self._start()[1])
            )
            units, cuts = self._affine_units.decided(part.cuts, part.signs)
        else:
            batch = self._parts.batch([part])
            units, cuts = self._parts.open_units(batch), self._parts.cut_rows(batch)
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
            bound = self._parts.value(replace(part, lines=lines, multipliers=multipliers, weights=weights))
        if bound > part.bound:
            part.lines, part.multipliers, part.weights, part.bound = lines, multipliers, weights, bound
        worth = program.worth(solution.gaps)
        if self._is_shallow and worth.max(initial=0.0) > 0.0:
            part.split = ChosenCut(int(units.entries[np.argmax(worth)]))
        return solution.point.astype(np.float32)

    # Cuts

    def _candidates(self, parts: Sequence[OpenPart]) -> list[tuple[int, ChosenCut]]:
        """For each part, by number, cuts of the units with the largest gaps.

        Where a unit is bounded from below by α·e, the multipliers that a cut begins with lose nothing:
        λ·α·e is λ·0 + (λ·α)·e where the unit is off, and λ·e − (λ·(1 − α))·e where it is on.
        """
        batch = self._parts.batch(parts)
        weights = torch.from_numpy(np.stack([part.weights for part in parts]))  # type: ignore[misc]
        seen: dict[str, Tensor] = {}
        with torch.no_grad():
            self._parts.fast.lower_bounds(self._parts.objective(weights)[0], batch, seen)
        found: list[tuple[Tensor, ...]] = []
        for name, functional in seen.items():
            (source,) = self._parts.fast.argument[name][:1]
            lower, upper = (end.flatten(1) for end in self._parts.fast.ends(batch, source))
            gap = torch.where(
                (lower < 0) & (upper > 0), -lower * upper / (upper - lower).clamp(min=1e-30), 0.0
            )
            pull = functional[:, 0].flatten(1).expand(len(parts), -1)
            size = pull.abs() + 1e-4 * pull.abs().mean(1, keepdim=True) + 1e-9  # none is left out for good
            entry = (self._parts.starts[source] + torch.arange(gap.shape[1])).expand(len(parts), -1)
            off = torch.zeros_like(pull)
            if name in self._parts.fast.relus:
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
            wide = self._parts.batch([side for k, cut in asked for side in _sides(parts[k], cut)])
            weights = torch.from_numpy(np.stack([parts[k].weights for k, _ in asked]))  # type: ignore[misc]
            weights = weights.repeat_interleave(2, 0)
            goal, limit = self._parts.objective(weights)
            bounds = (self._parts.fast.lower_bounds(goal, wide)[0][:, 0] - limit).reshape(-1, 2)
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
            entry, part.waited = part.split.entry, part.waited + (part.bound > self._nearly)
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
        ways: dict[str, bool] = {"cuts_inputs": self._cut_inputs, "weighs": self._parts.weighs}
        return cover_of(self._data, self._tree, leaves, **ways, level=level)

    def _check(self) -> None:
        """Prove closed leaves in the checker's arithmetic; those that it leaves open are opened again.

        What they lack is asked of all leaves from then on. What checking takes is kept in reserve.
        """
        nodes, question = self._tree.leaves(), self._question.with_cover(self._cover())
        began = self._effort.clock()
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
            if not self._is_real:
                self._question, self._needed = self._question.over_the_reals(), self._least
                self._is_real, part.failures = True, 0
        self._push(part)


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
