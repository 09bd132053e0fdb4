"""A law on a network as one question about copies of it side by side, proven by the kind `linear`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from dokimos.checker.base import Problem
from dokimos.checker.linear.proof import LinearProof
from dokimos.core.errors import InputError, InvalidProof, UnsupportedOp
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import NetworkCloser
from dokimos.laws.proving.product_layers import ProductInstance, product_instance
from dokimos.laws.proving.question import LinearCover
from dokimos.laws.proving.relational import relational_property, without_strict
from dokimos.laws.proving.row_zones import cases_near
from dokimos.laws.proving.searching import Confirms, Deadline, ExactCase, SearchEnd
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.lower import lower
from dokimos.suites.vnnlib.model import Point

if TYPE_CHECKING:
    from dokimos.engine.linear import LinearFinding

#: How many cases next to a point are tried.
_MOST_CASES = 16


@dataclass(frozen=True)
class CopiesOfNetwork:
    """What a law says of a network, as a property of one network of several copies of it."""

    closer: NetworkCloser

    @cached_property
    def _made(self) -> tuple[Network, ProductInstance]:
        """The copies, and the property. Raises Refusal where the law cannot be said so."""
        question, reach = self.closer.question, self.closer.reach
        asked = relational_property(question, question.zone, reach.network)
        if asked is None:
            raise Refusal("the set has no case")
        try:
            lowered = lower(without_strict(asked), {each.name: reach.content for each in asked.networks})
            made = product_instance(reach.network, lowered)
            return read_onnx(made.network, name="copies of the network"), made
        except (InputError, UnsupportedOp) as error:
            raise Refusal(str(error)) from error

    def check(self, cover: LinearCover) -> bool:
        """Check that the law holds over the reals; and say whether it does in float32 too.

        Theorem. At a case that violates the law, the copies are unsafe (`relational_property`, `lower`,
        `product_instance`); so if the property is `unsat`, there is none. In float32, score a of a record
        is off by at most e_a, everywhere. A decision a in float32 means that no score j is larger there, so
        that score j − score a is at most e_a + e_j over the reals. So at a case that violates the law in
        float32, every constraint of some conjunction holds but for the largest e_a + e_j. If each
        conjunction fails by more at every input, there is no such case.

        Raises InvalidProof, or Refusal.
        """
        network, made = self._made
        proven = LinearProof().prove(Problem(network, made.property), cover.data)
        error = self.closer.reach.rounding
        if error is None:
            return False
        largest = sum(sorted((Fraction(each) for each in error.tolist()), reverse=True)[:2], Fraction(0))
        return proven.real > largest

    def search(self, confirms: Confirms, deadline: Deadline) -> SearchEnd:
        """A proof, or a case that certainly violates the law; neither if none is found in time."""
        from dokimos.engine.linear import LinearSearch
        from dokimos.engine.outcome import SearchEffort

        try:
            network, made = self._made
            found: list[ExactCase] = []

            def settles(point: Point) -> bool:
                columns = [sum((point[k] for k in parts), Fraction(0)) for parts in made.inputs]
                question = self.closer.question
                near = islice(cases_near(question, columns), _MOST_CASES)
                found.extend(case for case in near if case in question.zone and confirms(case))
                return bool(found)

            effort = SearchEffort(deadline.left)
            ended: LinearFinding = LinearSearch(network, made.property, effort, settles).run()
        except (Refusal, InvalidProof, UnsupportedOp):
            return SearchEnd(share=1.0)
        if found:
            return SearchEnd(case=found[0])
        return SearchEnd(share=1.0) if ended.data is None else SearchEnd(linear=LinearCover(ended.data))
