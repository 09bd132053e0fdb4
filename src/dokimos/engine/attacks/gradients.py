"""Attacks that follow gradients, and the square attack, which needs none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.engine.attacks.base import (
    Attack,
    Budget,
    alternate_aims,
    inside,
    project,
    sign_step,
    uniform_starts,
)
from dokimos.engine.attacks.margin_pass import EXACT, Backward, Loss
from dokimos.engine.attacks.target import Points, Target

# Projected gradient descent on the margin by which an input is safe


@dataclass(frozen=True, kw_only=True)
class PGD(Attack):
    """Sign steps from uniform starting points, a fraction `corners` of them in corners of the box.

    Steps shorten from `first_step` to `last_step`, as fractions of the box's radius; rows multiply them by
    each of `scales` in turn. Half of the restarts follow the nearest conjunction; the others aim at one
    each, in turn. `backward` says how gradients pass back through ReLUs, row by row in turn.
    """

    name: ClassVar[str] = "pgd"

    first_step: float = 0.25
    last_step: float = 0.005
    corners: float = 0.25
    scales: tuple[float, ...] = (1.0, 0.4, 2.0)
    backward: tuple[Backward, ...] = (EXACT,)

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Descend from all starting points at once."""
        numbers = np.arange(budget.restarts)
        aims = alternate_aims(target, budget.restarts)
        starts = uniform_starts(target, budget.restarts, rng, corners=self.corners)
        scales = np.array(self.scales, dtype=np.float32)[numbers // len(self.backward) % len(self.scales)]
        shares = np.linspace(self.first_step, self.last_step, budget.steps, dtype=np.float32)
        gradients = target.look(starts, aims, backward=self.backward).gradients
        steps = [scales[:, None] * share for share in shares]
        descend(target, starts, gradients, steps, aims=aims, backward=self.backward)


def descend(
    target: Target,
    points: Points,
    gradients: Points,
    shares: Iterable[float | NDArray[Any]],
    *,
    aims: NDArray[np.int64] | None = None,
    backward: Sequence[Backward] = (EXACT,),
) -> Points:
    """Descend from `points` with these gradients by sign steps, each a fraction of the box's radius.

    Returns the last points; the target has looked at every step on the way.
    """
    for share in shares:
        points = sign_step(target, points, gradients, share)
        gradients = target.look(points, aims, backward=backward).gradients
    return points


# Auto-PGD: projected gradient descent that chooses its own step sizes


@dataclass(frozen=True, kw_only=True)
class APGD(Attack):
    """Auto-PGD (Croce and Hein, 2020): steps of twice the radius, halved when they stop helping.

    At checkpoints that become more frequent, a row whose last steps lowered the margin in less than a
    fraction `often` of the cases, or whose best has not changed, goes back to its best point and halves its
    step. `momentum` is the weight of the new step relative to the previous one.
    """

    name: ClassVar[str] = "apgd-margin"
    loss: ClassVar[Loss] = Loss.MARGIN

    often: float = 0.75
    momentum: float = 0.75

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Descend from all starting points at once."""
        points = uniform_starts(target, budget.restarts, rng)
        run(self, target, points, alternate_aims(target, budget.restarts), budget.steps)


@dataclass(frozen=True, kw_only=True)
class CrossEntropyAPGD(APGD):
    """Auto-PGD on the cross-entropy."""

    name: ClassVar[str] = "apgd-ce"
    loss: ClassVar[Loss] = Loss.CROSS_ENTROPY


@dataclass(frozen=True, kw_only=True)
class RatioAPGD(APGD):
    """Auto-PGD on the difference of logits ratio; on the margin if there is only one conjunction."""

    name: ClassVar[str] = "apgd-dlr"
    loss: ClassVar[Loss] = Loss.RATIO


def checkpoints(steps: int) -> set[int]:
    """The steps after which step lengths are adjusted, as in the paper: at 0.22, 0.41, 0.57, ... of all."""
    found, last, now = [], 0.0, 0.22
    while now < 1:
        found.append(int(np.ceil(now * steps)))
        last, now = now, now + max(now - last - 0.03, 0.06)
    return set(found)


def run(how: APGD, target: Target, points: Points, aims: NDArray[np.int64], steps: int) -> Points:
    """Run Auto-PGD from `points`; return the best point of each row."""
    seen = target.look(points, aims, loss=how.loss)
    best, lowest, before, gradients = points, seen.margins, points, seen.gradients
    shares: NDArray[Any] = np.full((len(points), 1), 2.0, dtype=np.float32)
    halved = np.zeros(len(points), dtype=np.bool_)
    lowest_then, improved, last_check, last = lowest, np.zeros(len(points)), 0, seen.margins
    for step in range(steps):
        moved = sign_step(target, points, gradients, shares)
        if step:
            moved = inside(
                target, points + how.momentum * (moved - points) + (1 - how.momentum) * (points - before)
            )
        before, points = points, moved
        seen = target.look(points, aims, loss=how.loss)
        gradients = seen.gradients
        improved = improved + (seen.margins < last)
        last = seen.margins
        better = seen.margins < lowest
        best, lowest = np.where(better[:, None], points, best), np.where(better, seen.margins, lowest)
        if step + 1 in checkpoints(steps):
            weak = improved < how.often * (step + 1 - last_check)
            stuck = ~halved & (lowest >= lowest_then)
            halved = weak | stuck
            shares = np.where(halved[:, None], shares / 2, shares)
            points = np.where(halved[:, None], best, points)
            before = np.where(halved[:, None], best, before)
            lowest_then, improved, last_check = lowest, np.zeros(len(points)), step + 1
    return best


# Attacks that aim at one way to be unsafe at a time


@dataclass(frozen=True, kw_only=True)
class Targeted(Attack):
    """Auto-PGD in which each restart aims at one conjunction; they take turns."""

    name: ClassVar[str] = "targeted"

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Descend from all starting points at once."""
        points = uniform_starts(target, budget.restarts, rng)
        run(APGD(), target, points, np.arange(budget.restarts) % target.conjunctions, budget.steps)


# Projected gradient descent whose gradients pass through ReLUs that are off


@dataclass(frozen=True, kw_only=True)
class LeakyPGD(PGD):
    """PGD whose gradients leak through ReLUs that are off, in three strengths."""

    name: ClassVar[str] = "pgd-leaky"

    backward: tuple[Backward, ...] = (Backward(leak=0.01), Backward(leak=0.1), Backward(leak=0.5))


# MI-FGSM: sign steps along a running mean of gradients


@dataclass(frozen=True, kw_only=True)
class MIFGSM(Attack):
    """The momentum iterative fast gradient sign method (Dong et al., 2018), from random points.

    Each gradient is divided by its ℓ1 norm and added to `decay` times the sum of the earlier ones.
    """

    name: ClassVar[str] = "mi-fgsm"

    decay: float = 0.9
    first_step: float = 0.3
    last_step: float = 0.01

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Descend from all starting points at once."""
        points = uniform_starts(target, budget.restarts, rng, corners=0.25)
        aims = alternate_aims(target, budget.restarts)
        momentum = np.zeros_like(points)
        gradients = target.look(points, aims).gradients
        for share in np.linspace(self.first_step, self.last_step, budget.steps, dtype=np.float32):
            gradients = np.nan_to_num(gradients)
            norms = np.abs(gradients).sum(axis=1, keepdims=True)
            momentum = self.decay * momentum + gradients / np.maximum(norms, np.finfo(np.float32).tiny)
            points = sign_step(target, points, momentum, share)
            gradients = target.look(points, aims).gradients


# FAB: finds the nearest decision boundary by linear approximation


@dataclass(frozen=True, kw_only=True)
class FAB(Attack):
    """The fast adaptive boundary attack (Croce and Hein, 2020), in the box.

    Each step projects the point onto the linear approximation of the boundary, goes `overshoot` times as
    far, and is biased, by at most `lean`, towards the same projection of the row's start. A row that has
    crossed the boundary goes back towards its start. Rows are aimed as in PGD.
    """

    name: ClassVar[str] = "fab"

    overshoot: float = 1.05
    lean: float = 0.1
    back: float = 0.9

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Move all rows at once, from the centre of the box and from random points."""
        starts = uniform_starts(target, budget.restarts, rng)
        starts[0] = inside(target, (target.lower + target.upper) / 2)
        aims = alternate_aims(target, budget.restarts)
        points, seen = starts, target.look(starts, aims)
        for _ in range(budget.steps):
            values, gradients = seen.margins.astype(np.float64), np.nan_to_num(seen.gradients)
            moved = project(target, points, values, gradients) - points
            # The hyperplane at `points`, relative to the start.
            from_start = values + ((starts - points) * gradients).sum(axis=1)
            anchored = project(target, starts, from_start, gradients) - starts
            near, far = _length(target, moved), _length(target, anchored)
            share = np.minimum(near / np.maximum(near + far, 1e-12), self.lean)[:, None]
            onward = (1 - share) * (points + self.overshoot * moved)
            onward = inside(target, onward + share * (starts + self.overshoot * anchored))
            crossed = (values <= 0)[:, None]
            points = inside(target, np.where(crossed, starts + self.back * (points - starts), onward))
            seen = target.look(points, aims)


def _length(target: Target, moved: Points) -> Points:
    """The length of a move, as a fraction of the radius."""
    lengths: Points = (np.abs(moved) / np.maximum(target.radius, 1e-30)).max(axis=1)
    return lengths


# The square attack: random search that needs no gradients


@dataclass(frozen=True, kw_only=True)
class Square(Attack):
    """The square attack (Andriushchenko et al., 2020): one window at a time of each row jumps to a face.

    A window is a square of an image, in all of its channels, or any inputs if they are not an image. Its
    fraction of the inputs falls from `first_share`. Moves that raise the margin are undone.
    """

    name: ClassVar[str] = "square"

    first_share: float = 0.5

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Move all rows at once."""
        points = uniform_starts(target, budget.restarts, rng, corners=1.0)
        lowest = target.margins(points)
        for step in range(budget.steps):
            windows = self._windows(target, budget.restarts, self._share(step / budget.steps), rng)
            signs = rng.integers(0, 2, size=(budget.restarts, 1)).astype(np.bool_)
            if rng.random() < 0.5:  # each coordinate of the window separately
                signs = rng.integers(0, 2, size=points.shape).astype(np.bool_)
            moved = np.where(windows, np.where(signs, target.upper, target.lower), points)
            margins = target.margins(moved)
            better = margins < lowest
            points, lowest = np.where(better[:, None], moved, points), np.where(better, margins, lowest)

    def _share(self, progress: float) -> float:
        """The fraction of the inputs in a window, which is halved less and less often, as in the paper."""
        marks = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
        return float(self.first_share / 2 ** sum(progress > mark for mark in marks))

    def _windows(
        self, target: Target, rows: int, share: float, rng: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Which inputs each row moves."""
        shape = target.network.input_shape
        if len(shape) < 3:
            ranks = rng.random((rows, len(target.lower))).argsort(axis=1).argsort(axis=1)
            return np.asarray(ranks < max(1, round(share * len(target.lower))))
        height, width = shape[-2:]
        side = max(1, round((share * height * width) ** 0.5))
        tall, wide = min(height, side), min(width, side)
        top = rng.integers(0, height - tall + 1, size=(rows, 1, 1))
        left = rng.integers(0, width - wide + 1, size=(rows, 1, 1))
        y, x = np.arange(height)[None, :, None], np.arange(width)[None, None, :]
        inside = (y >= top) & (y < top + tall) & (x >= left) & (x < left + wide)
        planes = len(target.lower) // (height * width)
        return np.tile(inside.reshape(rows, -1), (1, planes))
