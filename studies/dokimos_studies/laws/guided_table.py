"""Guided against normal training: the rows of Table 2, paired differences, and the curves of Figure 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from dokimos_studies.laws.guided_records import Arm, GuidedRecords, PhaseRecord
from dokimos_studies.laws.student import MeanInterval, mean_interval

#: The level of all intervals: that of the paper's Figure 5.
LEVEL = 0.9


@dataclass(frozen=True)
class ChosenPolicies:
    """The policies of one run that the paper's Table 2 shows; None if the run has no eligible policy.

    A policy that always crashes violates nothing, so only policies that earn at least 0 on average are
    eligible.
    """

    fewest_bugs: PhaseRecord | None
    most_reward: PhaseRecord | None


def chosen(run: Sequence[PhaseRecord]) -> ChosenPolicies:
    """The policy with the fewest bugs, and the one with the most reward.

    Ties are broken by the most reward and by the fewest bugs. Bugs are those on held-out states.
    """
    able = [record for record in run if record.reward >= 0]
    if not able:
        return ChosenPolicies(None, None)
    return ChosenPolicies(
        min(able, key=lambda record: (record.held_out, -record.reward)),
        min(able, key=lambda record: (-record.reward, record.held_out)),
    )


@dataclass(frozen=True)
class PairedRuns:
    """Two runs with the same seed, both cut to the number of phases that both have."""

    seed: int
    steps: int
    normal: tuple[PhaseRecord, ...]
    guided: tuple[PhaseRecord, ...]

    @property
    def policies(self) -> tuple[ChosenPolicies, ChosenPolicies]:
        """Those of normal and of guided training."""
        return chosen(self.normal), chosen(self.guided)


def paired_runs(records: GuidedRecords, *, phases: int | None = None) -> list[PairedRuns]:
    """The pairs in which both arms have begun; with `phases`, those in which both have that many."""
    pairs = []
    for seed in records.seeds:
        normal, guided = (records.run(seed, arm) for arm in (Arm.NORMAL, Arm.GUIDED))
        count = min(len(normal), len(guided), *(() if phases is None else (phases,)))
        if count and (phases is None or count == phases):
            pairs.append(PairedRuns(seed, normal[count - 1].steps, normal[:count], guided[:count]))
    return pairs


@dataclass(frozen=True)
class Difference:
    """Guided minus normal, in one column of the table: the number of pairs, the mean, and its interval."""

    column: str
    pairs: int
    mean: float
    interval: MeanInterval | None


_Column = Callable[[ChosenPolicies], float | None]


def _number(record: PhaseRecord | None, of: str) -> float | None:
    return None if record is None else float(getattr(record, of))


_COLUMNS: dict[str, _Column] = {
    "bugs of the policy with the fewest bugs": lambda policies: _number(policies.fewest_bugs, "held_out"),
    "reward of the policy with the fewest bugs": lambda policies: _number(policies.fewest_bugs, "reward"),
    "bugs of the policy with the most reward": lambda policies: _number(policies.most_reward, "held_out"),
    "reward of the policy with the most reward": lambda policies: _number(policies.most_reward, "reward"),
}


def differences(pairs: Sequence[PairedRuns]) -> list[Difference]:
    """The paired difference in each pair of columns, over the pairs in which both have a policy."""
    found = []
    for name, column in _COLUMNS.items():
        both = [tuple(column(policies) for policies in pair.policies) for pair in pairs]
        less = [guided - normal for normal, guided in both if normal is not None and guided is not None]
        if less:
            found.append(Difference(name, len(less), fmean(less), mean_interval(less, level=LEVEL)))
    return found


@dataclass(frozen=True)
class CurvePoint:
    """The mean over the runs of an arm after that many steps, and its interval if there are several."""

    steps: int
    mean: float
    interval: MeanInterval | None


def curve(pairs: Sequence[PairedRuns], arm: Arm, of: str) -> list[CurvePoint]:
    """How a value of the records changes with the steps: means over all pairs that have got that far."""
    runs = [pair.guided if arm is Arm.GUIDED else pair.normal for pair in pairs]
    points = []
    for phase in range(max(map(len, runs), default=0)):
        there = [run[phase] for run in runs if len(run) > phase]
        values = [float(getattr(record, of)) for record in there]
        points.append(CurvePoint(there[0].steps, fmean(values), mean_interval(values, level=LEVEL)))
    return points
