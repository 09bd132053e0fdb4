"""Message passing: nodes of a graph average over their neighbours and are updated by residual blocks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.proofs.nonexpansive import LinearLayer, root_above
from dokimos.constructions.base import Construction
from dokimos.constructions.draft import (
    POINT_BITS,
    Draft,
    ball,
    first_class_loses,
    inward,
    knob,
    random_point,
    towards,
)
from dokimos.constructions.tight_features import (
    GAIN,
    LeadingHead,
    blind_filters,
    inside_by,
    isometry,
    lost_share,
    rates_of,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.writing.builder import ModelBuilder

Array = NDArray[np.float64]

#: What float32 holds, less what a filter's small integers and their sums take.
_CENTRE_BITS = 18


@dataclass(frozen=True)
class Knobs:
    """The knobs of message passing."""

    nodes: int = knob(10, "how many nodes, an even number", least=4, most=256)
    degree: int = knob(3, "neighbours of each node, fewer than there are nodes", least=2, most=15)
    features: int = knob(4, "numbers at each node", least=2, most=64)
    rounds: int = knob(3, "how often each node hears from its neighbours", least=1, most=6)
    hidden: int = knob(2, "units of an update, as a multiple of the features", least=1, most=16)
    taps: int = knob(4, "how many features each of these units reads", least=2, most=64)
    pairs: int = knob(1, "1: ReLU pairs that cancel mix the features first", least=0, most=1)
    slack: float = knob(
        0.02,
        "how far the lead at the centre exceeds what the proof needs, as a share",
        least=1e-6,
        most=10.0,
    )
    epsilon: float = knob(0.03125, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)


class MessagePassing(Construction[Knobs]):
    """Features H [nodes, features], rounds H ← ÂH, then H ← H − ReLU(HW + B)·DWᵀ, a sum over nodes, a head.

    Â = (1 − d·β)·I + β·A averages over a node and its d neighbours in a fixed d-regular graph: its rows and
    columns sum to 1, so ‖Â‖₂ <= 1 by Schur's test, and H ↦ ÂH moves no two inputs apart in the Euclidean
    norm. The update is the residual block of the family `residual`, at every node with the same W; the sum
    over n nodes has the norm √n. So class 0 wins on the box if its lead over class k at the centre is more
    than ‖w₀ − w_k‖₂·n·ε·√features; it exceeds that by the share `slack`. B puts every ReLU at its kink at
    the centre.

    In the direction that is the same at all nodes, averaging changes nothing, and W does not see it: there
    a difference of scores drops by as much as the theorem allows. In the twin class 0's offset is lower by
    twice the slack, and it loses in the corner that this direction points to.
    """

    family: ClassVar[str] = "message-passing"
    summary: ClassVar[str] = (
        "a graph network: averages over neighbours and residual updates; a proof needs the norm of a round"
    )
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw graph, updates and head; only class 0's offset differs between the two drafts."""
        _require_exact(knobs)
        epsilon = inward(knobs.epsilon)
        shape = (knobs.nodes, knobs.features)
        centre = random_point(knobs.nodes * knobs.features, rng)
        signs: Array = rng.choice([-1.0, 1.0], size=knobs.features)
        builder = ModelBuilder(shape)
        rounds = _Rounds(builder, np.array([float(x) for x in centre]).reshape(shape), signs)
        average = averaging(regular_graph(knobs.nodes, knobs.degree, rng), knobs.degree)
        for _ in range(knobs.rounds):
            rounds.hear(average)
            rounds.update(knobs, rng)
        builder.matrix_times(np.ones((1, knobs.nodes))).flatten()
        reach = epsilon * knobs.nodes * root_above(Fraction(knobs.features))
        head = LeadingHead.draw(
            rounds.signs, rounds.centre.sum(axis=0), knobs.classes, knobs.slack, reach, rng
        )
        property_ = first_class_loses(ball(centre, epsilon), knobs.classes)
        lost = lost_share(knobs.slack)
        witness = towards(centre, np.tile(signs, knobs.nodes), -inside_by(epsilon, lost))
        return head.pair(builder, property_, witness)


def _require_exact(knobs: Knobs) -> None:
    """Refuse what float32 cannot hold, or what is no graph, before anything is drawn."""
    bits = POINT_BITS + knobs.rounds * (_share_bits(knobs.degree) + knobs.pairs)
    problem = ""
    if knobs.nodes % 2 or knobs.degree >= knobs.nodes:
        problem = (
            f"graphs are drawn for an even number of nodes and fewer neighbours, not {knobs.nodes} nodes "
            f"with {knobs.degree} neighbours each; make nodes even, and degree smaller than nodes"
        )
    elif bits > _CENTRE_BITS:
        problem = (
            f"{knobs.rounds} rounds with {knobs.degree} neighbours need features of {bits} bits, and "
            f"{_CENTRE_BITS} fit into float32 beside the weights; lower rounds, degree or pairs"
        )
    if problem:
        raise ConstructionFailed(f"message-passing: {problem}.")


def _share_bits(degree: int) -> int:
    """A neighbour's share is 2 to the power of minus this: a node keeps at least as much of its own."""
    return degree.bit_length()


def regular_graph(nodes: int, degree: int, rng: np.random.Generator) -> Array:
    """The adjacency matrix of a connected graph in which each node has `degree` neighbours.

    The edges of a complete graph of an even number of nodes fall into nodes − 1 matchings, by the circle
    method; some of these, with the nodes in random order. Two neighbouring matchings already form one
    circle through all nodes.
    """
    last, order = nodes - 1, rng.permutation(nodes)
    start = int(rng.integers(last))
    others = rng.permutation([r for r in range(last) if r not in (start, (start + 1) % last)])
    adjacency: Array = np.zeros((nodes, nodes))
    for turn in [start, (start + 1) % last, *others[: degree - 2]]:
        edges = [(last, turn)] + [((turn + k) % last, (turn - k) % last) for k in range(1, nodes // 2)]
        for a, b in edges:
            adjacency[order[a], order[b]] = adjacency[order[b], order[a]] = 1.0
    return adjacency


def averaging(adjacency: Array, degree: int) -> Array:
    """(1 − d·β)·I + β·A with β = 2^-bits: nonnegative dyadic numbers, rows and columns of sum 1."""
    share = 2.0 ** -_share_bits(degree)
    return (1.0 - degree * share) * np.eye(len(adjacency)) + share * adjacency


class _Rounds:
    """The rounds so far, the centre's features [nodes, features], and the direction of every node."""

    def __init__(self, builder: ModelBuilder, centre: Array, signs: Array) -> None:
        self.builder = builder
        self.centre = centre
        self.signs = signs

    def hear(self, average: Array) -> None:
        """H ← ÂH."""
        self.builder.matrix_times(average)
        self.centre = average @ self.centre

    def update(self, knobs: Knobs, rng: np.random.Generator) -> None:
        """Pairs that cancel, if asked for; then H ← H − ReLU(HW − H₀W)·DWᵀ, W blind to the direction."""
        if knobs.pairs:
            inner, outer = (isometry(knobs.features, rng) for _ in range(2))
            up, down = np.concatenate([inner, -inner]), np.concatenate([outer, -outer], axis=1)
            self.builder.times_matrix(GAIN * up.T).relu().times_matrix(down.T / GAIN)
            self.centre, self.signs = (x @ (outer @ inner).T for x in (self.centre, self.signs))
        count = knobs.hidden * knobs.features
        rows = blind_filters(self.signs, count, 1, knobs.taps, rng)[:, :, 0, 0]
        rates = rates_of(LinearLayer(rows, np.zeros(count), (), (), 1).row_sums)
        source = self.builder.last
        self.builder.times_matrix(rows.T).plus(-(self.centre @ rows.T)[None]).relu()
        self.builder.times_matrix(-(rows * rates[:, None])).joined_with(source)
