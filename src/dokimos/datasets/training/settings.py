"""What a training depends on; read without torch, so that mistakes are reported at once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dokimos.core.errors import InputError


class Method(Enum):
    """What is minimised: the loss at the record, at an adversarial example, or over bounds."""

    NORMAL = "normal"
    ADVERSARIAL = "adversarial"
    IBP = "ibp"
    CROWN_IBP = "crown-ibp"


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Everything that the weights depend on, except the data.

    `radius` is in the units of the data. With bounds, it grows from 0 over the first half of the epochs,
    and the weight of the plain loss falls from 1 to ½.
    """

    architecture: str
    method: Method = Method.NORMAL
    radius: float = 0.0
    epochs: int = 10
    batch: int = 128
    rate: float = 1e-3
    seed: int = 0
    attack_steps: int = 7
    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise InputError(f"The seed must be 0 or more and below 2^63, not {self.seed}.")
        if self.epochs < 1 or self.batch < 1 or not 0 < self.rate < 10:
            raise InputError(
                "Training needs at least 1 epoch, batches of at least 1 record, and a learning rate "
                "above 0."
            )
        if (self.method is Method.NORMAL) != (self.radius == 0) or self.radius < 0:
            raise InputError(
                "Adversarial and certified training need a radius above 0; plain training takes none."
            )
