"""What every verifier of the catalogue of planted bugs has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError, InputError, UnsupportedOp
from dokimos.engine.attacks.base import AttackResult, Budget
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.margins import margin_cases
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at

#: The lower and upper ends of the numbers in a tensor.
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]
#: How hard the verifiers of the catalogue attack a network.
ATTACK = Budget(restarts=40, steps=40)
SEED = 0


class Sort(Enum):
    """Where a planted bug acts: on what is read, on what is computed from it, or on what is concluded.

    An attacker has a correct attack, which comes first, and one bug in its proofs.
    """

    MISREADER = "misreader"
    BOUNDER = "bounder"
    ATTACKER = "attacker"
    TRUSTER = "truster"


@dataclass(frozen=True)
class Task:
    """The query to a planted verifier, and what `truth/` says about it (None if that is missing)."""

    network: Network
    property: Property
    label: Label | None
    witness: Point | None
    seconds: float


class PlantedVerifier(ABC):
    """A verifier with one bug, or the same without it.

    `name` is what follows ``planted=`` on the command line, `about` says what the bug is in one line. The
    version without a bug (`is_sound`) is never wrong, but may leave a query open. The same task gets the
    same answer, unless its time is too short.
    """

    name: str
    about: str
    sort: Sort
    is_sound: bool

    @abstractmethod
    def decide(self, task: Task) -> VerifierAnswer:
        """The answer. May raise what reading or evaluating a network raises."""

    def tensor_bounds(self, task: Task) -> Mapping[str, Bounds]:
        """The ends of tensors over the whole box, as it sees them; none if it has no bounds."""
        return {}

    def answer(self, task: Task) -> VerifierAnswer:
        """The answer, or why there is none."""
        try:
            return self.decide(task)
        except UnsupportedOp as error:
            return VerifierAnswer(Answer.UNSUPPORTED, detail=f"operator {error.op}: {error.reason}")
        except (DokimosError, Undecided, ValueError) as error:
            return VerifierAnswer(Answer.ERROR, detail=str(error))


def answer_to(bug: PlantedVerifier, entry: SuiteEntry) -> VerifierAnswer:
    """Its answer to an instance of a suite, or why there is none."""
    task = task_for(entry)
    return VerifierAnswer(Answer.ERROR, detail=task) if isinstance(task, str) else bug.answer(task)


def task_for(entry: SuiteEntry) -> Task | str:
    """The query about an instance, or why there is none. A truth about other files is ignored."""
    try:
        instance, truth = entry.read_instance(), entry.read_truth()
        hashes = (instance.network_sha256, instance.property_sha256)
        if truth is not None and (truth.network_sha256, truth.property_sha256) != hashes:
            truth = None
        return Task(
            network=read_onnx(instance.network_file, name=str(entry.network_path)),
            property=read_vnnlib(instance.property_file, file=str(entry.property_path)),
            label=truth.label if truth else None,
            witness=truth.witness if truth else None,
            seconds=instance.timeout_seconds,
        )
    except DokimosError as error:
        return str(error)


def violates(network: Network, property: Property, point: Point) -> bool:
    """Whether `point` is an exact counterexample; False if no precision can tell."""
    try:
        return violation_at(network, property, point).violates is True
    except Undecided:
        return False


def plain_attack(network: Network, property: Property) -> AttackResult:
    """What the simplest attack finds, so that bugs in the rest of a verifier show."""
    from dokimos.engine.attacks.gradients import PGD  # imports torch, which most bugs do without

    return PGD(corners=0.0, scales=(1.0,))(network, property, seed=SEED, budget=ATTACK)


def attacked(network: Network, property: Property) -> Point | None:
    """A counterexample that gradient descent finds and exact replay confirms; None if there is none."""
    if not margin_cases(property):
        return None
    try:
        found = plain_attack(network, property)
    except InputError:
        return None
    point = tuple(Fraction(float(x)) for x in found.point)
    return point if found.least_margin <= 0 and violates(network, property, point) else None


# An ideal verifier that misreads one thing


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
