"""One case of a property under attack, as a search sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from dokimos.engine.attacks.margin_pass import (
    EXACT,
    OPEN,
    Backward,
    Loss,
    backward_table,
    batch_size,
    torch_margin,
    torch_precision,
)
from dokimos.engine.differentiable import lifted_constants, one_thread
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.propagation import propagate
from dokimos.suites.vnnlib.margins import MarginForm, float_ends
from dokimos.suites.vnnlib.model import Box, Point

if TYPE_CHECKING:
    from dokimos.engine.attacks.margin_pass import MarginValues


#: float32 in an attack; float64 in the descent of a profile.
Points = NDArray[Any]


class Target:
    """One case of a property under attack: its box, and the margin to lower.

    It remembers the best point that was looked at, so an attack reports nothing itself. Row i of every
    batch belongs to restart i. `watch` is called after every look and may end the search by an exception;
    `seconds_left` says how much CPU time a search has left, for long work between two looks. Raises
    ValueError for points outside the box, which would prove nothing.
    """

    def __init__(
        self,
        network: Network,
        form: MarginForm,
        box: Box,
        *,
        dtype: DTypeLike = np.float32,
        watch: Callable[[Target], None] | None = None,
        seconds_left: Callable[[], float] = lambda: inf,
    ) -> None:
        from dokimos.engine.attacks.margin_pass import MarginPass

        self.network, self.form, self.box = network, form, box
        self.lower, self.upper = _ends(box, np.dtype(dtype))
        self.conjunctions = len(form.members)
        self.least_margin = float("inf")
        self.point: Points = (self.lower + (self.upper - self.lower) / 2).astype(dtype)
        self._pass = MarginPass(network, form, dtype=dtype)
        self._broken: NDArray[np.bool_] | None = None
        self._watch = watch
        self.seconds_left = seconds_left

    @property
    def radius(self) -> Points:
        """Half the width of the box, coordinate by coordinate."""
        return (self.upper - self.lower) / 2

    @property
    def broken(self) -> float:
        """The fraction of restarts that reached a margin of at most 0."""
        return 0.0 if self._broken is None else float(self._broken.mean())

    @property
    def exact_point(self) -> Point:
        """The best point as rationals, moved into the box if rounding had moved it out."""
        return tuple(
            min(max(Fraction(x), low), high)
            for x, low, high in zip(self.point.tolist(), self.box.lower, self.box.upper, strict=True)
        )

    def look(
        self,
        points: Points,
        aims: NDArray[np.int64] | None = None,
        *,
        loss: Loss = Loss.MARGIN,
        backward: Sequence[Backward] = (EXACT,),
    ) -> MarginValues:
        """The margins at `points` [restarts, inputs], and the gradients of `loss`.

        If `aims` names a conjunction of the case (0, 1, ...) for a row, the gradient is of how far that one
        is from holding; if it is negative, or not given, of the nearest. The margin is always that of the
        nearest. The backward pass of row i is as `backward[i % len(backward)]` says.
        """
        self._require_inside(points)
        found = self._pass(points, aims, loss=loss, backward=backward)
        self.record(points, found.margins)
        return found

    def margins(self, points: Points) -> NDArray[Any]:
        """The margins at `points`, for attacks that use no gradients."""
        self._require_inside(points)
        found = self._pass.margins(points)
        self.record(points, found)
        return found

    @cached_property
    def units(self) -> AliveUnits:
        """The ReLUs that interval bounds leave undecided in the box."""

        return alive_units(self.network, self.box)

    def look_at_units(
        self, points: Points, weights: NDArray[Any], *, backward: Backward = EXACT
    ) -> UnitValues:
        """The margins and the arguments of `units` at `points`, and gradients.

        Row i has the gradient of Σ_u weights[i, u]·argument u.
        """
        self._require_inside(points)
        found = self._unit_pass(points, weights.astype(points.dtype), backward=backward)
        self.record(points, found.margins)
        return found

    def arguments(self, points: Points) -> NDArray[Any]:
        """The arguments of `units` at `points`, for attacks that use no gradients."""
        self._require_inside(points)
        found = self._unit_pass.arguments(points)
        self.record(points, found.margins)
        return found.arguments

    def weigh_units(self, points: Points, aims: NDArray[np.int64] | None = None) -> UnitEffects:
        """The effect of each of `units` on the margin at `points`, as if every ReLU were on."""
        self._require_inside(points)
        found = self._unit_pass.effects(points, aims)
        self.record(points, found.margins)
        return found

    @cached_property
    def _unit_pass(self) -> UnitPass:

        return UnitPass(self.network, self.form, self.units, dtype=self.lower.dtype)

    def _require_inside(self, points: Points) -> None:
        if not ((points >= self.lower) & (points <= self.upper)).all():
            raise ValueError("an attack looked at a point outside the box")

    def record(self, points: Points, margins: NDArray[Any]) -> None:
        """Remember the best of these points. Every look ends here."""
        reached = np.where(np.isfinite(margins), margins, np.inf)
        self._broken = (reached <= 0) | (False if self._broken is None else self._broken)
        best = int(reached.argmin())
        if reached[best] < self.least_margin:
            self.least_margin, self.point = float(reached[best]), points[best].copy()
        if self._watch is not None:
            self._watch(self)


def _ends(box: Box, dtype: np.dtype[Any]) -> tuple[Points, Points]:
    """Both ends of the box in `dtype`; in float32, rounded inward if a float32 number lies between them."""
    lower, upper = (end.astype(dtype) for end in float_ends(box))
    if dtype != np.float32:
        return lower, upper
    infinity = np.float32(np.inf)
    for index, (low, high) in enumerate(zip(box.lower, box.upper, strict=True)):
        a, b = lower[index], upper[index]
        if np.isfinite(a) and Fraction(float(a)) < low:
            a = np.nextafter(a, infinity)
        if np.isfinite(b) and Fraction(float(b)) > high:
            b = np.nextafter(b, -infinity)
        if a <= b:
            lower[index], upper[index] = a, b
    return lower, upper


# The ReLUs of a network for attacks: their arguments at points, and the gradients of these


#: From points [k, n] and additions to the value of each ReLU [k, units]: the outputs, and the arguments.
_Function = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class AliveUnits:
    """The ReLUs whose arguments may have either sign in a box, by interval bounds.

    `numbers` are their indices among all ReLUs, in the order of the network's nodes; `layers` says which
    node each belongs to, from 0; `lower` and `upper` bound their arguments.
    """

    numbers: NDArray[np.int64]
    layers: NDArray[np.int64]
    lower: NDArray[Any]
    upper: NDArray[Any]

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class UnitValues:
    """At each point of a batch: the margin, the arguments of the units, and a gradient.

    The gradient is that of a weighted sum of arguments.
    """

    margins: NDArray[Any]
    arguments: NDArray[Any]
    gradients: NDArray[Any]


@dataclass(frozen=True, eq=False)
class UnitEffects:
    """At each point of a batch: the margin, and its derivative by each unit's value with all ReLUs on."""

    margins: NDArray[Any]
    effects: NDArray[Any]


def alive_units(network: Network, box: Box) -> AliveUnits:
    """The ReLUs that interval bounds leave undecided in the box."""
    enclosure = enclose(network, box.lower, box.upper)
    ends = [enclosure[node.inputs[0]] for node in _relus(network)]
    lower = np.concatenate([np.zeros(0), *(x.lower.reshape(-1) for x in ends)])
    upper = np.concatenate([np.zeros(0), *(x.upper.reshape(-1) for x in ends)])
    layers = np.repeat(np.arange(len(ends)), [x.lower.size for x in ends])
    alive = np.flatnonzero((lower < 0) & (upper > 0))
    return AliveUnits(alive, layers[alive], lower[alive], upper[alive])


class UnitPass:
    """The arguments of some ReLUs, with the margin of one form, as functions of batches of points."""

    def __init__(
        self, network: Network, form: MarginForm, units: AliveUnits, *, dtype: DTypeLike = np.float32
    ) -> None:
        self._network = network
        self._precision = torch_precision(dtype)
        self._margin = torch_margin(form, dtype=self._precision)
        self._numbers = torch.from_numpy(units.numbers)
        self._size = sum(prod(network.shapes[node.output]) for node in _relus(network))
        self._batch = batch_size(network)
        self._functions: dict[Backward, _Function] = {}

    def __call__(
        self, points: NDArray[Any], weights: NDArray[Any], *, backward: Backward = EXACT
    ) -> UnitValues:
        """Margins and arguments at `points`, and in row i the gradient of Σ_u weights[i, u]·argument u."""
        margins, arguments, gradients = [], [], []
        function = self._function(backward)
        with one_thread():
            for rows in self._batches(points):
                x = torch.from_numpy(points[rows]).requires_grad_(True)
                y, z = function(x, x.new_zeros((len(x), self._size)))
                value, _ = self._margin(x, y, None)
                goal = (z * torch.from_numpy(weights[rows])).sum() + 0 * x.sum()
                (slope,) = torch.autograd.grad(goal, x)
                margins.append(value.detach().numpy())
                arguments.append(z.detach().numpy())
                gradients.append(slope.numpy())
        return UnitValues(*(np.concatenate(part) for part in (margins, arguments, gradients)))

    def arguments(self, points: NDArray[Any]) -> UnitValues:
        """Margins and arguments at `points`, by a forward pass; the gradients are 0."""
        margins, arguments = [], []
        with one_thread(), torch.no_grad():
            for rows in self._batches(points):
                x = torch.from_numpy(points[rows])
                y, z = self._function(EXACT)(x, x.new_zeros((len(x), self._size)))
                margins.append(self._margin(x, y, None)[0].numpy())
                arguments.append(z.numpy())
        return UnitValues(np.concatenate(margins), np.concatenate(arguments), np.zeros_like(points))

    def effects(self, points: NDArray[Any], aims: NDArray[np.int64] | None = None) -> UnitEffects:
        """The margins at `points`, and their derivatives by the units' values, as if all ReLUs were on.

        If a row of `aims` names a conjunction, the derivatives are of how far that one is from holding.
        """
        margins, effects = [], []
        function = self._function(OPEN)
        with one_thread():
            for rows in self._batches(points):
                x = torch.from_numpy(points[rows])
                added = x.new_zeros((len(x), self._size)).requires_grad_(True)
                y, _ = function(x, added)
                value, goal = self._margin(x, y, None if aims is None else torch.from_numpy(aims[rows]))
                (slope,) = torch.autograd.grad(goal.sum() + 0 * added.sum(), added)
                margins.append(value.detach().numpy())
                effects.append(slope[:, self._numbers].numpy())
        return UnitEffects(np.concatenate(margins), np.concatenate(effects))

    def _batches(self, points: NDArray[Any]) -> list[slice]:
        return [slice(start, start + self._batch) for start in range(0, len(points), self._batch)]

    def _function(self, backward: Backward) -> _Function:
        if backward not in self._functions:
            self._functions[backward] = self._make(backward)
        return self._functions[backward]

    def _make(self, backward: Backward) -> _Function:
        network, plain = self._network, backward_table(backward)
        lift = lifted_constants(network, dtype=self._precision)
        relus, starts, total = _relus(network), dict[str, int](), 0
        for node in relus:
            starts[node.output] = total
            total += prod(network.shapes[node.output])

        def one(x: Tensor, added: Tensor) -> tuple[Tensor, Tensor]:
            def relu(node: Node, given: Sequence[Tensor | None]) -> Tensor:
                value = plain["Relu"](node, given)
                start = starts[node.output]
                return value + added[start : start + value.numel()].reshape(value.shape)

            values = propagate(
                network,
                x.reshape(network.input_shape),
                lift=lift,
                table={**plain, "Relu": relu},
                semantics="gradient",
            )
            z = torch.cat([x.new_zeros(0), *(values[node.inputs[0]].reshape(-1) for node in relus)])
            return values[network.output].reshape(-1), z[self._numbers]

        batched: _Function = torch.vmap(one)
        return batched


def _relus(network: Network) -> list[Node]:
    """The ReLU nodes whose inputs are not constant."""
    return [node for node in network.nodes if node.op == "Relu" and node.inputs[0] not in network.constants]
