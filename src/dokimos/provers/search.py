"""Branch and bound over the phases of ReLUs. `unsat` and `sat` are only said with a checked proof."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.base import Problem
from dokimos.checker.lemmas.objective import objective
from dokimos.checker.proofs.split_tree import (
    LEAF,
    MOST_LEAVES,
    Leaf,
    Region,
    SplitTree,
    questions,
    refutation,
    region,
    write_tree,
)
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.networks.semantics.exact import Undecided
from dokimos.networks.semantics.expressions import AffineExpression
from dokimos.networks.semantics.piecewise_linear import PiecewiseLinear, piecewise_linear
from dokimos.properties.model import Box, Conjunction, Point, Property
from dokimos.properties.violation import violation_at
from dokimos.provers.relaxation import Relaxation, Relaxed, SolverFailed
from dokimos.provers.substitution import substituted
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Certificate

#: A point of the relaxation that misses a ReLU by less than this is taken for a point of the network.
_CLOSE = 1e-7


@dataclass(frozen=True)
class Decision:
    """An answer with what proves it: a certificate for `unsat`, a witness for `sat`."""

    answer: Answer
    certificate: Certificate | None = None
    witness: Point | None = None
    detail: str = ""


class _OutOfTime(Exception):
    pass


def decide(network: Network, asked: Property, *, seconds: float) -> Decision:
    """Decide a property of a network of affine operators and ReLUs.

    `unsat` is said only where the certificate that comes with it has been checked in exact arithmetic, on
    the network and property given; `sat` only where the witness has been replayed exactly. Raises
    UnsupportedOp for other networks, InputError where property and network do not fit.
    """
    search = _Search(network, asked, piecewise_linear(network), time.monotonic() + seconds)
    trees = []
    left_open = 0
    try:
        for box, conjunction in questions(asked):
            found = search.conjunction(box, conjunction)
            if isinstance(found, tuple):
                return Decision(Answer.SAT, witness=found, detail=search.effort)
            left_open += found.left_open
            trees.append(write_tree(*found.preorder()))
    except _OutOfTime:
        return Decision(Answer.TIMEOUT, detail=search.effort)
    if left_open:
        return Decision(Answer.UNKNOWN, detail=f"{left_open} cases are too close to call; {search.effort}")
    certificate = Certificate(SplitTree.name, {"trees": trees})
    if not trees:
        return Decision(Answer.UNSAT, detail="every input set is empty")
    try:
        SplitTree().prove(Problem(network, asked), certificate.data)
    except InvalidProof as error:
        return Decision(Answer.UNKNOWN, detail=f"the proof does not hold: {error}")
    return Decision(Answer.UNSAT, certificate, detail=search.effort)


@dataclass
class _Tree:
    """A tree that grows: by the path to each node (ReLU and phase, in order), a split or a leaf."""

    splits: dict[tuple[tuple[int, bool], ...], int] = field(default_factory=dict)
    leaves: dict[tuple[tuple[int, bool], ...], Leaf] = field(default_factory=dict)
    left_open: int = 0

    def preorder(self) -> tuple[list[int], list[Leaf]]:
        splits, leaves = [], []
        pending: list[tuple[tuple[int, bool], ...]] = [()]
        while pending:
            path = pending.pop()
            if path in self.splits:
                k = self.splits[path]
                splits.append(k)
                pending += [(*path, (k, False)), (*path, (k, True))]
            else:
                splits.append(LEAF)
                leaves.append(self.leaves.get(path, Leaf((), {}, {})))
        return splits, leaves


@dataclass
class _Search:
    network: Network
    asked: Property
    form: PiecewiseLinear
    deadline: float
    nodes: int = 0

    @property
    def effort(self) -> str:
        return f"{self.nodes} cases were looked at"

    def seconds_left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise _OutOfTime
        return left

    def conjunction(self, box: Box, conjunction: Conjunction) -> Point | _Tree:
        """A witness, or a tree of refuted leaves (with some left open, perhaps)."""
        for candidate in _first_candidates(box):
            if self.is_witness(candidate):
                return candidate
        objectives = [objective(self.form, constraint) for constraint in conjunction]
        columns = self.form.inputs + len(self.form.relus)
        relaxation = Relaxation(self.form, objectives, columns)
        tree = _Tree()
        ties = count()
        heap: list[tuple[float, int, tuple[tuple[int, bool], ...]]] = [(-np.inf, next(ties), ())]
        while heap:
            _, _, path = heapq.heappop(heap)
            self.nodes += 1
            if self.nodes > MOST_LEAVES:
                raise _OutOfTime
            where = region(self.form, box, dict(path))
            if where.is_empty:
                tree.leaves[path] = Leaf((Fraction(0),) * len(objectives), {}, {})
                continue
            try:
                relaxed = relaxation.solve(where, seconds=self.seconds_left())
            except SolverFailed:
                self.seconds_left()
                relaxed = None
            if (leaf := self.refuting(objectives, where, relaxed)) is not None:
                tree.leaves[path] = leaf
                continue
            if relaxed is not None and relaxed.values is not None:
                for candidate in _near(relaxed.values[: self.form.inputs], box):
                    if self.is_witness(candidate):
                        return candidate
            split = self.next_split(where, relaxation, relaxed)
            if split is None:
                tree.left_open += 1
                continue
            tree.splits[path] = split
            excess = 0.0 if relaxed is None else relaxed.excess
            for phase in (True, False):
                heapq.heappush(heap, (excess, next(ties), (*path, (split, phase))))
        return tree

    def refuting(
        self, objectives: Sequence[AffineExpression], where: Region, relaxed: Relaxed | None
    ) -> Leaf | None:
        """A leaf that refutes the region: the solver's, or one by substitution where it may be right."""
        if relaxed is not None and self.refutes(objectives, where, relaxed.leaf):
            return relaxed.leaf
        is_decided = not any(low < 0 < high for low, high in where.arguments)
        if relaxed is None or relaxed.excess > 0 or is_decided:
            for chosen in range(len(objectives)):
                weights = [Fraction(int(i == chosen)) for i in range(len(objectives))]
                leaf = substituted(self.form, objectives, where, weights)
                if self.refutes(objectives, where, leaf):
                    return leaf
        return None

    def refutes(self, objectives: Sequence[AffineExpression], where: Region, leaf: Leaf) -> bool:
        self.seconds_left()
        try:
            refutation(self.form, objectives, where, leaf)
        except InvalidProof:
            return False
        return True

    def is_witness(self, candidate: Point) -> bool:
        self.seconds_left()
        try:
            return violation_at(self.network, self.asked, candidate).violates is True
        except Undecided:
            return False

    def next_split(self, where: Region, relaxation: Relaxation, relaxed: Relaxed | None) -> int | None:
        """The undecided ReLU whose value the relaxation misses most; the widest where it misses none."""
        gaps = np.zeros(len(self.form.relus))
        if relaxed is not None and relaxed.values is not None:
            outputs = relaxed.values[list(self.form.relus)]
            gaps = outputs - np.maximum(relaxation.arguments(relaxed.values), 0.0)
        scores = [
            (float(gap) if gap > _CLOSE else 0.0, float(min(-low, high)), -k)
            for k, ((low, high), gap) in enumerate(zip(where.arguments, gaps, strict=True))
            if low < 0 < high
        ]
        return -max(scores)[2] if scores else None


def _first_candidates(box: Box) -> Iterator[Point]:
    """The centre and two opposite corners."""
    yield box.centre
    yield box.lower
    yield box.upper


def _near(values: NDArray[np.float64], box: Box) -> Iterator[Point]:
    """The point clipped into the box, rounded to float32 and as it is."""
    seen = set()
    for rounded in (values.astype(np.float32).astype(np.float64), values):
        point = tuple(
            min(max(Fraction(float(x)), low), high)
            for x, low, high in zip(rounded, box.lower, box.upper, strict=True)
        )
        if point not in seen:
            seen.add(point)
            yield point
