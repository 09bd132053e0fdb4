"""A network that is another one in other words."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from dokimos.checker.base import CertificateKind, Problem, Proven, if_provable
from dokimos.checker.data import PLACE, expect_keys, text
from dokimos.checker.kinds import CERTIFICATES
from dokimos.checker.lemmas.rounding_slack import output_error
from dokimos.core.errors import InputError, InvalidProof, UnreadableFile
from dokimos.networks.chain import as_chain
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.rewriting import step_from_json
from dokimos.suites.instance import Label


class Rewritten(CertificateKind):
    """`unsat` for a network that exact steps make from a base network, whose own proof is given.

    Theorem. If every step keeps the function over the reals (each says why), the network that they make
    of the base computes the base's function; so if it is the shipped file, bit for bit, whatever is
    proven of the base over the reals, margin included, is true of the shipped network.

    In float32 the steps may change the rounding: the margin is what the rounding bound of the shipped
    network's outputs leaves of the margin over the reals.
    """

    name: ClassVar[str] = "rewritten"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Replay the steps, compare the files, and prove the base."""
        expect_keys(data, "base", "steps", "kind", "data")
        kind = text(data, "kind")
        if kind not in CERTIFICATES or CERTIFICATES[kind].proves is not Label.UNSAT or kind == self.name:
            raise InvalidProof(f"a certificate of kind {kind!r} cannot prove the base network")
        base = _decoded(text(data, "base"))
        if _replayed(base, data["steps"]) != problem.network_file:
            raise InvalidProof("the steps do not make the shipped network of the base network")
        if not isinstance(data["data"], Mapping):
            raise UnreadableFile(PLACE, "'data' must be an object")
        network = read_onnx(base, name="base network")
        proven = CERTIFICATES[kind].prove(
            replace(problem, network=network, network_file=base), data["data"]
        )
        return Proven(proven.real, if_provable(lambda: _margin_after_rounding(problem, proven.real)))


def _margin_after_rounding(problem: Problem, margin: Fraction) -> Fraction:
    """The margin less the largest rounding of any constraint: which of them fails is not known here."""
    errors = (
        output_error(problem, case.box, constraint)
        for case in problem.property.cases
        if not case.box.is_empty
        for conjunction in case.any_of
        for constraint in conjunction
    )
    left = margin - max(errors, default=Fraction(0))
    if left <= 0:
        raise InvalidProof("rounding may undo the margin of the rewritten network")
    return left


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise UnreadableFile(PLACE, "'base' is not a file in base64") from None


def _replayed(base: bytes, steps: Any) -> bytes:
    """The file that the steps make of the base network's."""
    if not isinstance(steps, list):
        raise UnreadableFile(PLACE, "'steps' must be a list")
    chain = as_chain(read_onnx(base, name="base network"))
    try:
        for document in steps:
            chain = step_from_json(document).apply(chain)
    except InputError as error:
        raise InvalidProof(f"a step cannot be replayed: {error}") from error
    return chain.build()
