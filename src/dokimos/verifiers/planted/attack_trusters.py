"""Verifiers that take the failure of their own attack for a proof: one for each known attack."""

from __future__ import annotations

from dataclasses import dataclass

from dokimos.attacks import ATTACKS
from dokimos.attacks.base import Budget
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.planted.base import SEED, PlantedVerifier, Sort, Task

#: The CPU time after which such a verifier believes that there is nothing to find.
PATIENCE_SECONDS = 1.0


@dataclass(frozen=True)
class AttackTruster(PlantedVerifier):
    """It attacks for one CPU-second, and says `unsat` if it finds nothing.

    Its counterexamples are correct, replayed exactly: only what it does not find makes it wrong.
    """

    attack: str
    is_sound = False
    sort = Sort.TRUSTER

    @property
    def name(self) -> str:  # type: ignore[override]
        """What follows `planted=`."""
        return f"trusts-{self.attack}"

    @property
    def about(self) -> str:  # type: ignore[override]
        """What the bug is."""
        return f"says unsat if {self.attack} finds nothing in {PATIENCE_SECONDS:g} CPU-second"

    def decide(self, task: Task) -> VerifierAnswer:
        """The attack's answer."""
        budget = Budget(cpu_seconds=min(PATIENCE_SECONDS, task.seconds), until_found=True)
        found = ATTACKS[self.attack](task.network, task.property, seed=SEED, budget=budget).witness
        return VerifierAnswer(Answer.UNSAT) if found is None else VerifierAnswer(Answer.SAT, found)


TRUSTERS = tuple(AttackTruster(name) for name in sorted(ATTACKS))
