"""Networks of layers and shortcuts with weights to train: many rows at once, as points or as intervals.

They are trained plainly, against PGD, or with bounds; the same settings give the same weights.

Importing this module imports torch.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import cos, pi, prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as nnf
from onnx import numpy_helper
from torch import Tensor

from dokimos.constructions.data.data_set import DataSet, Normalisation
from dokimos.constructions.data.reference_networks import Architecture, Method, TrainingSettings
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.engine.differentiable import TABLE, Adam, one_thread
from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import sha256

_MONOTONE = ("Relu", "Tanh", "Sigmoid", "AveragePool", "Reshape", "Flatten", "Transpose")
_AFFINE = ("Gemm", "Conv", "Add")
Range = tuple[Tensor, Tensor]
Weights = Mapping[str, Tensor]


def unknown_layers(graph: Network) -> set[str]:
    """The operators that are no layers here."""
    return {node.op for node in graph.nodes} - {*_MONOTONE, *_AFFINE}


def evaluate(graph: Network, weights: Weights, points: Tensor) -> Tensor:
    """The outputs for each row of inputs."""
    return _run(graph, weights, points, _rule)


def enclose(graph: Network, weights: Weights, low: Tensor, high: Tensor) -> Range:
    """What the outputs lie between, for each row of inputs between `low` and `high`; not rigorous."""
    spread = _run(graph, weights, torch.stack([low, high]), _range_rule)
    return spread[0], spread[1]


def _run(
    graph: Network, weights: Weights, given: Tensor, rule: Callable[[Node, Sequence[Tensor]], Tensor]
) -> Tensor:
    lead = given.shape[:-1]
    values = {graph.input: given.reshape(*lead, *graph.input_shape[1:])}
    for node in graph.nodes:
        read = [values[name] if name in values else weights.get(name) for name in node.inputs]
        arguments = [each for each in read if each is not None]
        if node.op in ("Reshape", "Flatten"):
            values[node.output] = arguments[0].reshape(*lead, -1)
        else:
            values[node.output] = rule(node, arguments)
    return values[graph.output].reshape(*lead, -1)


def _rule(node: Node, arguments: Sequence[Tensor]) -> Tensor:
    return TABLE[node.op](node, arguments)


def _range_rule(node: Node, arguments: Sequence[Tensor]) -> Tensor:
    if node.op in ("Relu", "Add"):
        return _rule(node, arguments)
    (low, high), *weights = arguments
    if node.op in _MONOTONE:
        return torch.stack([_rule(node, [low, *weights]), _rule(node, [high, *weights])])
    weight, bias = weights
    centre = _rule(node, [(low + high) / 2, *weights])
    reach = _rule(node, [(high - low) / 2, weight.abs(), torch.zeros_like(bias)])
    return torch.stack([centre - reach, centre + reach])


# The weights of a network that training may change: out of its file, and back into it


def trainable(graph: Network) -> dict[str, Tensor]:
    """A tensor that collects gradients for each weight."""
    return {
        name: torch.from_numpy(np.array(array)).requires_grad_(True)
        for name, array in graph.constants.items()
        if name.startswith(("weight_", "bias_", "filter_"))
    }


def with_weights(network: bytes, weights: Mapping[str, Tensor], *, last_times: float = 1.0) -> bytes:
    """The file with these weights, those of the last layer times a factor."""
    model = onnx.load_from_string(network)
    last = set(model.graph.node[-1].input)
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            values = weights[tensor.name].detach().numpy()
            values = values * np.float32(last_times if tensor.name in last else 1.0)
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))
    return bytes(model.SerializeToString(deterministic=True))


class Trainer:
    """Trains a model epoch by epoch; after each epoch, the whole state is kept in the file `checkpoint`."""

    def __init__(
        self, settings: TrainingSettings, architecture: Architecture, data: DataSet, checkpoint: Path
    ) -> None:
        self._settings, self._data, self._checkpoint = settings, data, checkpoint
        self._generator = torch.Generator().manual_seed(settings.seed)
        self._architecture = architecture
        file = architecture.write(data.shape, data.classes, self._drawn)
        self._network = read_onnx(file)
        self.weights = trainable(self._network)
        self._optimiser = Adam(self.weights.values(), rate=settings.rate)
        shape = (1, -1) + (1,) * (len(data.shape) - 1)
        self._mean, self._deviation = (
            torch.from_numpy(each.copy()).reshape(shape)
            for each in Normalisation(settings.mean, settings.deviation).columns(data.shape)
        )
        self.epoch = 0
        self._key = sha256(
            json.dumps(asdict(settings), default=str).encode()
            + data.records.tobytes()
            + data.labels.tobytes()
        )
        self._resume()

    def _drawn(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """He's uniform initialisation, and no bias."""
        unit = 2 * torch.rand(shape, generator=self._generator) - 1
        return (unit * sqrt(6 / prod(shape[1:]))).numpy().astype(np.float64), np.zeros(shape[0])

    def export(self, normalisation: Normalisation | None) -> bytes:
        """The network as it is now; with a normalisation, it normalises raw records itself."""
        trained = (each.detach().numpy().astype(np.float64) for each in self.weights.values())
        data = self._data
        weights = zip(trained, trained, strict=True)  # each with its bias
        return self._architecture.write(data.shape, data.classes, lambda _: next(weights), normalisation)

    def _scores(self, x: Tensor) -> Tensor:
        """The scores of normalised records."""
        return evaluate(self._network, self.weights, x.flatten(1))

    def run(self, progress: Callable[[int, float], None]) -> None:
        """Train the epochs that are left; `progress` gets the number and the mean loss of each."""
        while self.epoch < self._settings.epochs:
            with one_thread():
                loss = self._one_epoch()
            self.epoch += 1
            self._save()
            progress(self.epoch, loss)

    def _one_epoch(self) -> float:
        settings = self._settings
        order = torch.randperm(len(self._data), generator=self._generator)
        batches = order.split(settings.batch)
        total = 0.0
        for number, rows in enumerate(batches):
            share = (self.epoch + number / len(batches)) / settings.epochs
            self._optimiser.rate = settings.rate * (0.01 + 0.99 * (1 + cos(pi * share)) / 2)
            x = torch.from_numpy(self._data.records[rows.numpy()])
            y = torch.from_numpy(self._data.labels[rows.numpy()])
            x = self._flipped(x)
            loss = self._loss(x, y, share)
            self._optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.weights.values(), 5.0)
            self._optimiser.step()
            total += float(loss.detach()) * len(rows)
        return total / len(self._data)

    def _flipped(self, x: Tensor) -> Tensor:
        """Mirror colour pictures at random, half of them on average; digits are not mirrored."""
        if x.ndim != 4 or x.shape[1] != 3:
            return x
        turned = torch.rand(len(x), generator=self._generator) < 0.5
        return torch.where(turned[:, None, None, None], x.flip(3), x)

    def _loss(self, x: Tensor, y: Tensor, share: float) -> Tensor:
        settings = self._settings
        if settings.method is Method.NORMAL:
            return nnf.cross_entropy(self._scores(self._normalised(x)), y)
        if settings.method is Method.ADVERSARIAL:
            return nnf.cross_entropy(self._scores(self._normalised(self._adversarial(x, y))), y)
        grown = min(1.0, 2 * share)
        plain = nnf.cross_entropy(self._scores(self._normalised(x)), y)
        bounded = self._bounded_loss(self._ends(x, settings.radius * grown), y)
        return (1 - grown / 2) * plain + grown / 2 * bounded

    def _bounded_loss(self, ends: Range, y: Tensor) -> Tensor:
        """The cross-entropy of the worst scores within the bounds: 0 for the class, −margin for others."""
        low, high = (self._normalised(end).flatten(1) for end in ends)
        low, high = enclose(self._network, self.weights, low, high)
        margins = low.gather(1, y[:, None]) - high
        worst = (-margins).scatter(1, y[:, None], 0.0)
        return nnf.cross_entropy(worst, y)

    def _ends(self, x: Tensor, radius: float) -> Range:
        return self._clipped(x - radius), self._clipped(x + radius)

    def _clipped(self, x: Tensor) -> Tensor:
        return x if self._data.limits is None else x.clamp(*self._data.limits)

    def _normalised(self, x: Tensor) -> Tensor:
        return (x - self._mean) / self._deviation

    def _adversarial(self, x: Tensor, y: Tensor) -> Tensor:
        """Adversarial examples: PGD on the cross-entropy, from a random point of the ball."""
        radius, steps = self._settings.radius, self._settings.attack_steps
        moved = self._clipped(x + radius * (2 * torch.rand(x.shape, generator=self._generator) - 1))
        for _ in range(steps):
            moved = moved.detach().requires_grad_()
            loss = nnf.cross_entropy(self._scores(self._normalised(moved)), y)
            (slope,) = torch.autograd.grad(loss, moved)
            stepped = moved.detach() + 2.5 * radius / steps * slope.sign()
            moved = self._clipped(torch.minimum(torch.maximum(stepped, x - radius), x + radius))
        return moved.detach()

    def _save(self) -> None:
        state = {
            "key": self._key,
            "epoch": self.epoch,
            "weights": [each.detach() for each in self.weights.values()],
            "optimiser": self._optimiser.state(),
            "generator": self._generator.get_state(),
        }
        content = io.BytesIO()
        torch.save(state, content)
        write_whole(self._checkpoint, content.getvalue(), what="the checkpoint")

    def _resume(self) -> None:
        """Continue from the checkpoint, if there is one with the same settings and data."""
        if not self._checkpoint.is_file():
            return
        try:
            state = torch.load(io.BytesIO(self._checkpoint.read_bytes()), weights_only=True)
            if state["key"] != self._key:
                return
            with torch.no_grad():
                for own, kept in zip(self.weights.values(), state["weights"], strict=True):
                    own.copy_(kept)
            self._optimiser.resume(state["optimiser"])
            self._generator.set_state(state["generator"])
            self.epoch = int(state["epoch"])
        except Exception as error:
            raise InputError(
                f"{self._checkpoint}: cannot be read as a checkpoint ({type(error).__name__}); remove "
                "it to start again."
            ) from None
