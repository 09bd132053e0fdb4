"""Lower bounds on ReLU networks by fixed slopes below and case distinctions above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct

from dokimos.checker.base import CertificateKind, Problem, Proven, refute
from dokimos.checker.data import read_data
from dokimos.checker.lemmas.objective import objective, ranges
from dokimos.core.errors import InvalidProof
from dokimos.networks.semantics.expressions import ONE, ZERO, AffineExpression
from dokimos.networks.semantics.piecewise_linear import PiecewiseLinear, piecewise_linear
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.properties.model import Box, Linear
from dokimos.suites.instance import Label

#: This is more cases than any honest certificate of this kind needs.
MOST_LEAVES = 100_000


class SlopesAndSplitsData(Struct, frozen=True, forbid_unknown_fields=True):
    """One slope for each ReLU, in the order of the network."""

    slopes: tuple[Fraction, ...]


class SlopesAndSplits(CertificateKind):
    """`unsat` for ReLU networks.

    Theorem. Let g = r + c·max(0, e). (i) If c > 0, then g >= r + c·s·e for every s in [0, 1], since
    max(0, e) >= s·e. (ii) If c < 0, then g = min(r + c·e, r), so a lower bound on both is one on g.
    Eliminating the ReLUs one by one, the last first, leaves affine functions of the inputs, whose
    minima over a box are exact. Both steps hold for every input, so the bound holds on the whole box.

    The data gives one slope s for each ReLU, in the order of the network. For exclusive pairs, where
    max(0, z₁) and max(0, z₂) enter as their maximum z₂⁺ + max(0, z₁⁺ − z₂⁺), a slope of ½ there and of
    1 elsewhere yields (z₁ + z₂)/2, the constant γ whenever the paired rows are exact negatives; the
    minimum over pairs enters through case (ii), one case for each pair.
    """

    name: ClassVar[str] = "slopes-and-splits"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint over the reals, then with the float32 noise as extra inputs."""
        slopes = read_data(data, SlopesAndSplitsData).slopes
        if any(not 0 <= s <= 1 for s in slopes):
            raise InvalidProof("a slope lies outside [0, 1]")
        network = problem.network
        exact = SlopedForm(piecewise_linear(network), slopes)

        @cache
        def in_float32(box: Box) -> SlopedForm:
            rounding = rounding_bounds(network, box.lower, box.upper, ulps=problem.ulps)
            return SlopedForm(piecewise_linear(network, rounding=rounding), slopes)

        def float32_bound(constraint: Linear, box: Box) -> Fraction:
            return in_float32(box).lower_bound(constraint, box)

        return Proven(
            real=refute(problem.property, exact.lower_bound),
            float32=problem.in_float32(lambda: refute(problem.property, float32_bound)),
        )


class SlopedForm:
    """A network with one slope for each ReLU."""

    def __init__(self, form: PiecewiseLinear, slopes: Sequence[Fraction]) -> None:
        if len(slopes) != len(form.relus):
            raise InvalidProof(f"there are {len(slopes)} slopes for {len(form.relus)} ReLUs")
        self._form = form
        self._slope_of = dict(zip(form.relus, slopes, strict=True))

    def lower_bound(self, constraint: Linear, box: Box) -> Fraction:
        """A lower bound on left side − bound over the box, by the theorem of `SlopesAndSplits`."""
        lower, upper = ranges(self._form, box)
        pending: list[AffineExpression] = [objective(self._form, constraint)]
        smallest: Fraction | None = None
        leaves = 0
        while pending:
            expression = pending.pop()
            last = max((v for v in expression.variables if v in self._slope_of), default=None)
            if last is None:
                leaves += 1
                if leaves > MOST_LEAVES:
                    raise InvalidProof(f"the proof has more than {MOST_LEAVES} cases")
                value = expression.minimum(lower, upper)
                smallest = value if smallest is None else min(smallest, value)
                continue
            argument = self._form.relus[last]
            shares = (self._slope_of[last],) if expression.is_increasing_in(last) else (ONE, ZERO)
            pending += [expression.replace(last, share, argument) for share in shares]
        assert smallest is not None
        return smallest
