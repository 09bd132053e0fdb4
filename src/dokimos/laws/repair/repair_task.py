"""Trains networks to answer as an old one does and to satisfy laws, in three ways."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Sign
from dokimos.checker.trees.leaves import ForbiddenScores
from dokimos.core.plugins import packages_missing
from dokimos.laws.domain.features import Kind
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import limits_of
from dokimos.laws.proving.question import LawQuestion
from dokimos.networks.semantics.outward import Floats
from dokimos.networks.writing.builder import ModelBuilder

# What laws require of the slopes of a network's scores: enough for them to hold on the whole domain


@dataclass(frozen=True, order=True)
class SlopeRequirement:
    """sign · (score of class `above` − score of class `below`) must not fall as the column grows."""

    above: int
    below: int
    column: int
    sign: int

    @property
    def direction(self) -> int:
        """1 if a larger value must lead to a higher class, −1 if to a lower one."""
        return self.sign if self.above > self.below else -self.sign


def slope_requirements(questions: Iterable[LawQuestion]) -> tuple[SlopeRequirement, ...]:
    """Conditions that suffice for the laws behind these questions to hold, wherever the records are.

    Theorem. Let a law forbid that record r is decided a and record s is decided b ≠ a, and let s − r be of
    one sign in each column in which they differ. If score a − score b grows with none of these columns
    against that sign, it does not fall from r to s, so these decisions are not possible (`NetworkCloser`).

    Raises Refusal if a law is about anything but the sign of slopes: a choice, a number that may move
    either way, one record, or decisions that must not change at all.
    """
    found = {each for question in questions for each in _of(question)}
    for each in found:
        if SlopeRequirement(each.below, each.above, each.column, each.sign) in found:
            raise Refusal("a feature must make no difference at all; remove it from the model instead")
    return tuple(sorted(found))


def _of(question: LawQuestion) -> Iterator[SlopeRequirement]:
    if len(question.records) < 2:
        raise Refusal(f"{question.law}: the law is about one record, not about how scores change")
    for forbidden in question.forbidden:
        if isinstance(forbidden, ForbiddenScores):
            yield from _of_numbers(question, forbidden)
            continue
        moved = False
        for r, s in combinations(range(len(question.records)), 2):
            a, b = forbidden.classes[r], forbidden.classes[s]
            if a != b:
                moved = True
                for column, sign in _moved(question, r, s):
                    yield SlopeRequirement(a, b, column, sign)
        if not moved:
            raise Refusal(f"{question.law}: the law forbids a decision whatever the other records get")


def _of_numbers(question: LawQuestion, forbidden: ForbiddenScores) -> Iterator[SlopeRequirement]:
    """What is asked of a number, as if it were the lead of class 1: not to fall where it is forbidden."""
    for part in forbidden.parts:
        ends = {factor: record for record, _, factor in part.scores}
        if len(part.scores) != 2 or sum(ends) != 0 or part.sign not in (Sign.BELOW, Sign.AT_MOST):
            raise Refusal(f"{question.law}: the law compares more than two predictions")
        for column, sign in _moved(question, ends[min(ends)], ends[max(ends)]):
            yield SlopeRequirement(1, 0, column, sign)


def _moved(question: LawQuestion, r: int, s: int) -> Sequence[tuple[int, int]]:
    """The columns in which two records differ, and the sign of the difference."""
    first, second = question.records[r], question.records[s]
    found = []
    for slot, one, other in zip(question.layout.slots, first.features, second.features, strict=True):
        if one == other:
            continue
        name = slot.feature.name
        if slot.feature.kind is Kind.CHOICE:
            raise Refusal(f"{question.law}: moves {name}, which is a choice and so has no slope")
        difference = other.plus(one, -1)
        ends, limits = difference.ends(question.zone), limits_of(question, difference)
        if max(ends[0], limits[0]) >= 0:
            found.append((slot.start, 1))
        elif min(ends[1], limits[1]) <= 0:
            found.append((slot.start, -1))
        else:
            raise Refusal(f"{question.law}: moves {name} either way")
    return found


# ReLU networks with a linear part, which ReLUs that are always on carry through the layers


Layers = Sequence[tuple[Floats, Floats]]


@dataclass(frozen=True)
class ScoredNetwork:
    """x ↦ (the ReLU layers at x) + linear·x. Weights and biases of all layers; `linear` may be 0."""

    layers: tuple[tuple[Floats, Floats], ...]
    linear: Floats

    def __call__(self, rows: Floats) -> Floats:
        """The scores of each row, in doubles."""
        values = np.asarray(rows, dtype=np.float64)
        for number, (weight, bias) in enumerate(self.layers):
            values = (np.maximum(values, 0.0) if number else values) @ weight.T + bias
        return np.asarray(values + np.asarray(rows, dtype=np.float64) @ self.linear.T)

    def onnx(self, low: Floats, high: Floats) -> bytes:
        """The network as an ONNX file, for inputs between `low` and `high`.

        Each nonzero row of `linear` becomes one more ReLU in each layer, with a bias that keeps it above 0
        for all of these inputs; the last layer subtracts the bias again.
        """
        carried = np.flatnonzero(self.linear.any(axis=1)) if len(self.layers) > 1 else np.zeros(0, int)
        rows = self.linear[carried]
        shift = 1.0 - np.minimum(rows * low, rows * high).sum(axis=1)
        builder = ModelBuilder([len(low)])
        for number, (weight, bias) in enumerate(self.layers):
            last = number == len(self.layers) - 1
            if number == 0:
                weight = weight + self.linear if last else np.vstack([weight, rows])
                bias = bias if last else np.concatenate([bias, shift])
            elif last:
                back = np.zeros((len(weight), len(carried)))
                back[carried, np.arange(len(carried))] = 1.0
                weight, bias = np.hstack([weight, back]), bias - back @ shift
            else:
                one = np.eye(len(carried))
                beside = np.zeros((len(weight), len(carried)))
                weight = np.block([[weight, beside], [np.zeros((len(carried), weight.shape[1])), one]])
                bias = np.concatenate([bias, np.zeros(len(carried))])
            builder = (builder.relu() if number else builder).affine(_single(weight), _single(bias))
        return builder.build(len(self.layers[-1][1]))


def _single(values: Floats) -> Floats:
    return values.astype(np.float32).astype(np.float64)


_BATCH, _RATE = 64, 4e-3
#: The least change of the scores, over the whole range of a feature, in the direction that a law requires.
_MARGIN = 0.05
#: The share of that margin that is enough in the end, and how many further rounds there may be to reach it.
_ENOUGH, _MORE_EPOCHS = 0.4, 120
#: The initial penalty of a slope against the law, and how it grows.
_PRICE, _GROWTH = 1.0, 1.08
#: How far the scores of a violating case must move beyond undoing the violation.
_HINGE = 0.1


class RepairWay(Enum):
    """How a network is made to satisfy laws."""

    CERTIFIED = "certified"
    CASES = "cases"
    WEIGHTS = "weights"
    #: Of trees: other values of leaves, without some splits, or fitted again with constraints.
    LEAVES = "leaves"
    SPLITS = "splits"
    REFIT = "refit"


@dataclass(frozen=True)
class ViolatingPairs:
    """Pairs of records that are decided against a law, and the two classes."""

    first: Floats
    second: Floats
    above: NDArray[np.int64]
    below: NDArray[np.int64]


#: Gives pairs that a network violates laws with.
FindPairs = Callable[[ScoredNetwork], ViolatingPairs | None]


@dataclass(frozen=True)
class RepairTask:
    """A network, the rows whose answers to keep, the range of each column, and the requirements."""

    layers: Layers
    rows: Floats
    low: Floats
    high: Floats
    requirements: tuple[SlopeRequirement, ...]

    @property
    def scores(self) -> Floats:
        """The old network's scores for the rows."""
        classes, width = len(self.layers[-1][1]), len(self.low)
        return ScoredNetwork(tuple(self.layers), np.zeros((classes, width)))(self.rows)


def repaired(task: RepairTask, way: RepairWay, *, epochs: int, seed: int, find: FindPairs) -> ScoredNetwork:
    """A network that answers like the old one if possible, and satisfies the laws as far as `way` achieves.

    *certified*: a loss on bounds of the slopes over the whole domain, until they have the right sign.
    *cases*: a loss on cases that violate the laws, found anew in each epoch (`find`). *weights*: a new
    network whose weights leave it no other choice. The result is not trusted: `law verify` decides.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise packages_missing("Repairing needs torch", "gradients") from None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # networks this small take longer, and round otherwise, on several
    try:
        return _Training(torch, task, way, seed).run(epochs, find)
    finally:
        torch.set_num_threads(threads)


class _Training:
    def __init__(self, torch: Any, task: RepairTask, way: RepairWay, seed: int) -> None:
        self._torch, self._task, self._way = torch, task, way
        self._rng = np.random.default_rng(seed)
        self._mean = task.rows.mean(axis=0)
        spread = task.rows.std(axis=0)
        width = np.where(task.high > task.low, task.high - task.low, 1.0)
        self._spread = np.where(spread > 0, spread, width)
        self._low = self._tensor((task.low - self._mean) / self._spread)
        self._high = self._tensor((task.high - self._mean) / self._spread)
        self._classes = len(task.layers[-1][1])
        self._directions = directions(task.requirements) if way is RepairWay.WEIGHTS else {}
        self._parameters = self._fresh() if way is RepairWay.WEIGHTS else self._old()
        for each in self._parameters:
            each.requires_grad_(True)
        if way is RepairWay.CASES:
            self._parameters[-1].requires_grad_(False)

    def _tensor(self, values: NDArray[Any] | Sequence[int]) -> Any:
        return self._torch.tensor(np.asarray(values), dtype=self._torch.float64)

    def _old(self) -> list[Any]:
        """The parameters of the old network over scaled columns, slightly perturbed, and a linear part."""
        made = []
        for number, (weight, bias) in enumerate(self._task.layers):
            if number == 0:
                weight, bias = weight * self._spread, bias + weight @ self._mean
            noise = self._rng.normal(scale=1e-3, size=weight.shape)
            made += [self._tensor(weight + noise), self._tensor(bias)]
        return [*made, self._tensor(np.zeros((self._classes, len(self._mean))))]

    def _fresh(self) -> list[Any]:
        made = []
        for weight, _ in self._task.layers:
            size = weight.shape
            made += [self._tensor(self._rng.normal(scale=np.sqrt(1 / size[1]), size=size))]
            made += [self._tensor(np.zeros(size[0]))]
        linear = self._rng.normal(scale=0.01, size=(self._classes, len(self._mean)))
        return [*made, self._tensor(linear)]

    def _effective(self) -> tuple[list[tuple[Any, Any]], Any]:
        """The effective weights and biases of all layers, and the linear part."""
        pairs = list(zip(self._parameters[:-1:2], self._parameters[1:-1:2], strict=True))
        linear = self._parameters[-1]
        if self._way is not RepairWay.WEIGHTS:
            return pairs, linear
        made = []
        for number, (weight, bias) in enumerate(pairs):
            used = self._one_way(weight) if number == 0 else weight.abs()
            if number == len(pairs) - 1:
                used = self._rising(used if number else self._one_way(weight))
            made.append((used, bias))
        return made, self._rising(self._one_way(linear))

    def _one_way(self, weight: Any) -> Any:
        """Weights of the columns that laws are about, all with the sign that the column requires."""
        signs = self._tensor([self._directions.get(k, 0) for k in range(weight.shape[1])])
        return self._torch.where(signs == 0, weight, signs * weight.abs())

    def _rising(self, weight: Any) -> Any:
        """Each class has the weights of the class before it, plus its own."""
        return self._torch.cumsum(weight, dim=0)

    def _scores(self, rows: Any) -> Any:
        layers, linear = self._effective()
        values = rows
        for number, (weight, bias) in enumerate(layers):
            values = (self._torch.relu(values) if number else values) @ weight.T + bias
        return values + rows @ linear.T

    def _slopes(self) -> Any:
        """Lower bounds over the domain, one for each requirement: how much scores grow over the range."""
        torch, asked = self._torch, self._task.requirements
        layers, linear = self._effective()
        phases, low, high = [], self._low, self._high
        for weight, bias in layers[:-1]:
            up, down = weight.clamp(min=0), weight.clamp(max=0)
            low, high = up @ low + down @ high + bias, up @ high + down @ low + bias
            phases.append((low >= 0, high <= 0))
            low, high = torch.relu(low), torch.relu(high)
        rows = np.zeros((len(asked), self._classes))
        for number, each in enumerate(asked):
            rows[number, each.above], rows[number, each.below] = each.sign, -each.sign
        wanted = self._tensor(rows)
        least = most = wanted @ layers[-1][0]
        for (on, off), (weight, _) in zip(reversed(phases), reversed(layers[:-1]), strict=True):
            least = torch.where(on, least, torch.where(off, 0.0, least.clamp(max=0)))
            most = torch.where(on, most, torch.where(off, 0.0, most.clamp(min=0)))
            up, down = weight.clamp(min=0), weight.clamp(max=0)
            least, most = least @ up + most @ down, most @ up + least @ down
        columns = torch.tensor([each.column for each in asked])
        places = torch.arange(len(asked))
        found = least[places, columns] + (wanted @ linear)[places, columns]
        return found * (self._high - self._low)[columns]

    def run(self, epochs: int, find: FindPairs) -> ScoredNetwork:
        torch, task = self._torch, self._task
        rows = self._tensor((task.rows - self._mean) / self._spread)
        goals = torch.softmax(self._tensor(task.scores), dim=1)
        from dokimos.engine.differentiable import Adam  # which loads torch

        adam = Adam((each for each in self._parameters if each.requires_grad), rate=_RATE)
        price, is_certified = _PRICE, self._way is RepairWay.CERTIFIED
        for epoch in range(epochs + (_MORE_EPOCHS if is_certified else 0)):
            if is_certified and epoch >= epochs and self._is_enough():
                break
            pairs = find(self._network()) if self._way is RepairWay.CASES else None
            adam.rate = _RATE * max(0.1, 1 - epoch / epochs)
            order = self._rng.permutation(len(rows))
            for start in range(0, len(order), _BATCH):
                chosen = torch.tensor(order[start : start + _BATCH])
                loss = -(goals[chosen] * torch.log_softmax(self._scores(rows[chosen]), dim=1)).sum(1).mean()
                if is_certified:
                    loss = loss + price * torch.relu(_MARGIN - self._slopes()).mean()
                if pairs is not None:
                    loss = loss + self._against(pairs)
                adam.zero_grad()
                loss.backward()
                adam.step()
            price *= _GROWTH
        return self._network()

    def _is_enough(self) -> bool:
        """Whether the slopes have the right sign, with some of the margin to spare."""
        return float(self._slopes().detach().min()) >= _ENOUGH * _MARGIN

    def _against(self, pairs: ViolatingPairs) -> Any:
        """How far the scores of violating pairs are from what the law requires, on some of the pairs."""
        torch = self._torch
        some = self._rng.choice(len(pairs.above), min(_BATCH, len(pairs.above)), replace=False)
        place = torch.arange(len(some))
        gaps = []
        for records in (pairs.first, pairs.second):
            scores = self._scores(self._tensor((records[some] - self._mean) / self._spread))
            gaps.append(
                scores[place, torch.tensor(pairs.above[some])]
                - scores[place, torch.tensor(pairs.below[some])]
            )
        return torch.relu(_HINGE + gaps[0] - gaps[1]).mean()

    def _network(self) -> ScoredNetwork:
        """The network over unscaled columns."""
        layers, linear = self._effective()
        made = [(weight.detach().numpy().copy(), bias.detach().numpy().copy()) for weight, bias in layers]
        part = linear.detach().numpy() / self._spread
        first, bias = made[0]
        made[0] = (first / self._spread, bias - first @ (self._mean / self._spread))
        last, last_bias = made[-1]
        made[-1] = (last, last_bias - part @ self._mean)
        return ScoredNetwork(tuple(made), part)


def directions(requirements: Sequence[SlopeRequirement]) -> dict[int, int]:
    """For each column with a requirement, whether it must raise or lower the class. Raises Refusal."""
    found: dict[int, int] = {}
    for each in requirements:
        if found.setdefault(each.column, each.direction) != each.direction:
            raise Refusal("the laws require a feature to raise some classes and to lower others")
    return found
