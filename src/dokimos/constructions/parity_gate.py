"""A parity lock: a small ReLU network on a box that opens one gate in one cell, or nowhere.

Every coordinate that it reads gives up to k bits: the first says on which side of the middle of the box it
is (0: above); folding the box there (the tent map y ↦ y − 2·max(0, y − middle)) gives the next. A bit is a
steep ramp z, clamped to [0, 1]: max(0, 1 − max(0, z)). Equations ask for the parity of w bits each, by a
triangle wave v_e of their sum, and one gate max(0, g) opens where nothing is missing:
g = θ − Σ_e (1 − v_e) − 2λ·Σ_j min(b_j, 1 − b_j). It is written as max(0, θ − max(0, θ − g)), so that
intervals know g <= θ.

Theorem. All terms are >= 0, so g <= θ. If g > 0 and θ·max(1, 1/(2λ)) < 1, the rounded bits solve all
equations: otherwise v_e = 0 at the rounded bits of some e, and since its slopes are ±1,
θ − g >= max(0, 1 − D) + 2λ·D >= min(1, 2λ) > θ, D being the sum of the distances of the bits of e from
their roundings. So where the equations have one solution, g > 0 only inside one cell of the box, whose
share of the volume is 2^-bits: no uniform draw finds it more often. Where they have none, g is at most
θ − min(1, 2λ) everywhere. Around the centre of the cell all bits are exact, and g = θ, within
2^-(k+1) − 1/(2α) of the box's width, α being the slope of the ramps in box widths.

Nothing is claimed about searches that follow gradients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import ConstructionFailed
from dokimos.suites.vnnlib.model import Box, Point

# Systems of parity equations: sums of bits over GF(2), with one solution or none


@dataclass(frozen=True)
class Equation:
    """The sum of these bits is odd, or even."""

    bits: tuple[int, ...]
    odd: bool


@dataclass(frozen=True)
class ParitySystem:
    """One more equation than bits, of full rank: `solution` is the only solution, if there is one.

    `contradiction` names the equations that sum to 0 = 0, all others being independent: with one of their
    right-hand sides changed they sum to 0 = 1, and there is no solution. `changed` is one of them.
    """

    solution: tuple[int, ...]
    equations: tuple[Equation, ...]
    contradiction: tuple[int, ...]
    changed: int

    def inconsistent(self) -> ParitySystem:
        """The same equations with one right-hand side changed."""
        equations = list(self.equations)
        equations[self.changed] = replace(equations[self.changed], odd=not equations[self.changed].odd)
        return replace(self, equations=tuple(equations))


def draw_system(bits: int, weight: int, rng: np.random.Generator) -> ParitySystem:
    """A system of `weight` bits in each equation, in random order.

    Sums of an odd number w < bits of bits span everything: the sum of two that differ in one bit has the
    two bits in which they differ, and these sums with one equation give every single bit. Sums of an even
    number have rank bits − 1 at most. Raises ConstructionFailed if there is no system of full rank.
    """
    if weight % 2 == 0 or bits in range(2, weight + 1):
        raise ConstructionFailed(
            f"{bits} bits have too few independent equations of {weight} bits each; choose a smaller, odd "
            "weight."
        )
    solution = tuple(int(b) for b in rng.integers(0, 2, size=bits))
    rows: list[int] = []
    basis = _Basis()
    while len(rows) < bits:
        row = _row(bits, weight, rng)
        if basis.add(row, len(rows)):
            rows.append(row)
    extra = _row(bits, weight, rng)
    members = [*basis.combination(extra), bits]
    rows.append(extra)
    order = [int(k) for k in rng.permutation(bits + 1)]
    place = {old: new for new, old in enumerate(order)}
    equations = tuple(_equation(rows[k], solution) for k in order)
    return ParitySystem(solution, equations, tuple(sorted(place[k] for k in members)), place[bits])


def _row(bits: int, weight: int, rng: np.random.Generator) -> int:
    return sum(1 << int(j) for j in rng.choice(bits, size=weight, replace=False))


def _equation(row: int, solution: Sequence[int]) -> Equation:
    members = tuple(j for j in range(len(solution)) if row >> j & 1)
    return Equation(members, sum(solution[j] for j in members) % 2 == 1)


class _Basis:
    """Independent rows in echelon form, each with the rows that it is the sum of."""

    def __init__(self) -> None:
        self._reduced: dict[int, tuple[int, int]] = {}

    def _reduce(self, row: int) -> tuple[int, int]:
        used = 0
        while row:
            lead = row.bit_length() - 1
            if lead not in self._reduced:
                break
            other, members = self._reduced[lead]
            row, used = row ^ other, used ^ members
        return row, used

    def add(self, row: int, number: int) -> bool:
        """Add the row with that number, unless it depends on earlier ones."""
        rest, used = self._reduce(row)
        if rest:
            self._reduced[rest.bit_length() - 1] = rest, used ^ (1 << number)
        return rest != 0

    def combination(self, row: int) -> list[int]:
        """The numbers of the earlier rows that sum to this dependent row."""
        _, used = self._reduce(row)
        return [k for k in range(used.bit_length()) if used >> k & 1]


Row = Mapping[int, Fraction]
Matrix = NDArray[np.float64]
HALF, ONE, TWO = Fraction(1, 2), Fraction(1), Fraction(2)
#: A slope has so many significant bits, so that slope·(a number of the box) stays exact in float32.
SLOPE_BITS = 4


@dataclass(frozen=True)
class LockShape:
    """The parameters of a lock: its size, and the numbers of the theorem."""

    bits: int = 75
    levels: int = 3
    weight: int = 7
    steepness: int = 32
    penalty: Fraction = ONE
    opening: Fraction = HALF

    def __post_init__(self) -> None:
        """Refuse what the theorem does not cover."""
        if self.opening * max(ONE, 1 / (2 * self.penalty)) >= 1:
            raise ConstructionFailed(
                "A lock needs opening·max(1, 1/(2·penalty)) < 1; lower the opening or raise the penalty."
            )
        if self.steepness < 2 ** (self.levels + 2):
            raise ConstructionFailed(
                f"{self.levels} bits from one coordinate need a steepness of at least "
                f"{2 ** (self.levels + 2)}."
            )
        if self.weight > self.bits:
            raise ConstructionFailed(
                f"An equation of {self.weight} bits needs at least that many; the lock has only "
                f"{self.bits}."
            )

    @property
    def inputs(self) -> int:
        """How many coordinates the lock reads."""
        return ceil(self.bits / self.levels)


@dataclass(frozen=True)
class Digit:
    """One coordinate that the lock reads: where it lies in the box, and its bits, the coarsest first."""

    coordinate: int
    low: Fraction
    width: Fraction
    slope: Fraction
    bits: tuple[int, ...]

    def centre(self, values: Sequence[int]) -> Fraction:
        """The middle of the cell in which the bits have these values."""
        cell = 0
        for value in values:
            # Folding reverses the second half: there the next bit counts from the other end.
            cell = 2 * cell + ((1 - value) ^ (cell & 1))
        return self.low + self.width * Fraction(2 * cell + 1, 2 ** (len(values) + 1))


@dataclass(frozen=True)
class ParityLock:
    """A lock on a box: the digits that it reads, and its equations, which have a solution or none."""

    shape: LockShape
    inputs: int
    digits: tuple[Digit, ...]
    system: ParitySystem

    @cached_property
    def _assembly(self) -> _Assembly:
        return _Assembly(self)

    @property
    def layers(self) -> tuple[tuple[Matrix, Matrix], ...]:
        """Weights [outputs, inputs] and biases of its layers, each rectified; the last one is the gate."""
        return self._assembly.layers

    def centre(self, elsewhere: Sequence[Fraction]) -> Point:
        """The middle of the cell that solves the equations, with the other coordinates from `elsewhere`."""
        point = list(elsewhere)
        for digit in self.digits:
            point[digit.coordinate] = digit.centre([self.system.solution[j] for j in digit.bits])
        return tuple(point)

    @property
    def radius(self) -> Fraction:
        """How far around the centre of the cell, in every coordinate, the gate is fully open."""
        radii = (d.width * Fraction(1, 2 ** (len(d.bits) + 1)) - 1 / (2 * d.slope) for d in self.digits)
        return min(radii)

    def certificate_data(self, *, before: Sequence[int] = ()) -> dict[str, Any]:
        """The bits, the equations and the contradiction, as `parity-lock` proofs name them.

        `before[k]` is how many other ReLUs come before those of the lock in layer k.
        """
        assembly = self._assembly
        sizes = [len(bias) for _, bias in assembly.layers]
        others = [*before, *[0] * (len(sizes) - len(before))]
        start = sum(others[: self.shape.levels + 1]) + sum(sizes[: self.shape.levels])
        return {
            "gate": others[-1],
            "bits": [start + k for k in assembly.bits],
            "equations": [{"bits": list(e.bits), "odd": e.odd} for e in self.system.equations],
            "contradiction": list(self.system.contradiction),
            "penalty": str(2 * self.shape.penalty),
        }


def draw_lock(shape: LockShape, box: Box, rng: np.random.Generator) -> ParityLock:
    """A lock with one solution on random coordinates of the box.

    Raises ConstructionFailed if too few coordinates of the box have a positive width.
    """
    wide = [i for i, (low, high) in enumerate(zip(box.lower, box.upper, strict=True)) if low < high]
    if len(wide) < shape.inputs:
        raise ConstructionFailed(
            f"A lock of {shape.bits} bits reads {shape.inputs} inputs, but in this box only {len(wide)} "
            "can vary; use fewer bits."
        )
    chosen = sorted(int(i) for i in rng.choice(wide, size=shape.inputs, replace=False))
    system = draw_system(shape.bits, shape.weight, rng)
    digits = tuple(
        _digit(box, i, tuple(range(k, shape.bits, shape.inputs)), shape) for k, i in enumerate(chosen)
    )
    return ParityLock(shape, box.size, digits, system)


def _digit(box: Box, coordinate: int, bits: tuple[int, ...], shape: LockShape) -> Digit:
    low, width = box.lower[coordinate], box.upper[coordinate] - box.lower[coordinate]
    return Digit(coordinate, low, width, _rounded_up(shape.steepness / width), bits)


def _rounded_up(value: Fraction) -> Fraction:
    """The smallest number of SLOPE_BITS significant bits that is not below a positive one."""
    unit = ONE
    while value / unit >= 2**SLOPE_BITS:
        unit *= 2
    while value / unit < 2 ** (SLOPE_BITS - 1):
        unit /= 2
    return ceil(value / unit) * unit


class _Assembly:
    """The layers of a lock, row by row; a value is a row over the neurons of the layer before."""

    def __init__(self, lock: ParityLock) -> None:
        self._lock = lock
        self._before = lock.inputs
        self._rows: list[tuple[Row, Fraction]] = []
        self.layers: tuple[tuple[Matrix, Matrix], ...] = ()
        #: The neuron of the last layer so far that is the bit, by bit.
        self.bits = self._digits()
        missing = self._neuron(*self._equations())
        self._close()
        self._neuron({missing: -ONE}, lock.shape.opening)
        self._close()

    def _neuron(self, row: Row, bias: Fraction) -> int:
        self._rows.append((row, bias))
        return len(self._rows) - 1

    def _close(self) -> None:
        weights = np.zeros((len(self._rows), self._before))
        biases = np.zeros(len(self._rows))
        for i, (row, bias) in enumerate(self._rows):
            biases[i] = float(bias)
            for j, factor in row.items():
                weights[i, j] = float(factor)
        self.layers = (*self.layers, (weights, biases))
        self._before, self._rows = len(self._rows), []

    def _digits(self) -> list[int]:
        """The layers that read the digits, a bit of each in turn."""
        bits: dict[int, int] = {}
        ramps: dict[int, int] = {}
        folded: list[tuple[Row, Fraction]] = [({d.coordinate: ONE}, -d.low) for d in self._lock.digits]
        for level in range(self._lock.shape.levels + 1):
            carried = {j: self._neuron({k: ONE}, Fraction(0)) for j, k in bits.items()}
            bits = {**carried, **{j: self._neuron({k: -ONE}, ONE) for j, k in ramps.items()}}
            ramps = {}
            for number, digit in enumerate(self._lock.digits):
                if level >= len(digit.bits):
                    continue
                row, bias = folded[number]
                middle = digit.width / 2 ** (level + 1)
                steep = {j: digit.slope * c for j, c in row.items()}
                ramps[digit.bits[level]] = self._neuron(steep, digit.slope * (bias - middle) + HALF)
                if level + 1 < len(digit.bits):
                    whole, second = self._neuron(row, bias), self._neuron(row, bias - middle)
                    folded[number] = {whole: ONE, second: -TWO}, Fraction(0)
            self._close()
        return [bits[j] for j in range(self._lock.shape.bits)]

    def _equations(self) -> tuple[Row, Fraction]:
        """The layer of the waves; then θ − g as a row over it."""
        penalty = 2 * self._lock.shape.penalty
        missing: dict[int, Fraction] = {}
        constant = Fraction(0)
        copies = [self._neuron({k: ONE}, Fraction(0)) for k in self.bits]
        for copy, k in zip(copies, self.bits, strict=True):
            missing[copy], missing[self._neuron({k: TWO}, -ONE)] = penalty, -penalty
        for equation in self._lock.system.equations:
            sign = -ONE if equation.odd else ONE
            constant += equation.odd
            for j in equation.bits:
                missing[copies[j]] += sign
            total = {self.bits[j]: ONE for j in equation.bits}
            for k in range(1, len(equation.bits)):
                missing[self._neuron(total, Fraction(-k))] = sign * 2 * (-1) ** k
        self._close()
        return missing, constant
