"""A plain float verifier: bounds, an attack, and splits of the box."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dokimos.engine.float_bounds import LINEAR_RULES, LinearBounds, LinearRule, rectifiers
from dokimos.networks.graph import Network
from dokimos.networks.semantics.interval import INTERVAL_RULES, lift_constant, outward_box
from dokimos.networks.semantics.outward import Floats, Interval
from dokimos.networks.semantics.propagation import Rule, propagate
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.vnnlib.margins import MarginForm, margin_form
from dokimos.suites.vnnlib.model import Box, Case, Point, require_fit
from dokimos.verifiers.planted.base import Bounds, PlantedVerifier, Sort, Task, attacked, violates

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


# Interval and CROWN bounds of a network's margin over one box, in float64, over all core operators


#: The share of magnitudes by which a bound is lowered.
SHARE = 2.0**-36
#: Bounds of a layer are improved unit by unit if it has at most this many unstable units.
MOST_UNITS = 300

Rules = Mapping[str, Rule[Interval]]


class FloatBounds(LinearBounds):
    """The bounds over one box. A planted bug overrides one of its methods, `rules`, `lined` or `share`."""

    rules: ClassVar[Rules] = INTERVAL_RULES
    lined: ClassVar[Mapping[str, LinearRule]] = LINEAR_RULES
    share: ClassVar[float] = SHARE

    def __init__(self, network: Network, box: Box) -> None:
        values = outward_box(network, box.lower, box.upper)
        with np.errstate(all="ignore"):
            enclosure = propagate(
                network, values, lift=lift_constant, table=self.rules, semantics="interval"
            )
        super().__init__(network, enclosure, values.lower.reshape(-1), values.upper.reshape(-1))
        self.network, self.enclosure = (
            network,
            {
                name: tuple(torch.from_numpy(np.array(end)).reshape(-1) for end in (x.lower, x.upper))
                for name, x in enclosure.items()
            },
        )
        #: How much each input matters to the rows that were bounded last.
        self.influence = torch.zeros(network.input_size, dtype=torch.float64)

    def rounded(self, values: Tensor) -> Tensor:
        """Rounds a result to the arithmetic in use."""
        return values

    def least(self, functional: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        """The least of λ·t for lower <= t <= upper, for each row λ."""
        return functional.clamp(min=0) @ lower + functional.clamp(max=0) @ upper

    def lower(self, name: str, weights: Tensor, place: int, inputs: Tensor | None = None) -> Tensor:
        """A lower bound of weights·(tensor `name`) + inputs·x over the box, from nodes before `place`."""
        pending, rows = {name: weights}, len(weights)
        if inputs is not None:
            pending[self._network.input] = inputs.reshape(rows, *self._network.input_shape)
            if name == self._network.input:
                pending[name] = pending[name] + weights
        total = torch.zeros(rows, dtype=torch.float64)
        magnitude = torch.zeros(rows, dtype=torch.float64)
        for node in reversed(self._network.nodes[:place]):
            functional = pending.pop(node.output, None)
            if functional is None:
                continue
            magnitude = magnitude + self._magnitude(functional.reshape(rows, -1), node.output)
            rule = self.lined[node.op]
            if not rule.relaxes(self._network, node):
                total = self.rounded(total + self._least(functional, node.output))
                continue
            earlier, offset = rule.pull_back(self, node, functional)
            total = self.rounded(total + offset)
            magnitude = magnitude + offset.abs()
            for source, part in earlier.items():
                pending[source] = self.rounded(pending[source] + part if source in pending else part)
        for left, functional in pending.items():
            magnitude = magnitude + self._magnitude(functional.reshape(rows, -1), left)
            total = self.rounded(total + self._least(functional, left))
            if left == self._network.input:
                self.influence = functional.reshape(rows, -1).abs().sum(0)
        return total - self.share * magnitude

    def _least(self, functional: Tensor, name: str) -> Tensor:
        return self.least(functional.reshape(len(functional), -1), *self.enclosure[name])

    def _magnitude(self, functional: Tensor, name: str) -> Tensor:
        lower, upper = self.enclosure[name]
        return functional.abs() @ torch.maximum(lower.abs(), upper.abs())

    def improve(self) -> None:
        """Improve the bounds of unstable units, layer by layer."""
        for place, node in rectifiers(self._network):
            if not LINEAR_RULES[node.op].relaxes(self._network, node):
                continue
            units = self.unstable(node.inputs[0])
            if 0 < len(units) <= MOST_UNITS:
                self.tighten(node.inputs[0], place, units)

    def named(self) -> dict[str, Bounds]:
        """The lower and upper ends of every computed tensor, and of the output by linear bounds too."""
        network = self.network
        ends = {name: self.enclosure[name] for name in (node.output for node in network.nodes)}
        ends |= {name: (low.reshape(-1), high.reshape(-1)) for name, (low, high) in self._bounds.items()}
        size = network.output_size
        rows = torch.eye(size, dtype=torch.float64).reshape(size, *network.output_shape)
        below, above = (
            sign * self.lower(network.output, sign * rows, len(network.nodes)) for sign in (1, -1)
        )
        low, high = ends[network.output]
        ends[network.output] = torch.fmax(low, below), torch.fmin(high, above)
        return {name: (low.numpy(), high.numpy()) for name, (low, high) in ends.items()}

    def take_units(self, other: FloatBounds) -> None:
        """Go on with the bounds of units over another box."""
        self._bounds = dict(other._bounds)

    def row_bounds(self, form: MarginForm) -> Floats:
        """A lower bound of each constraint's g: the better one of intervals and linear relaxation."""
        network = self._network
        weights = torch.from_numpy(form.outputs)
        inputs = torch.from_numpy(form.inputs)
        # From no node at all: what the interval of the output gives.
        plain = self.lower(network.output, weights.reshape(-1, *network.output_shape), 0, inputs)
        found = [
            self.lower(
                network.output,
                weights[start : start + self.batch].reshape(-1, *network.output_shape),
                len(network.nodes),
                inputs[start : start + self.batch],
            )
            for start in range(0, len(weights), self.batch)
        ]
        rounding = self.share * np.abs(form.bounds)
        return np.asarray(self.better(plain.numpy(), torch.cat(found).numpy()) - form.bounds - rounding)

    def better(self, plain: Floats, relaxed: Floats) -> Floats:
        """The larger of two bounds; nan does not count."""
        return np.asarray(np.fmax(plain, relaxed))
