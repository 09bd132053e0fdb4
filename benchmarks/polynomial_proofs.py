"""Which share of the draws of polynomial networks is proven, and how long a draw takes.

    python benchmarks/polynomial_proofs.py --full inputs=100 width=100

For every degree and buffer of the table, one draw, or five with --full; the other knobs as given.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from dokimos.constructions.base import Unusable
from dokimos.constructions.draft import make_knobs
from dokimos.constructions.families.polynomial import Polynomial
from dokimos.engine.outcome import NoProof
from dokimos.networks.writing.builder import NotFloat32

DEGREES = (2, 3, 6, 10, 17, 22, 30)
BUFFERS = (5e-3, 1e-3, 1e-4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int)
    parser.add_argument("--full", action="store_true", help="five draws of each")
    parser.add_argument("knobs", nargs="*", help="name=value")
    arguments = parser.parse_intermixed_args()
    arguments.count = arguments.count or (5 if arguments.full else 1)
    given = dict(each.split("=") for each in arguments.knobs)
    family = Polynomial()
    for degree in DEGREES:
        for buffer in BUFFERS:
            values = {**given, "degree": degree, "buffer": buffer}
            knobs = make_knobs(family.knobs_class, values, family=family.family)
            proven, start = 0, time.perf_counter()
            for seed in range(arguments.count):
                try:
                    family.construct(knobs, np.random.default_rng([seed, 0]))
                    proven += 1
                except (Unusable, NoProof, NotFloat32):
                    pass
            seconds = (time.perf_counter() - start) / arguments.count
            print(
                f"degree {degree:2} buffer {buffer:g}: {proven} of {arguments.count}, {seconds:.2f} s each"
            )


if __name__ == "__main__":
    main()
