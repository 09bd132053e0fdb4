"""How often gradient search finds the twins of a family.

    python scripts/pgd_rate.py contractive-cnn --draws 10 depth=4

Projected gradient descent on the smallest lead of class 0, in float64, from uniform random starts, with
signed steps of 2.5·radius/steps; any iterate may be the counterexample. Needs torch.
"""

from __future__ import annotations

import argparse

import torch

from dokimos.constructions import CONSTRUCTIONS
from dokimos.errors import DokimosError
from dokimos.instances.model import Instance
from dokimos.networks.gradients import to_torch
from dokimos.networks.read import read_onnx
from dokimos.properties.reading import read_vnnlib


def found(instance: Instance, *, restarts: int, steps: int, seed: int) -> bool:
    """Whether one of the iterates is unsafe: some class is at least as high as class 0."""
    network = to_torch(read_onnx(instance.network_file, name=instance.name))
    (case,) = read_vnnlib(instance.property_file, file=instance.name).cases
    lower, upper = (
        torch.tensor([float(x) for x in end], dtype=torch.float64)
        for end in (case.box.lower, case.box.upper)
    )
    generator = torch.Generator().manual_seed(seed)
    shares = torch.rand((restarts, case.box.size), generator=generator, dtype=torch.float64)
    points = lower + shares * (upper - lower)
    for _ in range(steps + 1):
        points.requires_grad_(True)
        scores = network(points)
        leads = scores[:, 0] - scores[:, 1:].amax(dim=1)
        if bool((leads <= 0).any()):
            return True
        (slopes,) = torch.autograd.grad(leads.sum(), points)
        moved = points.detach() - 2.5 / steps * (upper - lower) / 2 * slopes.sign()
        points = torch.minimum(torch.maximum(moved, lower), upper)
    return False


def main() -> None:
    """Draw the twins of seeds 0, 1, ... and search each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("family", choices=list(CONSTRUCTIONS))
    parser.add_argument("knobs", nargs="*", help="knob=value")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--restarts", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100)
    chosen = parser.parse_args()
    if any("=" not in knob for knob in chosen.knobs):
        parser.error("a knob is given as name=value")
    knobs = dict(knob.split("=", 1) for knob in chosen.knobs)
    hits = 0
    for seed in range(chosen.draws):
        try:
            _, twin = CONSTRUCTIONS[chosen.family](seed=seed, **knobs)
        except DokimosError as error:
            parser.error(str(error))
        hits += found(twin.instance, restarts=chosen.restarts, steps=chosen.steps, seed=seed)
    print(f"{chosen.family}: PGD finds {hits} of {chosen.draws} twins")


if __name__ == "__main__":
    main()
