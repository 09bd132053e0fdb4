"""The catalogue of planted bugs: every name that may follow ``--verifier planted=``."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dokimos.core.errors import InputError
from dokimos.core.readable import unknown_name
from dokimos.core.registry import Registry
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.networks.graph import Network
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.vnnlib.margins import MarginForm
from dokimos.suites.vnnlib.model import Box, Point
from dokimos.verifiers.planted.attackers import attackers
from dokimos.verifiers.planted.base import SEED, Misreader, PlantedVerifier, Sort, Task, plain_attack
from dokimos.verifiers.planted.bounder import Bounder, BoxPart, PlainBounder
from dokimos.verifiers.planted.misreadings import MISREAD_NETWORKS, MISREAD_PROPERTIES

if TYPE_CHECKING:
    from dokimos.verifiers.planted.flawed_bounds import FloatBounds


# Verifiers that take the failure of their own attack for a proof: one for each known attack


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


# Correct decisions that are reported wrongly, and decisions that are not proofs


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


# Bounders with one bug each: in their bounds (`bound_flaws`), or in how they use them


@dataclass(frozen=True)
class FlawedBounder(Bounder):
    """The flaw of its name is in its bounds."""

    name: str
    about: str

    def bounds(self, network: Network, box: Box) -> FloatBounds:
        """The flawed ones."""
        from dokimos.verifiers.planted.flawed_bounds import FLAWED

        return FLAWED[self.name](network, box)


class NanIsProven(FlawedBounder):
    """A comparison with nan is false, whichever way round it is."""

    def is_proven(self, margin: float) -> bool:
        """Whether the margin does not compare as 0 or less."""
        return not margin <= 0


class TimeoutIsUnsat(Bounder):
    """No counterexample until the end of its time."""

    name = "timeout-is-unsat"
    about = "says unsat when its time or its boxes are used up"

    def when_given_up(self) -> VerifierAnswer:
        """The wrong conclusion."""
        return VerifierAnswer(Answer.UNSAT)


class LostHalf(Bounder):
    """A list that is overwritten."""

    name = "lost-half"
    about = "forgets the upper half of every split"

    def halves(self, box: Box, at: int) -> Sequence[Box]:
        """The lower half."""
        return super().halves(box, at)[:1]


class StaleBounds(Bounder):
    """Bounds of units that are kept from one box to the next."""

    name = "stale-bounds"
    about = "takes the bounds of units over the lower half of a split for those over the upper half"

    def halves(self, box: Box, at: int) -> Sequence[Box]:
        """The halves; the second is remembered."""
        first, second = super().halves(box, at)
        self._pair = first, second
        return first, second

    def bounds(self, network: Network, box: Box) -> FloatBounds:
        """Those of the lower half for the upper one."""
        found = super().bounds(network, box)
        first, second = getattr(self, "_pair", (None, None))
        if box == second and first is not None:
            other = super().bounds(network, first)
            other.improve()
            found.take_units(other)
        return found


class SwallowedQueue(Bounder):
    """Parts for which a queue of bounded length has no room."""

    name = "swallowed-queue"
    about = "forgets the parts that a queue of three has no room for"

    def queued(self, waiting: deque[BoxPart]) -> deque[BoxPart]:
        """The first three."""
        return deque(list(waiting)[:3])


class AnyDisjunct(Bounder):
    """`any` for `all`."""

    name = "any-disjunct"
    about = "says unsat if one of the disjuncts is refuted"

    def margin(self, form: MarginForm, bounds: FloatBounds) -> float:
        """That of the conjunction that is farthest."""
        return float(bounds.row_bounds(form)[form.members].max())


class UncheckedAttack(Bounder):
    """A counterexample is a point that comes close in float32."""

    name = "unchecked-attack"
    about = "says sat if its attack comes within 0.001, without replaying the point"

    def search(self, task: Task) -> Point | None:
        """The best point of the attack, if it is close."""
        found = plain_attack(task.network, task.property)
        return tuple(Fraction(float(x)) for x in found.point) if found.least_margin <= 1e-3 else None


FLAWED_BOUNDERS = (
    FlawedBounder("relu-slope", "takes −l/(u−l) for the slope u/(u−l) of a ReLU's chord"),
    FlawedBounder("relu-intercept", "forgets the intercept of a ReLU's chord"),
    FlawedBounder("relu-at-centre", "takes a ReLU for stable by its sign in the middle of its bounds"),
    FlawedBounder("abs-missing", "forgets the absolute value of weights in the radius of an interval"),
    FlawedBounder("float32-bounds", "computes bounds in float32 without rounding outward"),
    FlawedBounder("half-radius", "takes the radius of the box for its width"),
    FlawedBounder("overwritten-bounds", "takes the slope of a ReLU's chord from its bounds before"),
    FlawedBounder("tanh-tangents", "bounds tanh by its tangent in the middle, above and below"),
    FlawedBounder("max-pool-upper", "bounds a MaxPool by the entry with the highest upper bound"),
    FlawedBounder("half-gradient", "bounds x² from below by a line with half the slope of its tangent"),
    FlawedBounder("power-by-ends", "bounds powers by their values at both ends"),
    FlawedBounder("product-by-ends", "bounds products by those of lower and of upper ends"),
    FlawedBounder("softmax-by-ends", "bounds Softmax by its values at both ends"),
    NanIsProven("nan-is-proven", "takes a bound that is nan for proven"),
    TimeoutIsUnsat(),
    LostHalf(),
    StaleBounds(),
    SwallowedQueue(),
    AnyDisjunct(),
    UncheckedAttack(),
)


#: Reads everything correctly, and knows the truth.
IDEAL = Misreader("ideal", "no bug: it reads everything correctly, and knows the truth", is_sound=True)
MISREADERS: tuple[PlantedVerifier, ...] = (IDEAL, *MISREAD_PROPERTIES, *MISREAD_NETWORKS, *MISREAD_ANSWERS)
BOUNDERS: tuple[PlantedVerifier, ...] = (PlainBounder(), *FLAWED_BOUNDERS)
#: The flaws of bounders in verifiers that attack first; one of the flaws is in the attack.
ATTACKERS: tuple[PlantedVerifier, ...] = attackers(
    [bug for bug in FLAWED_BOUNDERS if not isinstance(bug, UncheckedAttack)]
)


class PlantedBugs(Registry[PlantedVerifier]):
    """The planted bugs, by name; an unknown name is told which one is near."""

    def _unknown(self, name: str) -> InputError:
        return unknown_name(self._kind, name, list(self))


PLANTED = PlantedBugs("planted bug", {})
for _bug in (*MISREADERS, *BOUNDERS, *ATTACKERS, *TRUSTERS):
    PLANTED.add(_bug.name, _bug)
