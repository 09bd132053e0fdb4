"""How gradients go back through units that are flat where a point lies. Values are never changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Loss(Enum):
    """What a gradient is of. All of them fall where a conjunction of the property comes closer.

    With m_c how far conjunction c is from holding, the property is violated where some m_c <= 0. For a
    property "another class wins", m_c is by how much class c loses, and these are the losses of the same
    names in the literature, turned so that they are descended.
    """

    MARGIN = "margin"  #: min_c m_c
    CROSS_ENTROPY = "cross-entropy"  #: −log(1 + Σ_c exp(−m_c))
    RATIO = "dlr"  #: min_c m_c over the difference of the largest and third largest logit


@dataclass(frozen=True)
class Backward:
    """The slope that a ReLU has on the way back, instead of 0 where it is off and 1 where it is on.

    With a `temperature` τ: sigmoid(z/(τ·s)), where s is the mean of |z| over the units of its node.
    Otherwise 1 where it is on, and `leak` where it is off. The flat parts of Clip are treated alike.
    """

    leak: float = 0.0
    temperature: float = 0.0


EXACT = Backward()
#: Every ReLU counts as on: what a unit would do if nothing stopped it.
OPEN = Backward(leak=1.0)
LEAKY = Backward(leak=0.1)
