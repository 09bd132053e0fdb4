"""What to draw next: kinds that cost little, that the tool answers, and that have shown new causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dokimos.hunting.proven_draws import Kind

#: What a new cause counts, and what share of draws is spread evenly.
_NEW, _EVEN = 12.0, 0.25
#: A draw costs at least this much, so that cheap ones do not crowd out all others.
_LEAST_SECONDS = 0.1


@dataclass
class Tally:
    """What came of the draws of one kind: `told` are instances that tested the tool's proofs."""

    draws: int = 0
    instances: int = 0
    told: int = 0
    wrong: int = 0
    new: int = 0
    cpu_seconds: float = 0.0

    def add(self, other: Tally) -> None:
        """Count another tally too."""
        for name in ("draws", "instances", "told", "wrong", "new", "cpu_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def weight(self) -> float:
        """How much more of this kind is worth: optimistic while it is new, less with every repeat."""
        useful = (self.told + 1) / (2 * self.draws + 2)
        found = 1 + _NEW * self.new / (1 + self.wrong)
        cost = max(_LEAST_SECONDS, self.cpu_seconds / max(1, self.draws))
        return float(useful * found / (cost * (1 + 0.02 * self.draws)) ** 0.5)


@dataclass
class Bandit:
    """Chooses among kinds, first the family and then its shape, by what came of them so far."""

    kinds: Sequence[Kind]
    tallies: dict[str, Tally] = field(default_factory=dict)

    def choose(self, rng: np.random.Generator) -> Kind:
        """The next kind to draw."""
        families = sorted({kind.family for kind in self.kinds})
        weights = [self._best(family) for family in families]
        family = families[self._pick(weights, rng)]
        own = [kind for kind in self.kinds if kind.family == family]
        return own[self._pick([self.tally(kind.name).weight for kind in own], rng)]

    def tally(self, name: str) -> Tally:
        """The tally of a kind."""
        return self.tallies.setdefault(name, Tally())

    def _best(self, family: str) -> float:
        """The weight of a family: the mean of its shapes, and more for those that have several."""
        own = [self.tally(kind.name).weight for kind in self.kinds if kind.family == family]
        return float(np.mean(own) * len(own) ** 0.5)

    @staticmethod
    def _pick(weights: Sequence[float], rng: np.random.Generator) -> int:
        shares = np.array(weights) / sum(weights)
        shares = (1 - _EVEN) * shares + _EVEN / len(shares)
        return int(rng.choice(len(shares), p=shares))
