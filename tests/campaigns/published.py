"""A small benchmark, and results as a competition publishes them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.scripting import at_least, relu_network

#: What a tool answers on an instance, and the text of its counterexample.
Said = tuple[str, str, str | None]


def write_benchmark(folder: Path, names: Sequence[str] = ("one", "two")) -> Path:
    """Two inputs in [0, 1] at most, y = relu(x0) + relu(x1); `one` is violated at (1, 1), `two` is not."""
    for sub in ("onnx", "vnnlib"):
        (folder / sub).mkdir(parents=True)
    (folder / "onnx" / "net.onnx").write_bytes(relu_network())
    for name, bound in (("one", "1.5"), ("two", "7")):
        (folder / "vnnlib" / f"{name}.vnnlib").write_bytes(at_least(bound))
    rows = [f"onnx/net.onnx,vnnlib/{name}.vnnlib,60" for name in names]
    (folder / "instances.csv").write_text("\n".join(rows) + "\n")
    return folder


def write_results(folder: Path, category: str, tools: Mapping[str, Sequence[Said]]) -> Path:
    """One row for each answer of each tool, and the warm-up at the end; (property, answer, witness)."""
    for tool, answers in tools.items():
        place = folder / tool / f"2025_{category}"
        place.mkdir(parents=True)
        root = f"vnncomp/benchmarks/{category}"
        rows = [
            f"{category},{root}/onnx/net.onnx,{root}/vnnlib/{name}.vnnlib,.1,{answer},2.5"
            for name, answer, _ in answers
        ]
        rows.append(f"{category},{root}/test/onnx/test_nano.onnx,{root}/test_nano.vnnlib,1,unsat,1")
        (place / "results.csv").write_text("\n".join(rows) + "\n")
        for name, _, witness in answers:
            if witness is not None:
                path = place / f"net_{name}.counterexample.gz"
                path.write_bytes(gzip.compress(witness.encode()))
    return folder


CORNER = "((X_0 1)\n(X_1 1)\n(Y_0 2))"
#: A point that leaves the box by a rounding, and one that shows nothing.
OUTSIDE = "((X_0 1.0000001)\n(X_1 1)\n(Y_0 2))"
MIDDLE = "((X_0 0.5)\n(X_1 0.5)\n(Y_0 2))"
