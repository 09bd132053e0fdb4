"""What the paper tried and left out of its profile (its Table 3), except what the profile already has.

Measured on request only. All are over the samples by chance, as A_τ and d_eff are; the centre of each case
is the first of its guided points. With several cases, means are over all of their samples.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from dokimos.difficulty.components.measurements import (
    Component,
    IbpGap,
    Regions,
    UnstableFraction,
    not_finite,
    participation,
)
from dokimos.suites.facts import Measurement
from dokimos.suites.vnnlib.margins import float_ends

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection
    from dokimos.networks.semantics.outward import Floats

#: How many chords the bending is measured on.
CHORDS = 200


class OnRequest(Component):
    """A component of the samples that is measured on request, where all of them are finite."""

    on_request = True
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The number, if margins and gradients are finite."""
        if not np.isfinite(seen.sampled.margins).all():
            return not_finite(seen.sampled.margins)
        if not np.isfinite(seen.sampled.gradients).all():
            return not_finite(seen.sampled.gradients)
        with np.errstate(all="ignore"):
            value = self._of_samples(seen)
        if value is None or not np.isfinite(value):
            return Measurement.not_applicable("it divides by 0, or is beyond the range of float64")
        return Measurement(float(value))

    @abstractmethod
    def _of_samples(self, seen: Inspection) -> float | None:
        """The number; None if it is not defined for these samples."""


class MeanMargin(OnRequest):
    """The mean of μ over the samples."""

    name, symbol, meaning = "mean_margin", "M_mean", "mean sampled margin"

    def _of_samples(self, seen: Inspection) -> float:
        return float(seen.sampled.margins.mean())


class IbpAbsoluteGap(OnRequest):
    """M̂_min − L_IBP."""

    name, symbol, meaning = "ibp_absolute_gap", "M̂_min − L_IBP", "what interval bounds lose"

    def _of_samples(self, seen: Inspection) -> float | None:
        return None if seen.least_margin is None else seen.least_margin - seen.ibp_bound


class GradientCount(OnRequest):
    """How many different gradients the samples have, to the last bit."""

    name, symbol, meaning = "gradient_count", "gradients", "number of different gradients"

    def _of_samples(self, seen: Inspection) -> float:
        return float(len({row.tobytes() for row in seen.sampled.gradients + 0.0}))


class GradientDimensionMax(OnRequest):
    """The largest ‖∇μ‖₁² / (‖∇μ‖₂² + η) of any sample."""

    name, symbol, meaning = "gradient_dimension_max", "d_eff max", "largest number of directions"

    def _of_samples(self, seen: Inspection) -> float:
        return float(participation(seen.sampled.gradients, seen.settings.eta).max())


class GradientNorm(OnRequest):
    """The mean of ‖∇μ‖₁."""

    name, symbol, meaning = "gradient_norm", "‖∇μ‖", "mean norm of the gradient"

    def _of_samples(self, seen: Inspection) -> float:
        return float(np.abs(seen.sampled.gradients).sum(axis=1).mean())


class GradientVariation(OnRequest):
    """The mean of ‖∇μ(x_i) − mean‖₂, divided by the mean of ‖∇μ(x_i)‖₂."""

    name, symbol, meaning = "gradient_variation", "∇μ varies", "how much gradients vary"

    def _of_samples(self, seen: Inspection) -> float:
        gradients = seen.sampled.gradients
        apart = np.linalg.norm(gradients - gradients.mean(axis=0), axis=1).mean()
        return float(apart / (np.linalg.norm(gradients, axis=1).mean() + seen.settings.eta))


class GradientConcentration(OnRequest):
    """The mean of max_k |∂μ/∂x_k| / (‖∇μ‖₁ + η)."""

    name, symbol, meaning = "gradient_concentration", "∇μ in one", "share of the largest partial derivative"

    def _of_samples(self, seen: Inspection) -> float:
        sizes = np.abs(seen.sampled.gradients)
        return float((sizes.max(axis=1) / (sizes.sum(axis=1) + seen.settings.eta)).mean())


class LinearisationError(OnRequest):
    """The mean of |μ(x_i) − μ(c) − ∇μ(c)·(x_i − c)|, c being the centre."""

    name, symbol, meaning = "linearisation_error", "lin. error", "distance from the tangent at the centre"

    def _of_samples(self, seen: Inspection) -> float:
        return float(np.abs(_off_tangent(seen)).mean())


class RelativeLinearisation(OnRequest):
    """The same, divided by the mean of |μ(x_i) − μ(c)|."""

    name, symbol = "relative_linearisation", "rel. lin. error"
    meaning = "distance from the tangent, relative to the change"

    def _of_samples(self, seen: Inspection) -> float:
        centre = np.concatenate(
            [
                np.full(len(case.margins), guided.found.margins[0])
                for case, guided in zip(seen.sampled_cases, seen.guided, strict=True)
            ]
        )
        change = np.abs(seen.sampled.margins - centre).mean()
        return float(np.abs(_off_tangent(seen)).mean() / (change + seen.settings.eta))


class FirstOrderMarginRatio(OnRequest):
    """μ(c) / Σ_k |∂μ(c)/∂x_k|·r_k, the least over cases; r is the radius of the box."""

    name, symbol, meaning = "first_order_ratio", "μ/drift", "margin at the centre over its linear drift"

    def _of_samples(self, seen: Inspection) -> float:
        return min(
            float(guided.found.margins[0] / (np.abs(guided.found.gradients[0]) @ radius))
            for guided, radius in zip(seen.guided, _radii(seen), strict=True)
        )


class LocalLipschitz(OnRequest):
    """The largest ‖∇μ‖₁ of any sample."""

    name, symbol, meaning = "local_lipschitz", "L_c", "largest norm of the gradient"

    def _of_samples(self, seen: Inspection) -> float:
        return float(np.abs(seen.sampled.gradients).sum(axis=1).max())


class LipschitzMarginRatio(OnRequest):
    """The largest Σ_k |∂μ/∂x_k|·r_k of any sample, divided by |M̂_min| + η."""

    name, symbol, meaning = "lipschitz_ratio", "L·r/M", "largest linear drift over the margin"

    def _of_samples(self, seen: Inspection) -> float | None:
        if seen.least_margin is None:
            return None
        drift = max(
            float((np.abs(case.gradients) @ radius).max())
            for case, radius in zip(seen.sampled_cases, _radii(seen), strict=True)
        )
        return drift / (abs(seen.least_margin) + seen.settings.eta)


class Curvature(OnRequest):
    """The mean of |μ(a) + μ(b) − 2μ((a + b)/2)| over neighbouring samples a and b."""

    name, symbol, meaning = "curvature", "bending", "how far chords lie from the margin"

    def _of_samples(self, seen: Inspection) -> float:
        from dokimos.engine.attacks.margin_pass import MarginPass

        found = []
        for form, points, case in zip(seen.forms, seen.points, seen.sampled_cases, strict=True):
            chosen = points[: CHORDS + 1]
            middle = MarginPass(seen.network, form).margins((chosen[1:] + chosen[:-1]) / 2)
            ends = case.margins[: CHORDS + 1]
            found.append(np.abs(ends[1:] + ends[:-1] - 2 * middle))
        return float(np.concatenate(found).mean())


class Layers(OnRequest):
    """How many nodes of the network are not affine."""

    name, symbol, meaning = "layers", "layers", "number of nonlinear layers"

    def _of_samples(self, seen: Inspection) -> float:
        linear = {"Gemm", "MatMul", "Conv", "Add", "Sub", "Neg", "Reshape", "Transpose", "Concat", "Pad"}
        return float(sum(node.op not in linear for node in seen.network.nodes))


class UnstableTimesRegions(OnRequest):
    """U·A_τ."""

    name, symbol, meaning = "unstable_regions", "U·A_τ", "unstable units and pieces"

    def _of_samples(self, seen: Inspection) -> float | None:
        return _product(UnstableFraction()(seen).value, Regions()(seen).value)


class GapTimesUnstable(OnRequest):
    """G_IBP·U."""

    name, symbol, meaning = "gap_unstable", "G_IBP·U", "looseness and unstable units"

    def _of_samples(self, seen: Inspection) -> float | None:
        return _product(IbpGap()(seen).value, UnstableFraction()(seen).value)


class GapTimesRegions(OnRequest):
    """G_IBP·A_τ."""

    name, symbol, meaning = "gap_regions", "G_IBP·A_τ", "looseness and pieces"

    def _of_samples(self, seen: Inspection) -> float | None:
        return _product(IbpGap()(seen).value, Regions()(seen).value)


class GapOverMargin(OnRequest):
    """G_IBP / (|M̂_min| + η)."""

    name, symbol, meaning = "gap_over_margin", "G_IBP/M", "looseness over the margin"

    def _of_samples(self, seen: Inspection) -> float | None:
        if seen.least_margin is None:
            return None
        return _product(IbpGap()(seen).value, 1 / (abs(seen.least_margin) + seen.settings.eta))


def _product(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first * second


def _radii(seen: Inspection) -> list[Floats]:
    return [(upper - lower) / 2 for lower, upper in map(float_ends, seen.boxes)]


def _off_tangent(seen: Inspection) -> Floats:
    """μ(x_i) − μ(c) − ∇μ(c)·(x_i − c) at every sample."""
    found = []
    for points, case, guided in zip(seen.points, seen.sampled_cases, seen.guided, strict=True):
        rise = (points - guided.points[0]) @ guided.found.gradients[0]
        found.append(case.margins - guided.found.margins[0] - rise)
    return np.concatenate(found)
