"""Tiny polynomial and ReLU networks, and exact values of them that owe nothing to the checker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from dokimos.constructions.draft import ball, first_class_loses
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Instance
from dokimos.suites.vnnlib.writer import write_vnnlib1

Rows = list[list[Fraction]]


def dyadics(rng: np.random.Generator, *shape: int, most: int = 16, below: int = 8) -> list:
    """Random multiples of 1/below, nested as `shape` says."""
    if not shape:
        return Fraction(int(rng.integers(-most, most + 1)), below)
    return [dyadics(rng, *shape[1:], most=most, below=below) for _ in range(shape[0])]


def instance_of(network: bytes, centre: Sequence[Fraction], radius: Fraction, classes: int) -> Instance:
    text = write_vnnlib1(first_class_loses(ball(centre, radius), classes)).encode("ascii")
    return Instance(name="small", network_file=network, property_file=text)


def grid(centre: Sequence[Fraction], radius: Fraction, steps: int = 4) -> list[tuple[Fraction, ...]]:
    """The points of a regular grid of the box, its corners included."""
    ticks = [[x + radius * Fraction(2 * k - steps, steps) for k in range(steps + 1)] for x in centre]
    return list(product(*ticks))


@dataclass(frozen=True)
class SmallPolynomial:
    """Y_0 − Y_1 = offset + Σ c_j·(w_j·x + b_j)^d around a centre."""

    rows: Rows
    biases: list[Fraction]
    coefficients: list[Fraction]
    offset: Fraction
    degree: int
    centre: list[Fraction]
    radius: Fraction

    @classmethod
    def draw(
        cls, rng: np.random.Generator, *, degree: int, inputs: int = 2, units: int = 3
    ) -> SmallPolynomial:
        return cls(
            rows=dyadics(rng, units, inputs),
            biases=dyadics(rng, units),
            coefficients=dyadics(rng, units),
            offset=Fraction(0),
            degree=degree,
            centre=dyadics(rng, inputs, most=8),
            radius=Fraction(int(rng.integers(1, 9)), 16),
        )

    def value(self, x: Sequence[Fraction]) -> Fraction:
        inside = (
            b + sum((w * v for w, v in zip(row, x, strict=True)), Fraction(0))
            for row, b in zip(self.rows, self.biases, strict=True)
        )
        terms = (c * z**self.degree for c, z in zip(self.coefficients, inside, strict=True))
        return sum(terms, self.offset)

    def grid_minimum(self) -> Fraction:
        return min(self.value(x) for x in grid(self.centre, self.radius))

    def instance(self) -> Instance:
        head = [self.coefficients, [Fraction(0)] * len(self.coefficients)]
        builder = ModelBuilder([len(self.centre)]).affine(self.rows, self.biases).power(self.degree)
        network = builder.affine(head, [self.offset, Fraction(0)]).build(2)
        return instance_of(network, self.centre, self.radius, 2)


@dataclass(frozen=True)
class SmallReluNetwork:
    """Layers (weights, biases) with ReLUs between them, two classes, around the origin."""

    layers: list[tuple[Rows, list[Fraction]]]
    radius: Fraction

    @classmethod
    def draw(cls, rng: np.random.Generator, *, sizes: Sequence[int] = (2, 3, 3, 2)) -> SmallReluNetwork:
        layers = [
            (dyadics(rng, after, before), dyadics(rng, after, most=4)) for before, after in pairwise(sizes)
        ]
        return cls(layers, Fraction(int(rng.integers(1, 9)), 16))

    def lifted(self, by: Fraction) -> SmallReluNetwork:
        """With `by` added to class 0."""
        rows, biases = self.layers[-1]
        return SmallReluNetwork([*self.layers[:-1], (rows, [biases[0] + by, *biases[1:]])], self.radius)

    def outputs(self, x: Sequence[Fraction]) -> list[Fraction]:
        values = list(x)
        for number, (rows, biases) in enumerate(self.layers):
            values = [max(Fraction(0), v) for v in values] if number else values
            values = [
                b + sum((w * v for w, v in zip(row, values, strict=True)), Fraction(0))
                for row, b in zip(rows, biases, strict=True)
            ]
        return values

    def margin(self, x: Sequence[Fraction]) -> Fraction:
        first, second = self.outputs(x)
        return first - second

    def grid_minimum(self) -> Fraction:
        origin = [Fraction(0)] * len(self.layers[0][0][0])
        return min(self.margin(x) for x in grid(origin, self.radius))

    def sizes(self) -> list[int]:
        """The numbers of inputs, and of ReLUs of each layer."""
        return [len(self.layers[0][0][0]), *(len(biases) for _, biases in self.layers[:-1])]

    def relus(self) -> int:
        return sum(len(biases) for _, biases in self.layers[:-1])

    def instance(self) -> Instance:
        builder = ModelBuilder([len(self.layers[0][0][0])])
        for number, (rows, biases) in enumerate(self.layers):
            builder = (builder.relu() if number else builder).affine(rows, biases)
        origin = [Fraction(0)] * len(self.layers[0][0][0])
        return instance_of(builder.build(2), origin, self.radius, 2)
