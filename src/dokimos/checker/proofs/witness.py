"""A point that is unsafe."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from dokimos.checker.base import CertificateKind, LowerBound, NoData, Problem, Proven, read_data
from dokimos.checker.lemmas.constraints import output_errors
from dokimos.checker.proofs.fixed_routing import rounding_by_routing
from dokimos.checker.proofs.nonexpansive import rounding_by_norm
from dokimos.core.errors import InvalidProof, about
from dokimos.networks.semantics.exact import Enclosure, Undecided
from dokimos.networks.semantics.outward import FLOAT32
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Point
from dokimos.suites.vnnlib.violation import slack_range, violations

#: Above this many multiplications, float64 is tried first even if the largest margin is wanted.
EXACT_LATER = 1 << 21


class Witness(CertificateKind):
    """`sat`.

    Theorem. A property is `sat` if a point lies in the box of one of its cases and all constraints of one
    of that case's conjunctions hold there. The network's value at the point is enclosed, in float64 rounded
    outward, in exact rationals or in balls, until every comparison that matters has the same result for all
    values in the enclosure: then it has that result for the exact value.

    In a float type the point must be of that type, and the constraints must hold with more to spare than
    rounding can move their left sides at that point.
    """

    name: ClassVar[str] = "witness"
    proves: ClassVar[Label] = Label.SAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Evaluate the witness exactly."""
        read_data(data, NoData)
        point = problem.witness
        if point is None:
            raise InvalidProof("there is no witness")
        if len(point) != problem.network.input_size:
            raise InvalidProof(
                f"the witness has {len(point)} coordinates for {problem.network.input_size} inputs"
            )
        try:
            return self._prove_at(problem, point)
        except Undecided as error:
            raise InvalidProof(f"the output at the witness is not known: {error}") from error

    def _prove_at(self, problem: Problem, point: Point) -> Proven:
        """The margins, from enclosures that are narrowed until they show what is asked, or all they can."""
        network = problem.network
        errors = [output_errors(problem)]
        if problem.form == FLOAT32:
            special = (rounding_by_norm(network), rounding_by_routing(network, problem.ulps))
            errors = [error for error in special if error is not None] + errors
        proven: Proven | None = None
        floats_first = problem.asked is not None or network.multiplications > EXACT_LATER
        for found in violations(network, problem.property, point, floats_first=floats_first):
            if not found.in_box:
                raise InvalidProof(f"the witness lies outside the box by {about(found.outside_by)}")
            if found.violates is False:
                break
            if found.violates:
                margin = Fraction(0) if found.margin_lower is None else max(found.margin_lower, Fraction(0))
                proofs = (partial(floats_margin, problem, point, found.outputs, error) for error in errors)
                shown = (value for proof in proofs if (value := problem.in_floats(proof)) is not None)
                proven = Proven(margin, next(shown, None))
                if problem.asked is None or proven.reaches(problem.asked):
                    break
        if proven is None:
            raise InvalidProof("the output at the witness is not unsafe")
        return proven


def floats_margin(problem: Problem, point: Point, outputs: Enclosure, error: LowerBound) -> Fraction:
    """The best, over conjunctions of cases that hold the point, of the smallest slack minus rounding.

    `outputs` encloses the real outputs at the point; `error` bounds the effect of rounding on a constraint.
    """
    if not all(map(problem.form.holds, point)):
        raise InvalidProof(f"the witness is not a {problem.form.name} point")
    here = Box(point, point)
    cases = [case for case in problem.property.cases if point in case.box]
    if any(not conjunction for case in cases for conjunction in case.any_of):
        return Fraction(0)  # the outputs are not constrained, so their rounding does not matter
    slacks = [
        [slack_range(c, point, outputs)[0] - error(c, here) for c in conjunction]
        for case in cases
        for conjunction in case.any_of
    ]
    best = max(map(min, slacks), default=Fraction(0))
    if best <= 0:
        raise InvalidProof("rounding may undo the violation at the witness")
    return best
