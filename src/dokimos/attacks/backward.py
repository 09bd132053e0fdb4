"""How gradients pass back through units that are flat at a point. Values are never changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Loss(Enum):
    """The function whose gradient is taken. All of them fall as a conjunction of the property comes closer.

    Let m_c be how far conjunction c is from holding; the property is violated where some m_c <= 0. For a
    property "another class wins", m_c is the margin by which class c loses, and these are the losses of the
    same names in the literature, with the sign for descent.
    """

    MARGIN = "margin"  #: min_c m_c
    CROSS_ENTROPY = "cross-entropy"  #: −log(1 + Σ_c exp(−m_c))
    RATIO = "dlr"  #: min_c m_c over the difference of the largest and third largest logit


@dataclass(frozen=True)
class Backward:
    """The slope that a ReLU has in the backward pass, instead of 0 where it is off and 1 where it is on.

    With a `temperature` τ: sigmoid(z/(τ·s)), where s is the mean of |z| over the units of its node.
    Otherwise 1 where it is on, and `leak` where it is off. The flat parts of Clip are treated alike.
    """

    leak: float = 0.0
    temperature: float = 0.0


EXACT = Backward()
#: Every ReLU counts as on: the effect that a unit would have if nothing blocked it.
OPEN = Backward(leak=1.0)
LEAKY = Backward(leak=0.1)
