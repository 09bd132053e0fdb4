"""Whether the effects of two components on timeouts are not additive: the product term of a logistic model.

The model has an intercept for each stratum and, for every component, its rank within the stratum and the
square of that, so that additive (in log-odds) need not mean linear. Slopes are penalised, since components
often separate completely, which no finite slope fits. The statistic of a pair is the score of its product,
orthogonal to everything in the additive model (so that the error of the fit hardly matters); its p-value
comes from outcomes that are simulated from the additive fit, against the largest of all pairs.

Results on one network are not independent. Each network counts as one result (its results share a weight
of 1), and outcomes are simulated twice: independently, and with one random number for each network. The
larger p-value counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dokimos.difficulty.explain.bootstrap import Resampling
from dokimos.difficulty.explain.strata import Bools, Floats, Ints, Strata, in_parts

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
