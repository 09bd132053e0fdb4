"""Boxes cut into halves until ReLUs bounded in pairs decide each piece: proofs `paired-relus`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from dokimos.checker.lemmas.constraints import box_floats
from dokimos.checker.lemmas.relu_layers import BoundedLayers, ReluLayer, relu_layers, rows_of
from dokimos.checker.proofs.enclosure import MOST_PIECES
from dokimos.checker.proofs.paired_relus import (
    MOST_USED,
    Pair,
    PairedLayers,
    bounding,
    loosened,
    paired,
    summed,
)
from dokimos.core.errors import InvalidProof
from dokimos.engine.halving import in_preorder
from dokimos.engine.outcome import SearchEffort
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval
from dokimos.suites.vnnlib.model import Box, Conjunction, Linear, Property

#: Layers with more ReLUs than this are not looked through for pairs.
_MOST_RELUS = 600
#: Two ReLUs are a pair where their weights differ by no more than this share of them.
_ALIKE = 0.5
#: So alike are ReLUs of copies that read what others of them hand on.
_EQUAL = 1e-9
#: Sums that are tried for each conjunction, at most.
_MOST_SUMS = 40
#: Pieces bounded at once.
_BATCH = 64
#: Of so many copies, each is tried as the one that the others are paired with.
_MOST_COPIES = 4
#: By how much constraints that are used may fail.
_SLACK = Fraction(1, 2**16)
#: What a bound must be above, relative to the bounds of all constraints.
_CLEAR = 1e-12


def prove_in_pairs(
    network: Network,
    asked: Property,
    *,
    seconds: float,
    most_pieces: int = MOST_PIECES,
    least_margin: float = 0.0,
    use_constraints: bool = True,
) -> dict[str, Any] | None:
    """The data of a proof `paired-relus`; None where none is found in `seconds`, or no ReLUs are alike.

    The seconds are CPU time. A proof has at most `most_pieces` pieces, or a few more, and every piece a
    margin of `least_margin`. Its bounds are those at the points that satisfy the constraints, unless not
    `use_constraints`.

    Raises InvalidProof if the network is not affine layers with ReLUs between them.
    """
    effort = SearchEffort(seconds)
    layers = relu_layers(network)
    questions = asked.questions()
    if not questions or not all(part for _, part in questions):
        return None
    pairings = _pairings(layers, most=_MOST_COPIES if use_constraints else 1)
    if not pairings:
        return None
    pairs, twins = pairings[0]
    if len(pairings) > 1:  # several copies: the one that most constraints compare others with
        pairs, twins = max(pairings, key=lambda each: _decided_at_once(each[1], questions, effort))
    trees: list[list[int]] = []
    sums: list[list[list[str]]] = []
    used: list[list[int]] = []
    room, slack = most_pieces, max(_SLACK, Fraction(least_margin))
    for box, conjunction in questions:
        weights = _sums(conjunction)
        goals = (*conjunction, *summed(conjunction, weights))
        search = _PairSearch(twins, (), box, goals, len(conjunction), least_margin)
        used.append([])
        is_decided = search.run(1 if use_constraints else room, effort)
        if use_constraints and not is_decided:
            used[-1] = list(range(len(conjunction)))[:MOST_USED]
            search = replace(search, known=loosened(conjunction, used[-1], slack), _cuts={})
            is_decided = search.run(room, effort)
        if not is_decided:
            return None
        trees.append(search.tree())
        sums.append([[str(each) for each in one] for one in weights])
        room -= len(trees[-1])
    data = {"pairs": [list(pair) for pair in pairs], "trees": trees, "sums": sums}
    return {**data, "used": used, "slack": str(slack)} if any(used) else data


def _pairings(layers: Sequence[ReluLayer], *, most: int) -> list[tuple[list[Pair], PairedLayers]]:
    """Pairs of ReLUs that are alike, and the layers with these; of three copies, each may be the first."""
    usual = pairs_of(layers)
    alike: dict[int, list[int]] = {}
    for p, q in usual:
        alike.setdefault(p, [p]).append(q)
    copies = max(map(len, alike.values()), default=0)
    found = []
    for first in range(min(copies, most) if copies > 2 else 1):
        pairs = usual
        if first:
            bases = [(group[min(first, len(group) - 1)], group) for group in alike.values()]
            pairs = sorted((base, q) for base, group in bases for q in group if q != base)
        with suppress(InvalidProof):
            found.append((pairs, paired(layers, pairs)))
    return found if usual else []


def _decided_at_once(
    layers: PairedLayers, questions: Sequence[tuple[Box, Conjunction]], effort: SearchEffort
) -> int:
    """How many questions are decided on the whole box."""
    count = 0
    for box, conjunction in questions:
        known = loosened(conjunction, range(min(len(conjunction), MOST_USED)), _SLACK)
        goals = (*conjunction, *summed(conjunction, _sums(conjunction)))
        count += _PairSearch(layers, known, box, goals, len(conjunction)).run(1, effort)
    return count


def pairs_of(layers: Sequence[ReluLayer]) -> list[Pair]:
    """ReLUs that compute nearly the same from inputs that are nearly the same, (p, q) with p < q.

    Any pairs are sound; these are those of copies of a network: the weights of p and q, with those of
    paired ReLUs of the layer before taken together, are alike.
    """
    found: list[Pair] = []
    start, before = 0, dict[int, int]()
    for number, layer in enumerate(layers[:-1]):
        size = len(layer.biases)
        if size > _MOST_RELUS:
            return []
        weights = np.column_stack([layer.weights, layer.biases])
        for q, p in before.items():
            weights[:, p] += weights[:, q]
            weights[:, q] = 0.0
        before = _alike(weights)
        if number == 0 and not before:
            return []
        found += [(start + p, start + q) for q, p in sorted(before.items())]
        start += size
    return found


def _alike(weights: Floats) -> dict[int, int]:
    """For each row that is like one before it, the one that it is most alike; equal rows come first."""
    base: dict[int, int] = {}
    sizes = np.abs(weights).sum(axis=1)
    for limit in (_EQUAL, _ALIKE):
        for q in range(1, len(weights)):
            free = [p for p in range(q) if p not in base and sizes[p] > 0]
            if not free or q in base or q in base.values():
                continue
            off = np.abs(weights[free] - weights[q]).sum(axis=1)
            nearest = int(off.argmin())
            if off[nearest] <= limit * sizes[free[nearest]]:
                base[q] = free[nearest]
    return base


def _sums(conjunction: Conjunction) -> list[tuple[Fraction, ...]]:
    """Halves of two constraints that say the same of different outputs: one of each copy."""
    found = []
    for i, j in combinations(range(len(conjunction)), 2):
        one, other = conjunction[i], conjunction[j]
        apart = not {k for k, _ in one.outputs} & {k for k, _ in other.outputs}
        alike = sorted(c for _, c in one.outputs) == sorted(c for _, c in other.outputs)
        if apart and alike and len(one.outputs) > 1:
            found.append(tuple(Fraction(k in (i, j), 2) for k in range(len(conjunction))))
    return found[:_MOST_SUMS]


@dataclass
class _PairSearch:
    """The search for the cuts of one box that decide one conjunction, with its sums, on every piece."""

    layers: PairedLayers
    known: Conjunction
    box: Box
    goals: Sequence[Linear]
    single: int
    least_margin: float = 0.0
    _cuts: dict[tuple[bool, ...], int] = field(default_factory=dict)

    def run(self, room: int, effort: SearchEffort) -> bool:
        """Whether all pieces are decided; not where time or room are over."""
        rows = rows_of([each.outputs for each in self.goals], len(self.layers.layers[-1].biases))
        inputs = rows_of([each.inputs for each in self.goals], self.box.size)
        levels = np.array([float(each.bound) for each in self.goals])
        lower, upper = box_floats(self.box)
        pending: list[tuple[tuple[bool, ...], Floats, Floats]] = [((), lower, upper)]
        looked_at = 0
        while pending:
            batch = [pending.pop() for _ in range(min(_BATCH, len(pending)))]
            looked_at += len(batch)
            low, high = (np.stack([each[k] for each in batch]) for k in (1, 2))
            over = bounding(self.layers, self.known)(Interval(low[:, None, :], high[:, None, :]))
            found = over.lower_bounds(rows, over.silent(1), inputs)
            steep = _steepness(over.plain, rows) + np.abs(inputs.lower)
            slack = found - levels
            clear = _CLEAR * (1.0 + np.abs(found).max(axis=1) + np.abs(levels).max())
            for k in np.flatnonzero(~(slack.max(axis=1) > self.least_margin + clear)).tolist():
                at_stake = steep[k, : self.single].max(axis=0) * (high[k] - low[k])
                coordinate = int(at_stake.argmax())
                if not at_stake[coordinate] > 0:
                    return False
                path = batch[k][0]
                self._cuts[path] = coordinate
                middle = (low[k, coordinate] + high[k, coordinate]) / 2
                for is_upper in (True, False):
                    ends = low[k].copy(), high[k].copy()
                    ends[0 if is_upper else 1][coordinate] = middle
                    pending.append(((*path, is_upper), *ends))
            if pending and (effort.end is not None or looked_at + len(pending) > 2 * room):
                return False
        return True

    def tree(self) -> list[int]:
        """The coordinates halved, in preorder, the lower half first."""
        return in_preorder(self._cuts)


def _steepness(over: BoundedLayers, rows: Interval) -> Floats:
    """For each box and row, how much each input may matter at most: ReLUs that are off let nothing by."""
    found = np.abs(rows.lower)[None]
    for number in range(len(over.layers) - 1, -1, -1):
        found = found @ np.abs(over.layers[number].weights)
        if number:
            found = found * (over.arguments[number - 1].upper > 0)
    return found
