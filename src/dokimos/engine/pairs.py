"""Copies of a network side by side: which ReLUs are alike, and which constraints belong together."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np

from dokimos.checker.linear.walk import BoundedNetwork, Pair, steps_of
from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval
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
        steps = steps_of(network)
        sizes = [prod(steps.shapes[s.node.output]) for s in steps.steps if s.node.op == "Relu"]
        if not sizes or max(sizes) > _MOST_RELUS:
            return ()
        ends = (np.array([float(each) for each in end]) for end in (box.lower, box.upper))
        pairs = pairs_of(BoundedNetwork(steps, Interval(*ends), refined={}, ulps=None))
        if len({p for p, _ in pairs}) >= max(1, _PAIRED * sum(sizes)):
            steps_of(network, pairs=pairs)
            return tuple(pairs)
    except (InvalidProof, UnsupportedOp):
        pass
    return ()


def pairs_of(bounded: BoundedNetwork) -> list[Pair]:
    """Pairs (p, q) of ReLUs, with p < q.

    Any pairs are sound; these are those of copies of a network: the weights of p and q in the inputs and in
    ReLUs before, with those of paired ReLUs taken together, are alike.
    """
    steps, found, start = bounded.steps, list[Pair](), 0
    before: dict[str, dict[int, int]] = {}
    for step in steps.steps:
        if step.node.op != "Relu":
            continue
        weights, size = [], prod(steps.shapes[step.node.output])
        for name, factors in _weights(bounded, step.sources[0]).items():
            if name == steps.network.input:
                factors = factors * bounded.facts[name].magnitude.reshape(-1)
            for q, p in before.get(name, {}).items():
                factors[:, p] += factors[:, q]
                factors[:, q] = 0.0
            weights.append(factors)
        alike = before[step.node.output] = _alike(np.concatenate(weights, 1))
        if not found and not alike:
            return []
        found += [(start + p, start + q) for q, p in sorted(alike.items())]
        start += size
    return found


def _weights(bounded: BoundedNetwork, name: str) -> dict[str, Floats]:
    """A tensor as an affine function of the input and of what units write: factors by tensor, constants
    under the empty name.
    """
    steps, size = bounded.steps, prod(bounded.steps.shapes[name])
    pending = {name: np.eye(size).reshape(size, *steps.shapes[name])}
    constant = np.zeros((size, 1))
    for step in reversed(steps.steps):
        if step.transposes is None or step.node.output not in pending:
            continue
        rows = pending.pop(step.node.output)
        constant[:, 0] += rows.reshape(size, -1) @ bounded.bias(step.node.output).reshape(-1)
        for source, back in zip(step.sources, step.transposes, strict=True):
            part = back(rows).reshape(size, *steps.shapes[source])
            pending[source] = pending[source] + part if source in pending else part
    return {"": constant, **{source: rows.reshape(size, -1) for source, rows in pending.items()}}


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
