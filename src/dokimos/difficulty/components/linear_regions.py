"""The exact number of linear regions of a small ReLU network in its box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dokimos.core.errors import UnsupportedOp
from dokimos.difficulty.components.base import Component
from dokimos.difficulty.region_count import MOST_PROGRAMS, MOST_REGIONS, count_regions
from dokimos.networks.semantics.piecewise_linear import piecewise_linear
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection

#: With more multiplications than this, exact expressions take minutes.
MOST_MULTIPLICATIONS = 200_000


class LinearRegions(Component):
    """How many patterns of signs the arguments of all ReLUs have on sets with an inside, within the box.

    On each of them the network is affine. Exact where it has no note: every region that is counted holds
    a rational point at which no argument is 0, and every one that is not is shown to be empty by exact
    multipliers (`region_count`). `>=` where there are more, or where floats could not decide one.
    """

    name = "linear_regions"
    symbol = "regions"
    meaning = "exact number of linear regions"
    of_margin = False
    on_request = True
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The count, over one box."""
        if len(seen.boxes) != 1:
            return Measurement.not_applicable("the property has not exactly one box")
        if seen.network.multiplications > MOST_MULTIPLICATIONS:
            return Measurement.not_applicable(
                f"the network has more than {MOST_MULTIPLICATIONS} multiplications"
            )
        try:
            form = piecewise_linear(seen.network)
        except UnsupportedOp as error:
            return Measurement.not_applicable(str(error))
        found = count_regions(form, seen.boxes[0])
        if found.is_exact:
            return Measurement(float(found.regions))
        why = (
            f"{found.undecided} are too thin to call"
            if found.is_complete
            else f"the search ends at {MOST_REGIONS} regions or {MOST_PROGRAMS} linear programs"
        )
        return Measurement(float(found.regions), f">= {found.regions}: {why}")
