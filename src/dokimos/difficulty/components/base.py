"""What every component of a profile has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, final

from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection


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
