"""Branch and bound for networks: a set is cut until all parts are closed or a case violates the law."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dokimos.checker.lemmas.zones import Cover, Cut, Options, Span, Zone
from dokimos.engine.condition_cases import undecided
from dokimos.laws.proving.case_tables import CaseTables, Table
from dokimos.laws.proving.network_closing import NetworkCloser
from dokimos.laws.proving.question import LawQuestion
from dokimos.laws.proving.searching import Deadline, ExactCase, SearchEnd, share_of

#: Zones that are processed together.
_BATCH = 128
#: How much more a cut counts if it decides a condition.
_CONDITION = 1e6

#: Whether a case certainly violates the law.
Confirms = Callable[[ExactCase], bool]


@dataclass
class _Node:
    """A zone in the tree of cuts: its cut and its parts; a leaf has neither."""

    zone: Zone
    owner: int
    cut: Cut | None = None
    parts: tuple[_Node, _Node] | None = None
    is_closed: bool = False


@dataclass
class _Root:
    """One set that is to be decided."""

    node: _Node
    open_ones: list[_Node] = field(default_factory=list)
    case: ExactCase | None = None
    zones: int = 0
    seconds: float = 0.0
    is_stuck: bool = False


def search_networks(
    closer: NetworkCloser,
    tables: CaseTables,
    confirms: Confirms,
    deadline: Deadline,
    *,
    zones: Sequence[Zone] = (),
    most_zones: int | None = None,
    seconds_each: float | None = None,
    seed: int = 0,
) -> list[SearchEnd]:
    """Decide each of the given zones of a question; by default, the question's own zone.

    The widest of the remaining zones are processed together. A zone that is not closed is searched for a
    violation at a few of its cases, then halved along the variable that matters most in it. A set is left
    open if it is not decided within `most_zones` zones and `seconds_each` seconds of processor time.
    """
    starts = list(zones) or [closer.question.zone]
    limits = _Limits(most_zones, seconds_each)
    return _NetworkSearch(closer, tables, confirms, seed, limits).run(starts, deadline)


@dataclass(frozen=True)
class _Limits:
    """The limits for one set."""

    zones: int | None
    seconds: float | None


class _NetworkSearch:
    def __init__(
        self,
        closer: NetworkCloser,
        tables: CaseTables,
        confirms: Confirms,
        seed: int,
        limits: _Limits,
    ) -> None:
        self._closer, self._tables, self._confirms = closer, tables, confirms
        self._question: LawQuestion = closer.question
        self._rng = np.random.default_rng(seed)
        self._limits = limits

    def run(self, zones: Sequence[Zone], deadline: Deadline) -> list[SearchEnd]:
        nodes = [_Node(zone, number) for number, zone in enumerate(zones)]
        roots = [_Root(node, [node]) for node in nodes]
        active = list(range(len(roots)))
        while active and not deadline.is_over:
            batch: list[_Node] = []
            each = max(1, _BATCH // len(active))
            for owner in active[:_BATCH]:
                mine = roots[owner].open_ones
                batch += [mine.pop() for _ in range(min(each, len(mine)))]
            begun = time.process_time()
            self._step(batch, roots)
            share = (time.process_time() - begun) / len(batch)
            for node in batch:
                roots[node.owner].seconds += share
            left = [owner for owner in active if self._goes_on(roots[owner])]
            active = left[_BATCH:] + left[:_BATCH] if len(left) > _BATCH else left
        return [self._end(root) for root in roots]

    def _goes_on(self, root: _Root) -> bool:
        limits = self._limits
        over = (limits.zones is not None and root.zones >= limits.zones) or (
            limits.seconds is not None and root.seconds >= limits.seconds
        )
        return bool(root.open_ones) and root.case is None and not root.is_stuck and not over

    def _step(self, batch: list[_Node], roots: list[_Root]) -> None:
        found = self._closer.examine([node.zone for node in batch])
        open_ones: list[_Node] = []
        for node, is_closed in zip(batch, found.closed, strict=True):
            node.is_closed = bool(is_closed)
            roots[node.owner].zones += 1
            if not is_closed:
                open_ones.append(node)
        self._try_cases(open_ones, roots)
        weights = dict(zip(map(id, batch), found.weight, strict=True))
        for node in open_ones:
            root = roots[node.owner]
            cut = self._cut(node.zone, weights[id(node)])
            if cut is None:
                root.is_stuck = True
                root.open_ones.append(node)
                continue
            first, second = node.zone.cut(cut.variable, cut.at)
            node.cut, node.parts = cut, (_Node(first, node.owner), _Node(second, node.owner))
            root.open_ones += [node.parts[1], node.parts[0]]

    def _try_cases(self, nodes: list[_Node], roots: list[_Root]) -> None:
        """The middle of each zone, and cases drawn from it."""
        if not nodes:
            return
        cases = np.concatenate([_few_cases(node.zone, self._rng) for node in nodes])
        owners = np.repeat([node.owner for node in nodes], len(cases) // len(nodes))
        good = self._tables.admitted(cases)
        cases, owners = cases[good], owners[good]
        worth = self._tables.worth(cases)
        for row in np.flatnonzero(worth >= 0):
            root = roots[owners[row]]
            if root.case is None:
                case = self._tables.exact_case(cases[row])
                if case in root.node.zone and self._confirms(case):
                    root.case = case

    def _cut(self, zone: Zone, weight: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Cut | None:
        """A cut of the variable that matters most; one that decides conditions counts for more."""
        worth = weight.copy()
        for each in undecided(self._question.conditions, zone):
            if len(each.quantity.terms) == 1:
                worth[each.quantity.terms[0][0]] *= _CONDITION
        for variable in np.argsort(-worth, kind="stable"):
            values = zone.values[variable]
            if values.is_single:
                continue
            if isinstance(values, Options):
                return Cut(int(variable), min(values.left))
            at = values.middle()
            first, second = values.cut(at)
            if not first.is_empty and not second.is_empty and first != values and second != values:
                return Cut(int(variable), at)
        return None

    def _end(self, root: _Root) -> SearchEnd:
        if root.case is not None:
            return SearchEnd(case=root.case)
        if root.open_ones:
            return SearchEnd(share=share_of([node.zone for node in root.open_ones], root.node.zone))
        return SearchEnd(cover=_cover(root.node))


def _few_cases(zone: Zone, rng: np.random.Generator, count: int = 3) -> Table:
    made = np.zeros((count, len(zone.values)))
    for number, values in enumerate(zone.values):
        if isinstance(values, Options):
            made[:, number] = rng.choice(sorted(values.left), count)
        elif isinstance(values, Span):
            made[0, number] = float(values.middle())
            low, high = float(values.low), float(values.high)
            drawn = low + rng.random(count - 1) * (high - low)
            made[1:, number] = np.rint(drawn) if values.grid.value == "whole" else drawn
    return made


def _cover(root: _Node) -> Cover:
    steps: list[Cut | None] = []
    pending = [root]
    while pending:
        node = pending.pop()
        steps.append(node.cut)
        if node.parts is not None:
            pending += [node.parts[1], node.parts[0]]
    return Cover(tuple(steps))
