"""The real value of a network at a rational point: exact if possible, otherwise enclosed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import fmpq

from dokimos.core.errors import DokimosError, InputError
from dokimos.networks.graph import Network
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.propagation import propagate

_FIRST_BITS = 64
#: Magnitudes outside 2**±_MAX_EXPONENT are not written down as fractions.
_MAX_EXPONENT = 1 << 16
#: Up to this many multiplications the exact value is nearly free, and float64 is not tried first.
EXACT_FIRST = 1 << 15
#: Operators that jump: no ball can decide whether a number lies exactly at a jump.
_JUMPS = frozenset({"Floor", "Round", "Sign", "Truncate"})
#: How narrow `enclosures` become where a value is not rational.
NARROW = tuple(Fraction(1, 2**bits) for bits in (40, 200, 1000))


class Undecided(DokimosError):
    """The allowed precision does not determine the network's value, or it has none."""


@dataclass(frozen=True)
class Enclosure:
    """Rational bounds on every output, row-major: lower ≤ value ≤ upper, in the real semantics."""

    lower: tuple[Fraction, ...]
    upper: tuple[Fraction, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the bounds are the value itself."""
        return self.lower == self.upper

    @property
    def width(self) -> Fraction:
        """The largest distance between the bounds of an output."""
        return max((b - a for a, b in zip(self.lower, self.upper, strict=True)), default=Fraction(0))

    @property
    def middle(self) -> tuple[Fraction, ...]:
        """The numbers halfway between the bounds."""
        return tuple((a + b) / 2 for a, b in zip(self.lower, self.upper, strict=True))


def enclosures(
    network: Network, point: Sequence[Fraction], *, floats_first: bool = True
) -> Iterator[Enclosure]:
    """Ever narrower enclosures of the outputs at `point`, at least one; the caller stops at the first that
    decides.

    Theorem. The network has a value at `point`, and every enclosure holds it. So a comparison that has the
    same answer for all members of one enclosure has that answer for the exact value.

    With `floats_first`, the first is that of outward-rounded float64, if this is worth it and the ends of
    every tensor are finite (a network that is undefined at `point` has a tensor whose ends are not). The
    next are those of `evaluate`; an exact one is the last. Raises Undecided if there is none.
    """
    worth_it = floats_first and network.multiplications > EXACT_FIRST
    found = in_float64(network, point) if worth_it else None
    if found is not None:
        yield found
    for width in NARROW:
        if found is not None and found.is_exact:
            return
        try:
            found = evaluate(network, point, relative_width=width)
        except Undecided:
            if found is None:
                raise
            return
        yield found


def in_float64(network: Network, point: Sequence[Fraction]) -> Enclosure | None:
    """The enclosure that outward-rounded float64 gives; None if a tensor has an infinite end."""
    tensors = enclose(network, point, point)
    if not all(np.isfinite(end).all() for x in tensors.values() for end in (x.lower, x.upper)):
        return None
    ends = (tensors[network.output].lower, tensors[network.output].upper)
    lower, upper = (tuple(Fraction(value) for value in end.reshape(-1).tolist()) for end in ends)
    return Enclosure(lower, upper)


def evaluate(
    network: Network,
    point: Sequence[Fraction],
    *,
    relative_width: Fraction = Fraction(1, 2**40),
    max_bits: int = 4096,
) -> Enclosure:
    """The outputs of `network` at `point` (row-major), as a function of real numbers.

    Exact if all operators stay within the rationals; otherwise enclosed with `upper - lower <=
    relative_width * max(1, |value|)` at every output. Raises Undecided if `max_bits` of precision do not
    suffice (as when the network divides by zero).
    """
    if len(point) != network.input_size:
        given, taken = len(point), network.input_size
        raise InputError(
            f"The point has {given} coordinates, but the network takes {taken}; give one for each."
        )
    values = tuple(Fraction(coordinate) for coordinate in point)
    return _evaluated(network, values, relative_width, max_bits)


@lru_cache(maxsize=4)
def _evaluated(
    network: Network, point: tuple[Fraction, ...], relative_width: Fraction, max_bits: int
) -> Enclosure:
    """The outputs at a point; the last few are kept for the cross-check."""
    operators = {node.op for node in network.nodes}
    # Balls cost less; but they stay narrow only if they need no decision, and are never points.
    exact = not operators & ball.TRANSCENDENTAL or operators & _JUMPS
    source = ball.from_fractions(point, network.input_shape)
    known: dict[str, Any] = {}
    # Balls of fewer bits than the width has can only be that narrow where they are exact.
    bits = min(max(_FIRST_BITS, 1 << relative_width.denominator.bit_length().bit_length()), max_bits)
    while True:
        with ball.precision(bits):
            tensors = propagate(
                replace(network, nodes=tuple(node for node in network.nodes if node.output not in known)),
                source if exact else ball.around(source),
                lift=ball.stored if exact else ball.lift,
                table=ball.TABLE,
                semantics="exact",
                known=known,
            )
            bounds = [bounds_of(value) for value in ball.entries(tensors[network.output]).reshape(-1)]
        found = [pair for pair in bounds if pair is not None and _is_narrow(*pair, relative_width)]
        if len(found) == len(bounds):
            return Enclosure(tuple(low for low, _ in found), tuple(high for _, high in found))
        if bits >= max_bits:
            raise Undecided(
                f"The network's value at the point is not known to the required precision with {bits} bits;"
                " allow more bits, or move the point away from where the network divides by zero."
            )
        known = {name: tensor for name, tensor in tensors.items() if ball.is_exact(tensor)}
        bits = min(2 * bits, max_bits)


def _is_narrow(lower: Fraction, upper: Fraction, relative_width: Fraction) -> bool:
    # Every value between the bounds must pass, so the smallest magnitude among them decides.
    width = upper - lower
    return width <= relative_width or (
        not lower <= 0 <= upper and width <= relative_width * min(abs(lower), abs(upper))
    )


def bounds_of(value: Any) -> tuple[Fraction, Fraction] | None:
    """Rational bounds on an entry; None for a ball that is not finite, or too large to be written down."""
    if type(value) is fmpq:
        return (exact := ball.fraction(value)), exact
    if not value.is_finite():
        return None
    lower, upper = _end(value.lower(), up=False), _end(value.upper(), up=True)
    return None if lower is None or upper is None else (lower, upper)


def _end(end: Any, *, up: bool) -> Fraction | None:
    """An exact ball as the dyadic fraction that it is; a tiny one rounded outward, a huge one None."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    if mantissa == 0:
        return Fraction(0)
    magnitude = exponent + abs(mantissa).bit_length()
    if magnitude > _MAX_EXPONENT:
        return None
    if magnitude < -_MAX_EXPONENT:
        outward = up == (mantissa > 0)
        tiny = Fraction(1, 1 << _MAX_EXPONENT)
        return (tiny if up else -tiny) if outward else Fraction(0)
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)
