"""The `rounding` semantics: for every tensor, how far its float32 value may be from its real value over a
box.

The float32 network: every float32 point of the box, each ONNX node evaluated as written, sums of products
in any order, with or without fused multiply-add, gradual underflow or results flushed to zero (see
`float32`). The assumptions about single operators are stated in `rounding_rules`. Not covered: Winograd and
FFT convolution, and weights that an optimiser has folded from one node into another.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnsupportedOp
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.float32 import FLOAT32, FLOAT64, Format, infinite_beyond, safe
from dokimos.networks.semantics.interval import INTERVAL_RULES, lift_constant, outward_box
from dokimos.networks.semantics.propagation import Rule, propagate
from dokimos.networks.semantics.rounded_tensor import Rounded, RoundedNode
from dokimos.networks.semantics.rounding_rules import ROUNDING_RULES


def rounding_bounds(
    network: Network,
    lower: Sequence[Fraction],
    upper: Sequence[Fraction],
    *,
    ulps: int = 8,
    float64: bool = False,
) -> dict[str, Rounded]:
    """For every tensor by name, the enclosure of its real values over the box and a bound on the float32
    error.

    At every float32 point of the box |float32 value − real value| <= error; the error is ∞ where float32
    may overflow or the operator may be undefined. `ulps` is how many ulps Exp, Tanh, Sigmoid, Softmax and
    Pow may be off by, as stated in `rounding_rules`. Raises UnsupportedOp for a float64 network,
    unless `float64` says that it is evaluated in float64: then the bound is on the errors of float64, at
    every float64 point of the box.
    """
    if ulps < 1:
        raise InputError(f"ulps is {ulps}, but every float32 function may be off by one; give 1 or more")
    if not float64:
        refuse_float64(network)
    box = outward_box(network, lower, upper)
    value = Rounded(box.lower, box.upper, np.zeros(box.shape))
    form = FLOAT64 if float64 else FLOAT32
    table = {op: rounding_rule(op, ulps, form) for op in ROUNDING_RULES}
    with np.errstate(all="ignore"):
        return propagate(network, value, lift=_lift, table=table, semantics="rounding")


def refuse_float64(network: Network) -> None:
    """Raise UnsupportedOp for a float64 network: what is proven of rounding is for float32 only."""
    if network.dtype == np.float64:
        op = network.nodes[0].op if network.nodes else "Identity"
        reason = "the network is float64, and rounding is bounded for float32 networks only"
        raise UnsupportedOp(op, f"{reason}; export the network in float32")


def _lift(array: NDArray[Any]) -> Rounded:
    exact = lift_constant(array)
    return Rounded(exact.lower, exact.upper, np.where(np.isfinite(array), 0.0, np.inf))


def rounding_rule(op: str, ulps: int, form: Format = FLOAT32) -> Rule[Rounded]:
    """The rule of the interval semantics for the real values, that of `rounding_rules` for the error."""
    real_rule, error_rule = INTERVAL_RULES[op], ROUNDING_RULES[op]

    def rule(node: Node, arguments: Sequence[Rounded | None]) -> Rounded:
        real = real_rule(node, [None if a is None else a.real for a in arguments])
        error = safe(error_rule(RoundedNode(node, real, arguments, ulps, form)))
        error = infinite_beyond(real.magnitude + error, error, form)
        return Rounded(real.lower, real.upper, np.broadcast_to(error, real.shape))

    return rule
