"""Proofs by linear bounds on any graph of affine operators and ReLUs: slopes are found by gradient ascent.

The arguments of ReLUs are bounded by the checker's own bounds; the slopes of the last bound, one for each
conjunction and unit, climb along the gradient of that bound, in floats. The result is rounded to the
certificate's bytes, and the bound is computed again as the checker will. Importing this module imports
torch.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dokimos.checker.lemmas.constraints import box_floats
from dokimos.checker.proofs.linear_bounds import BoundedGraph
from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.engine.differentiable import Adam, one_thread
from dokimos.engine.float_bounds import LinearBounds
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval, point
from dokimos.networks.semantics.rounding import DEFAULT_ULPS
from dokimos.suites.vnnlib.model import Conjunction, Property

_FIRST_STEP, _LAST_STEP = 0.25, 0.02
#: A bound this near to 0 may be above it over the reals.
_NEAR = 0.01
_MULTIPLICATIONS_PER_SECOND = 5e9


@dataclass(frozen=True)
class SlopeProof:
    """The data of `linear-bounds` if every conjunction is refuted, else None.

    `bound` is the least lower bound of left side − bound over all conjunctions, proven but not more than 0
    where `data` is None. `unstable` is how many ReLUs may be on or off.
    """

    data: dict[str, Any] | None
    bound: float
    unstable: int


def prove_by_slopes(network: Network, asked: Property, *, steps: int = 20) -> SlopeProof:
    """Bound every conjunction, first with the usual slopes, then with better ones.

    Raises UnsupportedOp if the network has other operators, and InvalidProof if it is not bounded or
    a conjunction has no constraint on outputs alone.
    """
    relus = [node.output for node in network.nodes if node.op == "Relu"]
    # Intervals are exact for what the first ReLU reads, unless it comes late.
    refined = tuple(range(1, len(relus)))
    questions = asked.questions()
    texts, bounds, unstable = [""] * len(questions), np.full(len(questions), -np.inf), 0
    for box in dict.fromkeys(box for box, _ in questions):
        places = [k for k, (own, _) in enumerate(questions) if own == box]
        bounded = GraphBounds(network, Interval(*box_floats(box)), refined)
        unstable = max(unstable, bounded.unstable)
        rows, levels = constraint_rows(network, [questions[k][1] for k in places])
        found, slopes = bounded.refute(rows, levels, steps=steps)
        if -_NEAR < found.min() <= 0:  # rounding in float32 may be all that is in the way
            real = GraphBounds(network, Interval(*box_floats(box)), refined, ulps=None)
            found, slopes = real.refute(rows, levels, steps=steps)
        for number, k in enumerate(places):
            bounds[k] = found[number]
            texts[k] = slopes[number]
    data = {"refined": list(refined), "slopes": texts} if len(bounds) and (bounds > 0).all() else None
    return SlopeProof(data, float(bounds.min()) if len(bounds) else -np.inf, unstable)


def likely_seconds(network: Network) -> float:
    """About how long `prove_by_slopes` takes at most on one box, if every ReLU may be on or off."""
    units = sum(prod(network.shapes[node.output]) for node in network.nodes if node.op == "Relu")
    return 2.0 * units * network.multiplications / _MULTIPLICATIONS_PER_SECOND


def constraint_rows(network: Network, conjunctions: Sequence[Conjunction]) -> tuple[Floats, Floats]:
    """The first constraint on outputs alone of each conjunction: its factors and its bound."""
    rows, levels = np.zeros((len(conjunctions), network.output_size)), np.zeros(len(conjunctions))
    for k, conjunction in enumerate(conjunctions):
        constraint = next((each for each in conjunction if not each.inputs), None)
        if constraint is None:
            raise InvalidProof("a conjunction has no constraint on outputs alone")
        levels[k] = float(constraint.bound)
        for j, d in constraint.outputs:
            rows[k, j] = float(d)
    return rows, levels


class GraphBounds:
    """A network over a box as the checker bounds it; over the reals if `ulps` is None."""

    def __init__(
        self,
        network: Network,
        box: Interval,
        refined: Sequence[int],
        *,
        ulps: int | None = DEFAULT_ULPS,
    ) -> None:
        self._network, self._box = network, box
        try:
            self._graph = BoundedGraph(network, box, refined=frozenset(refined), ulps=ulps)
        except UnsupportedOp:
            self._graph = BoundedGraph(network, box, refined=frozenset(refined), ulps=None)
        self._relus = {node.output: node.inputs[0] for node in network.nodes if node.op == "Relu"}

    @property
    def unstable(self) -> int:
        """How many ReLUs may be on or off."""
        arguments = (self._graph.enclosures[name] for name in self._relus.values())
        return sum(int(((e.lower < 0) & (e.upper > 0)).sum()) for e in arguments)

    def refute(self, rows: Floats, levels: Floats, *, steps: int) -> tuple[Floats, list[str]]:
        """For each row, a lower bound of row·outputs − level, and the slopes that give it, as a certificate
        has them; empty for the usual ones."""
        found = self._lower(rows) - levels
        texts = [""] * len(rows)
        hard = np.flatnonzero(found <= 0)
        if not len(hard) or not steps or not self.unstable:
            return found, texts
        slopes = self._climb(rows[hard], levels[hard], steps)
        if slopes is None:
            return found, texts
        better = (
            self._lower(rows[hard], {name: each / 255.0 for name, each in slopes.items()}) - levels[hard]
        )
        for k, place in enumerate(hard.tolist()):
            if better[k] > found[place]:
                found[place] = better[k]
                flat = np.concatenate([each[k].reshape(-1) for each in slopes.values()])
                texts[place] = base64.b64encode(flat.tobytes()).decode("ascii")
        return found, texts

    def _lower(self, rows: Floats, slopes: Mapping[str, Floats] | None = None) -> Floats:
        shaped = rows.reshape(-1, *self._network.output_shape)
        return self._graph.lower_bounds(self._network.output, point(shaped), slopes or {})

    def _climb(self, rows: Floats, levels: Floats, steps: int) -> dict[str, NDArray[np.uint8]] | None:
        """Better slopes for each row and unit, as bytes; None if no bound is finite."""
        network, enclosures = self._network, self._graph.enclosures
        box = self._box.map(lambda end: end.reshape(-1))
        with one_thread():
            bounds = LinearBounds(network, enclosures, box.lower.copy(), box.upper.copy())
            weights = torch.from_numpy(rows).reshape(-1, *network.output_shape)
            slopes = {name: self._usual(name, len(rows)) for name in self._relus}
            best = {name: each.detach().clone() for name, each in slopes.items()}
            highest = torch.full((len(rows),), -torch.inf, dtype=torch.float64)
            optimiser = Adam(slopes.values(), rate=_FIRST_STEP)
            decay = (_LAST_STEP / _FIRST_STEP) ** (1 / steps)
            for step in range(steps + 1):
                found = bounds.lower_with(slopes, network.output, weights, len(network.nodes))
                better = found.detach() > highest
                highest = torch.where(better, found.detach(), highest)
                for name, each in slopes.items():
                    column = better.reshape(-1, *(1,) * (each.ndim - 1))
                    best[name] = torch.where(column, each.detach(), best[name])
                if step == steps or bool((highest > torch.from_numpy(levels)).all() and step):
                    break
                optimiser.zero_grad()
                (-found.sum()).backward()
                optimiser.step()
                with torch.no_grad():
                    for each in slopes.values():
                        each.clamp_(0.0, 1.0)
                optimiser.rate *= decay
        if not bool(torch.isfinite(highest).any()):
            return None
        return {name: np.rint(255.0 * each.numpy()).astype(np.uint8) for name, each in best.items()}

    def _usual(self, name: str, count: int) -> Tensor:
        argument = self._graph.enclosures[self._relus[name]]
        usual = np.where(argument.upper > -argument.lower, 1.0, 0.0)
        slopes = torch.from_numpy(np.broadcast_to(usual, (count, *usual.shape)).copy())
        return slopes.requires_grad_()
