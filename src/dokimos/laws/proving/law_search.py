"""Searches for a proof or a violation: of networks by branch and bound, of trees; and turns of several."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.util import find_spec
from itertools import islice

import numpy as np

from dokimos.checker.lemmas.zones import Cover, Cut, Options, Span, Zone
from dokimos.checker.trees.leaves import TreeStatement
from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.engine.condition_cases import undecided
from dokimos.engine.outcome import SearchEffort
from dokimos.engine.tree_search import TreeSearch
from dokimos.laws.proving.case_tables import CaseTables, Table
from dokimos.laws.proving.copies import CopiesOfNetwork
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import NetworkCloser
from dokimos.laws.proving.question import (
    Confirms,
    Deadline,
    ExactCase,
    LinearCover,
    SearchEnd,
    first_end,
)
from dokimos.laws.proving.row_zones import cases_near
from dokimos.suites.vnnlib.model import Point

#: What the answers call the searches.
_ZONES, _COPIES, _PAIRS = "bounds on zones", "linear bounds of copies", "leaf pairs"
#: The CPU seconds of the first search on copies, and how many cases next to a point it tries.
FIRST_TURN, _MOST_CASES = 1.0, 16
#: The share of the time that one long search on copies has, which no search before it can make up for.
_LAST_SHARE = 0.45
#: Zones that are processed together, and how many cases of each are tried.
_BATCH, _FEW = 128, 3
#: How much more a cut counts if it decides a condition.
_CONDITION = 1e6


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
    seconds: float = 0.0
    is_stuck: bool = False


class NetworkSearch:
    """The search for a proof or a violation in each of the given zones, by default the question's own.

    The widest of the remaining zones are processed together. A zone that is not closed is searched for a
    violation at a few of its cases, then halved along the variable that matters most in it. A set is left
    open if it is not decided within `seconds_each` seconds of processor time.
    """

    def __init__(
        self,
        closer: NetworkCloser,
        tables: CaseTables,
        confirms: Confirms,
        *,
        zones: Sequence[Zone] = (),
        seconds_each: float = math.inf,
        seed: int = 0,
    ) -> None:
        self.closer, self.tables, self.confirms = closer, tables, confirms
        self.seconds_each, self.rng = seconds_each, np.random.default_rng(seed)
        nodes = [_Node(zone, n) for n, zone in enumerate(zones or [closer.question.zone])]
        self._roots = [_Root(node, [node]) for node in nodes]

    def run(self) -> Iterator[SearchEnd | None]:
        """Steps until no zone can be decided any more; of a single one, the last yields how it ended."""
        roots = self._roots
        active = list(range(len(roots)))
        while active:
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
            is_decided = not active and len(roots) == 1 and not roots[0].is_stuck
            yield self.ends[0] if is_decided else None

    @property
    def ends(self) -> list[SearchEnd]:
        """What is known of each zone."""
        return [self._end(root) for root in self._roots]

    def _goes_on(self, root: _Root) -> bool:
        over = root.seconds >= self.seconds_each
        return bool(root.open_ones) and root.case is None and not root.is_stuck and not over

    def _step(self, batch: list[_Node], roots: list[_Root]) -> None:
        found = self.closer.examine([node.zone for node in batch])
        open_ones: list[_Node] = []
        for node, is_closed in zip(batch, found.closed, strict=True):
            node.is_closed = bool(is_closed)
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
        few = [replace(self.tables, question=replace(self.tables.question, zone=n.zone)) for n in nodes]
        cases = np.concatenate([_few_cases(each, self.rng) for each in few])
        owners = np.repeat([node.owner for node in nodes], len(cases) // len(nodes))
        good = self.tables.admitted(cases)
        cases, owners = cases[good], owners[good]
        worth = self.tables.worth(cases)
        for row in np.flatnonzero(worth >= 0):
            root = roots[owners[row]]
            if root.case is None:
                case = self.tables.exact_case(cases[row])
                if case in root.node.zone and self.confirms(case):
                    root.case = case

    def _cut(self, zone: Zone, weight: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Cut | None:
        """A cut of the variable that matters most; one that decides conditions counts for more."""
        worth = weight.copy()
        for each in undecided(self.closer.question.conditions, zone):
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
            return SearchEnd(_ZONES, case=root.case)
        if not root.open_ones:
            return SearchEnd(_ZONES, cover=_cover(root.node))
        whole = root.node.zone.log_size
        share = sum(math.exp(node.zone.log_size - whole) for node in root.open_ones)
        return SearchEnd(_ZONES, share=min(1.0, share))


def _few_cases(tables: CaseTables, rng: np.random.Generator) -> Table:
    """The middle of a zone, and cases drawn from it; of a choice, nothing is in the middle."""
    made = tables.drawn(rng, _FEW)
    for number, values in enumerate(tables.question.zone.values):
        if isinstance(values, Span):
            made[0, number] = float(values.middle())
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


# The same by linear bounds of copies


def search_copies(
    copies: CopiesOfNetwork, confirms: Confirms, deadline: Deadline
) -> Iterator[SearchEnd | None]:
    """Searches for a proof, or a case that certainly violates the law, each with twice the time of the one
    before, and the last one with all that is then left; none where the law cannot be said so, or torch is
    not installed."""
    if find_spec("torch") is None:
        return
    from dokimos.engine.linear import LinearSearch

    question = copies.closer.question
    found: list[ExactCase] = []

    def settles(point: Point) -> bool:
        columns = [sum((point[k] for k in parts), Fraction(0)) for parts in made.inputs]
        near = islice(cases_near(question, columns), _MOST_CASES)
        found.extend(case for case in near if case in question.zone and confirms(case))
        return bool(found)

    seconds, kept, goes_on = FIRST_TURN, _LAST_SHARE * deadline.left, True
    while goes_on:
        effort = SearchEffort(seconds if deadline.left - seconds > kept else deadline.left)
        try:
            network, made = copies.made
            data = LinearSearch(network, made.property, effort, settles).run().data
        except (Refusal, InvalidProof, UnsupportedOp):
            return
        if found:
            yield SearchEnd(_COPIES, case=found[0])
        yield None if data is None else SearchEnd(_COPIES, cover=LinearCover(data))
        seconds, goes_on = 2 * seconds, effort.end is not None


# Several searches in turn, none of which can tell whether it will ever end


class _Turns:
    """Steps that are taken one at a time, and the CPU seconds that all of them, and the last one, took."""

    def __init__(self, steps: Iterator[SearchEnd | None], expected: float) -> None:
        self._steps = steps
        self.used, self.last, self.is_over = 0.0, expected, False

    def next(self) -> SearchEnd | None:
        """What the next step finds."""
        begun = time.process_time()
        try:
            return next(self._steps)
        except StopIteration:
            self.is_over = True
            return None
        finally:
            self.last = time.process_time() - begun
            self.used += self.last


def taking_turns(
    *searches: Iterator[SearchEnd | None], expected: Sequence[float] = ()
) -> Iterator[SearchEnd | None]:
    """Steps of all of these, until none goes on.

    The next one is taken where it makes the least time used in all, as far as one can tell from what the
    last step there took; the first is `expected` to take that long. So n of them take no more than about n
    times what the one that decides first takes alone, however much time there is.
    """
    first = [*expected, *[0.0] * (len(searches) - len(expected))]
    left = [_Turns(*each) for each in zip(searches, first, strict=True)]
    while left:
        turn = min(left, key=lambda each: each.used + each.last)
        yield turn.next()
        left = [each for each in left if not each.is_over]


def search_trees(
    statement: TreeStatement,
    confirms: Confirms,
    deadline: Deadline,
    draws: Iterable[SearchEnd | None] = (),
) -> SearchEnd:
    """What decided, and how: a case that is confirmed, or a cover; or what share is open when time is up.

    Draws and the search take turns. Raises Refusal for trees that the checker does not take.
    """
    search = TreeSearch(statement)
    end = first_end(taking_turns(iter(draws), _proving(search, confirms)), deadline)
    return SearchEnd(_PAIRS, share=search.share) if end is None else end


def _proving(search: TreeSearch, confirms: Confirms) -> Iterator[SearchEnd | None]:
    try:
        for case in search.run():
            yield SearchEnd(_PAIRS, case=case) if case is not None and confirms(case) else None
    except InvalidProof as problem:
        raise Refusal(str(problem)) from None
    yield None if search.cover is None else SearchEnd(_PAIRS, cover=search.cover)
