"""Pairs of channels with the same filter and ordered biases, whatever is upstream."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dokimos.checker.base import CertificateKind, Natural, Problem, Proven, read_data, refute
from dokimos.checker.lemmas.constraints import behind
from dokimos.checker.lemmas.piecewise_linear import PiecewiseLinear, objective, piecewise_linear
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.outward import FLOAT32, Rounded, dot_rounding
from dokimos.networks.semantics.propagation import window_rows
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Linear

Pairs = tuple[tuple[int, int], ...]


class OrderedPairsData(Struct, frozen=True, forbid_unknown_fields=True):
    """The name of the convolution, and the pairs (i, j) of its channels."""

    convolution: str
    pairs: tuple[tuple[Natural, Natural], ...]


class OrderedPairs(CertificateKind):
    """`unsat` for a convolution, a ReLU and an affine head.

    Theorem. Let two channels i, j of a convolution have the same filter and biases b_i >= b_j. At every
    place and for every value s of the shared response, p = max(0, s + b_i) >= q = max(0, s + b_j) >= 0.
    So v_i·p + v_j·q = (v_i + v_j)·q + v_i·(p − q) >= 0 whenever v_i >= 0 and v_i + v_j >= 0; a channel
    without a partner adds v·p >= 0 whenever v >= 0. If that is so at every place, an affine function
    c + Σ v·features of the rectified channels is at least c, for every input of the network.

    In float32 the two channels may be summed in different orders, so each response is off by its own
    rounding, at most δ_i and δ_j; while b_i − b_j >= δ_i + δ_j the order p >= q stays, and what remains is
    the rounding of the head, whose noise is subtracted.
    """

    name: ClassVar[str] = "ordered-pairs"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Check the pairs on the weights of the file, then bound every constraint by its constant."""
        given, network = read_data(data, OrderedPairsData), problem.network
        pairs = given.pairs
        convolution, head = _convolution_and_head(network, given.convolution)
        _check_order(network, convolution, pairs)
        form = piecewise_linear(head)

        @cache
        def float32_form(box: Box) -> PiecewiseLinear:
            rounding = rounding_bounds(network, box.lower, box.upper, ulps=problem.ulps)
            _check_order_in_float32(network, convolution, pairs, rounding)
            return piecewise_linear(head, rounding=rounding)

        def float32_bound(constraint: Linear, box: Box) -> Fraction:
            return _bound(float32_form(box), head, pairs, constraint)

        return Proven(
            real=refute(problem.property, lambda c, box: _bound(form, head, pairs, c)),
            floats=problem.in_float32(lambda: refute(problem.property, float32_bound)),
        )


def _convolution_and_head(network: Network, name: str) -> tuple[Node, Network]:
    """The convolution that writes `name`, and the network from its rectified channels to the output."""
    convolution = next((n for n in network.nodes if n.output == name and n.op == "Conv"), None)
    relu = next((n for n in network.nodes if n.op == "Relu" and n.inputs == (name,)), None)
    if convolution is None or relu is None:
        raise InvalidProof(f"the network has no convolution {name!r} followed by a ReLU")
    if network.shapes[name][0] != 1:
        raise InvalidProof(f"the convolution reads a batch of {network.shapes[name][0]}, not of 1")
    return convolution, behind(network, relu.output)


def _weights(network: Network, convolution: Node) -> tuple[NDArray[Any], NDArray[Any]]:
    """The constant filters [channels, ...] and biases [channels] of a convolution."""
    names = [name for name in convolution.inputs[1:] if name]
    if any(name not in network.constants for name in names):
        raise InvalidProof("the filters of the convolution are not constant")
    filters = network.constants[names[0]]
    biases = network.constants[names[1]] if len(names) > 1 else np.zeros(len(filters), dtype=filters.dtype)
    return filters, biases


def _check_order(network: Network, convolution: Node, pairs: Pairs) -> None:
    filters, biases = _weights(network, convolution)
    used = [channel for pair in pairs for channel in pair]
    if len(set(used)) != len(used):
        raise InvalidProof("a channel is in two pairs")
    if convolution.integer("group") != 1:
        raise InvalidProof("the convolution has groups: its channels read different inputs")
    for i, j in pairs:
        if max(i, j) >= len(filters):
            raise InvalidProof(f"the convolution has no channel {max(i, j)}")
        if not np.array_equal(filters[i], filters[j]):
            raise InvalidProof(f"channels {i} and {j} have different filters")
        if not biases[i] >= biases[j]:
            raise InvalidProof(f"the biases of channels {i} and {j} are not in order")


def _check_order_in_float32(
    network: Network, convolution: Node, pairs: Pairs, rounding: Mapping[str, Rounded]
) -> None:
    filters, biases = _weights(network, convolution)
    seen = window_rows(convolution, rounding[convolution.inputs[0]].magnitude, filters.shape[2:], 0.0)
    if not np.isfinite(seen).all():
        raise InvalidProof("float32 evaluation may overflow on this box")
    flat = abs(filters.astype(np.float64)).reshape(len(filters), -1)
    # Sums of nonnegative float64 numbers are off by far less than one part in 2^30.
    magnitude = (seen @ flat.T + abs(biases.astype(np.float64))) * (1 + 2.0**-30)
    error = dot_rounding(flat.shape[1] + 1, magnitude, FLOAT32).max(axis=0)
    for i, j in pairs:
        gap = _exact(biases[i]) - _exact(biases[j])
        if gap < _exact(error[i]) + _exact(error[j]):
            raise InvalidProof(f"rounding may change the order of channels {i} and {j}")


def _exact(value: float) -> Fraction:
    if not np.isfinite(value):
        raise InvalidProof("float32 evaluation may overflow on this box")
    return Fraction(float(value))


def _bound(form: PiecewiseLinear, head: Network, pairs: Pairs, constraint: Linear) -> Fraction:
    """The constant of the constraint's left side − bound, less the noise, if the rest is >= 0."""
    if constraint.inputs:
        raise InvalidProof("the constraint involves inputs, which this proof does not support")
    goal = objective(form, constraint)
    if any(v in form.relus for v in goal.terms):
        raise InvalidProof("the head behind the convolution is not affine")
    channels, places = head.input_shape[1], int(np.prod(head.input_shape[2:]))
    weights = [
        [goal.terms.get(c * places + p, Fraction(0)) for p in range(places)] for c in range(channels)
    ]
    partner = {channel for pair in pairs for channel in pair}
    for i, j in pairs:
        if any(a < 0 or a + b < 0 for a, b in zip(weights[i], weights[j], strict=True)):
            raise InvalidProof(f"the head lets the pair of channels {i} and {j} lower the margin")
    for channel in set(range(channels)) - partner:
        if any(w < 0 for w in weights[channel]):
            raise InvalidProof(f"the head lets the lone channel {channel} lower the margin")
    noise = (abs(factor) * form.noise[v] for v, factor in goal.terms.items() if v in form.noise)
    return goal.constant - sum(noise, Fraction(0))
