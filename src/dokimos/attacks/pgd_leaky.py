"""Projected gradient descent whose gradients pass through ReLUs that are off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dokimos.attacks.backward import Backward
from dokimos.attacks.pgd import PGD


@dataclass(frozen=True, kw_only=True)
class LeakyPGD(PGD):
    """PGD whose gradients leak through ReLUs that are off, in three strengths."""

    name: ClassVar[str] = "pgd-leaky"

    backward: tuple[Backward, ...] = (Backward(leak=0.01), Backward(leak=0.1), Backward(leak=0.5))
