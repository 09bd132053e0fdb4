"""MI-FGSM: sign steps along a running mean of gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dokimos.attacks.base import Attack, Budget, Target
from dokimos.attacks.starts import alternate_aims, sign_step, uniform_starts


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
