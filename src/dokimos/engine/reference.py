"""The reference engine: branch and bound that answers `unsat` and `sat` only with a checked proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np

from dokimos.checker.base import Problem, Proven
from dokimos.checker.lemmas.constraints import Leaf, objective
from dokimos.checker.proofs.relu_cases import (
    MOST_LEAVES,
    Region,
    ReluTree,
    inequalities,
    refutation,
    region,
    upper_slope,
)
from dokimos.core.errors import InvalidProof
from dokimos.engine.outcome import ReachedLimit, SearchEffort
from dokimos.engine.relu_relaxation import (
    CaseFinding,
    Relaxation,
    Relaxed,
    ReluBounds,
    SparseRow,
    Tree,
    grow,
)
from dokimos.networks.graph import Network
from dokimos.networks.semantics.exact import Undecided
from dokimos.networks.semantics.outward import Floats, Interval
from dokimos.networks.semantics.piecewise_linear import (
    AffineExpression,
    PiecewiseLinear,
    combine,
    piecewise_linear,
)
from dokimos.suites.instance import Answer, Certificate
from dokimos.suites.vnnlib.model import Box, Point, Property
from dokimos.suites.vnnlib.violation import violation_at

# Multipliers found by substitution in exact rationals, for when floats are of no help


def substituted(
    form: PiecewiseLinear,
    objectives: Sequence[AffineExpression],
    where: Region,
    phases: Mapping[int, bool],
    chosen: int,
) -> Leaf:
    """The leaf that eliminates the ReLUs of the chosen objective one by one, the last first.

    A ReLU with a positive factor is replaced by its argument (or by 0, if that is tighter), one with a
    negative factor by the line above it. The size of the numbers does not matter: nothing is rounded.
    """
    expression = objectives[chosen]
    below: dict[int, Fraction] = {}
    above: dict[int, Fraction] = {}
    relus = tuple(form.relus.items())
    for k in reversed(range(len(relus))):
        factor = expression.factor(relus[k][0])
        low, high = where.arguments[k]
        if factor == 0 or high <= 0 or (factor > 0 and high <= -low):
            continue
        under, over = inequalities(relus[k], low, high)
        if factor > 0:
            below[k] = factor
            expression = combine([(Fraction(1), expression), (factor, under)])
        elif over is not None:
            above[k] = -factor
            expression = combine([(Fraction(1), expression), (-factor, over)])
    weights = tuple(Fraction(int(i == chosen)) for i in range(len(objectives)))
    return Leaf(phases, weights, {"below": below, "above": above})


#: A point of the relaxation that misses a ReLU by less than this is taken for a point of the network.
_CLOSE = 1e-7
#: Smaller multipliers are left out: the ranges of the variables make up for them.
_NEGLIGIBLE = 1e-11
_MULTIPLIER_BITS = 40
_LARGE = Fraction(10) ** 300
#: A linear program may take so many seconds by the clock for each CPU second that is left: HiGHS knows the
#: clock only, which must not end what CPU time would not.
_CLOCK_SECONDS = 10.0


@dataclass(frozen=True)
class Decision:
    """An answer with what proves it: a certificate with its margins for `unsat`, a witness for `sat`.

    For `timeout`, `end` is what ended the search.
    """

    answer: Answer
    certificate: Certificate | None = None
    witness: Point | None = None
    detail: str = ""
    proven: Proven | None = None
    end: ReachedLimit | None = None


def computed_at(witness: Point, network_file: Path) -> list[float]:
    """What a runtime computes at a witness, in the network's own type of floats."""
    from dokimos.runtimes.sessions import Replayer

    network = Replayer(network_file.read_bytes(), name=str(network_file))
    outputs: list[float] = network(np.array([[float(x) for x in witness]], dtype=network.dtype))[0].tolist()
    return outputs


class _Ended(Exception):
    pass


def decide(
    network: Network,
    asked: Property,
    *,
    seconds: float,
    most_cases: int = MOST_LEAVES,
    clock: Callable[[], float] = time.process_time,
) -> Decision:
    """Decide a property of a network of affine operators and ReLUs, in `seconds` of CPU time.

    It answers `unsat` only if the certificate has been checked in exact arithmetic, on the given network
    and property; `sat` only if the witness has been replayed exactly. Raises UnsupportedOp for other
    networks, InputError if property and network do not fit together. With `clock`, the seconds are those
    of another clock.
    """
    form = piecewise_linear(network)
    effort = _CaseEffort(seconds, min(most_cases, MOST_LEAVES), clock)
    trees = []
    try:
        for box, conjunction in asked.questions():
            objectives = [objective(form, constraint) for constraint in conjunction]
            found = _ConjunctionSearch(network, asked, form, box, objectives, effort).run()
            if not isinstance(found, Tree):
                return Decision(Answer.SAT, witness=found, detail=str(effort))
            trees.append(found)
    except _Ended:
        return Decision(Answer.TIMEOUT, detail=str(effort), end=effort.end)
    if left_open := sum(tree.left_open for tree in trees):
        return Decision(Answer.UNKNOWN, detail=f"{left_open} cases are too close to call; {effort}")
    if not trees:
        return Decision(Answer.UNSAT, detail="every input set is empty")
    data = {"arithmetic": "exact", "trees": [tree.as_data() for tree in trees]}
    try:
        proven = ReluTree().prove(Problem(network, asked), data)
    except InvalidProof as error:
        return Decision(Answer.UNKNOWN, detail=f"the checker rejects the proof: {error}")
    certificate = Certificate(ReluTree.name, data)
    return Decision(Answer.UNSAT, certificate, detail=str(effort), proven=proven)


class _CaseEffort(SearchEffort):
    """The limits of a decision, and what it has used so far: a step is a case."""

    def __str__(self) -> str:
        return f"{self.steps} {'case was' if self.steps == 1 else 'cases were'} examined"

    def require(self) -> None:
        """Raise _Ended if a limit is reached."""
        if self.end is not None:
            raise _Ended


@dataclass(frozen=True, eq=False)
class _ConjunctionSearch:
    """The search for a witness of one conjunction on its box, or for a tree that refutes it."""

    network: Network
    asked: Property
    form: PiecewiseLinear
    box: Box
    objectives: Sequence[AffineExpression]
    effort: _CaseEffort

    def run(self) -> Point | Tree:
        """A witness, or a tree of refuted leaves, some of which may be open."""
        for candidate in (self.box.centre, self.box.lower, self.box.upper):
            if self.is_witness(candidate):
                return candidate
        return grow(self.look, depth_first=False)

    def look(self, phases: Mapping[int, bool]) -> CaseFinding[Point]:
        """Refute the case, or find a witness near the relaxation's optimum, or else split it."""
        self.effort.steps += 1
        where = region(self.form, self.box, phases)
        if where.is_empty:
            nothing = (Fraction(0),) * len(self.objectives)
            return CaseFinding(leaf=Leaf(phases, nothing, {"below": {}, "above": {}}))
        relaxed = self.relaxation(where, phases).solve(phases)
        if (leaf := self.refuting(where, phases, relaxed)) is not None:
            return CaseFinding(leaf=leaf)
        if relaxed is not None and relaxed.inputs is not None:
            for candidate in _near(relaxed.inputs, self.box):
                if self.is_witness(candidate):
                    return CaseFinding(counterexample=candidate)
        bound = 0.0 if relaxed is None else relaxed.bound
        return CaseFinding(split=_next_split(where, relaxed), bound=bound)

    def relaxation(self, where: Region, phases: Mapping[int, bool]) -> Relaxation:
        """The relaxation of a region, with the bounds and lines that its exact refutation will use."""
        low, high = (_floats([ends[i] for ends in where.arguments]) for i in (0, 1))
        unstable = [k for k, (a, b) in enumerate(where.arguments) if a < 0 < b]
        self.effort.require()
        by_clock = 1.0 if self.effort.clock is time.monotonic else _CLOCK_SECONDS
        slopes = np.zeros(len(where.arguments))
        slopes[unstable] = _floats([upper_slope(*where.arguments[k]) for k in unstable])
        return Relaxation(
            Interval(_floats(self.box.lower), _floats(self.box.upper)),
            self.arguments,
            ReluBounds(low, high, slopes),
            [_row(each) for each in self.objectives],
            sorted({*unstable, *phases}),
            is_strict=True,
            seconds=by_clock * self.effort.left,
        )

    @cached_property
    def arguments(self) -> list[SparseRow]:
        """The bounds and lines of the ReLUs, in floats."""
        return [_row(inside) for inside in self.form.relus.values()]

    def refuting(self, where: Region, phases: Mapping[int, bool], relaxed: Relaxed | None) -> Leaf | None:
        """A leaf that refutes the region: the solver's, or one by substitution if the solver may be
        right."""
        if relaxed is not None and self.refutes(where, leaf := _leaf(relaxed, phases)):
            return leaf
        is_decided = not any(low < 0 < high for low, high in where.arguments)
        if relaxed is None or relaxed.bound > 0 or is_decided:
            for chosen in range(len(self.objectives)):
                leaf = substituted(self.form, self.objectives, where, phases, chosen)
                if self.refutes(where, leaf):
                    return leaf
        return None

    def refutes(self, where: Region, leaf: Leaf) -> bool:
        """Whether the leaf closes the region, in exact arithmetic."""
        self.effort.require()
        try:
            refutation(self.form, self.objectives, where, leaf)
        except InvalidProof:
            return False
        return True

    def is_witness(self, candidate: Point) -> bool:
        """Whether the point violates the property, exactly."""
        self.effort.require()
        try:
            return violation_at(self.network, self.asked, candidate).violates is True
        except Undecided:
            return False


def _floats(numbers: Sequence[Fraction]) -> Floats:
    """The numbers as floats, those beyond all floats as very large ones: they only guide the search."""
    return np.array([float(max(min(x, _LARGE), -_LARGE)) for x in numbers])


def _row(expression: AffineExpression) -> SparseRow:
    variables = np.fromiter(expression.terms, dtype=np.int64, count=len(expression.terms))
    (constant,) = _floats([expression.constant])
    return SparseRow(constant, variables, _floats(list(expression.terms.values())))


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
    """The undecided ReLU whose value the relaxation misses most; the widest if it misses none."""
    gaps = np.zeros(len(where.arguments)) if relaxed is None else relaxed.gaps
    scores = [
        (float(gap) if gap > _CLOSE else 0.0, float(min(-low, high)), -k)
        for k, ((low, high), gap) in enumerate(zip(where.arguments, gaps, strict=True))
        if low < 0 < high
    ]
    return -max(scores)[2] if scores else None


def _near(values: Floats, box: Box) -> list[Point]:
    """The point clipped into the box, rounded to float32 and as it is."""
    rounded = values.astype(np.float32).astype(np.float64)
    found = [
        tuple(
            min(max(Fraction(x), low), high)
            for x, low, high in zip(point.tolist(), box.lower, box.upper, strict=True)
        )
        for point in (rounded, values)
        if np.isfinite(point).all()
    ]
    return list(dict.fromkeys(found))
