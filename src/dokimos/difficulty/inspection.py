"""Everything that the components read, each computed once, when first needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dokimos.core.errors import InputError
from dokimos.difficulty.interval_bound import row_bounds
from dokimos.difficulty.sampling import Floats, sample
from dokimos.networks.graph import Network
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.outward import Interval
from dokimos.networks.semantics.phases import Phases, phases
from dokimos.properties.margins import MarginForm, float_ends, margin_cases, margin_form, why_no_margin
from dokimos.properties.model import Box, Property
from dokimos.suites.profile_file import ProfileSettings

if TYPE_CHECKING:
    from dokimos.attacks.margin_pass import MarginValues
    from dokimos.difficulty.crown import CrownBound
    from dokimos.difficulty.guided_sampling import GuidedSamples
    from dokimos.difficulty.proof_size import SmallestProof

#: A case has at least this many samples, however many cases share them.
LEAST_SAMPLES = 2
#: How many numbers the gradients of all samples together may hold (800 MB).
MOST_NUMBERS = 10**8


@dataclass(frozen=True, eq=False)
class Inspection:
    """What a profile measures one instance by: samples, margins, gradients and enclosures.

    The samples are divided evenly among the cases of the property. They are random; the points that
    gradients lead to (`guided`) are kept apart, so that means and counts over samples describe the box, not
    its lowest places.
    """

    network: Network
    property: Property
    settings: ProfileSettings

    @cached_property
    def no_margin(self) -> str | None:
        """Why the property has no margin, or None."""
        return why_no_margin(self.property)

    @cached_property
    def forms(self) -> tuple[MarginForm, ...]:
        """The margin of each case that has one."""
        sizes = self.network.input_size, self.network.output_size
        return tuple(margin_form(case, *sizes) for case in margin_cases(self.property))

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """The box of each case that has a margin; of every case if none has one."""
        cases = margin_cases(self.property) or self.property.cases
        return tuple(case.box for case in cases if not case.box.is_empty)

    @cached_property
    def points(self) -> tuple[Floats, ...]:
        """The samples of each case that has a margin."""
        boxes = self.boxes
        share, rest = divmod(self.settings.samples, len(boxes))
        return tuple(
            sample(
                box,
                max(share + (number < rest), LEAST_SAMPLES),
                np.random.default_rng([self.settings.seed, number]),
            )
            for number, box in enumerate(boxes)
        )

    @cached_property
    def sampled(self) -> MarginValues:
        """The margins and gradients at the samples, case after case; 0 along inputs that a box fixes."""
        from dokimos.attacks.margin_pass import MarginPass, MarginValues

        self._require_memory()
        margins, gradients = [], []
        for form, box, points in zip(self.forms, self.boxes, self.points, strict=True):
            found = MarginPass(self.network, form)(points)
            lower, upper = float_ends(box)
            margins.append(found.margins)
            gradients.append(found.gradients * (lower < upper))
        return MarginValues(np.concatenate(margins), np.concatenate(gradients))

    def _require_memory(self) -> None:
        count, size = sum(map(len, self.points)), self.network.input_size
        if count * size > MOST_NUMBERS:
            raise InputError(
                f"{count} samples of {size} inputs need too much memory; use --samples "
                f"{MOST_NUMBERS // size} or fewer."
            )

    @cached_property
    def sampled_cases(self) -> tuple[MarginValues, ...]:
        """What was sampled, separately for each case."""
        from dokimos.attacks.margin_pass import MarginValues

        ends = np.cumsum([len(points) for points in self.points])[:-1]
        apart = np.split(self.sampled.margins, ends), np.split(self.sampled.gradients, ends)
        return tuple(MarginValues(*case) for case in zip(*apart, strict=True))

    @cached_property
    def guided(self) -> tuple[GuidedSamples, ...]:
        """Where gradients lead from the samples of each case."""
        from dokimos.difficulty.guided_sampling import guided_samples

        return tuple(
            guided_samples(
                self.network,
                self.forms[number],
                self.boxes[number],
                self.points[number],
                known.gradients,
                np.random.default_rng([self.settings.seed, number, 1]),
            )
            for number, known in enumerate(self.sampled_cases)
        )

    @cached_property
    def least_margin(self) -> float | None:
        """M̂_min, or None if the margin of a sample is not a finite float64."""
        margins = self.sampled.margins
        if not np.isfinite(margins).all():
            return None
        return min(float(margins.min()), *(case.least_margin for case in self.guided))

    @cached_property
    def enclosures(self) -> tuple[Mapping[str, Interval], ...]:
        """Over each of the boxes, an interval for every tensor."""
        return tuple(enclose(self.network, box.lower, box.upper) for box in self.boxes)

    @cached_property
    def ibp_bound(self) -> float:
        """L_IBP: a lower bound of the margin over all cases, sound for the real network."""
        return min(form.least(rows) for form, rows in zip(self.forms, self._ibp_rows, strict=True))

    @cached_property
    def _ibp_rows(self) -> tuple[Floats, ...]:
        """The interval bound of each constraint, case by case."""
        return tuple(
            row_bounds(self.network, enclosure, form.exact)
            for form, enclosure in zip(self.forms, self.enclosures, strict=True)
        )

    @cached_property
    def crown(self) -> CrownBound | str:
        """L_CROWN over all cases, or why there is none."""
        from dokimos.difficulty.crown import crown_bound

        return crown_bound(
            self.network,
            self.forms,
            self.enclosures,
            self.boxes,
            self._ibp_rows,
            samples=self.settings.samples,
        )

    @cached_property
    def proof(self) -> SmallestProof:
        """The smallest proof that limited searches find."""
        from dokimos.difficulty.proof_size import smallest_proof

        return smallest_proof(self.network, self.property, self.ibp_bound)

    @cached_property
    def phases(self) -> Phases:
        """How many units are nonlinear, and how many of them are unstable on one of the boxes."""
        return phases(self.network, self.enclosures, self.settings.tau_slope)
