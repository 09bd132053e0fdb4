"""The tables that VeriStress-GT published, read: what the scripts about its study share.

A folder of facts has three tables from the paper's public repository, under these names:

- `combinations.csv`: benchmark, instance, construction, seed, parameters (JSON), onnx_sha256, …;
- `results.csv`: tool, benchmark, instance, construction, status, wall_seconds;
- `profiles.csv`: benchmark, instance, and a column for each component.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dokimos.core.files import write_whole
from dokimos.suites.profile_file import COMPONENTS

Row = dict[str, str]

#: The published column of each of the five components.
COLUMNS = dict(
    zip(
        COMPONENTS,
        (
            "margin_sample_min",
            "ibp_relative_gap",
            "unstable_frac",
            "A_tau_local_log",
            "effective_grad_dim_mean",
        ),
        strict=True,
    )
)
#: What a benchmark is called in the table of results, and in those of profiles and combinations.
BENCHMARKS = {
    "veristress": "sweep_all",
    "polynomial": "polynomial_stress_22",
    "mnistfc": "vnncomp_mnist_fc",
    "oval21": "oval21",
}
#: The benchmarks whose instances are all meant to be robust.
ROBUST = ("veristress", "polynomial")
#: What the published files call our families, and our verifiers where the names differ.
CONSTRUCTORS = {
    "exclusive-pairs": "mlp_relu.meap",
    "exact-radius": "mlp_relu.milp.exact_radius",
    "convex-corners": "mlp_relu.corners",
    "constant-on-box": "mlp_relu.embedded_projection",
    "contractive-cnn": "cnn.deep_contractive_cnn",
    "paired-bias": "cnn.cnn_paired_bias",
    "linear-attention": "attention.linear_dominance",
    "softmax-attention": "attention.fixed_pattern",
    "polynomial": "polynomial.algebraic_boundary",
}
FAMILIES = {constructor: family for family, constructor in CONSTRUCTORS.items()}
TOOLS = {"alpha-beta-crown": "abcrown"}


def table(folder: Path, name: str) -> list[Row]:
    """The rows of one table."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def results(folder: Path | None, *benchmarks: str) -> list[Row]:
    """What the five verifiers answered on some benchmarks; nothing without a folder."""
    if folder is None:
        return []
    return [row for row in table(folder, "results") if row["benchmark"] in benchmarks]


def profiles(folder: Path) -> dict[tuple[str, str], Row]:
    """The published components, by benchmark (as `results.csv` calls it) and instance."""
    name = {theirs: ours for ours, theirs in BENCHMARKS.items()}
    return {(name[row["benchmark"]], row["instance"]): row for row in table(folder, "profiles")}


def parameters(row: Row) -> dict[str, Any]:
    """The parameters of a row of `combinations.csv`."""
    given: dict[str, Any] = json.loads(row["parameters"])
    return given


def parser_for(description: str | None) -> argparse.ArgumentParser:
    """A command line that ends in a page: `--out PAGE`, printed without it."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="PAGE", help="where the page goes (default: printed)")
    return parser


def show(lines: Sequence[str], out: Path | None) -> None:
    """Write the page, or print it."""
    text = "\n".join(lines).rstrip("\n") + "\n"
    if out:
        write_whole(out, text.encode())
    else:
        print(text, end="")
