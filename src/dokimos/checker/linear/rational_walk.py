"""The walk backwards in exact rationals, for margins that are smaller than what outward floats lose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from dokimos.checker.linear.transposes import NumpyArrays
from dokimos.checker.linear.walk import BoxRegions, Choices, Facts, Steps, WalkStep, steps_of
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Node
from dokimos.networks.semantics.outward import Floats
from dokimos.networks.semantics.propagation import concat, pad, per_channel
from dokimos.suites.vnnlib.model import Box

Exact = NDArray[Any]
"""Arrays of `fmpq`."""
#: Networks of more steps are not walked through exactly: numbers get longer at each of them.
MOST_STEPS = 64
ZERO = fmpq(0)


def _number(value: float | Fraction) -> fmpq:
    return fmpq(*value.as_integer_ratio())


def exactly(values: Floats) -> Exact:
    """Floats, all of them finite, as rationals."""
    return _rationals(values.astype(np.float64).reshape(-1).tolist()).reshape(values.shape)


def _rationals(values: Sequence[float | Fraction]) -> Exact:
    found = np.empty(len(values), dtype=object)
    found[:] = list(map(_number, values))
    return found


class ExactArrays(NumpyArrays):
    """Numpy's arrays of rationals."""

    def constant(self, values: Floats) -> Exact:
        """The same numbers."""
        return exactly(values)

    def zeros(self, shape: Sequence[int]) -> Exact:
        """Zeros that sums begin with."""
        return np.full(shape, ZERO, dtype=object)


@dataclass(frozen=True)
class RationalWalk:
    """Affine steps and ReLUs, to be walked through backwards in one region without rounding.

    Theorem. The walk is that of `BoundedNetwork.lower_bounds`, without noise, and its numbers are rationals
    that are computed exactly: nothing is lost. Affine steps are transposed by the same table, in exact
    arithmetic; one whose factors are rounded (a quotient, a mean) is refused. A step is affine, so its
    constant part is what it writes where all that varies is 0. Of a ReLU of e in [l, u], the lines are α·e
    and s·e + max(0 − s·l, u − s·u) for l < 0 < u and any numbers α in [0, 1] and s (max(0, e) − s·e is
    convex), and the ReLU itself where its sign is known. Facts are bounds by outward floats, which hold for
    the real network. All that is summed ends at the input.
    """

    steps: Steps
    facts: Facts
    region: BoxRegions
    choices: Choices

    @classmethod
    def of(cls, known: Steps, facts: Facts, region: BoxRegions, choices: Choices) -> RationalWalk:
        """The walk through these steps. Raises InvalidProof if they are many, have pairs of ReLUs, or write
        a tensor without axes."""
        steps = steps_of(known.network, ExactArrays())
        is_plain = steps.tensors == known.tensors and () not in map(steps.shapes.get, steps.tensors)
        if len(steps.steps) > MOST_STEPS or not is_plain:
            raise InvalidProof(f"exact walks go through {MOST_STEPS} steps of tensors with axes, no pairs")
        return cls(steps, facts, region, choices)

    def minimum(self, inputs: Sequence[Fraction], outputs: Sequence[Fraction], ends: Box) -> Fraction:
        """A lower bound of Σ inputs·x + Σ outputs·y at every run of the region with x between these ends.

        Raises InvalidProof if the walk meets a step that it does not know.
        """
        network, least = self.steps.network, ZERO
        given = ((network.input, inputs), (network.output, outputs))  # the latter, if both are one tensor
        pending = {name: _rationals(row).reshape(self.steps.shapes[name]) for name, row in given}
        for step in reversed(self.steps.steps):
            if step.node.output not in pending:
                continue
            functional, shift = self._cut(step.node.output, pending.pop(step.node.output))
            if step.transposes is not None and not step.inexact:
                shift += (functional * self._at_zero(step)).sum()
                parts = [each(functional[None])[0] for each in step.transposes]
            elif step.node.op == "Relu" and step.transposes is None and not step.is_opaque:
                slope, constant = self._line(step, functional < 0)
                shift += (functional * constant).sum()
                parts = [functional * slope]
            else:
                raise InvalidProof(f"operator {step.node.op} has no exact lines")
            least += shift
            for source, part in zip(step.sources, parts, strict=True):
                pending[source] = pending[source] + part if source in pending else part
        slopes = pending.pop(network.input).reshape(-1)
        if pending:  # an output that is a constant, or a ReLU of one
            raise InvalidProof("exact walks end at the input")
        sides = zip(slopes, ends.lower, ends.upper, strict=True)
        corner = _rationals([low if slope > 0 else high for slope, low, high in sides])
        least += (slopes * corner).sum()
        return Fraction(int(least.p), int(least.q))

    def _cut(self, name: str, functional: Exact) -> tuple[Exact, fmpq]:
        """With −β·σ·(e − v) for each cut of the tensor."""
        flat, shift = functional.reshape(-1).copy(), ZERO
        for cut in (cut for cut in self.region.cuts if cut.tensor == name):
            pulls = exactly(cut.signs) * exactly(cut.multipliers)
            np.subtract.at(flat, cut.entries, pulls)
            shift += (pulls * exactly(cut.values)).sum()
        return flat.reshape(functional.shape), shift

    def _at_zero(self, step: WalkStep) -> Exact:
        """What an affine step writes where all that varies is 0."""
        node, shapes, constants = step.node, self.steps.shapes, self.steps.constants
        if not step.sources or (node.op == "Gemm" and not {*node.inputs[:2]} & {*step.sources}):
            raise InvalidProof(f"operator {node.op} of constants is not computed exactly")
        given = [
            exactly(constants[name].lower if name in constants else np.zeros(shapes[name]))
            for name in node.inputs
            if name
        ]
        rule = _AT_ZERO.get(node.op)
        return np.broadcast_to(np.array(ZERO) if rule is None else rule(node, given), shapes[node.output])

    def _line(self, step: WalkStep, from_above: NDArray[np.bool_]) -> tuple[Exact, Exact]:
        """The slopes and constants of lines above a ReLU, or below it."""
        (source,) = step.sources
        own = self.region.facts.get(source)
        fact = self.facts[source] if own is None else own.map(lambda end: end[0])
        low, high = fact.lower, fact.upper
        choice = self.choices.get(step.node.output, np.full((1,), np.nan))[0]
        below = np.where(np.isnan(choice), high > -low, np.clip(choice, 0.0, 1.0))
        with np.errstate(all="ignore"):
            chord = np.nan_to_num(high / (high - low), posinf=0.0, neginf=0.0)
        known = (low >= 0) | (high <= 0)
        slope = exactly(np.where(known, low >= 0, np.where(from_above, chord, below)))
        shift = np.maximum(-slope * exactly(low), exactly(high) - slope * exactly(high))
        return slope, np.where(known | ~from_above, np.array(ZERO), shift)


#: The constant part of affine operators; that of the others is 0.
_AT_ZERO: Mapping[str, Callable[[Node, Sequence[Exact]], Exact]] = {
    "Add": lambda node, given: given[0] + given[1],
    "Concat": concat,
    "Conv": lambda node, given: per_channel(given[2], given[0].ndim) if given[2:] else np.array(ZERO),
    "Gemm": lambda node, given: given[2] * _number(node.real("beta")) if given[2:] else np.array(ZERO),
    "Pad": lambda node, given: pad(node, given[0], _number(node.real("value"))),
    "Sub": lambda node, given: given[0] - given[1],
}
