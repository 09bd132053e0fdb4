"""Copies of a network side by side: which ReLUs are alike, and which constraints belong together."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np

from dokimos.checker.lemmas.relu_layers import ReluLayer, relu_layers
from dokimos.checker.linear.walk import Pair, Steps, steps_of
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats
from dokimos.suites.vnnlib.model import Box, Conjunction

#: Layers with more ReLUs than this are not looked through for pairs.
_MOST_RELUS = 600
#: Two ReLUs are a pair where their weights differ by no more than this share of them.
_ALIKE = 0.5
#: So alike are ReLUs of copies that read what others of them hand on.
_EQUAL = 1e-9
#: In copies so many ReLUs are the first of a pair; where fewer are, those are alike by chance.
_PAIRED = 1 / 3
#: Sums that are tried for each conjunction, at most.
_MOST_SUMS = 40


def pairs_in(network: Network, box: Box) -> tuple[Pair, ...]:
    """Pairs of ReLUs that compute nearly the same on the box; none if none do."""
    try:
        layers = relu_layers(network)
        reach = [float(max(abs(low), abs(high))) for low, high in zip(box.lower, box.upper, strict=True)]
        pairs = pairs_of(layers, np.array(reach))
        relus = sum(len(layer.biases) for layer in layers[:-1])
        if len({p for p, _ in pairs}) >= max(1, _PAIRED * relus) and relus == _relus(steps_of(network)):
            steps_of(network, pairs=pairs)
            return tuple(pairs)
    except InvalidProof:
        pass
    return ()


def _relus(steps: Steps) -> int:
    return sum(prod(steps.shapes[step.node.output]) for step in steps.steps if step.node.op == "Relu")


def pairs_of(layers: tuple[ReluLayer, ...], reach: Floats) -> list[Pair]:
    """Pairs (p, q) of ReLUs of layers, with p < q. `reach` says how large each input may be.

    Any pairs are sound; these are those of copies of a network: the weights of p and q, with those of
    paired ReLUs of the layer before taken together, are alike.
    """
    found: list[Pair] = []
    start, before = 0, dict[int, int]()
    for number, layer in enumerate(layers[:-1]):
        size = len(layer.biases)
        if size > _MOST_RELUS:
            return []
        weights = np.column_stack([layer.weights * (1.0 if number else reach), layer.biases])
        for q, p in before.items():
            weights[:, p] += weights[:, q]
            weights[:, q] = 0.0
        before = _alike(weights)
        if number == 0 and not before:
            return []
        found += [(start + p, start + q) for q, p in sorted(before.items())]
        start += size
    return found


def _alike(weights: Floats) -> dict[int, int]:
    """For each row that is like one before it, the one that it is most alike; equal rows come first."""
    base: dict[int, int] = {}
    sizes = np.abs(weights).sum(axis=1)
    for limit in (_EQUAL, _ALIKE):
        for q in range(1, len(weights)):
            free = [p for p in range(q) if p not in base and sizes[p] > 0]
            if not free or q in base or q in base.values():
                continue
            off = np.abs(weights[free] - weights[q]).sum(axis=1)
            nearest = int(off.argmin())
            if off[nearest] <= limit * sizes[free[nearest]]:
                base[q] = free[nearest]
    return base


def sums_of(conjunction: Conjunction) -> list[list[int]]:
    """Weights that add up two constraints that say the same of different outputs: one of each copy."""
    found = []
    for i, j in combinations(range(len(conjunction)), 2):
        one, other = conjunction[i], conjunction[j]
        apart = not {k for k, _ in one.outputs} & {k for k, _ in other.outputs}
        alike = sorted(c for _, c in one.outputs) == sorted(c for _, c in other.outputs)
        if apart and alike and len(one.outputs) > 1:
            found.append([int(k in (i, j)) for k in range(len(conjunction))])
    return found[:_MOST_SUMS]
