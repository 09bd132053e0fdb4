"""A point that is unsafe."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dokimos.checker.base import CertificateKind, Problem, Proven, about, if_provable
from dokimos.checker.data import NoData, read_data
from dokimos.checker.lemmas.rounding_slack import output_errors
from dokimos.core.errors import InvalidProof
from dokimos.networks.semantics.exact import Undecided
from dokimos.properties.model import Box, Point
from dokimos.properties.violation import slack_range, violation_at
from dokimos.suites.instance import Label


class Witness(CertificateKind):
    """`sat`.

    Theorem. A property is `sat` if a point lies in the box of one of its cases and all constraints of
    one of that case's conjunctions hold there. The network is evaluated at the point in exact rationals
    or, where it has no rational value, in balls that decide every comparison.

    In float32 the point must be a float32 point, and the constraints must hold with more to spare than
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
                f"the witness has {len(point)} coordinates, the network {problem.network.input_size} inputs"
            )
        try:
            found = violation_at(problem.network, problem.property, point)
        except Undecided as error:
            raise InvalidProof(f"the output at the witness is not known: {error}") from error
        if not found.in_box:
            raise InvalidProof(f"the witness lies outside the box by {about(found.outside_by)}")
        if not found.violates:
            raise InvalidProof("the output at the witness is not unsafe")
        return Proven(
            real=Fraction(0) if found.margin_lower is None else max(found.margin_lower, Fraction(0)),
            float32=if_provable(lambda: float32_margin(problem, point)),
        )


def is_float32(point: Point) -> bool:
    """Whether every coordinate is a float32 number."""
    return all(abs(x) < 2**127 and Fraction(float(np.float32(float(x)))) == x for x in point)


def float32_margin(problem: Problem, point: Point) -> Fraction:
    """The best, over conjunctions of cases that hold the point, of the smallest slack less rounding."""
    if not is_float32(point):
        raise InvalidProof("the witness is not a float32 point")
    here = Box(point, point)
    error = output_errors(problem)
    cases = [case for case in problem.property.cases if point in case.box]
    if any(not conjunction for case in cases for conjunction in case.any_of):
        return Fraction(0)  # nothing is asked of the outputs, so no rounding of theirs matters
    outputs = violation_at(problem.network, problem.property, point).outputs
    slacks = [
        [slack_range(c, point, outputs)[0] - error(c, here) for c in conjunction]
        for case in cases
        for conjunction in case.any_of
    ]
    best = max(map(min, slacks), default=Fraction(0))
    if best <= 0:
        raise InvalidProof("rounding may undo the violation at the witness")
    return best
