"""The engine: a certificate of kind `linear` for a property, or a point that violates it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import msgspec
import numpy as np
import torch

from dokimos.checker.linear.cover import QuestionData
from dokimos.checker.linear.proof import NOTHING, BoundedQuestion
from dokimos.checker.linear.walk import Steps, steps_of
from dokimos.core.errors import InvalidProof
from dokimos.engine.branch_and_bound import ROOT_ROUNDS, BranchAndBound, NothingToCut, Points
from dokimos.engine.differentiable import to_torch
from dokimos.engine.fast_walk import FastWalk
from dokimos.engine.outcome import SearchEffort
from dokimos.engine.root_lines import root_lines
from dokimos.networks.graph import Network
from dokimos.networks.semantics.rounding import DEFAULT_ULPS
from dokimos.suites.vnnlib.model import Box, Conjunction, Point, Property, nearest_point

#: Up to so many inputs with some width are cut; beyond, units are.
FEW_INPUTS = 12

#: Whether a point is a counterexample, exactly.
Settles = Callable[[Point], bool]


@dataclass(frozen=True)
class LinearFinding:
    """What a search found: the data of a certificate, or a point; otherwise the least bound left."""

    data: dict[str, Any] | None
    bound: float
    settled: bool = False
    reason: str = ""


class LinearSearch:
    """The search for a proof of a whole property, question by question."""

    def __init__(
        self,
        network: Network,
        asked: Property,
        effort: SearchEffort,
        settles: Settles | None = None,
        *,
        few_inputs: int = FEW_INPUTS,
        root_rounds: int = ROOT_ROUNDS,
    ) -> None:
        self._network, self._asked, self._effort, self._settles = network, asked, effort, settles
        self._few_inputs, self._root_rounds = few_inputs, root_rounds
        self._steps: Steps = steps_of(network)
        tensors = self._steps.tensors
        read = {name for step in self._steps.steps if step.transposes is None for name in step.sources}
        self._refined = tuple(k for k, name in enumerate(tensors) if name in read and k)
        self._evaluate = to_torch(network, dtype=torch.float64)
        self._roots: dict[Box, tuple[BoundedQuestion, FastWalk, QuestionData]] = {}

    def run(self) -> LinearFinding:
        """Close every question, those of one box with the same bounds of its tensors."""
        covers: list[QuestionData] = []
        for box, conjunction in self._asked.questions():
            question, fast, start = self._root(box, conjunction)
            (slack,) = question.slacks(range(1))
            if slack is not None and slack > 0:
                covers.append(start)
                continue
            wide = int((question.box.upper > question.box.lower).sum())
            cuts_inputs = wide <= self._few_inputs
            if not start.root and not cuts_inputs:
                question, fast, start = self._better_root(box, question, fast)
                (slack,) = question.slacks(range(1))
                if slack is not None and slack > 0:
                    covers.append(start)
                    continue
            search = BranchAndBound(
                self._network,
                question,
                start,
                fast,
                self._effort,
                partial(self._try, box=box),
                cuts_inputs=cuts_inputs,
                root_rounds=self._root_rounds,
            )
            try:
                closed = search.run()
            except NothingToCut:
                return LinearFinding(
                    None, float(slack or NOTHING), reason="a part of the box is too close to call"
                )
            if closed.found:
                return LinearFinding(None, closed.bound, settled=True)
            if closed.data is None:
                return LinearFinding(None, closed.bound, reason="branch and bound did not finish in time")
            covers.append(closed.data)
        if not covers:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        return LinearFinding({"questions": [msgspec.to_builtins(each) for each in covers]}, 0.0)

    def _root(self, box: Box, conjunction: Conjunction) -> tuple[BoundedQuestion, FastWalk, QuestionData]:
        """The question with what is known of its box."""
        if box not in self._roots:
            start = QuestionData(refined=self._refined)
            question = BoundedQuestion(self._steps, box, conjunction, start, ulps=DEFAULT_ULPS)
            self._roots[box] = question, FastWalk(self._network, question.bounded), start
        question, fast, start = self._roots[box]
        return question.asking(conjunction, start), fast, start

    def _better_root(
        self, box: Box, question: BoundedQuestion, fast: FastWalk
    ) -> tuple[BoundedQuestion, FastWalk, QuestionData]:
        """The same with better bounds of the tensors on the whole box."""
        goals = question.goals(np.eye(len(question.conjunction), dtype=np.uint8)[None])
        rows = {name: torch.tensor(each, dtype=torch.float32) for name, each in goals.rows.items()}
        names = [self._steps.tensors[k] for k in self._refined]
        start = QuestionData(refined=self._refined, root=root_lines(fast, names, rows))
        question = BoundedQuestion(self._steps, box, question.conjunction, start, ulps=DEFAULT_ULPS)
        self._roots[box] = question, FastWalk(self._network, question.bounded), start
        return self._roots[box]

    def _try(self, points: Points, box: Box) -> bool:
        """Whether one of these points settles the property; floats say which are worth asking."""
        if self._settles is None:
            return False
        with torch.no_grad():
            outputs = self._evaluate(torch.from_numpy(points)).numpy()
        for place in np.flatnonzero(self._unsafe(points.astype(np.float64), outputs))[:3]:
            exact = tuple(Fraction(float(x)) for x in points[place])
            if self._settles(nearest_point(exact, box)):
                return True
        return False

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
