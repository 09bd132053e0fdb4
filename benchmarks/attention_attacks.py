"""How well the twins of the attention families hide, and how near their bounds lie to what attacks reach.

    python benchmarks/attention_attacks.py [--draws 10] [--knob name=value ...] [family ...]

For each draw: whether PGD (100 restarts of 100 steps from uniform points, sign steps, step ε/10 falling to
ε/100, the restarts aimed at every competitor in turn) finds the twin's counterexample; and for the robust
sibling the smallest margin that it reaches, against the margin at the centre and the proven one.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from dokimos.constructions import CONSTRUCTIONS
from dokimos.instances.model import LabelledInstance, Semantics
from dokimos.networks.gradients import to_torch
from dokimos.networks.read import read_onnx
from dokimos.properties.reading import read_vnnlib

FAMILIES = ("softmax-attention", "linear-attention")
RESTARTS = 100
STEPS = 100


def attacked(labelled: LabelledInstance, seed: int) -> tuple[float, float]:
    """The margin of class 0 at the centre, and the smallest that PGD finds."""
    function = to_torch(read_onnx(labelled.instance.network_file), dtype=torch.float32)
    box = read_vnnlib(labelled.instance.property_file, file=labelled.instance.name).cases[0].box
    lower, upper = (torch.tensor([float(x) for x in end]) for end in (box.lower, box.upper))
    random = torch.Generator().manual_seed(seed)
    points = lower + (upper - lower) * torch.rand((RESTARTS, box.size), generator=random)
    radius = (upper - lower) / 2
    best = float("inf")
    for step in range(STEPS + 1):
        points = points.detach().requires_grad_(True)
        outputs = function(points)
        margins = outputs[:, :1] - outputs[:, 1:]
        best = min(best, float(margins.detach().min()))
        aim = torch.arange(RESTARTS) % margins.shape[1]
        (gradient,) = torch.autograd.grad(margins[torch.arange(RESTARTS), aim].sum(), points)
        length = 0.1 if step < STEPS // 2 else 0.01
        points = (points - length * radius * gradient.sign()).clamp(lower, upper)
    outputs = function(((lower + upper) / 2)[None])
    return float((outputs[:, :1] - outputs[:, 1:]).min()), best


def main() -> None:
    """Print one line for each draw and the rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--knob", action="append", default=[])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    knobs = dict(each.split("=", 1) for each in arguments.knob)
    for family in arguments.families:
        found, ratios = 0, []
        for seed in range(arguments.draws):
            robust, twin = CONSTRUCTIONS[family](seed=seed, **knobs)
            proven = float(robust.truth.claims[Semantics.REAL].margin or 0)
            centre, reached = attacked(robust, seed)
            _, violated = attacked(twin, seed)
            found += violated <= 0
            ratios.append(centre / (centre - reached))
            print(
                f"{family} {seed}: centre {centre:.4g}, attacked {reached:.4g}, proven {proven:.4g}; "
                f"twin attacked {violated:.4g}"
            )
        print(
            f"{family}: PGD finds {found} of {arguments.draws} twins; "
            f"slack against the attacked drift: median {np.median(ratios):.3g}"
        )


if __name__ == "__main__":
    main()
