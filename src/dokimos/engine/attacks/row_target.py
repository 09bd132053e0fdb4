"""Many records under attack at once: each row has its own box and class.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dokimos.engine.attacks.base import Attack, Budget
from dokimos.engine.attacks.margin_pass import EXACT, Backward, Loss, MarginValues, batch_size
from dokimos.engine.attacks.target import Points, Target
from dokimos.engine.differentiable import one_thread, to_torch
from dokimos.networks.graph import Network

#: A row whose margin is this far below 0 is finished.
DEEP = 1e-2
#: How many rows are attacked at a time.
_MOST_ROWS = 1000


class RowTarget(Target):
    """Rows of records, each with its own box [lower, upper] and the class that must stay above all others.

    The margin of a row is the score of its class minus the highest other one; `least` has the least margin
    that each row has reached, and `points` where. Rows that are well below 0 are no longer moved.
    """

    def __init__(self, network: Network, lower: Points, upper: Points, labels: NDArray[np.int64]) -> None:
        self.network, self.lower, self.upper = network, lower, upper
        self.conjunctions = network.output_size - 1
        self.least = np.full(len(lower), np.inf)
        self.points = lower + (upper - lower) / 2
        self._radius = (upper - lower) / 2
        self._labels, self._batch = torch.from_numpy(labels), batch_size(network)
        self._function = to_torch(network, dtype=torch.float32)

    @property
    def radius(self) -> Points:
        """Half the width of each box."""
        return self._radius

    def look(
        self,
        points: Points,
        aims: NDArray[np.int64] | None = None,
        *,
        loss: Loss = Loss.MARGIN,
        backward: Sequence[Backward] = (EXACT,),
    ) -> MarginValues:
        """The margins at `points`, one for each row, and their gradients, as in `Target.look`."""
        assert loss is Loss.MARGIN and tuple(backward) == (EXACT,)
        margins, gradients = self.least.astype(np.float32), np.zeros_like(points)
        going_on = np.flatnonzero(self.least > -DEEP)
        for start in range(0, len(going_on), self._batch):
            rows = going_on[start : start + self._batch]
            x = torch.from_numpy(points[rows]).requires_grad_(True)
            scores, labels = self._function(x), self._labels[rows][:, None]
            behind = scores.gather(1, labels) - scores
            nearest = behind.scatter(1, labels, torch.inf).min(dim=1)
            goal = nearest.values
            if aims is not None:
                aimed = torch.from_numpy(aims[rows])[:, None]
                others = torch.where(aimed < 0, nearest.indices[:, None], aimed + (aimed >= labels))
                goal = behind.gather(1, others)[:, 0]
            (slope,) = torch.autograd.grad(goal.sum(), x)
            margins[rows], gradients[rows] = nearest.values.detach().numpy(), slope.numpy()
        better = margins < self.least
        self.least = np.where(better, margins, self.least)
        self.points[better] = points[better]
        return MarginValues(margins, gradients)


@dataclass(frozen=True, eq=False)
class RowsReached:
    """For each record, the least margin that an attack reached in its box, in float32, and where."""

    margins: NDArray[Any]
    points: Points

    @property
    def broken(self) -> NDArray[np.bool_]:
        """Which records have another class somewhere in their box."""
        return np.asarray(self.margins <= 0)


def attack_rows(
    attack: Attack,
    network: Network,
    lower: Points,
    upper: Points,
    labels: NDArray[np.int64],
    budget: Budget,
    rng: np.random.Generator,
) -> RowsReached:
    """Attack many boxes [records, inputs] at once, each from `budget.restarts` points, in float32."""
    margins, points = np.full(len(lower), np.inf), lower + (upper - lower) / 2
    at_once = max(1, _MOST_ROWS // budget.restarts)
    with one_thread():
        for start in range(0, len(lower), at_once):
            part = slice(start, start + at_once)
            many = [np.tile(each[part], (budget.restarts, 1)) for each in (lower, upper)]
            target = RowTarget(network, many[0], many[1], np.tile(labels[part], budget.restarts))
            attack.search(target, Budget(restarts=len(many[0]), steps=budget.steps), rng)
            reached = target.least.reshape(budget.restarts, -1)
            best = reached.argmin(axis=0)
            columns = np.arange(reached.shape[1])
            margins[part] = reached[best, columns]
            points[part] = target.points.reshape(budget.restarts, reached.shape[1], -1)[best, columns]
    return RowsReached(margins, points)
