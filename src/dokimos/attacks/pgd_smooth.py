"""Projected gradient descent with smooth slopes of ReLUs in the backward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dokimos.attacks.backward import Backward
from dokimos.attacks.pgd import PGD


@dataclass(frozen=True, kw_only=True)
class SmoothPGD(PGD):
    """PGD whose backward pass uses sigmoid(z/τ) instead of a ReLU's slope, for five τ.

    In relu(a) − relu(a − 1) a leak cancels where both are off; these slopes differ.
    """

    name: ClassVar[str] = "pgd-smooth"

    backward: tuple[Backward, ...] = tuple(Backward(temperature=t) for t in (0.03, 0.1, 0.3, 1.0, 3.0))
