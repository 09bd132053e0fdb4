"""How often projected gradient descent finds the counterexample of a family's twins.

    python benchmarks/gradient_search.py polynomial --count 10 degree=4 inputs=30

Each twin is attacked with RESTARTS random starts of STEPS signed gradient steps in float64, once for every
step size; a twin counts as found if any iterate of any start violates.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from dokimos.constructions import CONSTRUCTIONS
from dokimos.instances.model import Instance
from dokimos.networks.gradients import to_torch
from dokimos.networks.read import read_onnx
from dokimos.properties.reading import read_vnnlib

RESTARTS = 100
STEPS = 100
#: Step sizes, as shares of the box's half width.
SIZES = (0.025, 0.1, 0.5)


def found(instance: Instance, *, seed: int = 0) -> bool:
    """Whether descent finds a counterexample of a property with one box."""
    network = read_onnx(instance.network_file, name=instance.name)
    question = read_vnnlib(instance.property_file, file=instance.name)
    function = to_torch(network)
    (case,) = question.cases
    lower = torch.tensor([float(x) for x in case.box.lower], dtype=torch.float64)
    upper = torch.tensor([float(x) for x in case.box.upper], dtype=torch.float64)
    rng = np.random.default_rng(seed)
    for conjunction in case.any_of:
        for size in SIZES:
            start = torch.tensor(rng.uniform(size=(RESTARTS, len(lower))))
            x = lower + start * (upper - lower)
            for _ in range(STEPS + 1):
                x = x.detach().requires_grad_()
                y = function(x)
                sides = [
                    sum(float(d) * y[:, j] for j, d in c.outputs) - float(c.bound) for c in conjunction
                ]
                worst = torch.stack(sides).amax(dim=0)
                if bool((worst <= 0).any()):
                    return True
                (slope,) = torch.autograd.grad(worst.sum(), x)
                x = torch.clamp(x - size * (upper - lower) / 2 * slope.sign(), lower, upper)
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("knobs", nargs="*", help="name=value")
    arguments = parser.parse_intermixed_args()
    knobs = dict(each.split("=") for each in arguments.knobs)
    hits = 0
    for seed in range(arguments.count):
        _, twin = CONSTRUCTIONS[arguments.family](seed=seed, **knobs)
        hits += found(twin.instance)
    print(f"{arguments.family} {' '.join(arguments.knobs)}: found {hits} of {arguments.count}")


if __name__ == "__main__":
    main()
