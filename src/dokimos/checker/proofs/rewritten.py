"""A network that computes the same function as another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from msgspec import Struct

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.data import read_data
from dokimos.checker.kinds import CERTIFICATES
from dokimos.checker.lemmas.rounding_slack import output_errors
from dokimos.core.errors import InputError, InvalidProof
from dokimos.networks.chain import as_chain
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.rewriting import Step
from dokimos.suites.instance import Label


class RewrittenData(Struct, frozen=True, forbid_unknown_fields=True):
    """The base network's file, the steps that turn it into the shipped network, and the base's proof."""

    base: bytes
    steps: tuple[Step, ...]
    kind: str
    data: dict[str, Any]


class Rewritten(CertificateKind):
    """`unsat` for a network that exact steps make from a base network, whose proof is given.

    Theorem. If every step keeps the function over the reals (each says why), the network that they make
    from the base computes the base's function; so if it has the weights of the shipped file, number for
    number, whatever is proven of the base over the reals, margin included, is true of the shipped network.

    In float32 the steps may change the rounding: the margin is what the rounding bound of the shipped
    network's outputs leaves of the margin over the reals.
    """

    name: ClassVar[str] = "rewritten"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Replay the steps, compare the weights, and prove the base."""
        given = read_data(data, RewrittenData)
        known = given.kind in CERTIFICATES and given.kind != self.name
        if not known or CERTIFICATES[given.kind].proves is not Label.UNSAT:
            raise InvalidProof(f"a certificate of kind {given.kind!r} cannot prove the base network")
        base = read_onnx(given.base, name="base network")
        chain = as_chain(base)
        try:
            for step in given.steps:
                chain = step.apply(chain)
        except InputError as error:
            raise InvalidProof(f"a step cannot be replayed: {error}") from error
        if not chain.equals(as_chain(problem.network)):
            raise InvalidProof("the steps do not turn the base network into the shipped network")
        proven = CERTIFICATES[given.kind].prove(replace(problem, network=base), given.data)
        return Proven(proven.real, problem.in_float32(lambda: _margin_after_rounding(problem, proven.real)))


def _margin_after_rounding(problem: Problem, margin: Fraction) -> Fraction:
    """The margin minus the largest rounding of any constraint: which of them fails is not known here."""
    error = output_errors(problem)
    errors = (
        error(constraint, case.box)
        for case in problem.property.cases
        if not case.box.is_empty
        for conjunction in case.any_of
        for constraint in conjunction
    )
    left = margin - max(errors, default=Fraction(0))
    if left <= 0:
        raise InvalidProof("rounding may undo the margin of the rewritten network")
    return left
