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
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

from dokimos.core.errors import Place, UnreadableFile
from dokimos.core.files import write_whole
from dokimos.suites.entry import read_text
from dokimos.suites.facts import COMPONENTS

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
#: The columns of each table that are needed and are no numbers.
TEXTS = {
    "combinations": ("benchmark", "instance", "construction", "parameters", "onnx_sha256", "vnnlib_sha256"),
    "results": ("tool", "benchmark", "instance", "construction", "status", "wall_seconds"),
    "profiles": ("benchmark", "instance"),
}
#: How often nnenum said UNSAT and SAT, timed out and failed, by constructor, in the summary of the paper's
#: public repository (`sweep_all/analysis/outcome_summary_by_construction_verifier.csv`). Its answers in
#: `results.csv` are those of another run, which lacks 35 instances; the summaries of the other four
#: verifiers are the sums of theirs.
NNENUM_SUMMARY = {
    "exclusive-pairs": (0, 0, 0, 14),
    "exact-radius": (10, 1, 20, 0),
    "convex-corners": (15, 0, 1, 6),
    "constant-on-box": (5, 0, 0, 0),
    "contractive-cnn": (50, 0, 0, 0),
    "paired-bias": (22, 0, 24, 0),
    "linear-attention": (0, 0, 0, 18),
    "softmax-attention": (0, 0, 0, 17),
}
FAMILIES = {constructor: family for family, constructor in CONSTRUCTORS.items()}
TOOLS = {"alpha-beta-crown": "abcrown"}


def table(folder: Path, name: str) -> list[Row]:
    """The rows of one table. Raises UnreadableFile if it is not there, truncated, or another one."""
    path = folder / f"{name}.csv"
    if not folder.is_dir():
        raise UnreadableFile(folder, "there is no such folder; it should hold the published tables")
    reader = csv.DictReader(read_text(path).splitlines(keepends=True))
    if missing := set(TEXTS[name]) - set(reader.fieldnames or ()):
        raise UnreadableFile(path, f"it has no column {sorted(missing)[0]!r}; is it the published table?")
    rows: list[Row] = []
    try:
        for row in reader:
            if None in row or None in row.values():
                raise ValueError("the row has another length than the first; the file may be truncated")
            _expect_values(name, row)
            rows.append(row)
    except (ValueError, csv.Error) as error:
        raise UnreadableFile(Place(str(path), reader.line_num), str(error)) from None
    if not rows:
        raise UnreadableFile(path, "it has no rows; the file may be truncated")
    return rows


def _expect_values(name: str, row: Row) -> None:
    """Raise ValueError unless a row has numbers, benchmarks and parameters where they belong."""
    given = row["benchmark"]
    if given not in (BENCHMARKS if name == "results" else BENCHMARKS.values()):
        raise ValueError(f"unknown benchmark {given[:40]!r}")
    if name == "combinations":
        if row["construction"] not in FAMILIES:
            raise ValueError(f"unknown construction {row['construction'][:40]!r}")
        if not isinstance(json.loads(row["parameters"]), dict):
            raise ValueError("the parameters are not a JSON object")
    columns = {"profiles": row.keys() - set(TEXTS["profiles"]), "results": {"wall_seconds"}}
    for column in columns.get(name, ()):
        if row[column]:
            try:
                float(row[column])
            except ValueError:
                raise ValueError(f"{column} is not a number: {row[column][:40]!r}") from None


def results(folder: Path | None, *benchmarks: str) -> list[Row]:
    """What the five verifiers answered on some benchmarks; nothing without a folder."""
    if folder is None:
        return []
    return [row for row in table(folder, "results") if row["benchmark"] in benchmarks]


def profiles(folder: Path) -> dict[tuple[str, str], Row]:
    """The published components, by benchmark (as `results.csv` calls it) and instance."""
    name = {theirs: ours for ours, theirs in BENCHMARKS.items()}
    return {(name[row["benchmark"]], row["instance"]): row for row in table(folder, "profiles")}


def expect_all(
    folder: Path, runs: Iterable[tuple[str, str]], known: Container[tuple[str, str]], name: str
) -> None:
    """Raise UnreadableFile unless one table has every instance that the table of results has."""
    for benchmark, instance in runs:
        if (benchmark, instance) not in known:
            reason = f"it has no row for {instance} of {benchmark}, which results.csv has"
            raise UnreadableFile(folder / f"{name}.csv", f"{reason}; the file may be truncated")


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
