"""What every component of a profile has in common, the five of the Difficulty Profile, and the extra ones:
the margin that descent finds, its linear bounds, and the size of an instance.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from dokimos.suites.facts import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection
    from dokimos.engine.attacks.target import Target
    from dokimos.networks.semantics.outward import Floats


# What every component of a profile has in common


class Component(ABC):
    """One measurement of an instance.

    `symbol` is its heading in tables, `meaning` says in a few words what it is, and the docstring defines
    it by a formula. `measure` reads what it needs from the inspection, which computes each thing once for
    all components; it returns a number, or None with the reason. If `of_margin` holds, it is only called
    for properties whose margin is a number (see `properties.margins`); for other properties the component
    is reported as not applicable. `in_table` is False if the table in the terminal leaves it out; the
    profile's file always has it. `on_request` is True if it is measured only where it is asked for: it
    takes seconds, or is seldom wanted.
    """

    name: ClassVar[str]
    symbol: ClassVar[str]
    meaning: ClassVar[str]
    of_margin: ClassVar[bool] = True
    in_table: ClassVar[bool] = True
    on_request: ClassVar[bool] = False

    @final
    def __call__(self, seen: Inspection) -> Measurement:
        """The measurement, or why there is none."""
        if self.of_margin and seen.no_margin is not None:
            return Measurement.not_applicable(seen.no_margin)
        return self.measure(seen)

    @abstractmethod
    def measure(self, seen: Inspection) -> Measurement:
        """The measurement of an instance to which the component applies."""


def relative_gap(least: float, bound: float, eta: float) -> Measurement:
    """(M̂ − L) / (|M̂| + η), for the least sampled margin M̂ and a lower bound L of the margin.

    A bound over the reals can exceed a float64 value only by the latter's rounding: then the gap is 0.
    """
    if bound == -float("inf"):
        return Measurement.infinite("the bound of the margin is −∞")
    gap = max(least - bound, 0.0) / (abs(least) + eta)
    if gap == float("inf"):
        return Measurement.infinite("the gap exceeds the range of float64")
    return Measurement(gap)


# The minimum margin M̂_min


class LeastMargin(Component):
    """M̂_min = min over the samples x of μ(x): how close sampling comes to a counterexample.

    μ is the margin of `properties.margins`, the least over conjunctions and cases; the samples are those of
    `sampling` and the points that gradients lead to from there (`guided_sampling`). Below 0, a sample is a
    counterexample (in float64: replay it before it counts).
    """

    name = "margin"
    symbol = "M̂_min"
    meaning = "smallest sampled margin"

    def measure(self, seen: Inspection) -> Measurement:
        """The least margin of all samples."""
        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        return Measurement(seen.least_margin)


class SampledMargin(Component):
    """min over the random samples alone of μ(x): M̂_min by the letter of the paper's definition."""

    name = "sampled_margin"
    symbol = "M_S"
    meaning = "smallest margin of the random samples"
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The least margin of the random samples."""
        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        return Measurement(float(seen.sampled.margins.min()))


def not_finite(values: np.ndarray) -> Measurement:
    """The note that replaces a number when some samples have no finite value."""
    rows = np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    return Measurement(
        None, f"not finite: float64 overflows at {int((~rows).sum())} of {len(rows)} samples"
    )


# The relative gap of interval bound propagation, G_IBP


class IbpGap(Component):
    """G_IBP = (M̂_min − L_IBP) / (|M̂_min| + η): how much of the margin intervals lose.

    L_IBP is the lower bound of μ over the boxes of the property by interval bound propagation, outward
    rounded and sound for every operator, with the last affine layer folded into the constraints (see
    `interval_bound`); over conjunctions the least, over the constraints of one the largest.
    """

    name = "ibp_gap"
    symbol = "G_IBP"
    meaning = "looseness of interval bounds"

    def measure(self, seen: Inspection) -> Measurement:
        """The gap; infinite if intervals give no bound at all."""
        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        return relative_gap(seen.least_margin, seen.ibp_bound, seen.settings.eta)


class IbpLowerBound(Component):
    """L_IBP itself: above 0, intervals alone prove that the instance is `unsat`."""

    name = "ibp_bound"
    symbol = "L_IBP"
    meaning = "interval bound of the margin"
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The bound."""
        if seen.ibp_bound == -float("inf"):
            return Measurement.infinite("the bound of the margin is −∞")
        return Measurement(seen.ibp_bound)


# The unstable fraction U


class UnstableFraction(Component):
    """U = |{j in J : unit j is unstable}| / |J|: the share of nonlinear units that are not fixed.

    J are the numbers that activations write (not products of two variables). A ReLU is unstable if its
    interval of pre-activations by IBP, [l, u], has l < 0 < u; a smooth unit if its slope varies by more
    than τ over the interval, ω = sup |φ'(s) − φ'(t)| > τ (`--tau-slope`). `difficulty.phases` says what
    this means for each operator. Over several boxes, a unit counts once, if it is unstable on one of them.
    """

    name = "unstable"
    symbol = "U"
    meaning = "share of unstable units"
    of_margin = False

    def measure(self, seen: Inspection) -> Measurement:
        """The fraction; without nonlinear units there is none."""
        if not seen.boxes:
            return Measurement.not_applicable("the property allows no input: every box is empty")
        if seen.phases.nonlinear == 0:
            return Measurement.not_applicable("the network has no nonlinear unit")
        return Measurement(seen.phases.unstable / seen.phases.nonlinear)


# The local-region complexity A_τ


#: A coordinate that is half-way between two points of the grid, up to rounding, is rounded outward.
_TIES = 1.0 + 1e-9


class Regions(Component):
    """A_τ = log |{q(x_i)}|,  q(x) = round(∇μ(x) / (L_c·τ)),  L_c = max_i ‖∇μ(x_i)‖₁.

    The logarithm of the number of distinct classes into which the gradients at the samples fall, divided by
    the one L_c of the instance and rounded to nearest, coordinate by coordinate, on a grid of width τ
    (`--tau`). The input sets are boxes, balls of the ∞-norm, whose dual norm is the 1-norm.

    L_c = 0 gives 0. If every sample has its own class, there are at least N classes, perhaps more, and the
    number is marked `>= log N`. If L_c > 0 but all gradients are rounded to 0 (spread over so many inputs
    that no coordinate reaches τ/2), it is marked `below resolution`.
    """

    name = "regions"
    symbol = "A_τ"
    meaning = "log of the number of linear pieces"

    def measure(self, seen: Inspection) -> Measurement:
        """The logarithm, with a note if it is only a bound."""
        gradients = seen.sampled.gradients
        if not np.isfinite(gradients).all():
            return not_finite(gradients)
        largest = float(np.abs(gradients).sum(axis=1).max())
        if largest == 0:
            return Measurement(0.0)
        if largest == float("inf"):
            return Measurement(None, "not finite: the norm of a gradient is beyond the range of float64")
        classes = quantised(gradients / largest, seen.settings.tau)
        count = len({row.tobytes() for row in classes})
        if count == 1 and not classes.any():
            return Measurement(0.0, "below resolution: every quantised gradient is 0")
        if count == len(classes):
            return Measurement(math.log(count), f">= log {count}: every sample has its own class")
        return Measurement(math.log(count))


def quantised(values: Floats, tau: float) -> Floats:
    """The nearest multiples of `tau`, in its units; halves (up to rounding) are rounded away from 0."""
    with np.errstate(over="ignore"):
        return np.rint(values / (tau / _TIES)) + 0.0  # −0 becomes 0


# The effective dimension of the gradient, d_eff


class GradientDimension(Component):
    """d_eff = mean over the samples of ‖∇μ(x_i)‖₁² / (‖∇μ(x_i)‖₂² + η): over how many inputs μ spreads.

    1 if the margin depends on one input, r if it depends on r of them equally, 0 if it is constant.
    Gradients are computed by automatic differentiation, and are 0 along inputs that the box fixes.
    """

    name = "gradient_dimension"
    symbol = "d_eff"
    meaning = "directions the margin depends on"

    def measure(self, seen: Inspection) -> Measurement:
        """The mean over all samples."""
        gradients = seen.sampled.gradients
        if not np.isfinite(gradients).all():
            return not_finite(gradients)
        return Measurement(float(participation(gradients, seen.settings.eta).mean()))


def participation(gradients: Floats, eta: float) -> Floats:
    """‖g‖₁² / (‖g‖₂² + η) of each row, whatever the scale of its entries."""
    size = np.abs(gradients)
    largest = size.max(axis=1, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    size /= scale[:, None]
    with np.errstate(over="ignore", under="ignore"):
        floor = (eta / scale) / scale
    ratio: Floats = size.sum(axis=1) ** 2 / (np.square(size).sum(axis=1) + floor)
    return ratio


# The margin after gradient descent, beside the sampled one


#: A fraction of what the samples cost: each step of each start is one forward and one backward pass.
STARTS, STEPS = 10, 20
#: The length of the first and the last step, as a share of the box's radius.
FIRST_STEP, LAST_STEP = 0.25, 0.01


class AttackedMargin(Component):
    """min(M̂_min, min of μ over the points that projected gradient descent visits).

    On the box of each case, the points of least margin known descend by the signs of ∇μ, in steps that
    shorten from a quarter of the radius to a hundredth. Like M̂_min, this is an upper bound of the true
    least margin, and it is never above M̂_min.
    """

    name = "attacked_margin"
    symbol = "M_attacked"
    meaning = "smallest margin after gradient descent"

    def measure(self, seen: Inspection) -> Measurement:
        """The least margin known."""
        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        found = [attack(seen, case).least_margin for case in range(len(seen.forms))]
        return Measurement(min(seen.least_margin, *found))


def attack(seen: Inspection, case: int) -> Target:
    """What descent from the best samples of one case has looked at: its least margin, and where."""
    from dokimos.engine.attacks.gradients import descend  # loads torch, which reports do not need
    from dokimos.engine.attacks.target import Target

    target = Target(seen.network, seen.forms[case], seen.boxes[case], dtype=np.float64)
    sampled, guided = seen.sampled_cases[case], seen.guided[case]
    margins = np.concatenate([sampled.margins, guided.found.margins])
    best = np.argsort(margins, kind="stable")[:STARTS]
    starts = np.concatenate([seen.points[case], guided.points])[best]
    gradients = np.concatenate([sampled.gradients, guided.found.gradients])[best]
    descend(target, starts, gradients, np.linspace(FIRST_STEP, LAST_STEP, STEPS).tolist())
    return target


# The relative gap of backward linear relaxation, beside that of intervals


class CrownLowerBound(Component):
    """L_CROWN: the lower bound of μ by `crown`; above 0, it proves `unsat` up to rounding."""

    name = "crown_bound"
    symbol = "L_CROWN"
    meaning = "linear bound of the margin"
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The bound, for networks of affine operators and ReLUs."""
        if isinstance(seen.crown, str):
            return Measurement.not_applicable(seen.crown)
        if seen.crown.lower == -float("inf"):
            return Measurement.infinite("the bound of the margin is −∞")
        return Measurement(seen.crown.lower, seen.crown.note)


class CrownGap(Component):
    """G_CROWN = (M̂_min − L_CROWN) / (|M̂_min| + η): as G_IBP, for linear relaxation."""

    name = "crown_gap"
    symbol = "G_CROWN"
    meaning = "looseness of linear bounds"

    def measure(self, seen: Inspection) -> Measurement:
        """The gap, for networks of affine operators and ReLUs."""
        if isinstance(seen.crown, str):
            return Measurement.not_applicable(seen.crown)
        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        gap = relative_gap(seen.least_margin, seen.crown.lower, seen.settings.eta)
        return gap if gap.value is None else Measurement(gap.value, seen.crown.note)


# Counts that say how large an instance is


class Inputs(Component):
    """d: how many numbers go into the network."""

    name = "inputs"
    symbol = "d"
    meaning = "number of inputs"
    of_margin = False

    def measure(self, seen: Inspection) -> Measurement:
        """The number of inputs."""
        return Measurement(float(seen.network.input_size))


class Parameters(Component):
    """How many numbers the constant tensors of the network hold in the file."""

    name = "parameters"
    symbol = "parameters"
    meaning = "numbers in the constant tensors"
    of_margin = False

    def measure(self, seen: Inspection) -> Measurement:
        """The number of parameters."""
        return Measurement(float(sum(array.size for array in seen.network.constants.values())))


class NonlinearUnits(Component):
    """|J|: how many numbers activations write."""

    name = "nonlinear_units"
    symbol = "|J|"
    meaning = "number of nonlinear units"
    of_margin = False
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The number of nonlinear units."""
        return Measurement(float(seen.phases.nonlinear))


class UnstableUnits(Component):
    """U·|J|: how many of them are unstable on one of the boxes."""

    name = "unstable_units"
    symbol = "unstable"
    meaning = "number of unstable units"
    of_margin = False

    def measure(self, seen: Inspection) -> Measurement:
        """The number of unstable units."""
        return Measurement(float(seen.phases.unstable))
