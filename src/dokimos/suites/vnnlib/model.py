"""What an instance asks: is there an input in the set whose output is unsafe?

A property is a union of cases; a case is a box of inputs and a disjunction of conjunctions of linear
constraints. If a file multiplies variables, each product counts as one more output, so that constraints
stay linear. All numbers are exactly the decimals in the file, as rationals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from math import prod

from dokimos.core.errors import InputError
from dokimos.networks.graph import Network

Point = tuple[Fraction, ...]
Terms = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Box:
    """All points between `lower` and `upper`, both included, coordinate by coordinate."""

    lower: Point
    upper: Point

    def __post_init__(self) -> None:
        if len(self.lower) != len(self.upper):
            raise ValueError("the two ends of a box have different lengths")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash, cached: proofs look boxes up often, and hashing fractions is slow."""
        return hash((self.lower, self.upper))

    @property
    def size(self) -> int:
        """How many coordinates the box has."""
        return len(self.lower)

    @cached_property
    def is_empty(self) -> bool:
        """Whether no point lies in the box; cached, as comparing fractions is slow."""
        return any(low > high for low, high in zip(self.lower, self.upper, strict=True))

    @cached_property
    def centre(self) -> Point:
        """The middle of the box."""
        return tuple((a + b) / 2 for a, b in zip(self.lower, self.upper, strict=True))

    def __contains__(self, point: object) -> bool:
        if not isinstance(point, Sequence) or len(point) != self.size:
            return False
        return all(a <= x <= b for a, x, b in zip(self.lower, point, self.upper, strict=True))


@dataclass(frozen=True)
class Linear:
    """The constraint  Σ c·x_i + Σ d·y_j <= bound (`<` if strict), over inputs x and outputs y.

    Terms are sorted by index and have no zero coefficients.
    """

    inputs: Terms
    outputs: Terms
    bound: Fraction
    strict: bool = False

    def slack(self, x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
        """bound − left side: the constraint holds if this is >= 0 (> 0 if strict)."""
        left = sum((c * x[i] for i, c in self.inputs), Fraction(0))
        return self.bound - left - sum((d * y[j] for j, d in self.outputs), Fraction(0))

    def holds(self, x: Sequence[Fraction], y: Sequence[Fraction]) -> bool:
        """Whether the constraint holds at inputs `x` and outputs `y`."""
        slack = self.slack(x, y)
        return slack > 0 if self.strict else slack >= 0


Conjunction = tuple[Linear, ...]


@dataclass(frozen=True)
class Case:
    """Inputs in `box` are unsafe if all constraints of one member of `any_of` hold.

    `any_of == ((),)` calls every point of the box unsafe; `any_of == ()` calls none unsafe.
    """

    box: Box
    any_of: tuple[Conjunction, ...]


class Relation(Enum):
    """How a network of a property with several networks relates to the first."""

    FREE = "free"
    EQUAL = "equal-to"
    ISOMORPHIC = "isomorphic-to"


@dataclass(frozen=True)
class Signature:
    """A network that a property is about: names and shapes of its input and output tensor.

    VNN-LIB 1.0 declares flat variables: there the shapes are (n,) and (m,).
    """

    name: str
    input_name: str
    input_shape: tuple[int, ...]
    output_name: str
    output_shape: tuple[int, ...]
    relation: Relation = Relation.FREE
    of: str | None = None


@dataclass(frozen=True)
class Property:
    """`sat` iff some input in some case's box is unsafe there.

    Inputs (and outputs) of several networks are numbered one after the other, row-major, in the order
    of `networks`. In a constraint, output number `output_size` + k is the product of the variables in
    `products[k]`, where i stands for input number i, and ~j for output number j of a network.
    """

    networks: tuple[Signature, ...]
    cases: tuple[Case, ...]
    products: tuple[tuple[int, ...], ...] = ()

    @property
    def input_size(self) -> int:
        """How many input variables there are, over all networks."""
        return sum(prod(n.input_shape) for n in self.networks)

    @property
    def output_size(self) -> int:
        """How many output variables there are, over all networks."""
        return sum(prod(n.output_shape) for n in self.networks)

    def questions(self) -> list[tuple[Box, Conjunction]]:
        """Every conjunction with its box, unless the box is empty."""
        return [(case.box, part) for case in self.cases if not case.box.is_empty for part in case.any_of]

    def unsafe(self, x: Sequence[Fraction], y: Sequence[Fraction]) -> bool:
        """Whether input `x` with output `y` shows the property to be `sat`."""
        factors = ((x[v] if v >= 0 else y[~v] for v in product) for product in self.products)
        y = (*y, *(prod(values, start=Fraction(1)) for values in factors))
        return any(
            tuple(x) in case.box
            and any(all(c.holds(x, y) for c in conjunction) for conjunction in case.any_of)
            for case in self.cases
        )


def require_fit(network: Network, property: Property) -> None:
    """Refuse a property of several networks or with products, or one whose sizes are not the network's."""
    if len(property.networks) != 1:
        raise InputError("the property is about several networks; only one can be evaluated here")
    if property.products:
        raise InputError("the property multiplies variables; only linear constraints can be evaluated here")
    sizes = (property.input_size, property.output_size)
    if sizes != (network.input_size, network.output_size):
        raise InputError(
            f"the property has {sizes[0]} inputs and {sizes[1]} outputs, "
            f"the network {network.input_size} and {network.output_size}"
        )
