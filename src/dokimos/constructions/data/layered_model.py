"""An architecture with weights: evaluation, interval and linear bounds, and writing as ONNX.

These bounds are for training and prove nothing: they round to nearest. Importing this imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import Tensor

from dokimos.constructions.data.data_set import Normalisation
from dokimos.constructions.data.reference_networks import (
    Architecture,
    Convolution,
    Dense,
    Layer,
    ResidualBlock,
)
from dokimos.networks.writing.builder import ModelBuilder

#: A lower and an upper bound of a tensor.
Ends = tuple[Tensor, Tensor]


class LayeredModel:
    """Weights for each layer of an architecture, for records of one shape.

    Weights have He's uniform initialisation, drawn from `generator`: the same generator gives the same
    weights.
    """

    def __init__(
        self, architecture: Architecture, shape: tuple[int, ...], classes: int, generator: torch.Generator
    ) -> None:
        self.architecture, self.shape = architecture, shape
        layers = (*architecture.layers[:-1], Dense(classes))
        self._layers, self.parameters = layers, list[Tensor]()
        self._weights: dict[tuple[int, ...], tuple[Tensor, Tensor]] = {}
        with torch.no_grad():
            self._enter(layers, torch.zeros((1, *shape)), (), generator)

    def _enter(
        self, layers: Sequence[Layer], x: Tensor, place: tuple[int, ...], generator: torch.Generator
    ) -> Tensor:
        """Draw the weights of these layers; return their output for `x`."""
        for number, layer in enumerate(layers):
            here = (*place, number)
            if isinstance(layer, ResidualBlock):
                main, shortcut = layer.paths(x.shape[1])
                left = self._enter(main, x, (*here, 0), generator)
                x = torch.relu(left + self._enter(shortcut, x, (*here, 1), generator))
                continue
            if isinstance(layer, Convolution):
                self._draw(here, (layer.channels, x.shape[1], layer.kernel, layer.kernel), generator)
            elif isinstance(layer, Dense):
                self._draw(here, (layer.units, x[0].numel()), generator)
            x = self._apply(layer, here, x)
        return x

    def _draw(self, place: tuple[int, ...], shape: tuple[int, ...], generator: torch.Generator) -> None:
        inputs = int(np.prod(shape[1:]))
        weight = (2 * torch.rand(shape, generator=generator) - 1) * sqrt(6 / inputs)
        pair = weight.requires_grad_(), torch.zeros(shape[0]).requires_grad_()
        self._weights[place] = pair
        self.parameters += pair

    def _apply(self, layer: Layer, place: tuple[int, ...], x: Tensor) -> Tensor:
        if isinstance(layer, Convolution):
            return nnf.conv2d(x, *self._weights[place], stride=layer.stride, padding=layer.padding)
        if isinstance(layer, Dense):
            return nnf.linear(x.flatten(1), *self._weights[place])
        return torch.relu(x)

    def __call__(self, x: Tensor) -> Tensor:
        """The scores of each class."""
        return self._forward(self._layers, x, ())

    def _forward(self, layers: Sequence[Layer], x: Tensor, place: tuple[int, ...]) -> Tensor:
        for number, layer in enumerate(layers):
            here = (*place, number)
            if isinstance(layer, ResidualBlock):
                main, shortcut = layer.paths(x.shape[1])
                x = torch.relu(self._forward(main, x, (*here, 0)) + self._forward(shortcut, x, (*here, 1)))
            else:
                x = self._apply(layer, here, x)
        return x

    def intervals(self, ends: Ends, known: dict[tuple[int, ...], Ends] | None = None) -> Ends:
        """Interval bounds of the scores; those of each ReLU's input are added to `known`, by its place."""
        return self._bounded(self._layers, ends, (), {} if known is None else known)

    def _bounded(
        self,
        layers: Sequence[Layer],
        ends: Ends,
        place: tuple[int, ...],
        known: dict[tuple[int, ...], Ends],
    ) -> Ends:
        for number, layer in enumerate(layers):
            here = (*place, number)
            if isinstance(layer, ResidualBlock):
                main, shortcut = layer.paths(ends[0].shape[1])
                left = self._bounded(main, ends, (*here, 0), known)
                right = self._bounded(shortcut, ends, (*here, 1), known)
                known[here] = ends = left[0] + right[0], left[1] + right[1]
                ends = torch.relu(ends[0]), torch.relu(ends[1])
            elif here in self._weights:
                ends = self._affine_ends(layer, here, ends)
            else:
                known[here] = ends
                ends = torch.relu(ends[0]), torch.relu(ends[1])
        return ends

    def _affine_ends(self, layer: Layer, place: tuple[int, ...], ends: Ends) -> Ends:
        weight, bias = self._weights[place]
        centre, radius = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
        if isinstance(layer, Convolution):
            middle = nnf.conv2d(centre, weight, bias, stride=layer.stride, padding=layer.padding)
            spread = nnf.conv2d(radius, weight.abs(), stride=layer.stride, padding=layer.padding)
        else:
            middle = nnf.linear(centre.flatten(1), weight, bias)
            spread = nnf.linear(radius.flatten(1), weight.abs())
        return middle - spread, middle + spread

    def linear_lower(self, rows: Tensor, ends: Ends, known: dict[tuple[int, ...], Ends]) -> Tensor:
        """CROWN-IBP: lower bounds of rows·scores, [n, k] for rows [n, k, classes], by one pass back.

        `known` has the bounds of each ReLU's input, from `intervals`.
        """
        functional, constant = self._back(self._layers, rows, (), known, self.shape)
        flat = functional.flatten(2)
        centre, radius = ((ends[0] + ends[1]) / 2).flatten(1), ((ends[1] - ends[0]) / 2).flatten(1)
        return constant + (flat * centre[:, None]).sum(2) - (flat.abs() * radius[:, None]).sum(2)

    def _back(
        self,
        layers: Sequence[Layer],
        functional: Tensor,
        place: tuple[int, ...],
        known: dict[tuple[int, ...], Ends],
        shape: tuple[int, ...],
    ) -> tuple[Tensor, Tensor]:
        """Turn functionals [n, k, *outputs] of these layers into those of the input, and constants."""
        shapes = [shape, *self._shapes(layers, shape)]
        constant = functional.new_zeros(functional.shape[:2])
        for number in range(len(layers) - 1, -1, -1):
            layer, here, before = layers[number], (*place, number), shapes[number]
            functional = functional.reshape(*functional.shape[:2], *shapes[number + 1])
            if here in known:
                functional, added = _relaxed(functional, known[here])
                constant = constant + added
            if isinstance(layer, ResidualBlock):
                main, shortcut = layer.paths(before[0])
                left, one = self._back(main, functional, (*here, 0), known, before)
                right, other = self._back(shortcut, functional, (*here, 1), known, before)
                functional, constant = left + right, constant + one + other
            elif here in self._weights:
                functional, added = self._transposed(layer, here, functional, before)
                constant = constant + added
        return functional, constant

    def _transposed(
        self, layer: Layer, place: tuple[int, ...], functional: Tensor, before: tuple[int, ...]
    ) -> tuple[Tensor, Tensor]:
        weight, bias = self._weights[place]
        count, rows = functional.shape[:2]
        if isinstance(layer, Dense):
            return (functional @ weight).reshape(count, rows, *before), functional @ bias
        assert isinstance(layer, Convolution)
        left_over = (before[1] + 2 * layer.padding - layer.kernel) % layer.stride
        back = nnf.conv_transpose2d(
            functional.flatten(0, 1),
            weight,
            stride=layer.stride,
            padding=layer.padding,
            output_padding=left_over,
        )
        return back.reshape(count, rows, *before), functional.sum((3, 4)) @ bias

    def _shapes(self, layers: Sequence[Layer], shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The shape of each layer's output."""
        for layer in layers:
            if isinstance(layer, Convolution):
                side = (shape[1] + 2 * layer.padding - layer.kernel) // layer.stride + 1
                shape = (layer.channels, side, side)
            elif isinstance(layer, ResidualBlock):
                side = (shape[1] - 1) // layer.stride + 1
                shape = (layer.channels, side, side)
            elif isinstance(layer, Dense):
                shape = (layer.units,)
            yield shape

    def to_onnx(self, normalisation: Normalisation | None) -> bytes:
        """The network as an ONNX file; with a normalisation, it normalises raw records itself."""
        builder = ModelBuilder(self.shape)
        if normalisation is not None:
            mean, deviation = normalisation.columns(self.shape)
            builder.plus(-mean[None].astype(np.float64))
            builder.scaled((np.float32(1) / deviation)[None].astype(np.float64))
        self._write(builder, self._layers, (), self.shape[0])
        return builder.build(int(self.parameters[-1].numel()))

    def _write(
        self, builder: ModelBuilder, layers: Sequence[Layer], place: tuple[int, ...], channels: int
    ) -> int:
        """Add these layers to a file; return the number of channels of their output."""
        for number, layer in enumerate(layers):
            here = (*place, number)
            weights: list[Any] = [
                each.detach().numpy().astype(np.float64) for each in self._weights.get(here, ())
            ]
            if isinstance(layer, ResidualBlock):
                start = builder.last
                main, shortcut = layer.paths(channels)
                self._write(builder, main, (*here, 0), channels)
                end = builder.last
                self._write(builder.resume(start), shortcut, (*here, 1), channels)
                builder.joined_with(end).relu()
                channels = layer.channels
            elif isinstance(layer, Convolution):
                builder.conv(*weights, stride=layer.stride, padding=layer.padding)
                channels = layer.channels
            elif isinstance(layer, Dense):
                if channels:
                    builder.flatten()
                    channels = 0
                builder.affine(*weights)
            else:
                builder.relu()
        return channels


def _relaxed(functional: Tensor, ends: Ends) -> tuple[Tensor, Tensor]:
    """Turn functionals of ReLUs into functionals of their inputs, and constants: CROWN's relaxation."""
    lower, upper = (end[:, None] for end in ends)
    free = (lower < 0) & (upper > 0)
    chord = torch.where(free, upper / (upper - lower).clamp(min=1e-12), (lower >= 0).to(upper.dtype))
    line = torch.where(free, (upper > -lower).to(upper.dtype), chord)
    negative = functional.clamp(max=0)
    added = (negative * torch.where(free, -chord * lower, 0.0)).flatten(2).sum(2)
    return functional.clamp(min=0) * line + negative * chord, added
