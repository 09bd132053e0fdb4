"""The published networks as a suite: `dokimos-studies networks PUBLISHED FACTS --out SUITE`.

PUBLISHED is the folder `benchmarks` of a checkout of VeriStress-GT's public repository, which has the
properties (`NAME/instances/INSTANCE/spec.vnnlib`) and no networks; FACTS has `combinations.csv` (seeds and
parameters, see published.py). Networks of two constructors are rebuilt here from what the paper says of
them: polynomial ones (two affine layers with a power between them, normal weights divided by the root of
the fan-in, biases a tenth of one) and those with an exact radius (three affine layers as torch draws them
from its seed). `--rebuilt FOLDER` has those of the others: run the published constructors with their
published parameters, which write FOLDER/INSTANCE/model.onnx. What is not there is left out, and said.

`--vnncomp NAME=NETWORKS` takes the properties of mnistfc or oval21 instead, in the order of the published
tables, and the networks that they name from the folder NETWORKS.

SUITE becomes a folder as in VNN-COMP, without labels: dokimos-studies labels looks for those, and
`dokimos label`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.core.files import write_whole
from dokimos.networks.writing.builder import GraphBuilder
from dokimos.suites.folder import instance_names
from dokimos.suites.writing import InstanceFiles, store_files, write_index, write_rows
from dokimos_studies.veristress.published import BENCHMARKS, FAMILIES, parameters, table

#: The limit of the published runs.
SECONDS = 600.0


def polynomial(given: dict[str, Any]) -> bytes:
    """The polynomial network of a seed, rounded to float32 as the published files are."""
    if given["init_mode"] != "fanin":
        raise ValueError(f"init_mode {given['init_mode']!r} is not in the paper")
    inputs, width, degree = given["input_dim"], given["hidden_dim"], given["degree"]
    rng = np.random.default_rng(given["seed"])
    first = rng.standard_normal((width, inputs)) * (given["weight_scale"] / np.sqrt(inputs))
    biases = rng.standard_normal(width) * (given["bias_scale"] * given["bias_base_scale"])
    last = rng.standard_normal((2, width)) * (given["output_weight_scale"] / np.sqrt(width))
    offsets = rng.standard_normal(2) * (given["output_bias_scale"] * given["output_bias_base_scale"])
    graph = GraphBuilder()
    hidden = graph.node("Gemm", "X", graph.constant(first), graph.constant(biases), transB=1)
    raised = graph.node("Pow", hidden, graph.constant(np.array(float(degree))))
    output = graph.node("Gemm", raised, graph.constant(last), graph.constant(offsets), transB=1)
    return graph.build({"X": ("float", [1, inputs])}, output, [1, 2], output_name="Y")


def exact_radius(given: dict[str, Any]) -> bytes:
    """Two hidden ReLU layers with the weights that torch draws after `manual_seed`."""
    import torch

    torch.manual_seed(given["seed"])
    sizes = [given["input_dim"], given["h1"], given["h2"], given["num_outputs"]]
    graph, value = GraphBuilder(), "X"
    for number, (read, written) in enumerate(pairwise(sizes)):
        layer = torch.nn.Linear(read, written)
        weight, bias = (graph.constant(p.detach().numpy()) for p in (layer.weight, layer.bias))
        value = graph.node("Gemm", graph.node("Relu", value) if number else value, weight, bias, transB=1)
    return graph.build({"X": ("float", [1, sizes[0]])}, value, [1, sizes[-1]], output_name="Y")


REBUILT_HERE = {"polynomial": polynomial, "exact-radius": exact_radius}


def of_vnncomp(published: Path, name: str, networks: Path, out: Path) -> int:
    """Write the folder of a benchmark whose networks are those of VNN-COMP; the number of instances."""
    rows: list[tuple[str, str, float]] = []
    for place in sorted((published / BENCHMARKS[name] / "instances").iterdir()):
        meta = json.loads((place / "meta.json").read_text(encoding="utf-8"))
        told = meta.get("source_onnx") or meta["vnncomp"]["onnx_rel"]
        (source,) = networks.rglob(Path(told).name)
        row = (f"onnx/{source.name}", f"vnnlib/{place.name}.vnnlib", SECONDS)
        write_whole(out / row[0], source.read_bytes())
        write_whole(out / row[1], (place / "spec.vnnlib").read_bytes())
        rows.append(row)
    families = dict.fromkeys(instance_names([row[:2] for row in rows]), name)
    write_rows(out, rows, families, recipe={}, version="published")
    return len(rows)


def main() -> int:
    """Write the folder; exit code 1 if some networks are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("published", type=Path)
    parser.add_argument("facts", type=Path)
    parser.add_argument("--rebuilt", type=Path)
    parser.add_argument("--vnncomp", metavar="NAME=NETWORKS")
    parser.add_argument("--out", type=Path, required=True, metavar="SUITE")
    given = parser.parse_args()
    if given.vnncomp and given.vnncomp.partition("=")[0] not in BENCHMARKS:
        parser.error(f"--vnncomp takes NAME=NETWORKS, and NAME is one of {', '.join(BENCHMARKS)}")
    for folder in ("onnx", "vnnlib", "truth"):
        (given.out / folder).mkdir(parents=True, exist_ok=True)
    if given.vnncomp:
        benchmark, _, networks = given.vnncomp.partition("=")
        count = of_vnncomp(given.published, benchmark, Path(networks), given.out)
        print(f"{given.out}: {count} instances")
        return 0
    listed: list[tuple[str, str]] = []
    missing: Counter[str] = Counter()
    for row in table(given.facts, "combinations"):
        family, name = FAMILIES[row["construction"]], row["instance"]
        question = (given.published / row["benchmark"] / "instances" / name / "spec.vnnlib").read_bytes()
        made = given.rebuilt / name / "model.onnx" if given.rebuilt else None
        if family in REBUILT_HERE:
            network = REBUILT_HERE[family](parameters(row))
        elif made is not None and made.is_file():
            network = made.read_bytes()
        else:
            missing[family] += 1
            continue
        store_files(given.out, InstanceFiles(name, "", network, question, None))
        listed.append((name, family))
    write_index(given.out, listed, SECONDS, recipe={}, version="published")
    print(f"{given.out}: {len(listed)} instances")
    for family, count in missing.items():
        print(f"{family}: {count} networks are missing in {given.rebuilt}", file=sys.stderr)
    return 1 if missing else 0
