"""The exact decisions of a ReLU network along a segment, piece by piece between its breakpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import fmpq, fmpq_mat

from dokimos.checker.lemmas.relu_layers import ReluLayer


@dataclass(frozen=True)
class SegmentDecision:
    """The decision on the points start + s·(end − start) with low < s < high; with s = low where both are
    the same."""

    low: Fraction
    high: Fraction
    decision: int


class SegmentReach:
    """A network of affine layers without noise, over segments between two of its inputs."""

    def __init__(self, layers: Sequence[ReluLayer]) -> None:
        if any(layer.noise.any() for layer in layers):
            raise ValueError("the layers are not known exactly")
        self._weights = [_matrix(layer.weights.tolist()) for layer in layers]
        self._biases = [_matrix([[each] for each in layer.biases.tolist()]) for layer in layers]

    def decisions(self, start: Sequence[Fraction], end: Sequence[Fraction]) -> list[SegmentDecision]:
        """The decision, the first largest score, at every s in [0, 1]: points and open pieces in turn.

        Theorem. The arguments of a layer's ReLUs are affine in s between two breakpoints of the layers
        before; cut where one of them is 0, each ReLU is affine too, so that the scores are affine on every
        piece, and continuous. Cut where two scores are equal, no two scores change their order inside of a
        piece: the decision at its middle is that of the whole open piece. All numbers are fractions.
        """
        line = fmpq_mat([[_exact(a), _exact(b - a)] for a, b in zip(start, end, strict=True)])
        scores = list(self._pieces(line, fmpq(0), fmpq(1), 0))
        found: list[SegmentDecision] = []
        for piece, low, high in scores:
            count = piece.nrows()
            cuts = {low, high}
            for i in range(count):
                for j in range(i):
                    slope = piece[i, 1] - piece[j, 1]
                    if slope != 0:
                        at = (piece[j, 0] - piece[i, 0]) / slope
                        if low < at < high:
                            cuts.add(at)
            points = sorted(cuts)
            if not found:
                found.append(_decided(piece, points[0], points[0]))
            for before, after in pairwise(points):
                found += [_decided(piece, before, after), _decided(piece, after, after)]
        return found

    def _pieces(
        self, line: fmpq_mat, low: fmpq, high: fmpq, number: int
    ) -> Iterator[tuple[fmpq_mat, fmpq, fmpq]]:
        """The scores on each piece of [low, high], in order, where layer `number` reads `line`."""
        made = self._weights[number] * line
        biases = self._biases[number]
        rows = [(made[k, 0] + biases[k, 0], made[k, 1]) for k in range(made.nrows())]
        if number == len(self._weights) - 1:
            yield fmpq_mat([list(row) for row in rows]), low, high
            return
        zeros = {-p / q for p, q in rows if q != 0}
        points = [low, *sorted(at for at in zeros if low < at < high), high]
        for before, after in pairwise(points):
            middle = (before + after) / 2
            on = [row if row[0] + row[1] * middle > 0 else (fmpq(0), fmpq(0)) for row in rows]
            yield from self._pieces(fmpq_mat([list(row) for row in on]), before, after, number + 1)


def _decided(piece: fmpq_mat, low: fmpq, high: fmpq) -> SegmentDecision:
    at = (low + high) / 2
    scores = [piece[k, 0] + piece[k, 1] * at for k in range(piece.nrows())]
    return SegmentDecision(_fraction(low), _fraction(high), scores.index(max(scores)))


def _matrix(rows: list[list[float]]) -> fmpq_mat:
    return fmpq_mat([[_exact(Fraction(value)) for value in row] for row in rows])


def _exact(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))
