"""A set of cases as a box of small integers: every variable cut into cells, a choice into its options.

Zones of a proof, and the leaves of trees, are boxes of ranks on these axes; what is said of the numbers
themselves, a condition of a law, is decided from the ends of the cells.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import (
    Comparison,
    Every,
    Formula,
    Grid,
    Number,
    Options,
    Quantity,
    Sign,
    Span,
    Zone,
    exact,
)

Ranks = NDArray[np.int32]
Mask = NDArray[np.bool_]
#: Sums of whole numbers below this, of at most 16 terms, are exact in doubles.
_SMALL = 2**48


class Axes:
    """One axis for each numeric variable of a zone, ranked by its cells; one for each option of a choice.

    The rank of an option is 1 where the choice is that option, otherwise 0. A box has, on each axis, the
    ranks from `low` to `high`; it stands for all cases whose ranks are in it. `first[v]` is the first axis
    of variable v.

    Theorem. Every case of the zone has one rank on every axis, whichever `breaks` are given: the cells of a
    variable are all its numbers, cut between a break and the next number (`Span.cut`), and exactly one
    option of a choice is chosen.
    """

    def __init__(
        self, zone: Zone, breaks: Mapping[int, Iterable[Number]], gaps: Iterable[int] = ()
    ) -> None:
        self.zone = zone
        self.first: list[int] = []
        #: By variable: the options of a choice, in the order of their axes; the cells of any other one.
        self.options: dict[int, list[int]] = {}
        self.cells: dict[int, list[tuple[Number, Number]]] = {}
        self._tops: dict[int, list[Number]] = {}
        low: list[int] = []
        high: list[int] = []
        whole = set(gaps)
        for number, values in enumerate(zone.values):
            self.first.append(len(low))
            if isinstance(values, Options):
                if not values.left:
                    raise ValueError("a choice has no option")
                self.options[number] = sorted(values.left)
                low += [0] * len(values.left)
                high += [1] * len(values.left)
                continue
            if values.grid is Grid.REAL:
                raise ValueError("trees take doubles and whole numbers, not reals")
            cells = _cells(Span(0, 1), [0]) if number in whole else _cells(values, breaks.get(number, ()))
            self.cells[number] = cells
            self._tops[number] = [top for _, top in cells[:-1]]
            is_gap = number in whole
            low.append(int(values.low) if is_gap else 0)
            high.append(int(values.high) if is_gap else (len(cells) - 1 if not values.is_empty else -1))
        self.low, self.high = np.array(low, dtype=np.int32), np.array(high, dtype=np.int32)
        self.settle(self.low[None], self.high[None])
        self._ends = {number: _Ends(cells) for number, cells in self.cells.items()}

    def rank(self, variable: int, at: Number | float) -> int:
        """The last cell of a numeric variable that is not above a number; −1 if none is."""
        cells = self.cells[variable]
        return len(cells) - 1 if at >= cells[-1][1] else bisect_right(self._tops[variable], at) - 1

    def settle(self, low: Ranks, high: Ranks) -> None:
        """Narrow boxes in place: exactly one option of each choice is chosen. One may become empty."""
        for variable, options in self.options.items():
            own = slice(self.first[variable], self.first[variable] + len(options))
            chosen = low[:, own].any(axis=1)
            high[chosen, own] = np.minimum(high[chosen, own], low[chosen, own])
            last = high[:, own].sum(axis=1) == 1
            low[last, own] = np.maximum(low[last, own], high[last, own])
            several = low[:, own].sum(axis=1) > 1
            none = high[:, own].max(axis=1, initial=0) < 1
            low[several | none, own.start] = 1
            high[several | none, own.start] = 0

    def cut(self, variable: int, at: Number, low: Ranks, high: Ranks) -> tuple[tuple[Ranks, Ranks], ...]:
        """Two boxes that together have all cases of a box; also where `at` is no break, and no option."""
        axis = self.first[variable]
        first, second = (low.copy(), high.copy()), (low.copy(), high.copy())
        if variable not in self.options:
            rank = self.rank(variable, at)
            first[1][axis] = min(rank, high[axis])
            second[0][axis] = max(rank + 1, low[axis])
        elif int(at) not in self.options[variable]:
            first[1][axis] = -1
        else:
            axis += self.options[variable].index(int(at))
            first[0][axis] = max(1, low[axis])
            second[1][axis] = min(0, high[axis])
            for part in (first, second):
                self.settle(part[0][None], part[1][None])
        return first, second

    def zone_of(self, low: Ranks, high: Ranks) -> Zone:
        """The numbers and options of a box that is not empty."""
        values: list[Span | Options] = []
        for number, own in enumerate(self.zone.values):
            axis = self.first[number]
            if isinstance(own, Options):
                options = self.options[number]
                left = frozenset(each for k, each in enumerate(options) if high[axis + k] == 1)
                values.append(Options(left))
            else:
                cells = self.cells[number]
                values.append(Span(cells[low[axis]][0], cells[high[axis]][1], own.grid))
        return Zone(tuple(values))

    def can(self, formula: Formula, low: Ranks, high: Ranks) -> tuple[Mask, Mask]:
        """Of each of some boxes that are not empty, whether the formula may hold there, and may be false.

        Where one of these is not, it is so for no case of the box (`Comparison.over`).
        """
        if isinstance(formula, Comparison):
            return self._compare(formula, low, high)
        parts = [self.can(each, low, high) for each in formula.parts]
        every = isinstance(formula, Every)
        first, second = np.full(len(low), every), np.full(len(low), not every)
        for holds, fails in parts:
            first = first & holds if every else first | holds
            second = second | fails if every else second & fails
        return first, second

    def _compare(self, comparison: Comparison, low: Ranks, high: Ranks) -> tuple[Mask, Mask]:
        terms, sign = comparison.quantity.terms, comparison.sign
        if len(terms) == 1 and terms[0][0] in self.options:
            ((variable, factor),) = terms
            options = self.options[variable]
            held = [sign.holds(comparison.quantity.constant + factor * each) for each in options]
            left = high[:, self.first[variable] : self.first[variable] + len(options)] == 1
            return (left & np.array(held)).any(axis=1), (left & ~np.array(held)).any(axis=1)
        least, most, error = self.ends_of(comparison.quantity, low, high)
        below = _at_most(sign, least, most)
        unsure = ~np.isfinite(error + least + most)
        if not self._is_difference(comparison.quantity):
            unsure |= (np.abs(least) <= error) | (np.abs(most) <= error)
        for row in np.flatnonzero(unsure):
            answer = comparison.over(self.zone_of(low[row], high[row]))
            below[0][row], below[1][row] = answer is not False, answer is not True
        return below

    def _is_difference(self, quantity: Quantity) -> bool:
        """Whether it is x − y, of which the ends in doubles have the right signs.

        Theorem. The difference of two doubles, rounded, is 0 only where they are equal, and otherwise has
        the sign of the exact one: with subnormal numbers, a difference that is not 0 is at least the
        smallest of these.
        """
        factors = sorted(factor for _, factor in quantity.terms)
        return (
            quantity.constant == 0
            and factors == [-1, 1]
            and all(v not in self.options and self._ends[v].are_doubles for v, _ in quantity.terms)
        )

    def ends_of(
        self, quantity: Quantity, low: Ranks, high: Ranks
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The least and the greatest value of a quantity over boxes, in doubles, and a bound of the error.

        Rounding n + 1 numbers, n products and n sums adds less than (n + 4)·2⁻⁵⁰ of the sum of their sizes
        to either, and nothing where all of them are small whole numbers (then it is −1).
        """
        least = np.full(len(low), _double(quantity.constant))
        most, size = least.copy(), np.abs(least)
        is_exact = _is_small(quantity.constant) and len(quantity.terms) <= 14
        for variable, factor in quantity.terms:
            if variable in self.options:
                options = np.array(self.options[variable], dtype=np.float64)
                left = high[:, self.first[variable] : self.first[variable] + len(options)] == 1
                bottom = np.where(left, options, np.inf).min(axis=1)
                top = np.where(left, options, -np.inf).max(axis=1)
                is_exact &= _is_small(factor * len(options))
            else:
                ends, axis = self._ends[variable], self.first[variable]
                bottom, top = ends.bottom[low[:, axis]], ends.top[high[:, axis]]
                is_exact &= ends.are_small and factor in (1, -1)
            with np.errstate(over="ignore", invalid="ignore"):  # then the answer is found exactly
                pair = (_double(factor) * bottom, _double(factor) * top)
                least, most = least + np.minimum(*pair), most + np.maximum(*pair)
                size = size + np.maximum(np.abs(pair[0]), np.abs(pair[1]))
        if is_exact:
            return least, most, np.full(len(low), -1.0)
        return least, most, size * ((len(quantity.terms) + 4) * 2.0**-50) + 1e-300


class _Ends:
    """The ends of the cells of one variable, as doubles."""

    def __init__(self, cells: Sequence[tuple[Number, Number]]) -> None:
        self.bottom = np.array([_double(low) for low, _ in cells])
        self.top = np.array([_double(high) for _, high in cells])
        self.are_doubles = all(low == _double(low) and high == _double(high) for low, high in cells)
        self.are_small = all(_is_small(low) and _is_small(high) for low, high in cells)


def _double(number: Number) -> float:
    """The nearest double; beyond all of them an infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _is_small(number: Number) -> bool:
    return isinstance(number, int) and abs(number) < _SMALL


def _at_most(
    sign: Sign, least: NDArray[np.float64], most: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether a number between two ends may compare with 0 in this way, and may not."""
    match sign:
        case Sign.AT_MOST:
            return least <= 0, most > 0
        case Sign.BELOW:
            return least < 0, most >= 0
    meets, differs = (least <= 0) & (most >= 0), (least != 0) | (most != 0)
    return (meets, differs) if sign is Sign.ZERO else (differs, meets)


def _cells(values: Span, breaks: Iterable[Number]) -> list[tuple[Number, Number]]:
    """The numbers of a span, in order, cut behind each break that is between its ends."""
    cells: list[tuple[Number, Number]] = []
    low = values.low
    for at in sorted({_floor(at, values.grid) for at in breaks if values.low <= at < values.high}):
        if low <= at:
            cells.append((low, at))
            low = at + 1 if values.grid is Grid.WHOLE else exact(math.nextafter(float(at), math.inf))
    return [*cells, (low, values.high)]


def _floor(at: Number, grid: Grid) -> Number:
    """The last number of a grid that is not above `at`."""
    if grid is Grid.WHOLE:
        return math.floor(at)
    below = float(at)
    return exact(math.nextafter(below, -math.inf) if Fraction(below) > at else below)
