"""Rule sets: what one answer is worth, under our own rules and under those of the competitions.

A competition does not know the truth. It believes a `sat` if it accepts that answer's witness, and an
`unsat` if no tool refutes it by a strictly correct witness; so **an `unsat` alone is never checked**.
`exact` uses the verdicts instead, hence the proven labels. If the two differ, some verifier's score is
undeserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dokimos.core.plugins import PluggableRegistry

_NONE = Fraction(0)


class Standing(Enum):
    """How an answer counts under a rule set."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    NONE = "nothing"


@dataclass(frozen=True)
class Mark:
    """The mark that one rule set (by name) gives one run, and why."""

    rules: str
    standing: Standing
    points: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class WitnessRule:
    """How far a witness may be off: from the box and from the constraints, absolutely.

    `own_outputs` is how far, relatively, the verifier's own outputs may be from onnxruntime's; None if
    they are ignored. It also decides how the witness is evaluated: see `witness_classes`.
    """

    inputs: Fraction = _NONE
    outputs: Fraction = _NONE
    own_outputs: Fraction | None = None


@dataclass(frozen=True, kw_only=True)
class RuleSet:
    """One way to score. `accepts` and `establishes` are None if the verdicts decide.

    A `sat` is right if its own witness meets `accepts`; an `unsat` is wrong if the witness of some verifier
    meets `establishes`. `witness_required` says whether a `sat` without a witness is incorrect.
    """

    name: str
    about: str
    accepts: WitnessRule | None = None
    establishes: WitnessRule | None = None
    witness_required: bool = True
    points_correct: int = 10
    points_incorrect: int = -150

    def mark(self, standing: Standing, reason: str) -> Mark:
        """The mark for a standing, with this rule set's points."""
        points = {Standing.CORRECT: self.points_correct, Standing.INCORRECT: self.points_incorrect}
        return Mark(self.name, standing, points.get(standing, 0), reason)


EXACT = RuleSet(
    name="exact",
    about="by the proven labels; every witness replayed exactly; no tolerance; a sat needs no witness",
    witness_required=False,
)
_ACCEPTED_IN_2025 = WitnessRule(
    inputs=Fraction(1, 10**4), outputs=Fraction(1, 10**4), own_outputs=Fraction(1, 10**3)
)
VNNCOMP_2026 = RuleSet(
    name="vnncomp2026",
    about="onnxruntime's outputs; inputs within 1e-4 to be accepted, no tolerance to refute an unsat",
    accepts=WitnessRule(inputs=Fraction(1, 10**4)),
    establishes=WitnessRule(),
)
VNNCOMP_2025_SMALL = RuleSet(
    name="vnncomp2025-small",
    about="own outputs, within 1e-3 of onnxruntime's (1e-6 to refute an unsat); all within 1e-4 (1e-7)",
    accepts=_ACCEPTED_IN_2025,
    establishes=WitnessRule(
        inputs=Fraction(1, 10**7), outputs=Fraction(1, 10**7), own_outputs=Fraction(1, 10**6)
    ),
)
VNNCOMP_2025_ZERO = RuleSet(
    name="vnncomp2025-zero",
    about="own outputs, within 1e-3 of onnxruntime's; all within 1e-4; no tolerance to refute an unsat",
    accepts=_ACCEPTED_IN_2025,
    establishes=WitnessRule(own_outputs=_NONE),
)
#: Every rule set by its name; packages may add to these.
RULE_SETS: PluggableRegistry[RuleSet] = PluggableRegistry(
    "rule set",
    {},
    group="dokimos.rules",
    expects=RuleSet,
    elements={rules.name: rules for rules in (EXACT, VNNCOMP_2026, VNNCOMP_2025_SMALL, VNNCOMP_2025_ZERO)},
)


def rule_sets(names: Sequence[str]) -> tuple[RuleSet, ...]:
    """The rule sets of these names, each once. Raises InputError, with the known names, for any other."""
    return tuple(RULE_SETS[name] for name in dict.fromkeys(names))
