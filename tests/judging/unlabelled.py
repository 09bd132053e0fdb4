"""Two campaigns that say of an instance without a label what cannot both be true."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dokimos.suites.answers import Answer
from tests.difficulty.explain.sample import Made, record, write_campaign, write_suite
from tests.scripting import at_least, relu_network


class Readable(Made):
    """An instance of files that can be read; it is violated at (1, 1)."""

    @property
    def network(self) -> bytes:
        return relu_network()

    @property
    def asked(self) -> bytes:
        return at_least("1.5")


def unlabelled_campaigns(folder: Path) -> list[Path]:
    """Two campaigns on a suite without truth files: one has a witness, the other says unsat."""
    suite = write_suite(folder / "suite", [Readable("i", label=None)])
    found = replace(record("i", Answer.SAT, verifier="reference"), witness=(Fraction(1), Fraction(1)))
    denied = record("i", Answer.UNSAT, verifier="marabou")
    return [
        write_campaign(folder / "found", suite, [found], verifiers=["reference"]),
        write_campaign(folder / "denied", suite, [denied], verifiers=["marabou"]),
    ]
