"""An ideal verifier that misreads one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from dokimos.networks.graph import Network
from dokimos.properties.model import Property
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.instance import Label
from dokimos.verifiers.planted.base import PlantedVerifier, Sort, Task, attacked, violates

T = TypeVar("T")


def unchanged(given: T) -> T:
    """What is read correctly."""
    return given


@dataclass(frozen=True)
class Misreader(PlantedVerifier):
    """It answers for the misread network or property, with all available help.

    If it misreads nothing in an instance, it answers with the label in `truth/`. Otherwise it tries the
    known witness, then attacks the misread network, and says `unsat` if both fail. So its wrong answers
    come from the misreading alone, never from a weak proof. `report` changes the answer on its way out;
    `knows_the_truth` is False for one that trusts its own attack alone.
    """

    name: str
    about: str
    network: Callable[[Network], Network] = field(default=unchanged, repr=False)
    property: Callable[[Property], Property] = field(default=unchanged, repr=False)
    report: Callable[[VerifierAnswer], VerifierAnswer] = field(default=unchanged, repr=False)
    knows_the_truth: bool = True
    is_sound: bool = False
    sort = Sort.MISREADER

    def decide(self, task: Task) -> VerifierAnswer:
        """The ideal answer to what was read."""
        return self.report(self._ideal(task, self.network(task.network), self.property(task.property)))

    def _ideal(self, task: Task, network: Network, property: Property) -> VerifierAnswer:
        if network is task.network and property == task.property and self.knows_the_truth:
            if task.label is None:
                return VerifierAnswer(Answer.UNKNOWN, detail="there is no truth/ beside the instance")
            if task.label is Label.UNSAT:
                return VerifierAnswer(Answer.UNSAT)
            return VerifierAnswer(Answer.SAT, task.witness)
        witness = task.witness if self.knows_the_truth else None
        if witness is not None and violates(network, property, witness):
            return VerifierAnswer(Answer.SAT, witness)
        found = attacked(network, property)
        return VerifierAnswer(Answer.UNSAT) if found is None else VerifierAnswer(Answer.SAT, found)
