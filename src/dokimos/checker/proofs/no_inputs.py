"""A property that leaves no input: the bounds of an input contradict each other in every case."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from dokimos.checker.base import CertificateKind, NoData, Problem, Proven, read_data
from dokimos.core.errors import InvalidProof
from dokimos.suites.instance import Label


class NoInputs(CertificateKind):
    """`unsat` for any network: there is nothing to evaluate it on.

    Theorem. A box with a lower bound l above the upper bound u of the same input holds no point. If the box
    of every case is such a box, no input is unsafe, over the reals and in float32 alike, since a float32
    point of a box is a point of it. The margin is the least over the cases of the largest l − u: every
    input misses each box by half of it, at least, in some coordinate.

    A property without cases says nothing about inputs, and is not proven by this.
    """

    name: ClassVar[str] = "no-inputs"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Find a contradiction in every box."""
        read_data(data, NoData)
        boxes = [case.box for case in problem.property.cases]
        gaps = [max(a - b for a, b in zip(box.lower, box.upper, strict=True)) for box in boxes]
        if not gaps:
            raise InvalidProof("the property has no case: nothing to prove")
        margin: Fraction = min(gaps)
        if margin <= 0:
            raise InvalidProof("the box of some case is not empty")
        return Proven(real=margin, floats=problem.in_floats(lambda: margin))
