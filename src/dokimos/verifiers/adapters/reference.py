"""The built-in verifier: exact branch and bound on small ReLU networks, every answer with a proof."""

from __future__ import annotations

from typing import ClassVar

from dokimos import __version__
from dokimos.execution.outcomes import Outcome
from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import Invocation, Query, Verifier
from dokimos.verifiers.own_interpreter import our_module
from dokimos.verifiers.results import read_result
from dokimos.verifiers.styles import CertificateStyle


class Reference(Verifier):
    """Slow and never wrong: it answers only what it has proven, and serves as the reference for others."""

    name = "reference"
    #: Branch and bound over phases; each case closed by multipliers of a linear relaxation.
    styles = (CertificateStyle.DUAL, CertificateStyle.PARTITION)
    can_stay_warm = True
    limitations: ClassVar[str] = "anything but affine operators and ReLU; large networks"
    unread_operators = (
        "AveragePool BatchNormalization Clip Cos Div Exp Floor GlobalAveragePool LeakyRelu "
        "Max MaxPool Min Mul Pow ReduceMean ReduceSum Sigmoid Sign Sin Softmax Tanh"
    )

    def version(self) -> str | None:
        """The version of Dokimos."""
        return __version__

    def how_to_get(self) -> str:
        """It is always installed."""
        return "it ships with Dokimos"

    def command(self, query: Query) -> Invocation:
        """Its runner, in our own interpreter with our own packages."""
        files = (str(query.network_file), str(query.property_file), str(query.result))
        timeout = f"{query.wall_seconds:g}"
        options = ("--timeout", timeout, "--certificate", str(query.certificate))
        return our_module("dokimos.verifiers.runners.reference", *options, *files)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)
