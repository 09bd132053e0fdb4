"""Features that move no further than the input, in the Euclidean norm."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.data import NoData, read_data
from dokimos.checker.lemmas.nonexpansive import features_of, radius, rounding_by_norm
from dokimos.checker.lemmas.rounding_slack import margins
from dokimos.networks.semantics.exact import Enclosure
from dokimos.properties.model import Box, Linear
from dokimos.properties.violation import slack_range
from dokimos.suites.instance import Label


class Nonexpansive(CertificateKind):
    """`unsat` by the Euclidean norm.

    Theorem. Let the features be Φ = S_n ∘ … ∘ S_1, where each step S_i moves two points apart at most
    ρ_i times in ‖·‖₂: a layer x ↦ Wx + b by ‖W‖₂; ReLU, added constants and moved numbers not at all; a
    residual block x − WᵀD·ReLU(Wx + b) with D >= 0 and ‖D^½W‖₂² <= 2 not at all; pairs of ReLUs that cancel
    by the norms of the two layers between which they stand (see `lemmas/euclidean`). Then on a box with
    centre c, Σ d_j·y_j, which is affine in Φ with row v = Σ d_j·w_j, differs from its value at c by at most
    ‖v‖₂·Πρ_i·‖r‖₂, r being the half-widths of the box. The outputs at c are computed in exact rationals;
    norms are bounded by sums of absolute products of weights, rounded outward.

    In float32, the features are off by what every step's rounding, measured in ‖·‖₂, becomes behind the
    steps that follow: not more, since these do not expand (see `Features.float32_error`). The data is
    empty: the checker derives everything from the files.
    """

    name: ClassVar[str] = "nonexpansive"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """The value at the centre minus the largest move, for every constraint."""
        read_data(data, NoData)
        features = features_of(problem.network)
        rate, row = features.rate, cache(features.row)
        at_centre = cache(features.at_centre)

        def bound(constraint: Linear, box: Box) -> Fraction:
            outputs = at_centre(box)[problem.network.output].fractions()
            widths = [(high - low) / 2 for low, high in zip(box.lower, box.upper, strict=True)]
            moved = row(constraint) * rate * radius(box) + sum(
                (abs(c) * widths[i] for i, c in constraint.inputs), Fraction(0)
            )
            return -slack_range(constraint, box.centre, Enclosure(outputs, outputs))[1] - moved

        return margins(problem, bound, rounding_by_norm(problem.network))
