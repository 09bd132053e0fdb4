"""Which component separates the timeouts of a verifier from what it solved, within families.

Timeouts are compared with solved instances, as in the paper's Figure 3. Runs that ran out of memory,
answered `unknown`, were wrong or failed are on neither side: they are counted in the account, not here.

The test permutes outcomes within families, whole units at a time (see `strata`), so that neither a hard
family nor a network with many properties produces a finding by itself. Its statistic is the stratified rank
sum with van Elteren's weights: in each stratum of n the ranks of the timeouts, divided by n + 1. The
largest of all components under the same permutations gives each its p-value: one level for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from dokimos.difficulty.explain.breaking_points import rung, sweeps
from dokimos.difficulty.explain.rows import (
    EXPLAINING,
    FamilySeparation,
    IsolatedAxis,
    Observation,
    Separation,
    Status,
)
from dokimos.difficulty.explain.strata import Bools, Floats, Ints, Resampling, Strata, solved_or_timed_out
from dokimos.suites.facts import COMPONENTS

#: With fewer timeouts, or fewer solved, than this there is not enough data.
ENOUGH = 5
#: With fewer families that have both outcomes than this there is not enough data.
ENOUGH_FAMILIES = 3


def separations(
    subject: str,
    observations: Sequence[Observation],
    resampling: Resampling | None = None,
    strata: Strata | None = None,
) -> tuple[Separation, ...]:
    """How well each component separates, in the canonical order; `strata` if they are known already."""
    chosen = resampling or Resampling()
    strata = strata or Strata.of(observations, EXPLAINING)
    decided = solved_or_timed_out(observations)
    compared = [WithinFamilies(strata, column) for column in range(len(EXPLAINING))]
    tested = [c for c in compared if not c.why_not(decided)]
    p_values = dict(zip(tested, largest_of_all(tested, strata, chosen), strict=True))
    intervals = dict(
        zip(
            tested,
            chosen.intervals(lambda w: np.stack([c.auc(w) for c in tested], axis=1), strata)
            if tested
            else [],
            strict=True,
        )
    )
    return tuple(_row(subject, one, decided, p_values.get(one), intervals.get(one)) for one in compared)


def _row(
    subject: str,
    one: WithinFamilies,
    decided: Sequence[Observation],
    p_value: float | None,
    interval: tuple[float, float] | None,
) -> Separation:
    note = one.why_not(decided)
    auc = None if note else one.observed()
    if auc in (0.0, 1.0):
        note = "complete separation: resampling gives no interval"
    without = [] if auc is None else one.without_each_family()
    return Separation(
        subject=subject,
        component=one.component,
        auc=auc,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        p_value=p_value,
        families=len(one.informative_families),
        without_low=min(without, default=None),
        without_high=max(without, default=None),
        pooled_auc=one.pooled(),
        solved=one.solved,
        timeouts=one.timeouts,
        left_out=len(decided) - one.solved - one.timeouts,
        note=note,
        by_family=one.by_family(),
    )


def largest_of_all(tested: Sequence[WithinFamilies], strata: Strata, resampling: Resampling) -> list[float]:
    """The p-values of components, each against the largest of all under permutations within families.

    A statistic is centred and scaled by its mean and deviation over the permutations, the one that was seen
    among them. It is only a test of the direction of the AUC that is shown.
    """
    if not tested:
        return []
    scores = strata.centred_ranks[:, [one.column for one in tested]]
    drawn = strata.permuted_outcomes(resampling.resamples, resampling.rng(1))
    sums = np.concatenate([strata.late[None] @ scores, *(outcomes @ scores for outcomes in drawn)])
    sums -= sums.mean(axis=0)
    deviation = sums.std(axis=0)
    standard = sums / np.where(deviation > 1e-9, deviation, np.inf)
    direction = np.sign([one.observed() - 0.5 for one in tested])
    largest = np.abs(standard[1:]).max(axis=1)
    # Permutations that give exactly the same sum must count as equal, whatever the order of additions.
    at_least = largest[:, None] >= standard[0] * direction - 1e-9
    found: list[float] = ((1 + at_least.sum(axis=0)) / (1 + len(largest))).tolist()
    return found


class WithinFamilies:
    """One component, compared within the strata that carry information."""

    def __init__(self, strata: Strata, column: int) -> None:
        known = strata.known[:, column]
        self.component, self.column = strata.components[column], column
        self.timeouts = int(strata.late[known].sum())
        self.solved = int(known.sum()) - self.timeouts
        self._strata, self._known = strata, known
        self._informative = strata.informative(known)
        self._rankings = [
            (int(strata.family[lines[0]]), self._ranking(lines))
            for stratum in strata.lines
            if len(lines := stratum[self._informative[stratum]])
        ]

    @property
    def informative_families(self) -> list[int]:
        """The strata that have both outcomes, in more than one network."""
        return sorted({family for family, _ in self._rankings})

    def why_not(self, decided: Sequence[Observation]) -> str:
        """Why there can be no test on `decided`; empty if there can."""
        if decided and not self.timeouts + self.solved:
            has_profiles = any(o.components for o in decided)
            return "not applicable to any instance" if has_profiles else "not enough data: no profiles"
        return why_too_few(self.timeouts, self.solved, len(self.informative_families))

    def auc(self, weights: Floats) -> Floats:
        """For each row of weights the AUCs of the strata, with van Elteren's weights; nan without pairs."""
        return _together([ranking.won(weights) for _, ranking in self._rankings])

    def observed(self) -> float:
        """The AUC over all strata."""
        return float(self.auc(self._once())[0])

    def without_each_family(self) -> list[float]:
        """The AUC of all strata but those of one family, for each family that carries information."""
        won = [(family, ranking.won(self._once())) for family, ranking in self._rankings]
        return [
            float(_together([w for family, w in won if family != left_out])[0])
            for left_out in self.informative_families
        ]

    def pooled(self) -> float | None:
        """The AUC across families as well; None with fewer than `ENOUGH` results on either side."""
        if min(self.timeouts, self.solved) < ENOUGH:
            return None
        return float(self._ranking(np.flatnonzero(self._known)).auc(self._once())[0])

    def by_family(self) -> tuple[FamilySeparation, ...]:
        """Every family that has a value, with its own AUC."""
        strata = self._strata
        found = []
        for number, name in enumerate(strata.families):
            mine = (strata.family == number) & self._known
            if not mine.any():
                continue
            won = [ranking.won(self._once()) for family, ranking in self._rankings if family == number]
            timeouts = int(strata.late[mine].sum())
            found.append(
                FamilySeparation(
                    family=name,
                    auc=float(_together(won)[0]) if won else None,
                    timeouts=timeouts,
                    solved=int(mine.sum()) - timeouts,
                    networks=len(set(strata.unit[mine].tolist())),
                )
            )
        return tuple(found)

    def _ranking(self, lines: Ints) -> Ranking:
        strata = self._strata
        return Ranking(strata.values[lines, self.column], strata.late[lines] > 0, lines)

    def _once(self) -> Floats:
        return np.ones((1, len(self._known)))


def why_too_few(timeouts: int, solved: int, families: int) -> str:
    """Why these are too few for a test; empty if they suffice."""
    if timeouts < ENOUGH or solved < ENOUGH:
        needed = f"at least {ENOUGH} of each are needed"
        return f"not enough data: {timeouts} timed out and {solved} solved, {needed}"
    if families < ENOUGH_FAMILIES:
        has = "family has" if families == 1 else "families have"
        return (
            f"not enough data: {families or 'no'} {has} both timeouts and solved instances; at least "
            f"{ENOUGH_FAMILIES} are needed"
        )
    return ""


class Ranking:
    """Values of positives and negatives, ready for the Mann-Whitney statistic under many weightings.

    `lines` are their columns in the weights; without them, all columns in order.
    """

    def __init__(self, values: Floats, positive: Bools, lines: Ints | None = None) -> None:
        order = np.argsort(values, kind="stable")
        columns = order if lines is None else lines[order]
        upper, lower = positive[order], ~positive[order]
        self._above, self._below = columns[upper], columns[lower]
        negatives, positives = values[order][lower], values[order][upper]
        # Of each positive, how many negatives lie below it, and how many not above: equal without ties.
        below = np.searchsorted(negatives, positives, "left")
        not_above = np.searchsorted(negatives, positives, "right")
        self._beaten = [below] if np.array_equal(below, not_above) else [below, not_above]

    def won(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """For each row of weights: pairs in which the positive lies above, positives, negatives.

        Ties count half.
        """
        above = weights[:, self._above]
        less = np.zeros((len(weights), len(self._below) + 1))
        np.cumsum(weights[:, self._below], axis=1, out=less[:, 1:])
        won = [np.einsum("ij,ij->i", above, less[:, beaten]) for beaten in self._beaten]
        return sum(won) / len(won), above.sum(axis=1), less[:, -1]

    def auc(self, weights: Floats) -> Floats:
        """For each row of weights: the chance that a positive lies above a negative, ties counting half."""
        won, positives, negatives = self.won(weights)
        return _ratio(won, positives * negatives)


def _together(strata: Sequence[tuple[Floats, Floats, Floats]]) -> Floats:
    """The mean of AUCs, each weighted by m k / (m + k + 1) for its m positives and k negatives."""
    won = sum((won / (m + k + 1) for won, m, k in strata), start=np.zeros(1))
    pairs = sum((m * k / (m + k + 1) for _, m, k in strata), start=np.zeros(1))
    return _ratio(won, pairs)


def _ratio(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(whole > 0, part / whole, np.nan)
    return found


# Which component causes timeouts: sweeps in which it moves and the other four stay


#: What stays differs by no more than this share of its largest value.
STAYS = 0.1
#: What moves is at least so many times as large at one end as at the other.
MOVES = 2.0
#: Measured beside the five: named where it moves, too.
COMPANIONS = ("crown_gap", "unstable_units", "inputs", "parameters")
#: More ways than this to share out the outcomes are sampled.
MOST_WAYS = 20_000
#: A logarithm: what it counts is compared.
_LOGARITHMS = ("regions",)


def isolated_axes(subject: str, observations: Sequence[Observation]) -> tuple[IsolatedAxis, ...]:
    """Every sweep along which exactly one of the five moves; `observations` are of one verifier."""
    found = []
    for knob, _, group in sweeps(observations):
        component = moving_alone([o.components for o in group])
        if component is not None:
            found.append(_axis(subject, knob, component, group))
    tested = sum(axis.p_value is not None for axis in found)
    return tuple(
        axis if axis.p_value is None else replace(axis, p_value=min(1.0, axis.p_value * tested))
        for axis in sorted(found, key=lambda a: (a.suite, a.family, COMPONENTS.index(a.component)))
    )


def moving_alone(profiles: Sequence[Mapping[str, float | None]]) -> str | None:
    """The one of the five that moves while the others stay; None if there is none or a value is missing."""
    moving = []
    for name in COMPONENTS:
        values = [profile.get(name) for profile in profiles]
        known = [v for v in values if v is not None and math.isfinite(v)]
        if len(known) < len(values):
            return None
        if fold(name, known) >= MOVES:
            moving.append(name)
        elif not stays(known):
            return None
    return moving[0] if len(moving) == 1 else None


def fold(component: str, values: Sequence[float]) -> float:
    """The ratio of the largest to the smallest; 1 if a 0 or different signs leave it undefined."""
    low, high = min(values), max(values)
    if component in _LOGARITHMS:
        return math.exp(high - low)
    return max(high / low, low / high) if low * high > 0 else 1.0


def stays(values: Sequence[float]) -> bool:
    """Whether values differ by no more than `STAYS` of the largest."""
    return max(values) - min(values) <= STAYS * max(abs(v) for v in values)


def _axis(subject: str, knob: str, component: str, group: Sequence[Observation]) -> IsolatedAxis:
    values = [o.components[component] or 0.0 for o in group]
    by_step: dict[float, list[Observation]] = {}
    for o in group:
        by_step.setdefault(o.knobs[knob], []).append(o)
    rungs = [
        rung(float(np.median([o.components[component] or 0.0 for o in step])), step)
        for step in by_step.values()
    ]
    tested = [o for o in group if o.status in (Status.SOLVED, Status.TIMEOUT)]
    auc, p_value, note = _compared(tested, component, others=len(group) - len(tested))
    one = group[0]
    return IsolatedAxis(
        subject=subject,
        suite=one.suite,
        family=one.family,
        knob=knob,
        component=component,
        low=min(values),
        high=max(values),
        fold=fold(component, values),
        moving=_companions(group),
        rungs=tuple(sorted(rungs, key=lambda r: r.value)),
        solved=sum(o.status is Status.SOLVED for o in group),
        timeouts=sum(o.status is Status.TIMEOUT for o in group),
        auc=auc,
        p_value=p_value,
        note=note,
    )


def _companions(group: Sequence[Observation]) -> tuple[str, ...]:
    found = []
    for name in COMPANIONS:
        values = [{**o.components, **o.extras}.get(name) for o in group]
        known = [v for v in values if v is not None]
        if known and not stays(known):
            found.append(name)
    return tuple(found)


def _compared(
    tested: Sequence[Observation], component: str, *, others: int
) -> tuple[float | None, float | None, str]:
    """The AUC of timeouts against solved, its p-value, and what there is to say instead.

    `others` of the sweep are neither solved nor timed out.
    """
    late = np.array([o.status is Status.TIMEOUT for o in tested], dtype=bool)
    if not len(late):
        return None, None, "nothing is solved and nothing timed out"
    if late.all() or not late.any():
        if not others:
            return None, None, "everything timed out" if late.all() else "everything is solved"
        counted = f"{len(late)} timed out, none is solved" if late.all() else f"{len(late)} are solved"
        return None, None, f"{counted}, and {others} ended in neither"
    values = np.array([o.components[component] or 0.0 for o in tested])
    units = [o.network_sha256 or o.instance for o in tested]
    if len(set(units)) < len(units):
        return float(_aucs(values, late[None])[0]), None, "instances share networks, so nothing is claimed"
    ways = _ways(len(late), int(late.sum()))
    observed = float(_aucs(values, late[None])[0])
    p_value = float(np.mean(np.abs(_aucs(values, ways) - 0.5) >= abs(observed - 0.5) - 1e-9))
    return observed, p_value, ""


def _ways(count: int, chosen: int) -> Floats:
    """All ways in which so many of the outcomes are late, or a sample of them with the seed 0."""
    if math.comb(count, chosen) <= MOST_WAYS:
        rows = list(combinations(range(count), chosen))
    else:
        rng = np.random.default_rng(0)
        rows = [tuple(rng.permutation(count)[:chosen]) for _ in range(MOST_WAYS)]
    ways = np.zeros((len(rows), count), dtype=bool)
    ways[np.arange(len(rows))[:, None], rows] = True
    return ways


def _aucs(values: Floats, late: Floats) -> Floats:
    """For each row of outcomes the chance that a late one has the larger value; ties count half."""
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float) + 1
    for value in set(values.tolist()):
        order[values == value] = order[values == value].mean()
    positives = late.sum(axis=1)
    sums = late @ order
    found: Floats = (sums - positives * (positives + 1) / 2) / (positives * (late.shape[1] - positives))
    return found
