"""What every kind of proof has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, TypeVar

from msgspec import Meta, Struct

from dokimos.core.errors import InvalidProof, UnsupportedOp, about
from dokimos.core.typed_values import convert
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import BFLOAT16, FLOAT16, FLOAT32, Format
from dokimos.suites.instance import DEFAULT_ULPS, Label, Order, Semantics
from dokimos.suites.vnnlib.model import Box, Linear, Point, Property
from dokimos.suites.vnnlib.text import parse_decimal

#: What is meant by each semantics of floats, in the order in which they are proven.
FLOATS: Mapping[Semantics, tuple[Format, Order]] = {
    Semantics.FLOAT32: (FLOAT32, Order.ANY),
    Semantics.FLOAT16: (FLOAT16, Order.ANY),
    Semantics.BFLOAT16: (BFLOAT16, Order.ANY),
    Semantics.FORWARD: (FLOAT32, Order.FORWARD),
    Semantics.BACKWARD: (FLOAT32, Order.BACKWARD),
}


@dataclass(frozen=True)
class Proven:
    """The margins that a proof establishes (see `Claim`), in floats those of the problem's type; None if
    nothing is proven there.
    """

    real: Fraction
    floats: Fraction | None

    def reaches(self, asked: Proven) -> bool:
        """Whether both margins are at least those asked for; None asks for nothing."""
        enough = asked.floats is None or (self.floats is not None and self.floats >= asked.floats)
        return enough and self.real >= asked.real


@dataclass(frozen=True)
class Problem:
    """What a proof is about, as read from the two files, and the witness that came with the label.

    `asked` are the margins that the label claims: a proof may stop once it has shown them, and leaves
    floats alone where nothing is claimed there. None asks for the largest margins that it can show.
    `semantics` says which floats it is about.
    """

    network: Network
    property: Property
    witness: Point | None = None
    ulps: int = DEFAULT_ULPS
    asked: Proven | None = None
    semantics: Semantics = Semantics.FLOAT32

    @cached_property
    def form(self) -> Format:
        """The float type that it is about."""
        return FLOATS[self.semantics][0]

    @cached_property
    def order(self) -> Order:
        """In which order sums are added up."""
        return FLOATS[self.semantics][1]

    def asks_floats(self) -> bool:
        """Whether the label claims a margin in floats, or the largest one is asked for.

        Never where the network is not evaluated in the type, see `require_format`.
        """
        is_in_it = self.network.dtype.name in (self.form.name, FLOAT32.name)
        return is_in_it and (self.asked is None or self.asked.floats is not None)

    def in_floats(self, proof: Callable[[], Fraction]) -> Fraction | None:
        """The margin in floats that `proof` gives; None if it does not go through, or none is asked for."""
        try:
            return proof() if self.asks_floats() else None
        except (InvalidProof, UnsupportedOp):
            return None

    def in_float32(self, proof: Callable[[], Fraction]) -> Fraction | None:
        """The same of a proof whose lemmas are about float32 alone: None in any other type."""
        return self.in_floats(proof) if self.form == FLOAT32 else None


class CertificateKind(ABC):
    """One kind of proof.

    A kind proves one label. `prove` derives the margins from the problem and from the certificate's data,
    trusting neither: the data may only *choose* among steps that are each sound whatever is chosen (which
    slopes, which pairs), so a wrong certificate can fail to prove a true label but never prove a false one.
    It raises InvalidProof if the proof does not go through and UnreadableFile if the data has the wrong
    shape. The theorem that it relies on is in its docstring.
    """

    name: ClassVar[str]
    proves: ClassVar[Label]

    @abstractmethod
    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """The margins of the label, over the reals and in floats."""


#: A lower bound on  left side − bound  of a constraint over a box; raises InvalidProof if it has none.
LowerBound = Callable[[Linear, Box], Fraction]


def refute(property: Property, lower_bound: LowerBound) -> Fraction:
    """The margin by which no input of the property is unsafe.

    Theorem. A conjunction is satisfied nowhere on a box if one of its constraints  L(x, y) <= b  has
    L(x, y) − b >= m > 0 at every x of the box. If every conjunction of every case has such a constraint,
    the property is `unsat`, with the smallest such m as margin.
    """
    margins = [
        _refute_one(conjunction, case.box, lower_bound)
        for case in property.cases
        if not case.box.is_empty
        for conjunction in case.any_of
    ]
    if not margins:
        raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
    margin = min(margins)
    if margin <= 0:
        raise InvalidProof(f"the bound that the proof gives is {about(margin)}, which is not above 0")
    return margin


def _refute_one(conjunction: tuple[Linear, ...], box: Box, lower_bound: LowerBound) -> Fraction:
    found: list[Fraction] = []
    failure = InvalidProof("an unsafe conjunction without constraints holds everywhere")
    for constraint in conjunction:
        try:
            found.append(lower_bound(constraint, box))
        except InvalidProof as error:
            failure = error
    if not found:
        raise failure
    return max(found)


# Reads the data of a certificate as a typed form, and refuses data of the wrong shape


PLACE = "certificate"
T = TypeVar("T")
Natural = Annotated[int, Meta(ge=0)]
Choice = Annotated[int, Meta(ge=-1)]
"""The number of the choice at a node of a tree; -1 for a leaf."""


class NoData(Struct, forbid_unknown_fields=True):
    """The form of a proof that needs no data."""


def read_data(data: Mapping[str, Any], form: type[T]) -> T:
    """Read the data of a certificate as a typed form. Raises UnreadableFile if it has the wrong shape.

    A rational number is a string: an integer, a decimal or a fraction "p/q".
    """
    return convert(
        dict(data), form, file=PLACE, what="the data of this kind of proof", hooks={Fraction: _rational}
    )


def _rational(value: Any) -> Fraction:
    if not isinstance(value, str):
        raise ValueError("expected a number, written as a string")
    top, slash, bottom = value.partition("/")
    divisor = parse_decimal(bottom, exponent=False) if slash else Fraction(1)
    if divisor == 0:
        raise ValueError(f"{value[:80]!r} divides by zero")
    return parse_decimal(top, exponent=not slash) / divisor
