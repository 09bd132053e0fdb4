"""Results in strata: which results may be compared, and which count as one.

Instances come in families, and families differ in everything at once, so results are compared within a
family (and, for a certificate style, within one verifier) only. Instances that share a network or a draw
(twins, slacks) are one unit: a verifier's result on one of them predicts its results on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dokimos.difficulty.explain.rows import Observation, Status

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: How many outcomes are held at a time.
AT_ONCE = 2_000_000
K = TypeVar("K")


@dataclass(frozen=True, eq=False)
class Strata:
    """Solved and timed-out results that have a profile, as arrays with one line for each result.

    `values` has a column for each of `components` (nan: no value; infinite values are values). `family`
    numbers the families of all suites (`families` names them), `stratum` what is compared: one verifier
    on one family. `unit` numbers what shares a network. `exchangeable` has the lines of units whose
    outcomes may be exchanged, one unit to a row, as arrays: units of one family on which the same
    verifiers have results and the same components have values.
    """

    components: tuple[str, ...]
    families: tuple[str, ...]
    values: Floats
    late: Floats
    family: Ints
    stratum: Ints
    unit: Ints
    exchangeable: tuple[Ints, ...]

    @classmethod
    def of(cls, observations: Sequence[Observation], components: Sequence[str]) -> Strata:
        """The strata of observations that were solved or timed out and have a value of some component."""
        known = [
            o
            for o in solved_or_timed_out(observations)
            if any(o.components.get(name) is not None for name in components)
        ]
        units = dict(zip(map(id, known), number_units(known), strict=True))
        known.sort(key=lambda o: (o.suite, o.family, units[id(o)], *_role(o)))
        values = np.array(
            [
                [np.nan if (v := o.components.get(name)) is None else v for name in components]
                for o in known
            ],
            dtype=np.float64,
        ).reshape(len(known), len(components))
        several = len({o.suite for o in known}) > 1
        family, families = _numbered([(o.suite, o.family) for o in known])
        stratum, _ = _numbered([(o.suite, o.family, o.verifier) for o in known])
        unit, _ = _numbered([units[id(o)] for o in known])
        return cls(
            components=tuple(components),
            families=tuple(f"{suite}/{name}" if several else name for suite, name in families),
            values=values,
            late=np.array([o.status is Status.TIMEOUT for o in known], dtype=np.float64),
            family=family,
            stratum=stratum,
            unit=unit,
            exchangeable=_exchangeable(known, family, unit, np.isnan(values)),
        )

    @cached_property
    def known(self) -> Bools:
        """Where a component has a value."""
        return ~np.isnan(self.values)

    @cached_property
    def lines(self) -> tuple[Ints, ...]:
        """The lines of each stratum."""
        return tuple(np.flatnonzero(self.stratum == k) for k in range(_count(self.stratum)))

    @cached_property
    def centred_ranks(self) -> Floats:
        """The ranks of each component within each stratum, divided by n + 1, from −½ to ½; 0 for no value.

        Equal values share the mean of their ranks.
        """
        found = np.zeros_like(self.values)
        for lines in self.lines:
            for column in range(len(self.components)):
                chosen = lines[self.known[lines, column]]
                found[chosen, column] = mean_ranks(self.values[chosen, column]) / (len(chosen) + 1) - 0.5
        return found

    def informative(self, known: Bools) -> Bools:
        """The lines (of those with `known`) in strata with both outcomes and more than one unit."""
        found = np.zeros(len(self.late), dtype=bool)
        for lines in self.lines:
            chosen = lines[known[lines]]
            outcomes = self.late[chosen]
            if len(chosen) and outcomes.min() < outcomes.max() and len(set(self.unit[chosen].tolist())) > 1:
                found[chosen] = True
        return found

    def permuted_outcomes(self, count: int, rng: np.random.Generator) -> Iterator[Floats]:
        """`count` permutations of the outcomes within families, by whole units, a row each, in parts."""
        for rows in in_parts(count, len(self.late)):
            found = np.tile(self.late, (rows, 1))
            for lines in self.exchangeable:
                order = rng.permuted(np.tile(np.arange(len(lines)), (rows, 1)), axis=1)
                found[:, lines.ravel()] = self.late[lines][order].reshape(rows, -1)
            yield found

    def resampled_weights(self, count: int, rng: np.random.Generator) -> Iterator[Floats]:
        """How often each line is drawn when the units of each family are resampled; in parts."""
        units = _count(self.unit)
        if not units:
            return
        family_of_unit = np.zeros(units, dtype=np.int64)
        family_of_unit[self.unit] = self.family
        sizes = np.bincount(family_of_unit)
        starts = (np.cumsum(sizes) - sizes)[family_of_unit]
        for rows in in_parts(count, len(self.late)):
            drawn = starts + (rng.random((rows, units)) * sizes[family_of_unit]).astype(np.int64)
            drawn += units * np.arange(rows)[:, None]
            weights = np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units)
            yield weights[:, self.unit].astype(np.float64)


def solved_or_timed_out(observations: Sequence[Observation]) -> list[Observation]:
    """The observations that were solved or timed out."""
    return [o for o in observations if o.status in (Status.SOLVED, Status.TIMEOUT)]


def number_units(observations: Sequence[Observation]) -> list[int]:
    """A number for each observation: equal if two instances of a family share a network or a draw."""
    above: dict[tuple[object, ...], tuple[object, ...]] = {}

    def top(mark: tuple[object, ...]) -> tuple[object, ...]:
        while above.setdefault(mark, mark) != mark:
            mark = above[mark]
        return mark

    for o in observations:
        first, *others = _marks(o)
        for other in others:
            above[top(other)] = top(first)
    numbers: dict[tuple[object, ...], int] = {}
    return [numbers.setdefault(top(_marks(o)[0]), len(numbers)) for o in observations]


def _marks(o: Observation) -> list[tuple[object, ...]]:
    marks: list[tuple[object, ...]] = [(o.suite, o.family, "instance", o.instance)]
    if o.network_sha256:
        marks.append((o.suite, o.family, "network", o.network_sha256))
    if o.seed is not None:
        marks.append((o.suite, o.family, "seed", o.seed))
    return marks


def mean_ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    ordered = np.sort(values)
    before, up_to = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    ranks: Floats = (before + up_to + 1) / 2
    return ranks


def in_parts(count: int, width: int) -> Iterator[int]:
    """`count` rows of that width, split into parts that fit into memory: how many rows each part has."""
    step = max(1, AT_ONCE // max(1, width))
    for start in range(0, count, step):
        yield min(step, count - start)


def _role(o: Observation) -> tuple[str, str, tuple[tuple[str, float], ...], str]:
    """What an instance is in its unit, so that a twin's outcome is exchanged with a twin's."""
    return (o.verifier, o.label or "", tuple(sorted(o.knobs.items())), o.instance)


def _exchangeable(
    known: Sequence[Observation], family: Ints, unit: Ints, missing: Bools
) -> tuple[Ints, ...]:
    lines_of: dict[int, list[int]] = {}
    for line, number in enumerate(unit.tolist()):
        lines_of.setdefault(number, []).append(line)
    groups: dict[tuple[object, ...], list[list[int]]] = {}
    for lines in lines_of.values():
        shape = tuple((known[line].verifier, missing[line].tobytes()) for line in lines)
        groups.setdefault((int(family[lines[0]]), shape), []).append(lines)
    return tuple(np.array(group, dtype=np.int64) for group in groups.values() if len(group) > 1)


def _numbered(keys: Sequence[K]) -> tuple[Ints, list[K]]:
    numbers: dict[K, int] = {}
    found = [numbers.setdefault(key, len(numbers)) for key in keys]
    return np.array(found, dtype=np.int64), list(numbers)


def _count(numbers: Ints) -> int:
    return int(numbers.max()) + 1 if len(numbers) else 0


# Random resampling: its settings, and intervals by resampling networks within families


#: Weights (resamples x results) to the statistics of each resample (resamples x n); nan where it has none.
Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Resampling:
    """How often to resample, permute and simulate, and from which seed."""

    resamples: int = 2000
    seed: int = 0

    def rng(self, purpose: int) -> np.random.Generator:
        """A separate generator for each purpose."""
        return np.random.default_rng([self.seed, purpose])

    def intervals(self, statistic: Statistic, strata: Strata) -> list[tuple[float, float] | None]:
        """The 95 % percentile interval of each statistic, if at least half of the resamples have a value.

        Resampling n networks gives each a weight of 0, 1, 2, …; statistics are computed for many weightings
        at once, so that nothing is resampled one by one.
        """
        parts = [statistic(weights) for weights in strata.resampled_weights(self.resamples, self.rng(0))]
        return [self._interval(column) for column in np.concatenate(parts).T] if parts else []

    def _interval(self, found: Floats) -> tuple[float, float] | None:
        known = found[~np.isnan(found)]
        if 2 * len(known) < self.resamples:
            return None
        low, high = np.quantile(known, [0.025, 0.975])
        return float(low), float(high)


# Numbers in sentences and tables


def three_digits(value: float) -> str:
    """A measured number, to three digits and without an exponent where that is short.

    >>> three_digits(1000.2), three_digits(8024), three_digits(0.00985), three_digits(1.5e9)
    ('1000', '8020', '0.00985', '1.5e+09')
    """
    return f"{float(f'{value:.3g}'):g}"


def all_digits(value: float) -> str:
    """A knob's value as it was given: two values that differ are not written alike.

    >>> all_digits(0.9999999), all_digits(4096.0), all_digits(1e9), all_digits(1e-5)
    ('0.9999999', '4096', '1e+09', '1e-05')
    """
    return f"{value:g}" if float(f"{value:g}") == value else f"{value:.12g}"
