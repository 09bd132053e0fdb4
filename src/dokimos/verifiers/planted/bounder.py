"""A plain float verifier: bounds, an attack, and splits of the box."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dokimos.networks.graph import Network
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.vnnlib.margins import MarginForm, margin_form
from dokimos.suites.vnnlib.model import Box, Case, Point, require_fit
from dokimos.verifiers.planted.base import Bounds, PlantedVerifier, Sort, Task, attacked, violates

if TYPE_CHECKING:
    from dokimos.verifiers.planted.flawed_bounds import FloatBounds

#: How many boxes are bounded before the verifier gives up: with few inputs more, since splits of these get
#: somewhere. And how much of its time it may use, in CPU seconds: what else runs changes no answer.
MOST_BOXES, MOST_BOXES_OF_FEW, FEW_INPUTS = 12, 150, 10
SHARE_OF_TIME = 0.7


@dataclass(frozen=True, eq=False)
class BoxPart:
    """A part of a case's box, with the case's margin."""

    box: Box
    form: MarginForm


class Bounder(PlantedVerifier):
    """It proves by interval and CROWN bounds, attacks, and splits the box where it matters most.

    It says `unsat` if every part of the box has a positive margin, `sat` if exact replay confirms a point
    of the attack or the middle of a part, and `unknown` after so many parts. It does not read
    `truth/`. Bounds come first, so that no lucky attack hides a bug in them. A planted bug overrides one
    method, or the class of the bounds.
    """

    sort = Sort.BOUNDER
    is_sound = False

    def bounds(self, network: Network, box: Box) -> FloatBounds:
        """What bounds the network over one box."""
        from dokimos.verifiers.planted.flawed_bounds import FloatBounds

        return FloatBounds(network, box)

    def is_proven(self, margin: float) -> bool:
        """Whether a lower bound of the margin proves that a part holds no violation."""
        return margin > 0

    def margin(self, form: MarginForm, bounds: FloatBounds) -> float:
        """A lower bound of the margin: that of the nearest conjunction."""
        return form.least(bounds.row_bounds(form))

    def search(self, task: Task) -> Point | None:
        """A counterexample by gradient descent."""
        return attacked(task.network, task.property)

    def halves(self, box: Box, at: int) -> Sequence[Box]:
        """The two halves of a box, cut across coordinate `at`."""
        middle = (box.lower[at] + box.upper[at]) / 2
        below = (*box.upper[:at], middle, *box.upper[at + 1 :])
        above = (*box.lower[:at], middle, *box.lower[at + 1 :])
        return replace(box, upper=below), replace(box, lower=above)

    def queued(self, waiting: deque[BoxPart]) -> deque[BoxPart]:
        """The parts that are still to be bounded."""
        return waiting

    def when_given_up(self) -> VerifierAnswer:
        """The answer if parts are left."""
        return VerifierAnswer(Answer.UNKNOWN, detail="it gave up after a number of boxes")

    def decide(self, task: Task) -> VerifierAnswer:
        """Bounds on every case, then the attack, then splits."""
        from dokimos.engine.differentiable import one_thread

        require_fit(task.network, task.property)
        cases = [case for case in task.property.cases if case.any_of and not case.box.is_empty]
        for case in cases:
            if not all(case.any_of):
                return VerifierAnswer(Answer.SAT, case.box.centre)
        deadline = time.process_time() + SHARE_OF_TIME * task.seconds
        with one_thread():
            parts = [part for case in cases for part in self._left(task, _part(task.network, case))]
            if not parts:
                return VerifierAnswer(Answer.UNSAT)
            if (found := self.search(task)) is not None:
                return VerifierAnswer(Answer.SAT, found)
            return self._split(task, parts, deadline)

    def tensor_bounds(self, task: Task) -> dict[str, Bounds]:
        """Those of the only box; none if there are several."""
        cases = [case for case in task.property.cases if case.any_of and not case.box.is_empty]
        if len(cases) != 1:
            return {}
        found = self.bounds(task.network, cases[0].box)
        found.improve()
        return found.named()

    def _split(self, task: Task, parts: Sequence[BoxPart], deadline: float) -> VerifierAnswer:
        waiting, looked_at = deque(parts), len(parts)
        most = MOST_BOXES_OF_FEW if task.network.input_size <= FEW_INPUTS else MOST_BOXES
        while waiting:
            if looked_at >= most or time.process_time() > deadline:
                return self.when_given_up()
            part = waiting.popleft()
            if violates(task.network, task.property, part.box.centre):
                return VerifierAnswer(Answer.SAT, part.box.centre)
            waiting.extend(self._left(task, part))
            waiting = self.queued(waiting)
            looked_at += 2
        return VerifierAnswer(Answer.UNSAT)

    def _left(self, task: Task, part: BoxPart) -> list[BoxPart]:
        """The halves of a part that is not proven; empty if it is proven."""
        bounds = self.bounds(task.network, part.box)
        bounds.improve()
        if self.is_proven(self.margin(part.form, bounds)):
            return []
        widths = [b - a for a, b in zip(part.box.lower, part.box.upper, strict=True)]
        shares = bounds.influence.tolist()
        at = max(range(len(widths)), key=lambda i: (float(widths[i]) * shares[i], widths[i]))
        return [replace(part, box=half) for half in self.halves(part.box, at)]


def _part(network: Network, case: Case) -> BoxPart:
    return BoxPart(case.box, margin_form(case, network.input_size, network.output_size))


class PlainBounder(Bounder):
    """Without a bug."""

    name = "bounds"
    about = "no bug: interval and CROWN bounds, an attack, splits"
    is_sound = True
