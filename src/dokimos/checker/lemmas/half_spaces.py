"""Boxes cut by half-spaces: bounds of linear functions where inequalities hold besides those of the box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dokimos.checker.lemmas.float_ends import outward
from dokimos.checker.lemmas.relu_lines import FLUSHED, ROUNDED, at_most, loss_of_sum
from dokimos.networks.semantics.float32 import safe
from dokimos.networks.semantics.outward import Floats, Interval, up


@dataclass(frozen=True)
class HalfSpaces:
    """The x with factors·x <= limits: [half-spaces, inputs] and [half-spaces], or more axes for boxes."""

    factors: Floats
    limits: Floats

    @np.errstate(all="ignore")
    def added(self, rows: Floats, box: Interval) -> tuple[Floats, Floats, Floats]:
        """Other rows, shifts and losses: rows·x >= rows'·x + shift − lost for x in box and half-spaces.

        Theorem. Where f·x <= c, r·x >= r·x + λ·(f·x − c) = (r + λ·f)·x − λ·c for every λ >= 0; so for one
        half-space after the other. In float64, fl(r + fl(λ·f)) is off by at most 2^-52·(|r| + |λ·f|),
        times |x|, and each of the other roundings by 2^-53 of its result.
        """
        shift, lost = (np.zeros(rows.shape[:-1]) for _ in range(2))
        size = box.magnitude
        for number in range(self.factors.shape[-2]):
            side, limit = self.factors[..., number, None, :], self.limits[..., number, None]
            share = _best_share(rows, side, limit, box)
            more = share[..., None] * side
            loss = 2 * ROUNDED * (np.abs(rows) + np.abs(more))
            lost = lost + at_most((loss * size).sum(-1), loss.shape[-1])
            rows = rows + more
            moved = np.where(share > 0, share * limit, 0.0)
            shift = shift - moved
            lost = lost + ROUNDED * (np.abs(moved) + np.abs(shift)) + FLUSHED * (1.0 + size.sum(-1))
        return rows, shift, lost


def _best_share(rows: Floats, side: Floats, limit: Floats, box: Interval) -> Floats:
    """For each row a λ >= 0, any of which is sound: where the bound is largest, as a knapsack is filled.

    From the corner of the box at which f·x is least, each input can move one way. Moving takes |f|·width of
    the room c − f·corner; worth most is what has the largest −r/f, and λ is this where the room ends.
    """
    corner = np.where(side > 0, box.lower, box.upper)
    room = limit - (side * corner).sum(-1)
    worth = np.nan_to_num(np.where(side != 0, np.maximum(-rows / side, 0.0), 0.0), posinf=0.0)
    order = np.argsort(-worth, axis=-1, kind="stable")
    takes = np.broadcast_to(np.abs(side) * (box.upper - box.lower), worth.shape)
    over = np.cumsum(np.take_along_axis(takes, order, -1), -1) > room[..., None]
    last = np.take_along_axis(order, over.argmax(-1)[..., None], -1)
    return np.where(over.any(-1), np.take_along_axis(worth, last, -1)[..., 0], 0.0)


@np.errstate(all="ignore")
def half_spaces(lowest: Floats, factors: Floats, bounds: Sequence[Fraction], box: Interval) -> HalfSpaces:
    """Half-spaces that hold all x of a box with g(x) <= bound, for functions g above affine ones.

    Theorem. Let g(x) >= lowest + f·x − min f·x, the minimum taken over the box, as `BoundedLayers.lines`
    states it. Then g(x) <= b implies f·x <= b − lowest + min f·x, which is rounded up here.
    """
    corner = np.minimum(factors * box.lower, factors * box.upper)
    least, most = corner.sum(-1), outward(bounds).upper
    lost = loss_of_sum(corner) + 2 * ROUNDED * (np.abs(least) + np.abs(lowest) + np.abs(most)) + FLUSHED
    limits = up((most - lowest + least) + safe(lost))
    return HalfSpaces(factors, np.where(np.isnan(limits), np.inf, limits))
