"""The engine: a certificate of kind `linear` for a property, or a point that violates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dokimos.checker.linear.cover import LEAF, QuestionData
from dokimos.checker.linear.proof import NOTHING, BoundedQuestion
from dokimos.checker.linear.walk import Pair, Steps, steps_of
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.engine.direct import halves, widest
from dokimos.engine.open_cover import KEPT, NothingToCut, OpenCover
from dokimos.engine.outcome import ReachedLimit, SearchEffort
from dokimos.engine.pairs import pairs_in
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats
from dokimos.networks.semantics.rounding import own_format
from dokimos.suites.instance import DEFAULT_ULPS
from dokimos.suites.vnnlib.margins import nearest_point
from dokimos.suites.vnnlib.model import Box, Conjunction, Point, Property

if TYPE_CHECKING:
    from dokimos.engine.branch_and_bound import BranchAndBound, Closed
    from dokimos.engine.fast_walk import FastWalk

#: Up to so many inputs with some width are cut; beyond, units are. With few inputs both are, in turns that
#: begin with so many nodes and double.
FEW_INPUTS, FIRST_CUTS_OF_INPUTS, FIRST_CUTS_OF_UNITS = 12, 1500, 300
#: A cover by units may be this large if all of them are cut: it is looked for before turns are taken.
SMALL_COVER = 8192
#: So many cuts of inputs take the time of one cut of units; what has closed more has so much more time.
CUTS_OF_INPUTS, PREFERENCE = 40, 4
#: Better bounds of the whole box take about so many times what bounding it took.
BETTER_ROOT = 3.0
#: Bounding goes on for this long, in seconds, where the time is up: that may decide a small question.
SHORT = 0.1

Points = NDArray[np.float32]
#: Whether a point is a counterexample, exactly.
Settles = Callable[[Point], bool]


@dataclass(frozen=True)
class LinearFinding:
    """What a search found: the data of a certificate, or a point; otherwise the least bound left."""

    data: dict[str, Any] | None
    bound: float
    settled: bool = False
    reason: str = ""


class _OutOfTime(Exception):
    """The time is up while the whole box, or a leaf, is bounded."""


class LinearSearch:
    """The search for a proof of a whole property, question by question.

    Torch is loaded where the bounds of whole boxes do not decide a question, and not before.
    """

    def __init__(
        self,
        network: Network,
        asked: Property,
        effort: SearchEffort,
        settles: Settles | None = None,
        *,
        few_inputs: int = FEW_INPUTS,
        root_rounds: int | None = None,
        least_margin: float = 0.0,
        pairs: Sequence[Pair] | None = None,
        kept: OpenCover | None = None,
    ) -> None:
        self._network, self._asked, self._effort, self._settles = network, asked, effort, settles
        self._few_inputs, self._root_rounds, self._least_margin = few_inputs, root_rounds, least_margin
        boxes = [box for box, _ in asked.questions()]
        if pairs is None:
            pairs = pairs_in(network, boxes[0]) if boxes else ()
        self._pairs = tuple(pairs)
        self._steps: Steps = replace(steps_of(network, pairs=self._pairs), pause=self._in_time)
        self._bounding = self._began = 0.0
        tensors = self._steps.tensors
        read = {name for step in self._steps.steps if step.transposes is None for name in step.sources}
        self._refined = tuple(k for k, name in enumerate(tensors) if name in read and k)
        self._roots: dict[Box, tuple[BoundedQuestion, QuestionData]] = {}
        self._walks: dict[Box, FastWalk] = {}
        self._kept, self._covers = kept, list[QuestionData]()
        self._searching: BranchAndBound | None = None

    def run(self) -> LinearFinding:
        """Close every question, those of one box with the same bounds of its tensors.

        Raises UnreadableFile where what is kept of an earlier search does not fit.
        """
        covers = self._covers
        resumed = self._resumed()
        for box, conjunction in self._asked.questions()[len(covers) :]:
            try:
                found = self._close(box, conjunction) if resumed is None else self._went_on(resumed)
                resumed = None
            except _OutOfTime:
                return LinearFinding(None, -inf, reason="branch and bound did not finish in time")
            except InvalidProof:  # on the whole box a tensor is not bounded; on parts of it, it may be
                found = self._close_parts(box, conjunction)
            if isinstance(found, LinearFinding):
                return found
            self._searching = None
            covers.append(found)
        if not covers:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        data: dict[str, Any] = {"questions": [msgspec.to_builtins(each) for each in covers]}
        return LinearFinding({**data, "pairs": self._pairs} if self._pairs else data, 0.0)

    def open_cover(self) -> OpenCover | None:
        """What a search that is not over has found, to go on from; None for nothing."""
        kept = None if self._searching is None else self._searching.kept()
        if kept is None:
            return OpenCover(tuple(self._covers), pairs=self._pairs) if self._covers else None
        return msgspec.structs.replace(kept, questions=(*self._covers, *kept.questions), pairs=self._pairs)

    def _resumed(self) -> BranchAndBound | None:
        """The search that was not over."""
        kept, asked = self._kept, self._asked.questions()
        if kept is None:
            return None
        if not kept.questions or len(kept.questions) > len(asked) or kept.pairs != self._pairs:
            raise UnreadableFile(KEPT, "it is not about this network and property")
        self._covers += kept.questions[:-1] if kept.open else kept.questions
        if not kept.open:
            return None
        box, conjunction = asked[len(self._covers)]
        start = QuestionData(refined=self._refined, root=kept.questions[-1].root)
        try:
            self._roots[box] = self._question(box, conjunction, start), start
        except InvalidProof as error:
            raise UnreadableFile(KEPT, str(error)) from None
        question, cuts_inputs = self._roots[box][0], kept.cuts_inputs
        return self._search(box, question, start, self._effort, cuts_inputs=cuts_inputs, kept=kept)

    def _close(self, box: Box, conjunction: Conjunction) -> QuestionData | LinearFinding:
        """A cover that closes a question, or what was found instead."""
        question, start = self._root(box, conjunction)
        (slack,) = question.slacks(range(1))
        if slack is not None and slack > self._least_margin:
            return start
        if not self._steps.units:  # affine: no cut makes the bound better
            (slack,) = question.over_the_reals().slacks(range(1))
            if slack is not None and slack > self._least_margin:
                return start
            reason = "the network is affine, and its bound is not above 0"
            return LinearFinding(None, float(slack or NOTHING), reason=reason)
        few = int((question.box.upper > question.box.lower).sum()) <= self._few_inputs
        by_inputs = None
        if few:
            by_inputs = self._search(box, question, start, self._effort, cuts_inputs=True)
            closed = by_inputs.run(FIRST_CUTS_OF_INPUTS)
            if closed.is_over or self._effort.end is not None:
                return self._finding(closed)
        elif self._pairs:  # what copies differ in are often few of the inputs
            halfway = SearchEffort(self._effort.left / 2, self._effort.most_steps / 2, self._effort.clock)
            closed = self._search(box, question, start, halfway, cuts_inputs=True).run()
            self._effort.steps += halfway.steps
            if closed.is_over:
                return self._finding(closed)
        if not start.root and self._effort.left > BETTER_ROOT * self._bounding:
            question, start = self._better_root(box, question)
            (slack,) = question.slacks(range(1))
            if slack is not None and slack > self._least_margin:
                return start
        by_units = self._search(box, question, start, self._effort, cuts_inputs=False)
        try:
            return self._finding(by_units.run() if by_inputs is None else self._turns(by_inputs, by_units))
        except NothingToCut:
            if by_inputs is None:
                return self._stuck(slack)
        self._searching = by_inputs
        return self._finding(by_inputs.run())

    def _turns(self, by_inputs: BranchAndBound, by_units: BranchAndBound) -> Closed:
        """Cuts of units and of inputs by turns. Neither says early whether it ends: of what is left, a thin
        slice may need more cuts than all that is closed."""
        whole = 2.0 ** (by_units.undecided + 1)
        closed = by_units.run(whole if whole <= SMALL_COVER else FIRST_CUTS_OF_UNITS)
        turn = FIRST_CUTS_OF_INPUTS
        while not closed.is_over and self._effort.end is None:
            turn *= 2
            prefers_inputs = by_inputs.closed_share >= by_units.closed_share
            self._searching = by_inputs if prefers_inputs else by_units  # what is kept if time ends
            closed = by_inputs.run(turn * (PREFERENCE if prefers_inputs else 1))
            if not closed.is_over and self._effort.end is None:
                closed = by_units.run(turn * (1 if prefers_inputs else PREFERENCE) / CUTS_OF_INPUTS)
        return closed

    def _search(
        self,
        box: Box,
        question: BoundedQuestion,
        start: QuestionData,
        effort: SearchEffort,
        *,
        cuts_inputs: bool,
        kept: OpenCover | None = None,
    ) -> BranchAndBound:
        """Branch and bound, by cuts of inputs or of units."""
        from dokimos.engine.branch_and_bound import ROOT_ROUNDS, BranchAndBound

        self._searching = BranchAndBound(
            self._network,
            question,
            start,
            self._walk(box, question),
            effort,
            partial(self._try, box=box),
            cuts_inputs=cuts_inputs,
            root_rounds=ROOT_ROUNDS if self._root_rounds is None else self._root_rounds,
            least_margin=self._least_margin,
            kept=kept,
        )
        return self._searching

    def _went_on(self, search: BranchAndBound) -> QuestionData | LinearFinding:
        """What an earlier search finds when it goes on."""
        try:
            return self._finding(search.run())
        except NothingToCut:
            return self._stuck(NOTHING)

    def _stuck(self, slack: Fraction | None) -> LinearFinding:
        self._searching = None
        return LinearFinding(None, float(slack or NOTHING), reason="a part of the box is too close to call")

    def _finding(self, closed: Closed) -> QuestionData | LinearFinding:
        if closed.found:
            return LinearFinding(None, closed.bound, settled=True)
        if closed.data is None:
            return LinearFinding(None, closed.bound, reason="branch and bound did not finish in time")
        return closed.data

    def _root(self, box: Box, conjunction: Conjunction) -> tuple[BoundedQuestion, QuestionData]:
        """The question with what is known of its box."""
        if box not in self._roots:
            start = QuestionData(refined=self._refined)
            self._roots[box] = self._question(box, conjunction, start), start
        question, start = self._roots[box]
        return question.asking(conjunction, start), start

    def _question(self, box: Box, conjunction: Conjunction, start: QuestionData) -> BoundedQuestion:
        ulps = None if self._network.dtype == np.float64 else DEFAULT_ULPS
        before = self._began = self._effort.spent
        try:
            form = own_format(self._network)
            return BoundedQuestion(self._steps, box, conjunction, start, ulps=ulps, form=form)
        finally:  # to be done again when the proof is checked, for float32 and for the reals
            self._bounding = self._effort.spent - before
            self._effort.reserve += 2 * self._bounding

    def _in_time(self) -> None:
        is_short = self._effort.spent - self._began < SHORT
        if not is_short and self._effort.end is ReachedLimit.TIME:
            raise _OutOfTime

    def _walk(self, box: Box, question: BoundedQuestion) -> FastWalk:
        """The walk in floats, with what is known of the box."""
        from dokimos.engine.fast_walk import FastWalk

        if box not in self._walks:
            self._walks[box] = FastWalk(self._network, question.bounded, self._pairs)
        return self._walks[box]

    def _better_root(self, box: Box, question: BoundedQuestion) -> tuple[BoundedQuestion, QuestionData]:
        """The same with better bounds of the tensors on the whole box."""
        from dokimos.engine.root_lines import root_lines

        goals = question.goals(np.eye(len(question.conjunction), dtype=np.uint8)[None])
        names = [self._steps.tensors[k] for k in self._refined]
        lines = root_lines(self._walk(box, question), names, goals.rows)
        start = QuestionData(refined=self._refined, root=lines)
        del self._walks[box]
        self._effort.reserve -= 2 * self._bounding  # the former bounds are not checked
        self._roots[box] = self._question(box, question.conjunction, start), start
        return self._roots[box]

    def _close_parts(self, box: Box, conjunction: Conjunction) -> QuestionData | LinearFinding:
        """The box in halves of its inputs until each, as a box of its own, is closed."""
        tree: list[int] = []
        pending = [box]
        data = QuestionData(refined=self._refined)
        while pending:
            part = pending.pop()
            self._effort.steps += 1
            slack: Fraction | None = NOTHING
            with suppress(InvalidProof):
                (slack,) = self._question(part, conjunction, data).slacks(range(1))
            if slack is None or slack > self._least_margin:
                tree.append(LEAF)
                continue
            coordinate = widest(part, box)
            if box.size > self._few_inputs or coordinate is None or self._effort.end is not None:
                return LinearFinding(None, float(slack), reason="a tensor is not bounded by finite numbers")
            tree.append(coordinate)
            pending += reversed(halves(part, coordinate))
        return QuestionData(tree=tuple(tree), refined=self._refined, own=True)

    def _try(self, points: Points, box: Box) -> bool:
        """Whether one of these points settles the property; floats say which are worth asking."""
        if self._settles is None:
            return False
        outputs = self._evaluate(points)
        for place in np.flatnonzero(self._unsafe(points.astype(np.float64), outputs))[:3]:
            exact = tuple(Fraction(float(x)) for x in points[place])
            if self._settles(nearest_point(exact, box)):
                return True
        return False

    @cached_property
    def _evaluate(self) -> Callable[[Points], Floats]:
        """The network in floats, on many points."""
        import torch

        from dokimos.engine.differentiable import to_torch

        network = to_torch(self._network, dtype=torch.float64)

        def outputs(points: Points) -> Floats:
            with torch.no_grad():
                found: Floats = network(torch.from_numpy(points)).numpy()
            return found

        return outputs

    def _unsafe(self, points: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Which points look unsafe in floats."""
        unsafe = np.zeros(len(points), dtype=np.bool_)
        for _, conjunction in self._asked.questions():
            holds = np.ones(len(points), dtype=np.bool_)
            for each in conjunction:
                left = np.zeros(len(points))
                for terms, values in ((each.inputs, points), (each.outputs, outputs)):
                    for index, factor in terms:
                        left += float(factor) * values[:, index]
                holds &= left <= float(each.bound) + 1e-9
            unsafe |= holds
        return unsafe
