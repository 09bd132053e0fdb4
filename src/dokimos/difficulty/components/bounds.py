"""Extra measurements: the margin that descent finds, its linear bounds, and the size of an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dokimos.difficulty.components.five_components import Component, not_finite, relative_gap
from dokimos.engine.attacks.gradients import descend
from dokimos.engine.attacks.target import Target
from dokimos.suites.facts import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection


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
