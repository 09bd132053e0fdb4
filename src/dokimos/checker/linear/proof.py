"""The kind `linear`: every leaf of a cover closed by one backward pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dokimos.checker.base import PLACE, CertificateKind, Natural, Problem, Proven, read_data
from dokimos.checker.linear.cover import LEAF, CutCover, QuestionData, only
from dokimos.checker.linear.rational_walk import RationalWalk
from dokimos.checker.linear.walk import MOST_NUMBERS, BoundedNetwork, BoxRegions, Steps, steps_of
from dokimos.core.errors import InvalidProof, UnreadableFile, about
from dokimos.networks.semantics.interval import round_outward
from dokimos.networks.semantics.outward import FLOAT32, Floats, Format, Interval, safe
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Conjunction

#: Leaves are bounded in batches of at most so many.
MOST_TOGETHER = 1024
#: With so many leaves at the most, the network over the reals is bounded for itself, too.
FEW_LEAVES = 64
#: Slacks that are so small, relative to what is added up, are worth a walk in exact rationals.
NEAR = 2.0**-30
#: About how many multiplications all such walks of a question may take.
MOST_EXACT = 1 << 22
#: Weights above 0, with the numbers of their constraints.
Weights = tuple[tuple[int, int], ...]
#: The slack where nothing is known.
NOTHING = Fraction(-(10**9))


class LinearData(Struct, frozen=True, forbid_unknown_fields=True):
    """A cover for each conjunction on a box that is not empty, in the order of the property.

    `pairs` are ReLUs (p, q), by number, whose differences are bounded: those of copies of a network.
    """

    questions: tuple[QuestionData, ...]
    pairs: tuple[tuple[Natural, Natural], ...] = ()


class LinearProof(CertificateKind):
    """`unsat` for networks of affine operators, unit functions and products.

    Theorem. The leaves of a cover hold every run of the network on the box (see `paths`). On a leaf, let
    g = Σ w_k·(L_k − b_k) with weights w >= 0 over the constraints L_k <= b_k of the conjunction. If
    g >= m > 0 on the leaf, some constraint fails there by m/Σw at every input, as a mean is no larger than
    the largest. If all weights are 0, the leaf holds no run. So if every leaf has such a bound, the
    conjunction holds nowhere, and fails everywhere by the smallest m/Σw. g is bounded by
    `BoundedNetwork.lower_bounds`, whatever lines and multipliers are chosen, and by the facts about the
    output. Facts about the whole box hold on every leaf, and those of a leaf are used on that leaf alone.
    Without weights, the constraint with the largest bound counts.

    The network with the rounding of floats as noise comes first: what holds for all noise holds without
    noise, so that one pass proves both. If that fails, or leaves are few, the network over the reals is
    bounded for itself, which mostly gives a larger margin; where it gives none, the one for all noise
    stands. Where outward floats leave a leaf's slack at 0 or just below, the same walk in exact rationals
    decides (see `RationalWalk`), as far as it is short.
    """

    name: ClassVar[str] = "linear"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Close every leaf of every question."""
        form = read_data(data, LinearData)
        given = form.questions
        asked = problem.property.questions()
        if not asked:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        if len(given) != len(asked):
            raise UnreadableFile(
                PLACE, f"'questions' must be a list of {len(asked)}, one for each conjunction"
            )
        steps = steps_of(problem.network, pairs=form.pairs)

        def margin(ulps: int | None) -> Fraction:
            known: dict[tuple[Box, tuple[int, ...], str, bool], BoundedQuestion] = {}
            margins = []
            for (box, conjunction), data in zip(asked, given, strict=True):
                key = (box, data.refined, data.root, data.own)
                if key not in known:
                    known[key] = BoundedQuestion(
                        steps, box, conjunction, data, ulps=ulps, form=problem.form
                    )
                margins.append(known[key].asking(conjunction, data).margin())
            return min(margins)

        both = problem.in_floats(lambda: margin(problem.ulps))
        few = sum(data.tree.count(LEAF) for data in given) <= FEW_LEAVES or any(data.own for data in given)
        if both is not None and not few:
            return Proven(real=both, floats=both)
        try:
            return Proven(real=margin(None), floats=both)
        except InvalidProof:  # the usual lines are others where intervals are
            if both is None:
                raise
            return Proven(real=both, floats=both)


class BoundedQuestion:
    """One conjunction on its box, with its cover: leaves are bounded here, for the checker and searches."""

    def __init__(
        self,
        steps: Steps,
        box: Box,
        conjunction: Conjunction,
        data: QuestionData,
        *,
        ulps: int | None,
        form: Format = FLOAT32,
    ) -> None:
        self._steps, self.conjunction, self._ulps, self._form = steps, conjunction, ulps, form
        self._exact_box, self._left = box, [MOST_EXACT]
        self.box = Interval(_rounded(box.lower, -1), _rounded(box.upper, 1))
        self._read(data)
        if not data.own:
            self.bounded = self._bounded(self.box)

    def _bounded(self, box: Interval) -> BoundedNetwork:
        return BoundedNetwork(
            self._steps, box, refined=self.cover.refined, ulps=self._ulps, form=self._form
        )

    def _read(self, data: QuestionData) -> None:
        if not self.conjunction:
            raise InvalidProof("an unsafe conjunction without constraints holds everywhere")
        self.cover = CutCover(self._steps, self.box, data, len(self.conjunction))
        self._again, self._own = self.cover.names(data.again), data.own

    def with_cover(self, data: QuestionData) -> BoundedQuestion:
        """The same question with another cover, for searches: what holds on the whole box stays."""
        return self.asking(self.conjunction, data)

    def asking(self, conjunction: Conjunction, data: QuestionData) -> BoundedQuestion:
        """Another conjunction on the same box, with what holds on the whole box."""
        found = copy(self)
        found.conjunction = conjunction
        found._read(data)
        return found

    def margin(self) -> Fraction:
        """The margin by which the conjunction fails on the whole box. Raises InvalidProof if none does."""
        found = [slack for slack in self.slacks(range(len(self.cover.leaves))) if slack is not None]
        if not found:
            raise InvalidProof("no leaf holds any input, which is impossible")
        if (least := min(found)) <= 0:
            raise InvalidProof(f"a leaf's bound is {about(least)}, which is not above 0")
        return least

    def over_the_reals(self) -> BoundedQuestion:
        """The same question without the rounding of floats."""
        found = copy(self)
        found._ulps = None
        if not self._own:
            found.bounded = found._bounded(self.box)
        return found

    def slacks(self, leaves: Sequence[int]) -> list[Fraction | None]:
        """By how much some constraint fails everywhere on each leaf (0 or less: nothing is known).

        None for a leaf that holds no run.
        """
        if self._own:
            return [self._within(number) for number in leaves]
        rows = max(len(self.conjunction), 2 * 64 if self._again else 1)
        together = min(max(1, MOST_NUMBERS // (rows * self.bounded.largest)), MOST_TOGETHER)
        found: list[Fraction | None] = []
        for start in range(0, len(leaves), together):
            found += self._slacks(list(leaves[start : start + together]))
        return found

    def _within(self, number: int) -> Fraction | None:
        """The slack of a leaf that is a box of its own."""
        leaf = self.cover.leaves[number]
        if leaf.cuts:
            raise InvalidProof("a leaf that is a box of its own is cut at something else than an input")
        alone = copy(self)
        alone.bounded = self._bounded(Interval(leaf.lower, leaf.upper))
        return alone._slacks([number])[0]

    def _slacks(self, some: list[int]) -> list[Fraction | None]:
        regions, kept = self.cover.regions(self.bounded.facts, some)
        for name in self._again:
            if not kept:
                break
            narrowed = self.bounded.refine(replace(regions, cuts=()), name, ({}, {}))
            regions, stay = held(replace(narrowed, cuts=regions.cuts), name)
            kept = [kept[k] for k in stay]
        if not kept:
            return [None] * len(some)
        weights = self.cover.weights(kept)
        own = np.eye(len(self.conjunction), dtype=np.uint8)[None] if weights is None else weights[:, None]
        goals = self.goals(own)
        bounds = np.fmax(
            self.bounded.lower_bounds(goals.rows, regions, self.cover.choices(kept)),
            self.bounded.by_facts(goals.rows, regions),
        )
        found = dict(zip(kept, goals.slacks(bounds), strict=True))
        if self._ulps is None:
            near = np.broadcast_to(NEAR * self.reach(goals), len(kept)).tolist()
            for place, number in enumerate(kept):
                slack = found[number]
                if slack is not None and -near[place] < slack <= 0:
                    here = only(regions, np.array([place]))
                    found[number] = self._exact_slack(number, here, slack)
        return [found.get(number) for number in some]

    def reach(self, goals: Goals) -> Floats:
        """For each leaf, or for all, about how large the numbers are that a row adds up."""
        found = [
            np.abs(rows).reshape(*rows.shape[:2], -1) @ self.bounded.facts[name].magnitude.reshape(-1)
            for name, rows in goals.rows.items()
        ]
        return np.asarray(sum(part.max(axis=1) for part in found))

    def _exact_slack(self, number: int, region: BoxRegions, known: Fraction) -> Fraction | None:
        """The slack of a leaf by exact walks; what is known of it where these are too long, or fail."""
        network, leaf, box = self._steps.network, self.cover.leaves[number], self._exact_box
        weights = self.cover.weights([number])
        rows = np.eye(len(self.conjunction), dtype=np.uint8) if weights is None else weights
        self._left[0] -= len(rows) * (network.multiplications + network.input_size)
        if self._left[0] < 0:
            return known
        ends = Box(
            tuple(max(a, Fraction(b)) for a, b in zip(box.lower, leaf.lower.tolist(), strict=True)),
            tuple(min(a, Fraction(b)) for a, b in zip(box.upper, leaf.upper.tolist(), strict=True)),
        )
        vectors = [_nonzero(row) for row in rows]
        sums = [self._sums(vector) for vector in vectors]
        try:
            walk = RationalWalk.of(self._steps, self.bounded.facts, region, self.cover.choices([number]))
            least = [walk.minimum(inputs, outputs, ends) for (inputs, outputs), _ in sums]
        except InvalidProof:
            return known
        totals = [sum(weight for _, weight in vector) for vector in vectors]
        goals = Goals({}, [limit for _, limit in sums], totals, len(rows))
        return next(goals.slacks(np.array([least], dtype=object)))

    @np.errstate(all="ignore")
    def goals(self, weights: NDArray[np.uint8]) -> Goals:
        """The weighted sums of left sides − bounds, for weights [leaves or 1, rows, constraints]."""
        network = self._steps.network
        vectors = [_nonzero(row) for row in weights.reshape(-1, weights.shape[-1])]
        made = {vector: self._goal(vector) for vector in dict.fromkeys(vectors)}
        rows: dict[str, Floats] = {}
        lost = np.zeros(len(vectors))
        for part, name in enumerate((network.input, network.output)):
            parts = [made[vector].rows[part] for vector in vectors]
            lower = np.stack([each.lower for each in parts])
            size = self.bounded.facts[name].magnitude.reshape(-1)
            lost = lost + safe(np.stack([each.upper for each in parts]) - lower) @ size
            if lower.any() or part:
                rows[name] = lower.reshape(*weights.shape[:2], *self._steps.shapes[name])
        if not np.isfinite(lost).all():
            raise InvalidProof("a constraint has numbers too large for float64 intervals")
        limits = [
            made[vector].limit + Fraction(loss) for vector, loss in zip(vectors, lost * 1.01, strict=True)
        ]
        totals = [sum(weight for _, weight in vector) for vector in vectors]
        return Goals(rows, limits, totals, weights.shape[1])

    def _goal(self, weights: Weights) -> _Goal:
        """The sum of constraints, by number, with these weights, rounded outward."""
        sums, limit = self._sums(weights)
        inputs, outputs = (Interval(_rounded(each, -1), _rounded(each, 1)) for each in sums)
        return _Goal((inputs, outputs), limit)

    def _sums(self, weights: Weights) -> tuple[list[list[Fraction]], Fraction]:
        """The coefficients of inputs and outputs, and the bound, of the sum with these weights."""
        network = self._steps.network
        sums = [[Fraction(0)] * network.input_size, [Fraction(0)] * network.output_size]
        for number, weight in weights:
            constraint = self.conjunction[number]
            for total, terms in zip(sums, (constraint.inputs, constraint.outputs), strict=True):
                for index, factor in terms:
                    total[index] += weight * factor
        if network.input == network.output:  # a network without nodes: what is said of Y is said of X
            both = [x + y for x, y in zip(*sums, strict=True)]
            sums = [[Fraction(0)] * len(both), both]
        limit = sum((weight * self.conjunction[number].bound for number, weight in weights), Fraction(0))
        return sums, limit


def _nonzero(row: NDArray[np.uint8]) -> Weights:
    numbers = np.flatnonzero(row)
    return tuple(zip(numbers.tolist(), row[numbers].tolist(), strict=True))


def _rounded(values: Sequence[Fraction], sign: int) -> Floats:
    """These numbers, each rounded up or down to float64. Raises InvalidProof if one is too large."""
    found = np.array([round_outward(value, sign) for value in values], dtype=np.float64)
    if not np.isfinite(found).all():
        raise InvalidProof("a number is too large for float64 intervals")
    return found


@dataclass(frozen=True)
class _Goal:
    """Σ w·(coefficients of inputs, of outputs) and Σ w·bound."""

    rows: tuple[Interval, Interval]
    limit: Fraction


@dataclass(frozen=True)
class Goals:
    """Functionals that must exceed limits: `rows` for `lower_bounds`, and for each row its limit and Σw."""

    rows: Mapping[str, Floats]
    limits: Sequence[Fraction]
    totals: Sequence[int]
    wide: int

    def slacks(self, bounds: Floats) -> Iterator[Fraction | None]:
        """For each leaf the largest (bound − limit)/Σw; None if a bound shows that it holds no run."""
        for leaf, row in enumerate(bounds.tolist()):
            first = leaf * self.wide if len(self.limits) > self.wide else 0
            best: Fraction | None = NOTHING
            for k, bound in enumerate(row):
                if best is not None and isfinite(bound):
                    over = Fraction(bound) - self.limits[first + k]
                    total = self.totals[first + k]
                    best = (None if over > 0 else best) if total == 0 else max(best, over / total)
            yield best


def held(regions: BoxRegions, name: str) -> tuple[BoxRegions, list[int]]:
    """The regions in which the fact about a tensor leaves something, and which they are."""
    fact = regions.facts[name]
    axes = tuple(range(1, len(fact.shape)))
    stay = np.flatnonzero((fact.lower <= fact.upper).all(axes))
    if len(stay) == regions.count:
        return regions, list(range(regions.count))
    return only(regions, stay), stay.tolist()
