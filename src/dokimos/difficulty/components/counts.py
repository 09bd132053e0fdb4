"""Counts: how large an instance is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dokimos.difficulty.components.five_components import Component
from dokimos.suites.facts import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection


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
