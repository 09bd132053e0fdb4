"""The reference engine: branch and bound that says `unsat` and `sat` only with a checked proof."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.base import Problem
from dokimos.checker.lemmas.case_tree import Leaf
from dokimos.checker.lemmas.objective import objective
from dokimos.checker.lemmas.relu_regions import Region, refutation, region, upper_slope
from dokimos.checker.proofs.relu_tree import MOST_LEAVES, ReluTree
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.networks.semantics.exact import Undecided
from dokimos.networks.semantics.expressions import AffineExpression
from dokimos.networks.semantics.outward import Interval
from dokimos.networks.semantics.piecewise_linear import PiecewiseLinear, piecewise_linear
from dokimos.properties.model import Box, Conjunction, Point, Property
from dokimos.properties.violation import violation_at
from dokimos.provers.relu_relaxation import Relaxation, Relaxed, ReluBounds, SparseRow
from dokimos.provers.relu_search import Finding, Tree, grow
from dokimos.provers.substitution import substituted
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Certificate

#: A point of the relaxation that misses a ReLU by less than this is taken for a point of the network.
_CLOSE = 1e-7
#: Smaller multipliers are left out: the ranges of the variables make up for them.
_NEGLIGIBLE = 1e-11
_MULTIPLIER_BITS = 40


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
    try:
        for box, conjunction in asked.questions():
            found = search.conjunction(box, conjunction)
            if not isinstance(found, Tree):
                return Decision(Answer.SAT, witness=found, detail=search.effort)
            trees.append(found)
    except _OutOfTime:
        return Decision(Answer.TIMEOUT, detail=search.effort)
    if left_open := sum(tree.left_open for tree in trees):
        return Decision(Answer.UNKNOWN, detail=f"{left_open} cases are too close to call; {search.effort}")
    if not trees:
        return Decision(Answer.UNSAT, detail="every input set is empty")
    data = {"arithmetic": "exact", "trees": [tree.as_data() for tree in trees]}
    try:
        ReluTree().prove(Problem(network, asked), data)
    except InvalidProof as error:
        return Decision(Answer.UNKNOWN, detail=f"the proof does not hold: {error}")
    return Decision(Answer.UNSAT, Certificate(ReluTree.name, data), detail=search.effort)


@dataclass
class _Search:
    """What the searches of all conjunctions share."""

    network: Network
    asked: Property
    form: PiecewiseLinear
    deadline: float
    cases: int = 0

    @property
    def effort(self) -> str:
        return f"{self.cases} cases were looked at"

    def seconds_left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise _OutOfTime
        return left

    def conjunction(self, box: Box, conjunction: Conjunction) -> Point | Tree:
        """A witness, or a tree of refuted leaves (with some left open, perhaps)."""
        for candidate in _first_candidates(box):
            if self.is_witness(candidate):
                return candidate
        objectives = [objective(self.form, constraint) for constraint in conjunction]
        programs = _Programs.of(self.form, objectives, box)

        def look(phases: Mapping[int, bool]) -> Finding[Point]:
            self.cases += 1
            if self.cases > MOST_LEAVES:
                raise _OutOfTime
            return self.look(programs, objectives, box, phases)

        return grow(look, depth_first=False)

    def look(
        self,
        programs: _Programs | None,
        objectives: Sequence[AffineExpression],
        box: Box,
        phases: Mapping[int, bool],
    ) -> Finding[Point]:
        """Refute the case, or find a witness near the relaxation's optimum, or else split it."""
        where = region(self.form, box, phases)
        if where.is_empty:
            nothing = tuple(Fraction(0) for _ in objectives)
            return Finding(leaf=Leaf(phases, nothing, {"below": {}, "above": {}}))
        seconds = self.seconds_left()
        relaxed = None if programs is None else programs.solve(where, phases, seconds=seconds)
        self.seconds_left()
        if (leaf := self.refuting(objectives, where, phases, relaxed)) is not None:
            return Finding(leaf=leaf)
        if relaxed is not None and relaxed.inputs is not None:
            for candidate in _near(relaxed.inputs, box):
                if self.is_witness(candidate):
                    return Finding(counterexample=candidate)
        bound = 0.0 if relaxed is None else relaxed.bound
        return Finding(split=_next_split(where, relaxed), bound=bound)

    def refuting(
        self,
        objectives: Sequence[AffineExpression],
        where: Region,
        phases: Mapping[int, bool],
        relaxed: Relaxed | None,
    ) -> Leaf | None:
        """A leaf that refutes the region: the solver's, or one by substitution where it may be right."""
        if relaxed is not None:
            leaf = _leaf(relaxed, phases)
            if self.refutes(objectives, where, leaf):
                return leaf
        is_decided = not any(low < 0 < high for low, high in where.arguments)
        if relaxed is None or relaxed.bound > 0 or is_decided:
            for chosen in range(len(objectives)):
                weights = [Fraction(int(i == chosen)) for i in range(len(objectives))]
                leaf = substituted(self.form, objectives, where, phases, weights)
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


@dataclass(frozen=True, eq=False)
class _Programs:
    """What the linear programs of one conjunction have in common, in floats."""

    box: Interval
    arguments: list[SparseRow]
    objectives: list[SparseRow]

    @classmethod
    def of(
        cls, form: PiecewiseLinear, objectives: Sequence[AffineExpression], box: Box
    ) -> _Programs | None:
        """None where a number is too large for a float."""
        try:
            ends = Interval(*(np.array([float(x) for x in end]) for end in (box.lower, box.upper)))
            return cls(ends, [_row(e) for e in form.relus.values()], [_row(e) for e in objectives])
        except OverflowError:
            return None

    def solve(self, where: Region, phases: Mapping[int, bool], *, seconds: float) -> Relaxed | None:
        """The relaxation of a region, with the bounds and lines that its exact refutation will use."""
        try:
            low, high = (
                np.array([[float(end) for end in ends] for ends in where.arguments]).reshape(-1, 2).T
            )
        except OverflowError:
            return None
        unstable = [k for k, (a, b) in enumerate(where.arguments) if a < 0 < b]
        slopes = np.zeros(len(low))
        slopes[unstable] = [float(upper_slope(*where.arguments[k])) for k in unstable]
        decidable = sorted({*unstable, *phases})
        bounds = ReluBounds(low, high, slopes)
        relaxation = Relaxation(
            self.box, self.arguments, bounds, self.objectives, decidable, is_strict=True, seconds=seconds
        )
        return relaxation.solve(phases)


def _row(expression: AffineExpression) -> SparseRow:
    variables = np.fromiter(expression.terms, dtype=np.int64, count=len(expression.terms))
    values = np.array([float(c) for c in expression.terms.values()])
    return SparseRow(float(expression.constant), variables, values)


def _leaf(relaxed: Relaxed, phases: Mapping[int, bool]) -> Leaf:
    """The duals as multipliers: short rationals, none of them negative.

    The relaxation bounds the objectives by adding −dual·row for each row. A leaf has no row *decided*, so
    its dual d must go elsewhere. On (d >= 0, and v = e), with the dual y of v − e = 0:
    −y·(v − e) − d·e = (y − d)·(e − v) − d·v, and leaving out −d·v <= 0 makes the bound no smaller. Off
    (d <= 0, and v = 0): −d·e = −d·(e − v), with y = 0. Undecided: d = 0. So y − d is always the multiplier
    of e − v <= 0 or, where it is negative, d − y that of v − e <= 0.
    """
    net = relaxed.below - relaxed.decided
    above = np.maximum(-relaxed.above, 0.0) + np.maximum(-net, 0.0)
    duals = np.concatenate([relaxed.weights, np.maximum(net, 0.0), above])
    largest = float(np.max(np.abs(duals), initial=0.0))
    scale = 2.0 ** -np.floor(np.log2(largest)) if largest > 0 and np.isfinite(largest) else 0.0
    multipliers = [
        Fraction(round(m * 2**_MULTIPLIER_BITS), 2**_MULTIPLIER_BITS) if m > _NEGLIGIBLE else Fraction(0)
        for m in (duals * scale).tolist()
    ]
    split = len(relaxed.weights)
    parts = {
        name: {k: m for k, m in enumerate(multipliers[start : start + len(net)]) if m}
        for name, start in (("below", split), ("above", split + len(net)))
    }
    return Leaf(phases, tuple(multipliers[:split]), parts)


def _next_split(where: Region, relaxed: Relaxed | None) -> int | None:
    """The undecided ReLU whose value the relaxation misses most; the widest where it misses none."""
    gaps = np.zeros(len(where.arguments)) if relaxed is None else relaxed.gaps
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
