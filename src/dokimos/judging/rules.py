"""Rule sets: what one answer is worth, under our own rules and under those of the competitions.

A competition does not know the truth. It believes a `sat` if it accepts that answer's witness, and an
`unsat` if no tool refutes it by a strictly correct witness; so **an `unsat` alone is never checked**.
`exact` uses the verdicts instead, hence the proven labels. If the two differ, some verifier's score is
undeserved.

The rules changed from year to year. They are those of the scripts that computed the published scores:

- 2021 had no witnesses. The answers vote: the minority is wrong, unless two or more stand on either side;
  a tie is worth nothing. Where the random search `randgen` succeeds, a `sat` is worth 1.
- 2022 looked at witnesses only where a `sat` and an `unsat` contradict each other: one that is accepted
  there, by the tool's own outputs within 1e-4 of onnxruntime's, makes every `sat` right.
- 2021 and 2022 paid for speed: 2 points for the fastest with this answer and 1 for the second, where times
  within 0.2 s are equal, after taking off each tool's shortest run, and none is below 1 s.
- 2023 looked at every witness. What is accepted also refutes, and makes every `sat` right, whatever the
  others' witnesses are (the script was mended after the scores were published).
- 2024 meant to refute only by witnesses without any tolerance, but its script called none of them strictly
  correct: no `unsat` was ever refuted.

Before 2026 an answer counted even if its run took longer than the limit of its instance.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

from dokimos.core.plugins import PluggableRegistry

_NONE = Fraction(0)
#: How far every competition lets a witness leave the box.
INPUT_TOLERANCE = Fraction(1, 10**4)


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

    `own_outputs` is how far the verifier's own outputs may be from onnxruntime's, relatively unless
    `is_absolute`; None if they are ignored. It also decides how the witness is evaluated: see
    `witness_classes`.
    """

    inputs: Fraction = _NONE
    outputs: Fraction = _NONE
    own_outputs: Fraction | None = None
    is_absolute: bool = False


@dataclass(frozen=True, kw_only=True)
class RuleSet:
    """One way to score; `year` is that of its competition. If `accepts` is None, the verdicts decide.

    A `sat` is right if its own witness meets `accepts`; an `unsat` is wrong if the witness of some verifier
    meets `establishes` (None: no witness refutes). `witness_required` says whether a `sat` without a
    witness is incorrect, `shares_witnesses` that one strictly correct witness makes every `sat` right,
    `settles_conflicts` that witnesses matter only where answers contradict each other, `votes` that the
    majority of the answers is right, `pays_for_speed` that the fastest get more, and `ends_at_limit` that
    an answer after its time limit is none.
    """

    name: str
    about: str
    year: int | None = None
    accepts: WitnessRule | None = None
    establishes: WitnessRule | None = None
    witness_required: bool = True
    shares_witnesses: bool = False
    settles_conflicts: bool = False
    votes: bool = False
    pays_for_speed: bool = False
    ends_at_limit: bool = True
    points_correct: int = 10
    points_incorrect: int = -150

    def mark(self, standing: Standing, reason: str, *, extra: int = 0) -> Mark:
        """The mark for a standing, with this rule set's points and `extra` ones."""
        points = {Standing.CORRECT: self.points_correct, Standing.INCORRECT: self.points_incorrect}
        return Mark(self.name, standing, points.get(standing, 0) + extra, reason)


EXACT = RuleSet(
    name="exact",
    about="by the proven labels; every witness replayed exactly, clipped to the box within 1e-4; "
    "a sat needs no witness",
    witness_required=False,
)
_ACCEPTED_SINCE_2023 = WitnessRule(
    inputs=INPUT_TOLERANCE, outputs=Fraction(1, 10**4), own_outputs=Fraction(1, 10**3)
)
_ACCEPTED_IN_2022 = replace(_ACCEPTED_SINCE_2023, own_outputs=Fraction(1, 10**4), is_absolute=True)
VNNCOMP_2026 = RuleSet(
    name="vnncomp2026",
    about="onnxruntime's outputs; inputs within 1e-4 to be accepted, no tolerance to refute an unsat",
    year=2026,
    accepts=WitnessRule(inputs=INPUT_TOLERANCE),
    establishes=WitnessRule(),
)
VNNCOMP_2025_SMALL = RuleSet(
    name="vnncomp2025-small",
    about="own outputs, within 1e-3 of onnxruntime's (1e-6 to refute an unsat); all within 1e-4 (1e-7)",
    year=2025,
    ends_at_limit=False,
    accepts=_ACCEPTED_SINCE_2023,
    establishes=WitnessRule(
        inputs=Fraction(1, 10**7), outputs=Fraction(1, 10**7), own_outputs=Fraction(1, 10**6)
    ),
)
VNNCOMP_2025_ZERO = RuleSet(
    name="vnncomp2025-zero",
    about="own outputs, within 1e-3 of onnxruntime's; all within 1e-4; no tolerance to refute an unsat",
    year=2025,
    ends_at_limit=False,
    accepts=_ACCEPTED_SINCE_2023,
    establishes=WitnessRule(own_outputs=_NONE),
)
VNNCOMP_2024 = RuleSet(
    name="vnncomp2024",
    about="own outputs, within 1e-3 of onnxruntime's; all within 1e-4; no witness refuted an unsat",
    year=2024,
    ends_at_limit=False,
    accepts=_ACCEPTED_SINCE_2023,
)
VNNCOMP_2023 = RuleSet(
    name="vnncomp2023",
    about="own outputs, within 1e-3 of onnxruntime's; all within 1e-4; one accepted witness serves all",
    year=2023,
    ends_at_limit=False,
    shares_witnesses=True,
    accepts=_ACCEPTED_SINCE_2023,
    establishes=_ACCEPTED_SINCE_2023,
)
VNNCOMP_2022 = RuleSet(
    name="vnncomp2022",
    about="witnesses only where answers differ, own outputs and all within 1e-4; 2 and 1 points for speed",
    year=2022,
    ends_at_limit=False,
    accepts=_ACCEPTED_IN_2022,
    establishes=_ACCEPTED_IN_2022,
    witness_required=False,
    shares_witnesses=True,
    settles_conflicts=True,
    pays_for_speed=True,
    points_incorrect=-100,
)
VNNCOMP_2021 = RuleSet(
    name="vnncomp2021",
    about="no witnesses, the odd one out is wrong; 2 and 1 points for speed; 1 where randgen succeeds",
    year=2021,
    ends_at_limit=False,
    witness_required=False,
    votes=True,
    pays_for_speed=True,
    points_incorrect=-100,
)
#: Every rule set by its name; packages may add to these.
RULE_SETS: PluggableRegistry[RuleSet] = PluggableRegistry(
    "rule set",
    {},
    group="dokimos.rules",
    expects=RuleSet,
    elements={
        rules.name: rules
        for rules in (
            EXACT,
            VNNCOMP_2026,
            VNNCOMP_2025_SMALL,
            VNNCOMP_2025_ZERO,
            VNNCOMP_2024,
            VNNCOMP_2023,
            VNNCOMP_2022,
            VNNCOMP_2021,
        )
    },
)


def default_rules(years: Collection[int] = ()) -> tuple[str, ...]:
    """The names of the rule sets to score results of these years by: `exact`, the newest, and their own.

    For runs of one's own, which are of no year: those of the last two years.
    """
    shipped = [RULE_SETS[name] for name in RULE_SETS.shipped]
    *_, before, newest = sorted({rules.year for rules in shipped if rules.year is not None})
    wanted = {None, newest, *(years or (before,))}
    return tuple(rules.name for rules in shipped if rules.year in wanted)


def other_year(rules: RuleSet, years: Collection[int]) -> str:
    """That the rules are of another year than the results, in words; empty if they are not."""
    if rules.year is None or not years or rules.year in years:
        return ""
    return f"rules of {rules.year}, and these are results of {' and '.join(map(str, sorted(years)))}"


def rule_sets(names: Sequence[str]) -> tuple[RuleSet, ...]:
    """The rule sets of these names, each once. Raises InputError, with the known names, for any other."""
    return tuple(RULE_SETS[name] for name in dict.fromkeys(names))
