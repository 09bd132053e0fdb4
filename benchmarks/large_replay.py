"""How long it takes to read the networks of a suite, and to replay a point in outward-rounded float64.

    dokimos generate --suite large --out SUITE
    python benchmarks/large_replay.py SUITE

For each instance, in CPU-seconds: reading the network, reading the property, evaluating the centre of its
box with rigorous bounds (no exact arithmetic), and how wide these bounds are.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from pathlib import Path

from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import in_float64
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import read_suite
from dokimos.suites.vnnlib.reader import read_vnnlib


def measure(entry: SuiteEntry) -> tuple[int, float, float, float, float]:
    """Weights; CPU-seconds for the network, the property and the replay; the width of the outputs."""
    instance = entry.read_instance()
    marks = [time.process_time()]
    network = read_onnx(instance.network_file, name=entry.name)
    marks.append(time.process_time())
    property_ = read_vnnlib(instance.property_file, file=entry.name)
    marks.append(time.process_time())
    replayed = in_float64(network, property_.cases[0].box.centre)
    marks.append(time.process_time())
    weights = sum(array.size for array in network.constants.values())
    read, parsed, replay = (later - earlier for earlier, later in pairwise(marks))
    return weights, read, parsed, replay, float("inf") if replayed is None else float(replayed.width)


def main(folder: Path) -> None:
    """Print one line for each instance, the largest network last."""
    measured = sorted((*measure(entry), entry.name) for entry in read_suite(folder).entries)
    print(
        f"{'instance':<28} {'weights':>11} {'network s':>9} {'property s':>10} {'replay s':>8} {'width':>8}"
    )
    for weights, read, parsed, replay, width, name in measured:
        print(f"{name:<28} {weights:>11,} {read:>9.2f} {parsed:>10.2f} {replay:>8.2f} {width:>8.1e}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
