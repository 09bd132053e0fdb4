"""An instance as its author intends it, before anything is proven."""

from __future__ import annotations

from dataclasses import dataclass

from dokimos.properties.model import Point, Property
from dokimos.suites.instance import Certificate, Label


@dataclass(frozen=True)
class Draft:
    """A network, a question, and why the answer is what its author says."""

    network: bytes
    question: Property
    certificate: Certificate
    witness: Point | None = None

    @property
    def label(self) -> Label:
        """What the author claims: `sat` iff there is a witness."""
        return Label.UNSAT if self.witness is None else Label.SAT
