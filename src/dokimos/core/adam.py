"""Adam, bit for bit as torch has it by default, without the compiler that `torch.optim` loads.

Loading that compiler takes longer than most of what is trained here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_FIRST, _SECOND, _LEAST = 0.9, 0.999, 1e-8


class Adam:
    """Moves tensors along running means of their gradients (Kingma and Ba, 2015).

    `rate` may be changed between steps. What `state` gives can be saved with torch.
    """

    def __init__(self, tensors: Iterable[Any], *, rate: float) -> None:
        self.rate = rate
        self._tensors = list(tensors)
        self._steps = [0] * len(self._tensors)
        self._means = [each.detach().clone().zero_() for each in self._tensors]
        self._squares = [each.clone() for each in self._means]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for each in self._tensors:
            each.grad = None

    def step(self) -> None:
        """Move each tensor that has a gradient."""
        for number, tensor in enumerate(self._tensors):
            gradient = tensor.grad
            if gradient is None:
                continue
            self._steps[number] += 1
            count, mean, square = self._steps[number], self._means[number], self._squares[number]
            mean.lerp_(gradient, 1 - _FIRST)
            square.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
            spread = (square.sqrt() / (1 - _SECOND**count) ** 0.5).add_(_LEAST)
            tensor.detach().addcdiv_(mean, spread, value=-(self.rate / (1 - _FIRST**count)))

    def state(self) -> dict[str, list[Any]]:
        """How many steps each tensor has made, and the means."""
        return {"steps": self._steps, "means": self._means, "squares": self._squares}

    def resume(self, state: dict[str, list[Any]]) -> None:
        """Continue from a state. Raises ValueError or KeyError if it is not that of such tensors."""
        for own, kept in ((self._means, state["means"]), (self._squares, state["squares"])):
            if [each.shape for each in own] != [each.shape for each in kept]:
                raise ValueError("the state belongs to other tensors")
        self._steps = list(state["steps"])
        self._means, self._squares = ([each.clone() for each in state[key]] for key in ("means", "squares"))
