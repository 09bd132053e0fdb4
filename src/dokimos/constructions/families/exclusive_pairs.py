"""Exclusive pairs: in each pair of hinges one is always active, though each alone may be off."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.linear.cover import LEAF
from dokimos.constructions.base import Construction, by_slopes, dyadic
from dokimos.constructions.draft import (
    BOUND_BITS,
    Draft,
    ball,
    dot,
    first_class_loses,
    inward,
    knob,
    random_point,
    split_evenly,
    towards,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Point, Property

WEIGHT_BITS = 12
BIAS_BITS = 22
#: The γ of the pair whose ReLUs are stable on small boxes.
FAR = Fraction(3, 8)
Matrix = NDArray[np.int64]


@dataclass(frozen=True)
class Knobs:
    """The knobs of exclusive pairs."""

    inputs: int = knob(20, "how many inputs", least=2, most=1000)
    pairs: int = knob(
        8, "how many pairs of hinges; the minimum over the pairs is computed by a tree", least=1, most=512
    )
    gamma: float = knob(0.001, "half the overlap of a pair; the margin is gamma/2", least=1e-6, most=1e4)
    epsilon: float = knob(0.25, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)
    offset: float = knob(
        0.8,
        "where the twin's slab lies, from the centre of the box (0) to its faces (1)",
        least=0.05,
        most=0.95,
    )
    scale: float = knob(
        1.0, "the sum of a hinge's absolute weights, rounded to a power of two", least=1.0, most=2.0**20
    )
    skips: int = knob(
        0,
        "1: values pass by the ReLUs that do not need them; 0: through ReLUs, in a chain",
        least=0,
        most=1,
    )


class ExclusivePairs(Construction[Knobs]):
    """Class 0 scores min over pairs p of max(z₁⁺, z₂⁺), z₁ = γ + u_p, z₂ = γ − u_p; the others score γ/2.

    u_p = w_p·(x − x₀) with ‖w_p‖₁ = s, so |u_p| <= s·ε, and z₁ + z₂ = 2γ makes every pair score at least
    γ. The first pair is off centre: u = w·(x − x₀) − offset·s·ε. In the twin its two biases have −γ in
    place of γ, so it scores 0 in the slab |u| <= γ, where class 0 loses by γ/2.

    With `skips` every ReLU is one that the maxima and minima need, as in the published instances: there are
    4·pairs − 1. And the γ of the last of several pairs is larger, 3/8·s, so that its ReLUs are stable on
    small boxes.
    """

    family: ClassVar[str] = "exclusive-pairs"
    summary: ClassVar[str] = "pairs of ReLUs of which one is always active; a proof must see them together"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the directions; only the first pair's biases differ between the two drafts."""
        network, property_ = self._drawn(knobs, rng, knobs.offset)
        return (
            network.robust(property_),
            Draft(network.build(robust=False), property_, Certificate("witness"), network.witness),
        )

    def alone(self, knobs: Knobs, rng: np.random.Generator) -> Draft:
        """With all pairs in the centre."""
        network, property_ = self._drawn(knobs, rng, 0.0)
        return network.robust(property_)

    def _drawn(self, knobs: Knobs, rng: np.random.Generator, offset: float) -> tuple[_Network, Property]:
        epsilon = inward(knobs.epsilon)
        # A power of two: weights and biases are as exact in float32 as with a scale of 1.
        scale = Fraction(2) ** round(np.log2(knobs.scale))
        gamma = dyadic(Fraction(knobs.gamma) / scale, BIAS_BITS)
        shift = dyadic(offset * float(epsilon), BOUND_BITS)
        if not 0 < gamma < epsilon or shift + 2 * gamma >= epsilon:
            raise ConstructionFailed(
                f"{self.family}: gamma = {knobs.gamma:g} does not fit epsilon = {knobs.epsilon:g}, "
                f"offset = {offset:g} and scale = {float(scale):g}: 2·gamma/scale must lie between 0 "
                "and (1 - offset)·epsilon."
            )
        centre = random_point(knobs.inputs, rng)
        directions = [
            [
                Fraction(k, 2**WEIGHT_BITS)
                for k in split_evenly(2**WEIGHT_BITS, rng.standard_normal(len(centre)))
            ]
            for _ in range(knobs.pairs)
        ]
        network = _Network(
            centre,
            directions,
            gamma=gamma,
            shift=shift,
            scale=scale,
            classes=knobs.classes,
            skips=bool(knobs.skips),
        )
        return network, first_class_loses(ball(centre, epsilon), knobs.classes)


class _Network:
    """The layers: hinges, the maximum of each pair, and a tree of minima."""

    def __init__(
        self,
        centre: list[Fraction],
        directions: list[list[Fraction]],
        *,
        gamma: Fraction,
        shift: Fraction,
        scale: Fraction,
        classes: int,
        skips: bool,
    ) -> None:
        self._centre, self._directions = centre, directions
        self._gamma, self._shift, self._scale, self._classes = gamma, shift, scale, classes
        self._layers, self._top = _aggregation(len(directions))
        self._skips = skips

    def robust(self, question: Property) -> Draft:
        """The draft that holds."""
        proof = by_slopes(question, self.slopes(), self.tree())
        return Draft(self.build(robust=True), question, proof)

    @property
    def witness(self) -> Point:
        """Where the first pair's two hinges are level."""
        return towards(self._centre, self._directions[0], self._shift)

    def build(self, *, robust: bool) -> bytes:
        """The network; unless `robust`, the first pair has −γ in place of γ."""
        rows, biases = [], []
        for p, w in enumerate(self._directions):
            middle = dot(w, self._centre) + (self._shift if p == 0 else 0)
            level = -self._gamma if p == 0 and not robust else self._gamma
            if self._skips and 0 < p == len(self._directions) - 1:
                level = max(level, FAR)
            rows += [[sign * self._scale * a for a in w] for sign in (1, -1)]
            biases += [self._scale * (level - sign * middle) for sign in (1, -1)]
        builder = ModelBuilder([len(self._centre)]).affine(rows, biases).relu()
        scores = [Fraction(0), *[self._scale * self._gamma / 2] * (self._classes - 1)]
        top = self._with_skips(builder) if self._skips else self._as_chain(builder)
        head = np.zeros((self._classes, len(top)), dtype=np.int64)
        head[0] = top
        return builder.affine(head, scores).build(self._classes)

    def _as_chain(self, builder: ModelBuilder) -> Matrix:
        for layer in self._layers:
            builder.affine(layer, np.zeros(len(layer))).relu()
        top: Matrix = self._top[0]
        return top

    def _with_skips(self, builder: ModelBuilder) -> Matrix:
        """max(a, b) = b + (a − b)⁺ for each pair, then min(a, b) = a − (a − b)⁺ until one is left."""
        count, kept, sign = 2 * len(self._directions), 1, 1
        while count > 1:
            pairs = count // 2
            values, after = builder.last, (count + 1) // 2
            difference, keep = (np.zeros(size, dtype=np.int64) for size in ((pairs, count), (after, count)))
            for p in range(pairs):
                difference[p, 2 * p], difference[p, 2 * p + 1] = 1, -1
                keep[p, 2 * p + kept] = 1
            if count % 2:
                keep[-1, -1] = 1
            turn = sign * np.eye(after, pairs, dtype=np.int64)
            bent = builder.affine(difference, np.zeros(pairs)).relu().affine(turn, np.zeros(after)).last
            builder.resume(values).affine(keep, np.zeros(after)).joined_with(bent)
            count, kept, sign = after, 0, -1
        return np.ones(1, dtype=np.int64)

    def slopes(self) -> list[float]:
        """The factors: ½ where a hinge enters the maximum of its pair, 1 elsewhere."""
        pairs = len(self._directions)
        if self._skips:
            return [1] * (2 * pairs) + [0.5] * pairs + [1] * (pairs - 1)
        rest = sum(len(layer) for layer in self._layers[1:])
        return [1] * (2 * pairs) + [1, 0.5] * pairs + [1] * rest

    def tree(self) -> list[int]:
        """Cuts by which of two is less, from the last minimum to the first: each pair has a leaf.

        In a chain, between two layers are their arguments and their ReLUs; with skips, what is carried on
        and what is subtracted, too. The inputs come before all of them.
        """
        counts = [len(self._directions)]
        while counts[-1] > 1:
            counts.append((counts[-1] + 1) // 2)
        sizes = [4 * counts[0], *(2 * len(layer) for layer in self._layers)]
        if self._skips:
            before = [2 * counts[0], *counts]
            sizes = [4 * counts[0], *(2 * (n // 2) + 3 * ((n + 1) // 2) for n in before)]
        starts = len(self._centre) + np.cumsum([0, *sizes])
        tree: list[int] = []
        pending = [(len(counts) - 1, 0)]
        while pending:
            level, k = pending.pop()
            while level and 2 * k + 1 >= counts[level - 1]:  # carried on alone
                level, k = level - 1, 2 * k
            if not level:
                tree.append(LEAF)
                continue
            tree.append(int(starts[level + 1]) + (k if self._skips else 2 * k + 1))
            pending += [(level - 1, 2 * k + 1), (level - 1, 2 * k)]
        return tree


def _aggregation(pairs: int) -> tuple[list[Matrix], Matrix]:
    """The hidden layers after the hinges, and the row that reads the result off the last.

    max(a, b) = b + (a − b)⁺ and min(a, b) = a − (a − b)⁺; everything carried on is nonnegative, so the
    ReLU leaves it as it is.
    """
    first = np.zeros((2 * pairs, 2 * pairs), dtype=np.int64)
    read = np.zeros((pairs, 2 * pairs), dtype=np.int64)
    for p in range(pairs):
        a, b = 2 * p, 2 * p + 1
        first[a, b] = 1
        first[b, a], first[b, b] = 1, -1
        read[p, a] = read[p, b] = 1
    layers = [first]
    while len(read) > 1:
        count = len(read)
        rows = [row for i in range(0, count - 1, 2) for row in (read[i], read[i] - read[i + 1])]
        if count % 2:
            rows.append(read[-1])
        layers.append(np.array(rows))
        read = np.zeros(((count + 1) // 2, len(rows)), dtype=np.int64)
        for i in range(count // 2):
            read[i, 2 * i], read[i, 2 * i + 1] = 1, -1
        if count % 2:
            read[-1, -1] = 1
    return layers, read
