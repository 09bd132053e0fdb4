"""Bounders with one bug each: in their bounds (`bound_flaws`), or in how they use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dokimos.networks.graph import Network
from dokimos.properties.margins import MarginForm
from dokimos.properties.model import Box, Point
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.planted.base import ATTACK, PLAIN_PGD, SEED, Task
from dokimos.verifiers.planted.bounder import Bounder

if TYPE_CHECKING:
    from dokimos.verifiers.planted.float_bounds import FloatBounds


@dataclass(frozen=True)
class FlawedBounder(Bounder):
    """The flaw of its name is in its bounds."""

    name: str
    about: str

    def bounds(self, network: Network, box: Box) -> FloatBounds:
        """The flawed ones."""
        from dokimos.verifiers.planted.bound_flaws import FLAWED

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
        found = PLAIN_PGD(task.network, task.property, seed=SEED, budget=ATTACK)
        return tuple(Fraction(float(x)) for x in found.point) if found.least_margin <= 1e-3 else None


FLAWED_BOUNDERS = (
    FlawedBounder("relu-slope", "takes −l/(u−l) for the slope u/(u−l) of a ReLU's chord"),
    FlawedBounder("relu-intercept", "forgets the intercept of a ReLU's chord"),
    FlawedBounder("relu-at-centre", "takes a ReLU for stable by its sign in the middle of its bounds"),
    FlawedBounder("abs-missing", "forgets the absolute value of weights in the radius of an interval"),
    FlawedBounder("float32-bounds", "computes bounds in float32 without rounding outward"),
    FlawedBounder("half-radius", "takes the radius of the box for its width"),
    FlawedBounder("power-by-ends", "bounds powers by their values at both ends"),
    FlawedBounder("product-by-ends", "bounds products by those of lower and of upper ends"),
    FlawedBounder("softmax-by-ends", "bounds Softmax by its values at both ends"),
    NanIsProven("nan-is-proven", "takes a bound that is nan for proven"),
    TimeoutIsUnsat(),
    LostHalf(),
    AnyDisjunct(),
    UncheckedAttack(),
)
