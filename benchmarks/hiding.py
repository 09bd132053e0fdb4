"""How well are the twins' counterexamples hidden from gradients?

For each family, PGD with random restarts searches the violated twins of a few seeds: sign steps on the
smallest margin of class 0 over the others, from uniform starting points. Printed: how many twins it
breaks, and the share of restarts that do. Knobs are given as name=value.

    python benchmarks/hiding.py [family [knob=value ...]]
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
import torch

from dokimos.constructions import CONSTRUCTIONS
from dokimos.networks.gradients import to_torch
from dokimos.networks.read import read_onnx
from dokimos.properties.model import Property
from dokimos.properties.reading import read_vnnlib

TWINS = 10
RESTARTS = 100
STEPS = 100


@dataclass(frozen=True)
class Found:
    """What PGD made of one twin: the share of its restarts that ended unsafe at some step."""

    share: float
    least_margin: float


def attack(network: bytes, property_: Property, *, seed: int, restarts: int, steps: int) -> Found:
    """PGD on the first box of the property, whose unsafe outputs are `class 0 loses to class k`."""
    generator = torch.Generator().manual_seed(seed)
    function = to_torch(read_onnx(network), dtype=torch.float32)
    box = property_.cases[0].box
    lower = torch.tensor([float(x) for x in box.lower])
    upper = torch.tensor([float(x) for x in box.upper])
    width = upper - lower
    points = lower + width * torch.rand(restarts, box.size, generator=generator)
    hit = torch.zeros(restarts, dtype=torch.bool)
    least = float("inf")
    for step in range(steps):
        points = points.detach().requires_grad_(True)
        outputs = function(points)
        margins = (outputs[:, :1] - outputs[:, 1:]).min(dim=1).values
        hit |= margins.detach() <= 0
        least = min(least, float(margins.detach().min()))
        (gradient,) = torch.autograd.grad(margins.sum(), points)
        size = 0.125 * (1 - step / steps) + 0.002
        points = torch.clamp(points - size * width * gradient.sign(), lower, upper)
    return Found(float(hit.float().mean()), least)


def measure(family: str, knobs: dict[str, str]) -> None:
    found, making = [], 0.0
    for seed in range(TWINS):
        start = time.perf_counter()
        _, twin = CONSTRUCTIONS[family](seed=seed, **knobs)
        making += time.perf_counter() - start
        property_ = read_vnnlib(twin.instance.property_file, file="twin")
        content = twin.instance.network_file
        found.append(attack(content, property_, seed=seed, restarts=RESTARTS, steps=STEPS))
    broken = sum(one.share > 0 for one in found)
    restarts = np.mean([one.share for one in found])
    print(
        f"{family:16} PGD breaks {broken} of {TWINS} twins; {restarts:6.2%} of restarts; "
        f"{making / TWINS:.2f} s to make a pair"
    )


def main(arguments: list[str]) -> None:
    families = arguments[:1] or list(CONSTRUCTIONS)
    knobs = dict(argument.split("=", 1) for argument in arguments[1:])
    torch.set_num_threads(1)
    for family in families:
        measure(family, knobs)


if __name__ == "__main__":
    main(sys.argv[1:])
