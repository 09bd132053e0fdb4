"""What a profile costs, against the bare passes and against finite differences, measured in one run.

python benchmarks/profile_speed.py [SAMPLES] [--full]

For networks of d inputs and the same samples: the batched forward and backward passes alone; the five
components; and the gradients alone by finite differences in batches of the same size, forward (d + 1
evaluations a sample) and central (2d). The differences are taken at some of the samples and their time
scaled up, since all would take minutes. Times are CPU seconds, the median of a few runs. That takes less
than two minutes; `--full` adds the five and the extras beside them, some of which search for half a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from statistics import median
from time import process_time

import numpy as np
import torch

from dokimos.difficulty.components import CANONICAL, EXTRAS
from dokimos.difficulty.inspection import Inspection
from dokimos.engine.attacks.margin_pass import batch_size, torch_margin
from dokimos.engine.differentiable import to_torch
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.facts import COMPONENTS, ProfileSettings
from dokimos.suites.vnnlib.margins import margin_form
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature

REPEATS = 3
RADIUS = Fraction(3, 100)
STEP = 1e-6


def dense(*widths: int) -> Network:
    rng = np.random.default_rng(0)
    builder = ModelBuilder((widths[0],))
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        weights = rng.standard_normal((outputs, inputs)) * (2 / inputs) ** 0.5
        builder.affine(weights.astype(np.float32), np.zeros(outputs, dtype=np.float32))
        if layer < len(widths) - 2:
            builder.relu()
    return read_onnx(builder.build(widths[-1]))


def convolutional(channels: int, side: int) -> Network:
    rng = np.random.default_rng(0)
    builder = ModelBuilder((3, side, side))
    for inputs, outputs in ((3, channels), (channels, 2 * channels)):
        filters = rng.standard_normal((outputs, inputs, 4, 4)) * (2 / (16 * inputs)) ** 0.5
        builder.conv(filters.astype(np.float32), np.zeros(outputs, np.float32), stride=2, padding=1).relu()
    flat = 2 * channels * (side // 4) ** 2
    builder.flatten().affine(
        (rng.standard_normal((10, flat)) / flat).astype(np.float32), np.zeros(10, np.float32)
    )
    return read_onnx(builder.build(10))


def robustness(network: Network) -> Property:
    """Another class than the first comes within reach of it somewhere around 1/2."""
    size, outputs = network.input_size, network.output_size
    middle = Fraction(1, 2)
    box = Box((middle - RADIUS,) * size, (middle + RADIUS,) * size)
    others = tuple(
        (Linear((), ((0, Fraction(1)), (j, Fraction(-1))), Fraction(0)),) for j in range(1, outputs)
    )
    signature = Signature("f", "X", (size,), "Y", (outputs,))
    return Property((signature,), (Case(box, others),))


def seconds(action: Callable[[], object], repeats: int = REPEATS) -> float:
    action()
    taken = []
    for _ in range(repeats):
        begin = process_time()
        action()
        taken.append(process_time() - begin)
    return median(taken)


def measure(name: str, network: Network, samples: int, *, is_full: bool) -> None:
    asked, settings = robustness(network), ProfileSettings(samples=samples)
    points = torch.from_numpy(Inspection(network, asked, settings).points[0])
    function, batch = to_torch(network), batch_size(network)
    margin = torch_margin(margin_form(asked.cases[0], network.input_size, network.output_size))

    def passes() -> None:
        for start in range(0, samples, batch):
            x = points[start : start + batch].clone().requires_grad_(True)
            torch.autograd.grad(margin(x, function(x), None)[0].sum(), x)

    def five() -> None:
        seen = Inspection(network, asked, settings)
        for component in COMPONENTS:
            CANONICAL[component](seen)

    def everything() -> None:
        seen = Inspection(network, asked, settings)
        for component in COMPONENTS:
            CANONICAL[component](seen)
        for extra in EXTRAS:
            EXTRAS[extra](seen)

    size = network.input_size
    some = max(1, min(samples, 20_000 // size))

    def differences(*, central: bool) -> None:
        steps = STEP * torch.eye(size, dtype=torch.float64)
        with torch.no_grad():
            for x in points[:some]:
                moved = torch.cat([x + steps, x - steps] if central else [x[None], x + steps])
                for start in range(0, len(moved), batch):
                    part = moved[start : start + batch]
                    margin(part, function(part), None)

    torch.set_num_threads(1)
    bare, ours = seconds(passes), seconds(five)
    beside = f"with extras {seconds(everything, 1) / bare:.2f}; " if is_full else ""
    scale = samples / some
    forward = seconds(lambda: differences(central=False), 1) * scale
    central = seconds(lambda: differences(central=True), 1) * scale
    print(
        f"{name}: {size} inputs, {samples} samples: passes {bare:.3f} s; "
        f"five components {ours / bare:.2f} times that (at most 3 wanted); {beside}"
        f"finite differences {forward / ours:.0f} (forward) and {central / ours:.0f} (central) "
        f"times the five components (at least d/10 = {size / 10:.0f} wanted)"
    )


def main(words: list[str]) -> None:
    """Measure three networks."""
    is_full, given = "--full" in words, [int(word) for word in words if word != "--full"]
    count = given[0] if given else 1000
    for name, network in {
        "dense 100-100x2-10": dense(100, 100, 100, 10),
        "dense 784-256x4-10": dense(784, 256, 256, 256, 256, 10),
        "convolutional 3x32x32-16-32-10": convolutional(16, 32),
    }.items():
        measure(name, network, count, is_full=is_full)


if __name__ == "__main__":
    main(sys.argv[1:])
