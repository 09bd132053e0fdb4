"""Interval and CROWN bounds of a network's margin over one box, in float64, over all core operators.

Backward linear relaxation, as in `networks.semantics.linear_bounds`. An operator without a linear
relaxation counts as what interval arithmetic gives for its output: λ·t >= Σ min(λ_i·l_i, λ_i·u_i) for l <=
t <= u.

Sums are rounded to nearest. Every bound is lowered by `SHARE` of all magnitudes |λ|·|t| that went into it,
which is much more than rounding takes from sums of a few thousand terms. Importing this module imports
torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dokimos.networks.graph import Network
from dokimos.networks.semantics.interval import INTERVAL_RULES, lift_constant, outward_box
from dokimos.networks.semantics.linear_bounds import LINEAR_RULES, LinearBounds, rectifiers
from dokimos.networks.semantics.outward import Floats, Interval
from dokimos.networks.semantics.propagation import Rule, propagate
from dokimos.properties.margins import MarginForm
from dokimos.properties.model import Box

#: The share of magnitudes by which a bound is lowered.
SHARE = 2.0**-36
#: Bounds of a layer are improved unit by unit if it has at most this many unstable units.
MOST_UNITS = 300

Rules = Mapping[str, Rule[Interval]]


class FloatBounds(LinearBounds):
    """The bounds over one box. A planted bug overrides one of its methods, or `rules` or `share`."""

    rules: ClassVar[Rules] = INTERVAL_RULES
    share: ClassVar[float] = SHARE

    def __init__(self, network: Network, box: Box) -> None:
        values = outward_box(network, box.lower, box.upper)
        with np.errstate(all="ignore"):
            enclosure = propagate(
                network, values, lift=lift_constant, table=self.rules, semantics="interval"
            )
        super().__init__(network, enclosure, values.lower.reshape(-1), values.upper.reshape(-1))
        self._enclosure = {
            name: tuple(torch.from_numpy(np.array(end)).reshape(-1) for end in (x.lower, x.upper))
            for name, x in enclosure.items()
        }
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
            rule = LINEAR_RULES[node.op]
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
        return self.least(functional.reshape(len(functional), -1), *self._enclosure[name])

    def _magnitude(self, functional: Tensor, name: str) -> Tensor:
        lower, upper = self._enclosure[name]
        return functional.abs() @ torch.maximum(lower.abs(), upper.abs())

    def improve(self) -> None:
        """Improve the bounds of unstable units, layer by layer."""
        for place, node in rectifiers(self._network):
            if not LINEAR_RULES[node.op].relaxes(self._network, node):
                continue
            units = self.unstable(node.inputs[0])
            if 0 < len(units) <= MOST_UNITS:
                self.tighten(node.inputs[0], place, units)

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
