"""Which pair of components interacts: timeout rates over both at once.

The heat map has up to `BINS` bins a side, at quantiles. What is tested is coarser: both components cut in
two near their medians, and the difference of differences of the four timeout rates. It is 0 where the
rates add up, whatever each component does alone. Near rates of 0 and 1 little room is left for adding up,
so a negative effect may just say that one of the two suffices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from dokimos.difficulty.explain.bootstrap import Floats, Resampling
from dokimos.difficulty.explain.rows import Cell, Interaction, Observation, Status
from dokimos.difficulty.explain.separation import ENOUGH, solved_or_timed_out, why_too_few
from dokimos.suites.profile_file import COMPONENTS

BINS = 4
PAIRS = tuple(combinations(COMPONENTS, 2))


def interactions(
    subject: str, observations: Sequence[Observation], resampling: Resampling | None = None
) -> tuple[Interaction, ...]:
    """Every pair of components, in canonical order."""
    chosen = resampling or Resampling()
    widened = replace(chosen, level=1 - (1 - chosen.level) / len(PAIRS))
    return tuple(interaction(subject, a, b, observations, widened) for a, b in PAIRS)


def interaction(
    subject: str, first: str, second: str, observations: Sequence[Observation], resampling: Resampling
) -> Interaction:
    """One pair of components."""
    decided = solved_or_timed_out(observations)
    known = [o for o in decided if None not in (o.components.get(first), o.components.get(second))]
    x, y = (np.array([o.components[name] for o in known], dtype=np.float64) for name in (first, second))
    late = np.array([o.status is Status.TIMEOUT for o in known], dtype=np.float64)
    x_cut, y_cut = balanced_cut(x), balanced_cut(y)
    x_edges, y_edges = quantile_edges(x), quantile_edges(y)
    note = why_too_few(int(late.sum()), int((1 - late).sum()), decided)
    effect, interval = None, None
    quarters: tuple[Cell, ...] = ()
    if not note and x_cut is not None and y_cut is not None:
        quarter = _quarter(x, y, x_cut, y_cut)
        quarters = tuple(Cell(int(late[quarter == k].sum()), int((quarter == k).sum())) for k in range(4))
        if min(cell.total for cell in quarters) >= ENOUGH:
            difference = _Difference(quarter, late)
            effect = float(difference.of(np.ones((1, len(known))))[0])
            interval = resampling.interval(difference.of, [o.key for o in known])
        else:
            note = f"not enough data: a quarter of the picture has fewer than {ENOUGH} instances"
    elif not note:
        note = f"{first if x_cut is None else second} is the same everywhere"
    return Interaction(
        subject=subject,
        first=first,
        second=second,
        first_edges=x_edges,
        second_edges=y_edges,
        cells=_cells(x, y, late, x_edges, y_edges),
        first_cut=x_cut,
        second_cut=y_cut,
        effect=effect,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        quarters=quarters,
        note=note,
    )


def balanced_cut(values: Floats) -> float | None:
    """The value that comes nearest to cutting in two (at or below, above); None where all are the same."""
    different, counts = np.unique(values, return_counts=True)
    if len(different) < 2:
        return None
    below = np.cumsum(counts)[:-1]
    return float(different[np.argmin(np.abs(below - len(values) / 2))])


def quantile_edges(values: Floats) -> tuple[float, ...]:
    """The edges of up to `BINS` bins with about as many values each; none where there are no values."""
    if not len(values):
        return ()
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1), method="lower"))
    return tuple(map(float, edges if len(edges) > 1 else [edges[0], edges[0]]))


def _cells(
    x: Floats, y: Floats, late: Floats, x_edges: tuple[float, ...], y_edges: tuple[float, ...]
) -> tuple[tuple[Cell, ...], ...]:
    if not x_edges or not y_edges:
        return ()
    shape = (len(x_edges) - 1, len(y_edges) - 1)
    timeouts, totals = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int)
    place = _bin(x, x_edges), _bin(y, y_edges)
    np.add.at(totals, place, 1)
    np.add.at(timeouts, place, late.astype(int))
    return tuple(
        tuple(Cell(int(t), int(n)) for t, n in zip(row, total, strict=True))
        for row, total in zip(timeouts, totals, strict=True)
    )


def _bin(values: Floats, edges: tuple[float, ...]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    found: np.ndarray[tuple[int], np.dtype[np.intp]] = np.searchsorted(edges, values, side="right") - 1
    return np.clip(found, 0, len(edges) - 2)


def _quarter(
    x: Floats, y: Floats, x_cut: float, y_cut: float
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """0: both low, 1: second high, 2: first high, 3: both high."""
    return 2 * (x > x_cut).astype(np.int64) + (y > y_cut).astype(np.int64)


class _Difference:
    """The difference of differences of the timeout rates of four quarters, under many weightings."""

    def __init__(self, quarter: np.ndarray[tuple[int], np.dtype[np.int64]], late: Floats) -> None:
        member = np.eye(4)[quarter]
        self._sums = np.hstack([member, member * late[:, None]])

    def of(self, weights: Floats) -> Floats:
        """One for each row of weights; nan where a quarter is empty."""
        sums = weights @ self._sums
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = sums[:, 4:] / sums[:, :4]
        found: Floats = rates[:, 3] - rates[:, 1] - rates[:, 2] + rates[:, 0]
        return found
