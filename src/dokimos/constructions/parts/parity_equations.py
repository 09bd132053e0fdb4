"""Systems of parity equations: sums of bits over GF(2), with one solution or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dokimos.core.errors import ConstructionFailed


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
