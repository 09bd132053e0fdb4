"""Projected gradient descent on the margin by which an input is safe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dokimos.networks.graph import Network
from dokimos.networks.semantics.differentiable import to_torch
from dokimos.properties.model import Case, Conjunction, Property
from dokimos.properties.violation import require_fit


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How hard to search: sign steps from `first_step` down to `last_step`, as shares of the radius."""

    restarts: int = 100
    steps: int = 100
    first_step: float = 0.25
    last_step: float = 0.005


@dataclass(frozen=True, eq=False)
class Attacked:
    """What the search reached, in float32.

    `least_margin` is the smallest, over restarts and steps, of the margin: how far the nearest unsafe
    conjunction is from holding (its worst constraint's left side − bound). At most 0 is a
    counterexample, up to float32 rounding: replay `point` before it counts. `broken` is the share of
    restarts that found one.
    """

    least_margin: float
    point: NDArray[np.float32]
    broken: float


def pgd(network: Network, property: Property, *, seed: int, budget: Budget | None = None) -> Attacked:
    """Search every case of the property from uniform starting points.

    Half of the restarts follow the nearest conjunction, the others are aimed at one each, in turn. The
    same seed gives the same search.
    """
    require_fit(network, property)
    chosen = Budget() if budget is None else budget
    function = to_torch(network, dtype=torch.float32)
    random = torch.Generator().manual_seed(seed)
    found = [_search(function, case, chosen, random) for case in property.cases if case.any_of]
    if not found:
        raise ValueError("the property calls no output unsafe")
    return min(found, key=lambda attacked: attacked.least_margin)


def _search(
    function: Callable[[torch.Tensor], torch.Tensor],
    case: Case,
    budget: Budget,
    random: torch.Generator,
) -> Attacked:
    lower = torch.tensor([float(x) for x in case.box.lower])
    upper = torch.tensor([float(x) for x in case.box.upper])
    radius = (upper - lower) / 2
    points = lower + (upper - lower) * torch.rand((budget.restarts, case.box.size), generator=random)
    aims = torch.arange(budget.restarts) // 2 % len(case.any_of)
    aimed = torch.arange(budget.restarts) % 2 == 1
    least, best = float("inf"), points[0]
    broken = torch.zeros(budget.restarts, dtype=torch.bool)
    for step in range(budget.steps + 1):
        points = points.detach().requires_grad_(True)
        margins = _margins(points, function(points), case.any_of)
        nearest, _ = margins.min(dim=1)
        reached = nearest.detach()
        broken |= reached <= 0
        at = int(reached.argmin())
        if float(reached[at]) < least:
            least, best = float(reached[at]), points[at].detach()
        goal = torch.where(aimed, margins.gather(1, aims[:, None])[:, 0], nearest)
        (slope,) = torch.autograd.grad(goal.sum(), points)
        share = budget.first_step + (budget.last_step - budget.first_step) * step / max(budget.steps, 1)
        points = torch.clamp(points - share * radius * slope.sign(), lower, upper)
    return Attacked(least, best.numpy(), float(broken.float().mean()))


def _margins(x: torch.Tensor, y: torch.Tensor, any_of: tuple[Conjunction, ...]) -> torch.Tensor:
    """[restarts, conjunctions]: the largest left side − bound among each conjunction's constraints."""
    columns = []
    for conjunction in any_of:
        sides = [torch.full((len(x),), -float("inf"))] if not conjunction else []
        for constraint in conjunction:
            side = torch.full((len(x),), -float(constraint.bound)) + 0 * y[:, 0]
            for i, c in constraint.inputs:
                side = side + float(c) * x[:, i]
            for j, d in constraint.outputs:
                side = side + float(d) * y[:, j]
            sides.append(side)
        columns.append(torch.stack(sides).max(dim=0).values)
    return torch.stack(columns, dim=1)
