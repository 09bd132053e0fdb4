"""The square attack: random search that needs no gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks.base import Attack, Budget, Target
from dokimos.attacks.starts import uniform_starts


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
