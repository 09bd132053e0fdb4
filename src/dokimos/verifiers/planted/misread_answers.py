"""Correct decisions that are reported wrongly, and decisions that are not proofs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.planted.misreader import Misreader


def _rounded(given: VerifierAnswer) -> VerifierAnswer:
    if given.witness is None:
        return given
    return replace(given, witness=tuple(Fraction(f"{float(x):.3g}") for x in given.witness))


def _without_witness(given: VerifierAnswer) -> VerifierAnswer:
    return replace(given, witness=None)


def _backwards(given: VerifierAnswer) -> VerifierAnswer:
    return given if given.witness is None else replace(given, witness=given.witness[::-1])


def _always_unsat(given: VerifierAnswer) -> VerifierAnswer:
    return VerifierAnswer(Answer.UNSAT) if given.answer is Answer.SAT else given


def _swapped(given: VerifierAnswer) -> VerifierAnswer:
    turned = {Answer.SAT: Answer.UNSAT, Answer.UNSAT: Answer.SAT}
    return VerifierAnswer(turned.get(given.answer, given.answer))


MISREAD_ANSWERS = (
    Misreader("witness-3-digits", "prints a witness with 3 digits", report=_rounded),
    Misreader("no-witness", "says sat without a witness", report=_without_witness),
    Misreader("witness-backwards", "prints a witness from the last input to the first", report=_backwards),
    Misreader("always-unsat", "says unsat even if it found a counterexample", report=_always_unsat),
    Misreader("swapped-words", "says sat for unsat and unsat for sat", report=_swapped),
    Misreader("attack-is-proof", "says unsat if its own attack fails", knows_the_truth=False),
)
