"""Certificates of the kind `linear` that need no search, and boxes cut until intervals decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf, isfinite

import numpy as np

from dokimos.checker.linear.cover import LEAF, pack
from dokimos.engine.relu_relaxation import Path, Tree
from dokimos.networks.graph import Network
from dokimos.networks.semantics.interval import enclose
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Box, Conjunction, Linear

#: Ends of all outputs on a box, infinite where nothing is known.
Outputs = Callable[[Box], list[tuple[float, float]]]


def real_outputs(network: Network) -> Outputs:
    """Enclosures of the real outputs; unbounded if the network may be undefined on the box.

    An operator that is undefined somewhere gives the whole line, which Tanh, Clip, Min or a factor of zero
    would make finite again; so every tensor must be bounded, not only the outputs.
    """

    def outputs(box: Box) -> list[tuple[float, float]]:
        tensors = enclose(network, box.lower, box.upper)
        if not all(np.isfinite([t.lower, t.upper]).all() for t in tensors.values()):
            return [(-inf, inf)] * network.output_size
        found = tensors[network.output]
        return list(zip(found.lower.reshape(-1).tolist(), found.upper.reshape(-1).tolist(), strict=True))

    return outputs


def cut_in_halves(
    network: Network, box: Box, conjunction: Conjunction, margin: Fraction, *, most: int
) -> list[int] | None:
    """The coordinates halved, in preorder, until intervals show on each piece that the conjunction fails by
    the margin; None if that takes more than so many pieces."""
    outputs = real_outputs(network)
    tree: list[int] = []
    pending = [box]
    while pending:
        piece = pending.pop()
        reach = outputs(piece)
        if max(_least_slack(constraint, piece, reach) for constraint in conjunction) >= margin:
            tree.append(LEAF)
            continue
        if len(tree) > most:
            return None
        longest = max(range(piece.size), key=lambda i: piece.upper[i] - piece.lower[i])
        tree.append(longest)
        pending += reversed(halves(piece, longest))
    return tree


def by_intervals(tree: Sequence[int] = (LEAF,), *, questions: int = 1) -> Certificate:
    """The proof of each question by intervals on the pieces of its box."""
    return Certificate("linear", {"questions": [{"tree": list(tree), "own": True}] * questions})


def by_cases(trees: Sequence[Tree], sizes: Sequence[int]) -> Certificate:
    """The proof by trees of decided ReLUs, one for each question, of layers one after the other.

    `sizes` are the numbers of inputs, and of ReLUs of each layer. Numbers are written as they are.
    """
    starts = sizes[0] + 2 * np.cumsum([0, *sizes[1:]])
    entries = np.concatenate(
        [start + np.arange(size) for start, size in zip(starts, sizes[1:], strict=False)]
    )
    refined = [2 * k + 1 for k in range(1, len(sizes) - 1)]
    questions = []
    for tree in trees:
        cuts, lines, multipliers = [], [], []
        pending: list[Path] = [()]
        while pending:
            path = pending.pop()
            if path in tree.splits:
                relu = tree.splits[path]
                cuts.append(int(entries[relu]))
                pending += [(*path, (relu, True)), (*path, (relu, False))]
                continue
            cuts.append(LEAF)
            chosen = tree.leaves[path]
            own = np.full(len(entries), np.nan)
            for relu, slope in chosen.slopes.items():
                own[relu] = float(slope)
            lines.append(own)
            multipliers += [float(chosen.multipliers.get(relu, 0)) for relu, _ in path]
        questions.append(
            {
                "tree": cuts,
                "refined": refined,
                "lines": pack(np.stack(lines).tobytes()),
                "multipliers": pack(np.array(multipliers).tobytes()) if multipliers else "",
            }
        )
    return Certificate("linear", {"questions": questions})


def halves(box: Box, coordinate: int) -> tuple[Box, Box]:
    """The two halves of a box, lower half first."""
    middle = (box.lower[coordinate] + box.upper[coordinate]) / 2
    after = coordinate + 1
    return (
        Box(box.lower, (*box.upper[:coordinate], middle, *box.upper[after:])),
        Box((*box.lower[:coordinate], middle, *box.lower[after:]), box.upper),
    )


def widest(piece: Box, whole: Box) -> int | None:
    """The coordinate that is widest as a share of the whole box; None if the piece is a point."""
    shares = [
        (high - low) / (most - least) if most > least else Fraction(0)
        for low, high, least, most in zip(piece.lower, piece.upper, whole.lower, whole.upper, strict=True)
    ]
    best = max(range(len(shares)), key=lambda i: shares[i], default=None)
    return None if best is None or not shares[best] else best


def _least_slack(constraint: Linear, piece: Box, reach: Sequence[tuple[float, float]]) -> Fraction:
    """The smallest left side − bound over the piece; −1 if an output is not bounded there."""
    total = -constraint.bound
    for i, c in constraint.inputs:
        total += c * (piece.lower[i] if c > 0 else piece.upper[i])
    for j, d in constraint.outputs:
        end = reach[j][0] if d > 0 else reach[j][1]
        if not isfinite(end):
            return Fraction(-1)
        total += d * Fraction(end)
    return total
