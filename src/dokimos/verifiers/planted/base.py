"""What every verifier of the catalogue of planted bugs has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dokimos.attacks.base import Budget
from dokimos.attacks.pgd import PGD
from dokimos.core.errors import DokimosError, InputError, UnsupportedOp
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided
from dokimos.properties.margins import margin_cases
from dokimos.properties.model import Point, Property
from dokimos.properties.reading import read_vnnlib
from dokimos.properties.violation import violation_at
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Label

#: How hard the verifiers of the catalogue attack a network.
ATTACK = Budget(restarts=40, steps=40)
#: The simplest attack, so that bugs in the rest of a verifier show.
PLAIN_PGD = PGD(corners=0.0, scales=(1.0,))
SEED = 0


class Sort(Enum):
    """Where a planted bug acts: on what is read, on what is computed from it, or on what is concluded."""

    MISREADER = "misreader"
    BOUNDER = "bounder"
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

    def answer(self, task: Task) -> VerifierAnswer:
        """The answer, or why there is none."""
        try:
            return self.decide(task)
        except UnsupportedOp as error:
            return VerifierAnswer(Answer.UNSUPPORTED, detail=f"operator {error.op}: {error.reason}")
        except (DokimosError, Undecided, ValueError) as error:
            return VerifierAnswer(Answer.ERROR, detail=str(error))


def answer_to(bug: PlantedVerifier, entry: SuiteEntry) -> VerifierAnswer:
    """Its answer to an instance of a suite, or why there is none. A truth about other files is ignored."""
    try:
        instance, truth = entry.read_instance(), entry.read_truth()
        hashes = (instance.network_sha256, instance.property_sha256)
        if truth is not None and (truth.network_sha256, truth.property_sha256) != hashes:
            truth = None
        task = Task(
            network=read_onnx(instance.network_file, name=str(entry.network_path)),
            property=read_vnnlib(instance.property_file, file=str(entry.property_path)),
            label=truth.label if truth else None,
            witness=truth.witness if truth else None,
            seconds=instance.timeout_seconds,
        )
    except DokimosError as error:
        return VerifierAnswer(Answer.ERROR, detail=str(error))
    return bug.answer(task)


def violates(network: Network, property: Property, point: Point) -> bool:
    """Whether `point` is an exact counterexample; False if no precision can tell."""
    try:
        return violation_at(network, property, point).violates is True
    except Undecided:
        return False


def attacked(network: Network, property: Property) -> Point | None:
    """A counterexample that gradient descent finds and exact replay confirms; None if there is none."""
    if not margin_cases(property):
        return None
    try:
        found = PLAIN_PGD(network, property, seed=SEED, budget=ATTACK)
    except InputError:
        return None
    point = tuple(Fraction(float(x)) for x in found.point)
    return point if found.least_margin <= 0 and violates(network, property, point) else None
