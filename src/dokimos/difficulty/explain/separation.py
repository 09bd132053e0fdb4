"""Which component separates the timeouts of a verifier from what it solved, within families.

Timeouts are compared with solved instances, as in the paper's Figure 3. Runs that ran out of memory,
answered `unknown`, were wrong or failed are on neither side: they are counted in the account, not here.

The test permutes outcomes within families, whole units at a time (see `strata`), so that neither a hard
family nor a network with many properties produces a finding by itself. Its statistic is the stratified rank
sum with van Elteren's weights: in each stratum of n the ranks of the timeouts, divided by n + 1. The
largest of all components under the same permutations gives each its p-value: one level for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dokimos.difficulty.explain.bootstrap import Resampling
from dokimos.difficulty.explain.rows import EXPLAINING, FamilySeparation, Observation, Separation
from dokimos.difficulty.explain.strata import Bools, Floats, Ints, Strata, solved_or_timed_out

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
