"""Which pair of components interacts: a test within families, and a picture of timeout rates.

What is tested is the product term of a model with an intercept for each family (see `product_terms`). The
picture has timeout rates over both components at once, in up to `BINS` bins a side, at quantiles, and in
four quarters. It shows all families together, and no claim is based on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dokimos.difficulty.explain.bootstrap import Resampling
from dokimos.difficulty.explain.product_terms import Pair, ProductTerm, product_terms
from dokimos.difficulty.explain.rows import EXPLAINING, Cell, Interaction, Observation
from dokimos.difficulty.explain.separation import why_too_few
from dokimos.difficulty.explain.strata import Bools, Floats, Strata, solved_or_timed_out

BINS = 4
PAIRS = tuple(combinations(EXPLAINING, 2))


def interactions(
    subject: str,
    observations: Sequence[Observation],
    resampling: Resampling | None = None,
    strata: Strata | None = None,
) -> tuple[Interaction, ...]:
    """Every pair of components, in canonical order; `strata` if they are known already."""
    strata = strata or Strata.of(observations, EXPLAINING)
    decided = solved_or_timed_out(observations)
    families = {pair: _informative_families(strata, pair) for pair in PAIRS}
    notes = {pair: _why_not(strata, pair, families[pair], decided) for pair in PAIRS}
    tested = [pair for pair in PAIRS if not notes[pair]]
    terms = product_terms(strata, tested, resampling or Resampling()) if tested else {}
    return tuple(
        _row(subject, pair, strata, terms.get(pair), families[pair], notes[pair]) for pair in PAIRS
    )


def _both_known(strata: Strata, pair: Pair) -> Bools:
    first, second = (strata.known[:, EXPLAINING.index(name)] for name in pair)
    return first & second


def _informative_families(strata: Strata, pair: Pair) -> int:
    return len(set(strata.family[strata.informative(_both_known(strata, pair))].tolist()))


def _why_not(strata: Strata, pair: Pair, families: int, decided: Sequence[Observation]) -> str:
    """Why a pair cannot be tested on `decided`; empty if it can."""
    known = _both_known(strata, pair)
    if decided and not known.any():
        has_profiles = any(o.components for o in decided)
        return "not applicable to any instance" if has_profiles else "not enough data: no profiles"
    late = int(strata.late[known].sum())
    return why_too_few(late, int(known.sum()) - late, families)


def _row(
    subject: str,
    pair: Pair,
    strata: Strata,
    term: ProductTerm | None,
    families: int,
    note: str,
) -> Interaction:
    first, second = pair
    known = _both_known(strata, pair)
    x, y = (strata.values[known, EXPLAINING.index(name)] for name in pair)
    late = strata.late[known]
    x_cut, y_cut = balanced_cut(x), balanced_cut(y)
    x_edges, y_edges = quantile_edges(x), quantile_edges(y)
    quarters: tuple[Cell, ...] = ()
    if x_cut is not None and y_cut is not None:
        quarter = _quarter(x, y, x_cut, y_cut)
        quarters = tuple(Cell(int(late[quarter == k].sum()), int((quarter == k).sum())) for k in range(4))
    if not note and term is None:
        note = "within families, the product adds nothing to what each of them says alone"
    return Interaction(
        subject=subject,
        first=first,
        second=second,
        first_edges=x_edges,
        second_edges=y_edges,
        cells=_cells(x, y, late, x_edges, y_edges),
        first_cut=x_cut,
        second_cut=y_cut,
        product=None if term is None else term.product,
        p_value=None if term is None else term.p_value,
        families=families,
        quarters=quarters,
        note=note,
    )


def balanced_cut(values: Floats) -> float | None:
    """The value that best splits the values in half (at or below, above); None if all are the same."""
    different, counts = np.unique(values, return_counts=True)
    if len(different) < 2:
        return None
    below = np.cumsum(counts)[:-1]
    return float(different[np.argmin(np.abs(below - len(values) / 2))])


def quantile_edges(values: Floats) -> tuple[float, ...]:
    """The edges of up to `BINS` bins with about equally many values each; none if there are no values."""
    if not len(values):
        return ()
    places = np.arange(BINS + 1) * (len(values) - 1) // BINS
    edges = np.unique(np.sort(values)[places])
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
