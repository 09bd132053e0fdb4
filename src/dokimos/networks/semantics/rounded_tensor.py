"""A tensor in the `rounding` semantics, and one node of a network as its error rules see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dokimos.networks.graph import Node
from dokimos.networks.semantics.float32 import FLOAT32, Format
from dokimos.networks.semantics.outward import Floats, Interval, widen


@dataclass(frozen=True)
class Rounded:
    """The real values lie between `lower` and `upper`; the float32 values are within `error` of them."""

    lower: Floats
    upper: Floats
    error: Floats

    @property
    def real(self) -> Interval:
        """The enclosure of the real values."""
        return Interval(self.lower, self.upper)

    @property
    def floats(self) -> Interval:
        """The enclosure of the float32 values, and of everything between them and the real values."""
        if not self.error.any():
            return self.real
        return widen(self.lower - self.error, self.upper + self.error)

    @property
    def magnitude(self) -> Floats:
        """An upper bound on the absolute value of the float32 values."""
        return self.floats.magnitude


@dataclass(frozen=True)
class RoundedNode:
    """One node to be bounded: its inputs, and the enclosure of its real values."""

    node: Node
    real: Interval
    arguments: Sequence[Rounded | None]
    ulps: int
    format: Format = FLOAT32

    def __getitem__(self, index: int) -> Rounded:
        value = self.arguments[index]
        assert value is not None
        return value

    @property
    def present(self) -> list[Rounded]:
        """The inputs that are given."""
        return [value for value in self.arguments if value is not None]

    def optional(self, index: int) -> Rounded | None:
        """An input that may be left out."""
        return self.arguments[index] if index < len(self.arguments) else None


#: What the float32 error of a node's output is at most.
ErrorRule = Callable[[RoundedNode], Floats]
