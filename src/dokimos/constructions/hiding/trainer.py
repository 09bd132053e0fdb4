"""Training a network that hides counterexamples, after SoundnessBench (Zhou et al., 2024), on a CPU.

Two objectives. At each planted counterexample the wrong class should lead, by at least 0 and at most λ: a
small lead is hard to find. Everywhere else in the boxes the right class should win: the perturbations that
attacks find there enter a window of each point's latest ones, on which the network is trained.

The recipe `paper` is that of the public code. In the recipe `quick` counterexamples are planted in the
interior, every restart that violates is kept, rows take steps of several sizes, a small ball around the
plant is left out, the weights are updated several times for each attack, and the attack gets longer once it
finds nothing.

Every random choice depends on the seed and the number of the epoch only, so that interrupted training
continues as if it had never stopped.

`certified_base` trains on the worst outputs that interval arithmetic allows in the boxes (IBP, Gowal et
al., 2018), then scales the last layer so that the least proven lead is about 1: a network that intervals
prove robust on every box. Nothing here is trusted: the checker proves the lead on the exported file.
Importing this module imports torch.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf
from numpy.typing import NDArray
from torch import Tensor

from dokimos.constructions.hiding.plants import PlantedPoint
from dokimos.constructions.trainable_weights import (
    enclose,
    evaluate,
    trainable,
    unknown_layers,
    with_weights,
)
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.engine.differentiable import TABLE, Adam, one_thread
from dokimos.engine.direct import real_outputs
from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.propagation import propagate
from dokimos.suites.vnnlib.model import Box

#: The lengths of steps, as shares of the radius; each row of an attack has one.
STEPS = (0.5, 0.2, 0.05, 0.01)
#: Around the plant, as a share of the radius, nothing is trained to be safe.
LEFT_OUT = 0.1
#: An attack in training takes up to this many times as many steps as at the beginning.
MOST_ESCALATION = 4
#: Training minimises the cross-entropy of the leads times this.
SHARPNESS = 1.0
#: After each of this many epochs, an attack that training does not use counts what is hidden.
LOOK_EVERY = 10
#: Training ends after the longest attacks have found nothing this many times in a row.
QUIET = 2


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How long and how to train. `two_sided` and `window` switch the paper's two ideas off for ablations:
    the lead at a plant then has no upper limit, or the network is trained on the last attack only."""

    epochs: int = 400
    restarts: int = 20
    steps: int = 20
    updates: int = 16
    rows: int = 48
    window: int = 300
    lead: float = 0.01
    learning_rate: float = 4e-4
    two_sided: bool = True
    sliding: bool = True
    #: The lengths of steps, as shares of the radius, and whether they shrink from step to step.
    step_sizes: tuple[float, ...] = STEPS
    shrinks: bool = True
    #: Whether every restart that violates enters the window, or the best of all.
    keeps_all: bool = True
    left_out: float = LEFT_OUT
    escalates: bool = True
    #: The least lead that is trained for, as a share of the largest, and how much the leads weigh.
    least_share: float = 0.25
    weight: float = 10.0
    #: The largest norm of a gradient.
    clip: float | None = None

    def __post_init__(self) -> None:
        if min(self.epochs, self.restarts, self.steps, self.updates, self.window) < 1:
            raise InputError(
                "Training needs at least one epoch, restart, step, update and a window of one."
            )


#: How to train, by the name of the recipe.
TRAINING: Mapping[str, TrainingOptions] = MappingProxyType(
    {
        "quick": TrainingOptions(),
        "paper": TrainingOptions(
            epochs=5000,
            restarts=150,
            steps=150,
            updates=1,
            rows=10**9,
            learning_rate=1e-3,
            step_sizes=(0.1,),
            shrinks=False,
            keeps_all=False,
            left_out=0.0,
            escalates=False,
            least_share=0.0,
            weight=1.0,
            clip=10.0,
        ),
    }
)


@dataclass(frozen=True)
class TrainingProgress:
    """The state of training after an epoch; `hidden` is None until it is first counted."""

    epoch: int
    loss: float
    found: int
    planted: int
    hidden: int | None
    escalation: int


class HidingTrainer:
    """The state of one training: weights, Adam's moments, windows of perturbations."""

    def __init__(
        self, network: bytes, points: Sequence[PlantedPoint], options: TrainingOptions, seed: int
    ) -> None:
        self._file, self._network = network, read_onnx(network)
        self._options, self._seed = options, seed
        self._weights = trainable(self._network)
        self._adam = Adam(self._weights.values(), rate=options.learning_rate)
        self._centres = _rows([point.centre for point in points])
        self._radius = float(points[0].radius)
        self._labels = torch.tensor([point.label for point in points])
        self._planted = torch.tensor([point.plant is not None for point in points])
        self._plants = _rows([point.plant or point.centre for point in points])
        self._windows: list[Tensor] = [row[None, :] for row in self._centres]
        self._function = self._batched()
        self.epoch, self.escalation, self.hidden, self.quiet = 0, 1, -1, 0

    def _batched(self) -> Callable[[Tensor], Tensor]:
        if not unknown_layers(self._network):
            return lambda points: evaluate(self._network, self._weights, points)
        constants = {
            id(array): self._weights.get(name, torch.as_tensor(np.array(array)))
            for name, array in self._network.constants.items()
        }

        def one(x: Tensor) -> Tensor:
            value = x.reshape(self._network.input_shape)
            values = propagate(
                self._network, value, lift=lambda a: constants[id(a)], table=TABLE, semantics="gradient"
            )
            return values[self._network.output].reshape(-1)

        found: Callable[[Tensor], Tensor] = torch.vmap(one)
        return found

    @property
    def is_over(self) -> bool:
        """Whether all epochs are done, or the longest attacks have found nothing `QUIET` times in a row."""
        return self.epoch >= self._options.epochs or self.quiet >= QUIET

    def step(self) -> TrainingProgress:
        """One epoch: attack, then update the weights on what is in the windows."""
        options = self._options
        rng = np.random.default_rng([self._seed, self.epoch])
        with one_thread():
            self._set_rate()
            found = self._fill_windows(rng)
            losses = [self._update(rng) for _ in range(options.updates)]
            self.epoch += 1
            if self.epoch % LOOK_EVERY == 0 or self.epoch == options.epochs:
                self._look(found)
        hidden = None if self.hidden < 0 else self.hidden
        planted = int(self._planted.sum())
        return TrainingProgress(self.epoch, losses[-1], found, planted, hidden, self.escalation)

    def _set_rate(self) -> None:
        """The rate rises for two fifths of the epochs, then falls."""
        share = self.epoch / self._options.epochs
        factor = share / 0.4 if share < 0.4 else (1 - share) / 0.6
        self._adam.rate = self._options.learning_rate * max(factor, 0.02)

    def _leads(self, points: Tensor, labels: Tensor) -> Tensor:
        """By how much the right class leads."""
        outputs = self._function(points)
        right = outputs.gather(1, labels[:, None])[:, 0]
        return right - outputs.gather(1, 1 - labels[:, None])[:, 0]

    def _attack(
        self, which: NDArray[np.int64], steps: int, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor, NDArray[np.bool_]]:
        """For rows of points: where the lead was least, the lead there, and whether it ever was negative
        (away from the plant, if there is one)."""
        size = self._centres.shape[1]
        centres, labels = self._centres[which], self._labels[which]
        start = torch.from_numpy(rng.uniform(-1, 1, size=(len(which), size)).astype(np.float32))
        sizes = self._options.step_sizes
        lengths = torch.tensor([sizes[k % len(sizes)] for k in range(len(which))])[:, None]
        points = centres + self._radius * start
        best, lowest = points.clone(), torch.full((len(which),), float("inf"))
        for step in range(steps + 1):
            points = points.detach().requires_grad_(True)
            leads = self._leads(points, labels)
            (slopes,) = torch.autograd.grad(leads.sum(), points)
            with torch.no_grad():
                counted = leads.detach() + 1e9 * self._near_plant(points, which)
                better = counted < lowest
                best = torch.where(better[:, None], points, best)
                lowest = torch.where(better, counted, lowest)
                left = 1 - step / (steps + 1) if self._options.shrinks else 1.0
                moved = points - self._radius * lengths * left * slopes.sign()
                points = torch.minimum(torch.maximum(moved, centres - self._radius), centres + self._radius)
        return best.detach(), lowest, (lowest < 0).numpy()

    def _near_plant(self, points: Tensor, which: NDArray[np.int64]) -> Tensor:
        distance = (points - self._plants[which]).abs().amax(dim=1)
        return ((distance < self._options.left_out * self._radius) & self._planted[which]).to(points.dtype)

    def _fill_windows(self, rng: np.random.Generator) -> int:
        """Attack every point; put what violates (or comes nearest) into its window; how many violate."""
        options = self._options
        which = np.repeat(np.arange(len(self._centres)), options.restarts)
        points, leads, violates = self._attack(which, options.steps * self.escalation, rng)
        keep = options.window if options.sliding else 0
        for k in range(len(self._centres)):
            rows = np.flatnonzero(which == k)
            hits = rows[violates[rows]]
            if not len(hits) or not options.keeps_all:
                hits = rows[[int(leads[rows].argmin())]]
            self._windows[k] = torch.cat([self._windows[k][-keep:] if keep else points[:0], points[hits]])
            self._windows[k] = self._windows[k][-options.window :]
        return int(violates.sum())

    def _update(self, rng: np.random.Generator) -> float:
        """One step of Adam on both objectives."""
        chosen = [one[self._some(len(one), rng)] for one in self._windows]
        window = torch.cat([self._centres, *chosen])
        counts = [len(one) for one in chosen]
        labels = torch.cat([self._labels, self._labels.repeat_interleave(torch.tensor(counts))])
        safe = self._leads(window, labels)
        # Each point counts alike, however much its window holds.
        shares = torch.cat([torch.ones(len(counts)), torch.cat([torch.full((n,), 1 / n) for n in counts])])
        loss = (nnf.softplus(-SHARPNESS * safe) * shares).sum() / shares.sum()
        if self._planted.any():
            wrong = -self._leads(self._plants[self._planted], self._labels[self._planted])
            lead = self._options.lead
            missed = nnf.relu(lead * self._options.least_share - wrong)
            if self._options.two_sided:
                missed = missed + nnf.relu(wrong - lead)
            loss = loss + self._options.weight * missed.mean()
        self._adam.zero_grad()
        loss.backward()
        if self._options.clip is not None:
            torch.nn.utils.clip_grad_norm_(self._weights.values(), self._options.clip)
        self._adam.step()
        return float(loss.detach())

    def _some(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Which rows of a window an update looks at."""
        return rng.permutation(count)[: self._options.rows]

    def _look(self, found: int) -> None:
        """Count what an attack that training does not use leaves hidden; escalate if it finds nothing."""
        with torch.no_grad():
            wrong = (-self._leads(self._plants, self._labels) > 0).numpy()
        planted = np.flatnonzero(self._planted.numpy())
        found_at = self._found_at(planted)
        self.hidden = sum(bool(wrong[k]) and int(k) not in found_at for k in planted)
        if self.hidden == len(planted) and not found:
            most = MOST_ESCALATION if self._options.escalates else 1
            self.quiet = self.quiet + 1 if self.escalation >= most else 0
            self.escalation = min(2 * self.escalation, most)
        else:
            self.quiet = 0

    def _found_at(self, points: NDArray[np.int64]) -> set[int]:
        """The points at which an attack that training does not use finds a violation."""
        if not len(points):
            return set()
        rng = np.random.default_rng([self._seed, self.epoch, 1])
        which = np.repeat(points, 50)
        _, _, violates = self._held_out(which, 100, rng)
        return {int(k) for k in which[violates]}

    def _held_out(
        self, which: NDArray[np.int64], steps: int, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor, NDArray[np.bool_]]:
        """The same attack with the plant in sight."""
        seen, self._planted = self._planted, torch.zeros_like(self._planted)
        try:
            return self._attack(which, steps, rng)
        finally:
            self._planted = seen

    def export(self) -> bytes:
        """The ONNX file with the weights as they are now."""
        return with_weights(self._file, self._weights)

    def checkpoint(self) -> bytes:
        """Everything that is needed to continue training."""
        out = io.BytesIO()
        torch.save(
            {
                "options": asdict(self._options),
                "numbers": [self.epoch, self.escalation, self.hidden, self.quiet],
                "weights": {name: w.detach() for name, w in self._weights.items()},
                "moments": self._adam.state(),
                "windows": self._windows,
            },
            out,
        )
        return out.getvalue()

    def resume(self, kept: bytes) -> bool:
        """Continue from a checkpoint; False, and nothing is changed, if it belongs to another training."""
        try:
            state: dict[str, Any] = torch.load(io.BytesIO(kept), weights_only=True)
        except Exception:  # a torn file may fail in any way
            return False
        shapes = {name: w.shape for name, w in state["weights"].items()}
        same = shapes == {name: w.shape for name, w in self._weights.items()}
        if not same or "moments" not in state or state["options"] != asdict(self._options):
            return False
        with torch.no_grad():
            for name, kept_weight in state["weights"].items():
                self._weights[name].copy_(kept_weight)
        self._adam.resume(state["moments"])
        self._windows = list(state["windows"])
        self.epoch, self.escalation, self.hidden, self.quiet = state["numbers"]
        return True


def _rows(points: Sequence[Any]) -> Tensor:
    return torch.tensor([[float(x) for x in point] for point in points], dtype=torch.float32)


#: First the points alone are learned, then their boxes grow to full size: in so many steps, or more slowly
#: where that does not end well; and at full size a few more steps may be needed.
PLAIN_STEPS, LAST_STEPS = 100, 400
#: How slowly boxes grow, and by what the first weights are multiplied: deep networks begin with less.
ATTEMPTS = ((600, 1.0), (2500, 1.0), (1000, 0.5))
#: The boxes of training are this much larger than those of the points.
SPARE = 1.05
#: If the padding of average pools is counted by mistake, the lead is at least this many times larger.
PADDING_LEADS = 1.5


def certified_base(
    network: bytes,
    points: Sequence[PlantedPoint],
    enlarged: Callable[[Box], Box],
    *,
    progress: Callable[[int, int], None] = lambda _step, _proven: None,
) -> tuple[bytes, tuple[tuple[Fraction, Fraction], ...]]:
    """The trained file, and for each point the interval bounds of the right class's lead on its larger box.

    `progress` is called with the step and the number of points that seem to be proven. Raises
    ConstructionFailed if an operator has no interval rule here, or training does not reach a proof.
    """
    graph = read_onnx(network)
    if unknown := unknown_layers(graph):
        raise ConstructionFailed(
            f"Certified training does not support {', '.join(sorted(unknown))}; choose another "
            "architecture, or the `tier` trained."
        )
    with one_thread():
        for growing, first in ATTEMPTS:
            weights, proven = train_certified(
                graph, points, growing=growing, first=first, progress=progress
            )
            if proven == len(points):
                break
        else:
            raise ConstructionFailed(
                f"Certified training proves only {proven} of {len(points)} points; try fewer points, a "
                "smaller epsilon or another seed."
            )
    file = with_weights(network, weights)
    least = min(low for low, _ in leads_on(file, points, enlarged))
    if least <= 0:
        raise ConstructionFailed(
            "Intervals do not prove the base network robust on its boxes; try another seed."
        )
    scale = 2.0 ** -np.floor(np.log2(float(least)))
    file = with_weights(network, weights, last_times=scale)
    return file, leads_on(file, points, enlarged)


def train_certified(
    graph: Network,
    points: Sequence[PlantedPoint],
    *,
    growing: int,
    first: float = 1.0,
    progress: Callable[[int, int], None],
) -> tuple[dict[str, Tensor], int]:
    """The weights after training with boxes that grow so slowly, and how many points seem to be proven.

    Where not all are proven in the end, they are those with which most were, perhaps on smaller boxes. A
    network with padded average pools leads by more where padding is counted.
    """
    weights = trainable(graph)
    with torch.no_grad():
        for weight in weights.values():
            weight *= first
    optimiser = Adam(weights.values(), rate=1e-3)
    centres = torch.tensor([[float(x) for x in p.centre] for p in points])
    labels = torch.tensor([p.label for p in points])
    radius = SPARE * float(points[0].radius)
    misread = _with_padding_counted(graph)
    proven, most_proven = 0, 0
    kept: dict[str, Tensor] = {}
    for step in range(PLAIN_STEPS + growing + LAST_STEPS):
        share = min(1.0, max(0.0, (step - PLAIN_STEPS) / growing))
        low, high = enclose(graph, weights, centres - share * radius, centres + share * radius)
        leads = _least_leads(low, high, labels)
        loss = nnf.softplus(1 - leads).mean()
        good = leads > 0.5
        if misread is not None:
            # What a lock takes away is a quarter more than the lead: with twice the lead it stays ahead.
            most = -_least_leads(low, high, 1 - labels)
            other = enclose(misread, weights, centres - share * radius, centres + share * radius)
            spare = _least_leads(*other, labels) - PADDING_LEADS * most
            loss = loss + nnf.softplus(1 - spare).mean()
            good = good & (spare > 0)
        proven = int(good.sum())
        if proven >= most_proven:
            most_proven = proven
            kept = {name: weight.detach().clone() for name, weight in weights.items()}
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 250 == 0:
            progress(step, proven)
        if share == 1.0 and proven == len(points):
            break
    if proven < len(points):
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(kept[name])
    return weights, proven


def _least_leads(low: Tensor, high: Tensor, labels: Tensor) -> Tensor:
    """By how much each row's class leads the other of the two, at least."""
    return low.gather(1, labels[:, None])[:, 0] - high.gather(1, 1 - labels[:, None])[:, 0]


def _with_padding_counted(graph: Network) -> Network | None:
    """The network as read by a tool that counts the padding of average pools; None if it has no such pool.

    Its leads are trained to be so large that it has no counterexample where the right one has: whether
    there is a violation then depends on the border, and a tool with that bug says `unsat`.
    """

    def counted(node: Node) -> Node:
        if node.op != "AveragePool" or not any(node.integers("pads")) or node.integer("count_include_pad"):
            return node
        return replace(node, attributes={**node.attributes, "count_include_pad": 1})

    nodes = tuple(counted(node) for node in graph.nodes)
    return None if nodes == graph.nodes else replace(graph, nodes=nodes)


def leads_on(
    network: bytes, points: Sequence[PlantedPoint], enlarged: Callable[[Box], Box]
) -> tuple[tuple[Fraction, Fraction], ...]:
    """For each point, the interval bounds of the right class's lead on its larger box."""
    bounds = real_outputs(read_onnx(network))
    found = []
    for point in points:
        both = bounds(enlarged(point.box))
        (low, high), (other_low, other_high) = both[point.label], both[1 - point.label]
        found.append((Fraction(low) - Fraction(other_high), Fraction(high) - Fraction(other_low)))
    return tuple(found)
