"""Residual: blocks that move no two points apart, with every ReLU at its kink at the centre.

Message passing: nodes of a graph average over their neighbours and are updated by such blocks.
"""

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
    HAAR,
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

#: What generating takes for each weight and each ReLU, as measured; checking takes less.
BYTES_A_WEIGHT, BYTES_A_RELU = 36, 260
#: More than this, with what the program itself needs, is more than 2 GB. It takes two CPU-minutes, about.
MOST_BYTES = 1_700_000_000
#: Signs of one 2×2 pattern; three alike, so that no sum over it vanishes.
_PATTERN = np.array([[1.0, 1.0], [1.0, -1.0]])


@dataclass(frozen=True)
class Knobs:
    """The knobs of the residual family."""

    size: int = knob(8, "height and width of the image, a multiple of 2^stages", least=2, most=128)
    colours: int = knob(3, "channels of the image", least=1, most=8)
    stages: int = knob(
        1, "how often the image is halved, which multiplies its channels by four", least=0, most=4
    )
    blocks: int = knob(4, "residual blocks in every stage", least=1, most=64)
    hidden: int = knob(
        2, "channels inside a block, as a multiple of the stage's channels", least=1, most=16
    )
    taps: int = knob(8, "how many inputs each of these channels reads", least=2, most=64)
    reach: int = knob(1, "how far the blocks' windows reach: 0 for 1×1, 1 for 3×3", least=0, most=3)
    pairs: int = knob(
        1, "1: a layer of ReLU pairs that cancel, before each stage's blocks", least=0, most=1
    )
    slack: float = knob(
        0.02,
        "how far the lead at the centre exceeds what the proof needs, as a share",
        least=1e-6,
        most=10.0,
    )
    epsilon: float = knob(0.03125, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)


class Residual(Construction[Knobs]):
    """Scores are affine in Φ, which is isometries and blocks x − WᵀD·ReLU(Wx + b) with ‖D^½W‖₂² <= 2.

    So ‖Φ(x) − Φ(x₀)‖₂ <= ‖x − x₀‖₂ <= ε·√inputs on the box, and class 0 wins if its lead over class k at x₀
    is more than ‖w₀ − w_k‖₂ times that; it exceeds that by the share `slack`. The biases b put every ReLU
    at its kink at x₀: all are unstable however small the box is, and bounds that go through a block layer
    by layer grow with |Wᵀ|·|W|, block after block. The image is halved by convolutions with the four
    patterns of a 2×2 window, which lose nothing; pairs of ReLUs, ReLU(z) − ReLU(−z) = z, lie between.

    The filters of every block vanish on one pattern of signs: along it the blocks act as the identity, and
    a difference of scores along it drops by as much as the theorem allows. In the twin class 0's offset is
    lower by twice the slack, and it loses in the corner that the pattern points to. The gradient
    leads there: the twin catches tools whose bounds are unsound, not those whose attacks are weak.
    """

    family: ClassVar[str] = "residual"
    summary: ClassVar[str] = (
        "residual blocks at the kinks of all their ReLUs; a proof needs the norm of whole blocks"
    )
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw features and head; only class 0's offset differs between the two drafts."""
        _require_affordable(knobs)
        epsilon = inward(knobs.epsilon)
        shape = (knobs.colours, knobs.size, knobs.size)
        centre = random_point(int(np.prod(shape)), rng)
        signs = _direction(knobs, rng)
        builder = ModelBuilder(shape)
        body = _Body(builder, np.array([float(x) for x in centre]).reshape(shape), signs)
        for _ in range(knobs.stages):
            body.halve(rng)
            body.stage(knobs, rng)
        if not knobs.stages:
            body.stage(knobs, rng)
        builder.flatten()
        reach = epsilon * root_above(Fraction(len(centre)))
        head = LeadingHead.draw(
            body.signs.reshape(-1), body.centre.reshape(-1), knobs.classes, knobs.slack, reach, rng
        )
        property_ = first_class_loses(ball(centre, epsilon), knobs.classes)
        witness = towards(centre, signs.flat, -inside_by(epsilon, lost_share(knobs.slack)))
        return head.pair(builder, property_, witness)


def _require_affordable(knobs: Knobs) -> None:
    """Refuse what cannot be made before anything is drawn."""
    problem = ""
    if knobs.size % 2**knobs.stages:
        problem = (
            f"an image of {knobs.size} pixels cannot be halved {knobs.stages} times; change size or stages"
        )
    weights = relus = 0
    for stage in range(1 if knobs.stages else 0, knobs.stages + 1):
        channels = knobs.colours * 4**stage
        relus += knobs.blocks * knobs.hidden * channels * (knobs.size // 2**stage) ** 2
        weights += 2 * knobs.blocks * knobs.hidden * channels**2 * (2 * knobs.reach + 1) ** 2
    if knobs.colours < 2 and not knobs.stages:
        problem = "one channel has no pattern that the filters can ignore; raise colours or stages"
    if weights * BYTES_A_WEIGHT + relus * BYTES_A_RELU > MOST_BYTES:
        problem = (
            f"these knobs make {weights:,} weights and {relus:,} ReLUs; {MOST_BYTES // BYTES_A_WEIGHT:,} "
            f"weights fit into 2 GB, or {MOST_BYTES // BYTES_A_RELU:,} ReLUs, or fewer of both; "
            "lower size, blocks, hidden, reach or stages"
        )
    if problem:
        raise ConstructionFailed(f"residual: {problem}.")


def _direction(knobs: Knobs, rng: np.random.Generator) -> Array:
    """Signs [colours, size, size]: one sign for each colour times one pattern of 2×2 pixels."""
    colours = rng.choice([-1.0, 1.0], size=(knobs.colours, 1, 1))
    pattern = np.rot90(_PATTERN, int(rng.integers(4))) if knobs.stages else np.ones((2, 2))
    half = knobs.size // 2
    signs: Array = colours * np.tile(pattern, (half, half))[: knobs.size, : knobs.size]
    return signs


class _Body:
    """The layers so far, the centre's features, and the direction along which blocks change nothing."""

    def __init__(self, builder: ModelBuilder, centre: Array, signs: Array) -> None:
        self.builder = builder
        self.centre = centre
        self.signs = signs

    @property
    def channels(self) -> int:
        """How many channels the last layer has."""
        return len(self.centre)

    def halve(self, rng: np.random.Generator) -> None:
        """A convolution of stride 2: four channels for each, the four patterns of its 2×2 windows."""
        count = self.channels
        filters = np.zeros((4 * count, count, 2, 2))
        order, turned = rng.permutation(4 * count), rng.choice([-1.0, 1.0], size=4 * count)
        for number, place in enumerate(order):
            filters[place, number // 4] = turned[number] * HAAR[number % 4].reshape(2, 2)
        self.builder.conv(filters, np.zeros(4 * count), stride=2)
        self.centre, self.signs = (_halved(filters, image) for image in (self.centre, self.signs))

    def stage(self, knobs: Knobs, rng: np.random.Generator) -> None:
        """Pairs that cancel, if asked for, and blocks."""
        if knobs.pairs:
            self._mix(rng)
        for _ in range(knobs.blocks):
            self._block(knobs, rng)

    def _mix(self, rng: np.random.Generator) -> None:
        inner, outer = (isometry(self.channels, rng) for _ in range(2))
        up = GAIN * np.concatenate([inner, -inner])[:, :, None, None]
        down = np.concatenate([outer, -outer], axis=1)[:, :, None, None] / GAIN
        self.builder.conv(up, np.zeros(len(up))).relu().conv(down, np.zeros(len(down)))
        mixed = outer @ inner
        self.centre, self.signs = (np.tensordot(mixed, image, 1) for image in (self.centre, self.signs))

    def _block(self, knobs: Knobs, rng: np.random.Generator) -> None:
        """x − WᵀD·ReLU(Wx − Wx₀), W blind to the direction."""
        size, count = 2 * knobs.reach + 1, knobs.hidden * self.channels
        filters = blind_filters(self.signs[:, 0, 0], count, size, knobs.taps, rng)
        padding = knobs.reach
        layer = LinearLayer(filters, np.zeros(count), (1, 1), (padding,) * 4, 1)
        rates = rates_of(layer.row_sums)
        back = -(filters * rates[:, None, None, None]).transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
        source, response = self.builder.last, _correlate(filters, self.centre)
        self.builder.conv(filters, np.zeros(count), padding=padding).plus(-response[None]).relu()
        self.builder.conv(back, np.zeros(self.channels), padding=padding).joined_with(source)


def _halved(filters: Array, image: Array) -> Array:
    """A convolution of stride 2 with 2×2 windows."""
    channels, size, _ = image.shape
    windows = image.reshape(channels, size // 2, 2, size // 2, 2)
    halved: Array = np.einsum("ocij,cyixj->oyx", filters, windows)
    return halved


def _correlate(filters: Array, image: Array) -> Array:
    """A convolution of stride 1 that keeps the image's size."""
    size, padding = filters.shape[2], filters.shape[2] // 2
    padded = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
    height, width = image.shape[1:]
    found: Array = np.zeros((len(filters), height, width))
    for i in range(size):
        for j in range(size):
            found += np.tensordot(filters[:, :, i, j], padded[:, i : i + height, j : j + width], 1)
    return found


#: What float32 holds, less what a filter's small integers and their sums take.
_CENTRE_BITS = 18


@dataclass(frozen=True)
class MessagePassingKnobs:
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


class MessagePassing(Construction[MessagePassingKnobs]):
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
    knobs_class = MessagePassingKnobs

    def construct(self, knobs: MessagePassingKnobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
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


def _require_exact(knobs: MessagePassingKnobs) -> None:
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

    def update(self, knobs: MessagePassingKnobs, rng: np.random.Generator) -> None:
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
