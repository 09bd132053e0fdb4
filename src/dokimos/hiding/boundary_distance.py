"""Bounds on the distance from a counterexample to the nearest point that is not one (largest coordinate).

Importing this module imports torch.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch

from dokimos.checker.proofs.enclosure import real_outputs
from dokimos.networks.graph import Network
from dokimos.networks.semantics.differentiable import one_thread, to_torch
from dokimos.networks.semantics.exact import Undecided
from dokimos.properties.model import Box, Point, Property
from dokimos.properties.violation import violation_at

#: The radius of the largest ball is found by this many halvings.
_HALVINGS = 24


def boundary_distance(
    network: Network, question: Property, plant: Point, label: int
) -> tuple[Fraction, Fraction | None]:
    """Below the first distance all inputs violate, as intervals prove; at the second some input does not,
    exactly.

    For two classes, of which `label` should win. The second is None if none was found within the box.
    """
    return _proven_radius(network, plant, label), _safe_distance(network, question, plant, label)


def _safe_distance(network: Network, question: Property, plant: Point, label: int) -> Fraction | None:
    """How far to go by the signs of the gradient until the right class wins."""
    (case,) = question.cases
    function = to_torch(network)
    x = torch.tensor([[float(v) for v in plant]], dtype=torch.float64, requires_grad=True)
    with one_thread():
        outputs = function(x)
        (slope,) = torch.autograd.grad(outputs[0, label] - outputs[0, 1 - label], x)
    signs = [int(s) for s in np.sign(slope[0].numpy())]
    reach = max(b - a for a, b in zip(case.box.lower, case.box.upper, strict=True))
    best: Fraction | None = None
    step = Fraction(float(np.float32(reach)))
    for _ in range(_HALVINGS):
        step /= 2
        moved = tuple(
            min(max(v + s * step, low), high)
            for v, s, low, high in zip(plant, signs, case.box.lower, case.box.upper, strict=True)
        )
        try:
            if violation_at(network, question, moved).violates is False:
                best = step
        except Undecided:
            continue
    return best


def _proven_radius(network: Network, plant: Point, label: int) -> Fraction:
    """A radius within which intervals prove that the wrong class is at least as high."""
    bounds = real_outputs(network)
    radius = Fraction(1, 64)
    for _ in range(2 * _HALVINGS):
        both = bounds(Box(tuple(v - radius for v in plant), tuple(v + radius for v in plant)))
        if Fraction(both[label][1]) <= Fraction(both[1 - label][0]):
            return radius
        radius /= 2
    return Fraction(0)
