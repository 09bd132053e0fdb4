"""One case of a property under attack, as a search sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dokimos.attacks.backward import EXACT, Backward, Loss
from dokimos.networks.graph import Network
from dokimos.properties.margins import MarginForm, float_ends
from dokimos.properties.model import Box, Point

if TYPE_CHECKING:
    from dokimos.attacks.margin_pass import MarginValues
    from dokimos.attacks.unit_pass import AliveUnits, UnitEffects, UnitPass, UnitValues

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
        from dokimos.attacks.margin_pass import MarginPass

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
        from dokimos.attacks.unit_pass import alive_units

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
        from dokimos.attacks.unit_pass import UnitPass

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
