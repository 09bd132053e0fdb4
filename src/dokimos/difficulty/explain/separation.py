"""Which component separates the timeouts of a verifier from what it solved.

Timeouts against solved, as in the paper's Figure 3. What ran out of memory, said `unknown`, was wrong or
failed is on neither side: it is counted in the account, not here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dokimos.difficulty.explain.bootstrap import Floats, Resampling
from dokimos.difficulty.explain.rows import Observation, Separation, Status
from dokimos.suites.profile_file import COMPONENTS

#: With fewer timeouts, or fewer solved, than this there is not enough data.
ENOUGH = 5


def separations(
    subject: str, observations: Sequence[Observation], resampling: Resampling | None = None
) -> tuple[Separation, ...]:
    """How well each component separates, in the canonical order."""
    chosen = resampling or Resampling()
    return tuple(separation(subject, name, observations, chosen) for name in COMPONENTS)


def separation(
    subject: str, component: str, observations: Sequence[Observation], resampling: Resampling
) -> Separation:
    """How well one component separates."""
    decided = solved_or_timed_out(observations)
    known = [(o, v) for o in decided if (v := o.components.get(component)) is not None]
    values = np.array([value for _, value in known], dtype=np.float64)
    positive = np.array([o.status is Status.TIMEOUT for o, _ in known], dtype=bool)
    timeouts, solved = int(positive.sum()), int((~positive).sum())
    auc, interval, note = None, None, why_too_few(timeouts, solved, decided)
    if not note:
        ranking = Ranking(values, positive)
        auc = float(ranking.auc(np.ones((1, len(values))))[0])
        interval = resampling.interval(ranking.auc, [o.key for o, _ in known])
        if auc in (0.0, 1.0):
            note = "complete separation: resampling cannot show how sure that is"
    return Separation(
        subject=subject,
        component=component,
        auc=auc,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        solved=solved,
        timeouts=timeouts,
        left_out=len(decided) - len(known),
        note=note,
    )


def solved_or_timed_out(observations: Sequence[Observation]) -> list[Observation]:
    """Those that were solved or timed out."""
    return [o for o in observations if o.status in (Status.SOLVED, Status.TIMEOUT)]


def why_too_few(timeouts: int, solved: int, decided: Sequence[Observation]) -> str:
    """Why nothing can be said of so few, out of `decided`; empty where something can."""
    if decided and not timeouts + solved:
        has_profiles = any(o.components for o in decided)
        return "not applicable to any instance" if has_profiles else "not enough data: no profiles"
    if timeouts >= ENOUGH and solved >= ENOUGH:
        return ""
    return (
        f"not enough data: {timeouts} timed out and {solved} solved, at least {ENOUGH} of each are needed"
    )


class Ranking:
    """Values of positives and negatives, ready for the Mann-Whitney statistic under many weightings."""

    def __init__(self, values: Floats, positive: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        self._order = np.argsort(values, kind="stable")
        ordered = values[self._order]
        self._starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        self._positive = positive[self._order].astype(np.float64)

    def auc(self, weights: Floats) -> Floats:
        """For each row of weights: the chance that a positive lies above a negative, ties counting half."""
        sorted_weights = weights[:, self._order]
        above = np.add.reduceat(sorted_weights * self._positive, self._starts, axis=1)
        below = np.add.reduceat(sorted_weights * (1 - self._positive), self._starts, axis=1)
        less = np.cumsum(below, axis=1) - below / 2
        pairs = above.sum(axis=1) * below.sum(axis=1)
        with np.errstate(invalid="ignore"):
            found: Floats = np.where(pairs > 0, (above * less).sum(axis=1) / pairs, np.nan)
        return found
