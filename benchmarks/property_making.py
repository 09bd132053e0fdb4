"""How fast properties are made from a model and data, as ratios measured side by side in one run.

    python benchmarks/property_making.py [--resnet FILE] [--base FILE] [--pictures 5] [--full]

The PGD filter on ResNet-2B (5 restarts, 100 steps) against the bare cost of as many forward and backward
passes in torch; and the bracket of one picture of the OVAL base network, in CPU-seconds of one core.
With --full, 100 pictures. Networks have random weights unless files are given; pictures are random, with
the class that the network says.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from dokimos.constructions.data.brackets import Effort, brackets
from dokimos.constructions.data.data_set import Classifier, DataSet, read_classifier
from dokimos.constructions.data.reference_networks import find_architecture
from dokimos.constructions.trainable_weights import evaluate, trainable
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.engine.attacks.row_target import attack_rows
from dokimos.networks.reading.onnx_file import read_onnx

RESTARTS, STEPS = 5, 100
#: A radius so small that next to nothing is broken, so that no row may stop early.
RADIUS = 1e-4


def drawn(name: str) -> Classifier:
    """A network of an architecture with random weights."""
    rng = np.random.default_rng(0)

    def weights(shape: tuple[int, ...]) -> tuple[Any, Any]:
        weight = rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[1:]))
        return weight.astype(np.float32), np.zeros(shape[0])

    content = find_architecture(name).write((3, 32, 32), 10, weights)
    return Classifier(name, content, read_onnx(content))


def pictures(classifier: Classifier, count: int) -> DataSet:
    """Random pictures, with the class that the network says."""
    records = np.random.default_rng(0).random((count, 3, 32, 32), dtype=np.float32)
    plain = DataSet("random", records, np.zeros(count, dtype=np.int64))
    return DataSet("random", records, classifier.scores(plain).argmax(axis=1).astype(np.int64))


def bare_seconds(classifier: Classifier, rows: int, passes: int) -> float:
    """CPU-seconds of one pass forward and back of so many rows, a mean over some passes."""
    weights = trainable(classifier.network)
    x = torch.rand((rows, classifier.network.input_size))
    for timed in (False, True):
        start = process_time()
        for _ in range(passes if timed else 1):
            x = x.detach().requires_grad_()
            torch.autograd.grad(evaluate(classifier.network, weights, x).sum(), x)
    return (process_time() - start) / passes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resnet", type=Path)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--pictures", type=int)
    parser.add_argument("--full", action="store_true", help="100 pictures")
    given = parser.parse_args()
    given.pictures = given.pictures or (100 if given.full else 5)
    torch.set_num_threads(1)
    classifier = drawn("resnet2b")
    if given.resnet is not None:
        classifier = read_classifier(given.resnet)
    data = pictures(classifier, given.pictures)
    bare = bare_seconds(classifier, 100, 10) * RESTARTS * given.pictures / 100 * (STEPS + 1)
    ends = classifier.boxes(data, RADIUS)
    start = process_time()
    budget, rng = Budget(restarts=RESTARTS, steps=STEPS), np.random.default_rng(0)
    reached = attack_rows(ATTACKS["pgd"], classifier.network, *ends, data.labels, budget, rng)
    took = process_time() - start
    print(f"PGD filter, {given.pictures} pictures x {RESTARTS} restarts x {STEPS} steps: {took:.1f} CPU-s,")
    print(
        f"  {took / bare:.2f} times the bare passes ({bare:.1f} CPU-s); {int(reached.broken.sum())} broken"
    )
    base = drawn("oval-base") if given.base is None else read_classifier(given.base)
    one = pictures(base, 1)
    start = process_time()
    (found,) = brackets(base, one, Effort(), rng)
    took = process_time() - start
    print(f"OVAL bracket of one picture: {took:.1f} CPU-s ({found.degenerate or 'both ends'})")


if __name__ == "__main__":
    main()
