"""Which pair of components interacts: a test within families, and a picture of timeout rates.

What is tested is the product term of a model with an intercept for each family (see `product_terms`). The
picture has timeout rates over both components at once, in up to `BINS` bins a side, at quantiles, and in
four quarters. It shows all families together, and no claim is based on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dokimos.difficulty.explain.rows import CLAIM_LEVEL, EXPLAINING, Observation
from dokimos.difficulty.explain.separation import why_too_few
from dokimos.difficulty.explain.strata import (
    Bools,
    Floats,
    Ints,
    Resampling,
    Strata,
    in_parts,
    solved_or_timed_out,
)


@dataclass(frozen=True)
class Cell:
    """One bin: how many of its instances timed out."""

    timeouts: int
    total: int

    @property
    def rate(self) -> float | None:
        """The share of timeouts; None for an empty bin."""
        return self.timeouts / self.total if self.total else None


@dataclass(frozen=True, kw_only=True)
class Interaction:
    """Timeout rates of `subject` over two components at once.

    `cells[i][j]` holds the instances whose `first` lies in bin i of `first_edges` and whose `second` in
    bin j of `second_edges`; a bin includes its lower edge (the last one also its upper edge).

    `quarters` are the same in four parts, each component cut near its median (at or below the cut, above
    it): both low, only `second` high, only `first` high, both high; empty if there is no cut. Both are
    pictures of all families together, on which no claim is based.

    `product` is the coefficient of the product of both, each ranked within families from −½ to ½, in a
    penalised logistic model with an intercept for each family: by how much more the log-odds of a timeout
    rise over the range of `first` at the top of `second` than at its bottom. `p_value` comes from
    simulating the model without products, for all pairs together. If there is no such term, both are None
    and `note` says why. `families` counts those that carry information.
    """

    subject: str
    first: str
    second: str
    first_edges: tuple[float, ...]
    second_edges: tuple[float, ...]
    cells: tuple[tuple[Cell, ...], ...]
    first_cut: float | None
    second_cut: float | None
    product: float | None
    p_value: float | None
    families: int
    quarters: tuple[Cell, ...] = ()
    note: str = ""

    @property
    def interacts(self) -> bool:
        """Whether the test is significant."""
        return self.p_value is not None and self.p_value <= CLAIM_LEVEL


# Whether the effects of two components on timeouts are not additive: the product term of a logistic model


#: The deviations of the normal priors of an intercept, a slope, and the coefficient of a square. Ranks
#: reach from −½ to ½: a slope of 2 is a factor of 7 in the odds from one end of a family to the other.
INTERCEPT, SLOPE, CURVATURE = 1000.0, 1.5, 0.75
#: More simulations than this say no more about a level of 5 %.
MOST_SIMULATIONS = 1000
_STEPS, _LONGEST_STEP, _CONVERGED = 100, 3.0, 1e-8
_MOST_LEVERAGE = 0.95

Pair = tuple[str, str]


@dataclass(frozen=True)
class ProductTerm:
    """The coefficient of a product, and the probability that any pair has as large a score by chance."""

    product: float
    p_value: float


def product_terms(
    strata: Strata, pairs: Sequence[Pair], resampling: Resampling
) -> Mapping[Pair, ProductTerm]:
    """The product terms of `pairs`; pairs whose product does not vary are left out."""
    model = AdditiveModel(strata)
    return {
        pair: ProductTerm(model.coefficient(model.product(pair)), p_value)
        for pair, p_value in model.test(pairs, resampling).items()
    }


class AdditiveModel:
    """The penalised logistic fit of timeouts by components, without interactions."""

    def __init__(self, strata: Strata) -> None:
        groups = _groups(strata)
        kept = groups >= 0
        ranks = strata.centred_ranks[kept]
        self._late = strata.late[kept]
        self._place = {name: ranks[:, k] for k, name in enumerate(strata.components)}
        _, self._unit, sizes = np.unique(strata.unit[kept], return_inverse=True, return_counts=True)
        self._weight = 1 / sizes[self._unit]
        self._shared = bool((sizes > 1).any())
        intercepts = groups[kept][:, None] == np.unique(groups[kept])
        known = strata.known[kept]
        self._columns = np.hstack([intercepts, ranks, np.where(known, 6 * ranks**2 - 0.5, 0.0)])
        count = len(strata.components)
        deviations = [INTERCEPT] * intercepts.shape[1] + [SLOPE] * count + [CURVATURE] * count
        self._penalty = np.array(deviations) ** -2.0
        self._fitted = fit(self._columns, self._late, self._weight, self._penalty)
        self._chance = _logistic(self._columns @ self._fitted)
        self._variance = self._weight * self._chance * (1 - self._chance)
        self._information = (self._columns.T * self._variance) @ self._columns + np.diag(self._penalty)

    def product(self, pair: Pair) -> Floats:
        """The product of two components; 0 if either has no value."""
        return self._place[pair[0]] * self._place[pair[1]]

    def clear(self, column: Floats) -> Floats:
        """What is left of a column when what the model's own columns can say of it is taken away."""
        said = np.linalg.solve(self._information, (self._columns.T * self._variance) @ column)
        cleared: Floats = column - self._columns @ said
        return cleared

    def spread(self, column: Floats) -> float:
        """How much a column varies, weighted as the model weights results."""
        return float(np.sqrt(self._variance @ column**2))

    def coefficient(self, product: Floats) -> float:
        """The coefficient of a product in the model that has it, too, penalised as a slope."""
        columns = np.column_stack([self._columns, product])
        penalty, start = np.r_[self._penalty, SLOPE**-2.0], np.r_[self._fitted, 0.0]
        return float(fit(columns, self._late, self._weight, penalty, start)[-1])

    def test(self, pairs: Sequence[Pair], resampling: Resampling) -> dict[Pair, float]:
        """The p-values of products, for all of them together; without those that have nothing to vary."""
        products = {pair: self.product(pair) for pair in pairs}
        cleared = {pair: self.clear(column) for pair, column in products.items()}
        varying = [
            pair for pair in pairs if self.spread(cleared[pair]) > 1e-6 * self.spread(products[pair])
        ]
        if not varying:
            return {}
        p_values = self.p_values(np.stack([cleared[pair] for pair in varying], axis=1), resampling)
        return dict(zip(varying, p_values, strict=True))

    def p_values(self, cleared: Floats, resampling: Resampling) -> list[float]:
        """Those of cleared products, each against the largest of all in outcomes simulated from the fit."""
        scores = cleared * self._weight[:, None]
        seen = (self._late - self._chance) @ scores
        widened = scores * self._widening()[:, None]
        count = min(resampling.resamples, MOST_SIMULATIONS)
        found = np.zeros(len(seen))
        for one_number_each in (False, True) if self._shared else (False,):
            rng = resampling.rng(3 if one_number_each else 2)
            drawn = np.concatenate(list(self._simulated(widened, count, one_number_each, rng)))
            deviation = drawn.std(axis=0)
            deviation = np.where(deviation > 1e-12, deviation, np.inf)
            largest = (np.abs(drawn) / deviation).max(axis=1)
            at_least = largest[:, None] >= np.abs(seen) / deviation
            found = np.maximum(found, (1 + at_least.sum(axis=0)) / (1 + count))
        return [float(p) for p in found]

    def _simulated(
        self, scores: Floats, count: int, one_number_each: bool, rng: np.random.Generator
    ) -> Iterator[Floats]:
        """The scores of simulated outcomes, in parts."""
        numbers = int(self._unit.max()) + 1 if one_number_each else len(self._late)
        for rows in in_parts(count, len(self._late)):
            drawn = rng.random((rows, numbers))
            outcomes = (drawn[:, self._unit] if one_number_each else drawn) < self._chance
            yield (outcomes - self._chance) @ scores

    def _widening(self) -> Floats:
        """By how much residuals are too small: the fit follows each result as far as its leverage h says.

        1 / (1 − h) for each, as for the variances called HC3, which are on the safe side in small samples.
        """
        solved = np.linalg.solve(self._information, self._columns.T)
        leverage = self._chance * (1 - self._chance) * np.einsum("ij,ji->i", self._columns, solved)
        widening: Floats = 1 / (1 - np.minimum(leverage, _MOST_LEVERAGE))
        return widening


def fit(
    columns: Floats, late: Floats, weight: Floats, penalty: Floats, start: Floats | None = None
) -> Floats:
    """The coefficients of a penalised logistic model, by Newton's method with a bounded step."""
    found = np.zeros(columns.shape[1]) if start is None else start
    for _ in range(_STEPS):
        chance = _logistic(columns @ found)
        slope = columns.T @ (weight * (late - chance)) - penalty * found
        information = (columns.T * (weight * chance * (1 - chance))) @ columns + np.diag(penalty)
        step = np.linalg.solve(information, slope)
        longest = float(np.abs(columns @ step).max(initial=0.0))
        found = found + step * min(1.0, _LONGEST_STEP / max(longest, _CONVERGED))
        if longest < _CONVERGED:
            break
    return found


def _groups(strata: Strata) -> Ints:
    """The intercept of each line: its stratum and which components have a value; −1: no information."""
    patterns: dict[tuple[int, bytes], int] = {}
    numbers = np.array(
        [
            patterns.setdefault((int(s), known.tobytes()), len(patterns))
            for s, known in zip(strata.stratum, strata.known, strict=True)
        ],
        dtype=np.int64,
    )
    for number in range(len(patterns)):
        mine: Bools = numbers == number
        if strata.late[mine].min() == strata.late[mine].max() or len(set(strata.unit[mine].tolist())) < 2:
            numbers[mine] = -1
    return numbers


def _logistic(values: Floats) -> Floats:
    found: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return found


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
        cells=cells(x, y, late, x_edges, y_edges),
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


def cells(
    x: Floats, y: Floats, late: Floats, x_edges: tuple[float, ...], y_edges: tuple[float, ...]
) -> tuple[tuple[Cell, ...], ...]:
    """How many of each bin of two components timed out."""
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
