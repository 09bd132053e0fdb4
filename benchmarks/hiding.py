"""How well the twins' counterexamples are hidden from gradients, and how tight the proven margins are.

    python benchmarks/hiding.py [--draws 10] [family [knob=value ...]]

For each family, PGD with 100 restarts of 100 steps, at each of three step sizes, searches the violated
twins of a few seeds, and the robust siblings. Printed: how many twins it breaks, and for the siblings the
mean of the smallest margin that it reaches and of the one that is proven.
"""

from __future__ import annotations

import argparse
from statistics import mean

import torch

from dokimos.attacks.base import AttackResult
from dokimos.attacks.pgd import PGD
from dokimos.constructions import CONSTRUCTIONS
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.properties.reading import read_vnnlib
from dokimos.suites.instance import LabelledInstance, Semantics

STEP_SIZES = (PGD(), PGD(first_step=0.1, last_step=0.1), PGD(first_step=0.5, last_step=0.5))


def attacked(labelled: LabelledInstance, seed: int) -> AttackResult:
    """The best of all step sizes."""
    instance = labelled.instance
    question = read_vnnlib(instance.property_file, file=instance.name)
    network = read_onnx(instance.network_file)
    found = (attack(network, question, seed=seed) for attack in STEP_SIZES)
    return min(found, key=lambda one: one.least_margin)


def measure(family: str, knobs: dict[str, str], draws: int) -> None:
    pairs = [CONSTRUCTIONS[family](seed=seed, **knobs) for seed in range(draws)]
    twins = [attacked(twin, seed) for seed, (_, twin) in enumerate(pairs)]
    robust = [attacked(sibling, seed) for seed, (sibling, _) in enumerate(pairs)]
    proven = [s.truth.claims[Semantics.REAL].margin for s, _ in pairs if s.truth is not None]
    print(
        f"{family:18} PGD breaks {sum(t.broken > 0 for t in twins)} of {draws} twins"
        f";"
        f" siblings: margin {mean(float(m or 0) for m in proven):.3g} proven,"
        f" {mean(r.least_margin for r in robust):.3g} attacked",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("family", nargs="?")
    parser.add_argument("knobs", nargs="*", help="knob=value")
    options = parser.parse_args()
    torch.set_num_threads(1)
    knobs = dict(text.split("=", 1) for text in options.knobs)
    for family in [options.family] if options.family else list(CONSTRUCTIONS):
        measure(family, knobs, options.draws)


if __name__ == "__main__":
    main()
