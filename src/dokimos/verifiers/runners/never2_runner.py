"""Runs one query on NeVer2 and writes its answer as JSON. Run by NeVer2's own interpreter.

never2_runner.py --timeout SECONDS NETWORK QUESTION RESULT
never2_runner.py --smoke

It imports nothing of Dokimos. QUESTION is JSON, since NeVer2's own reader of VNN-LIB refuses common forms:
``{"cases": [{"lower": [...], "upper": [...], "unsafe": [{"matrix": [[...]], "bound": [...]}]}]}``, where
outputs y with matrix·y <= bound are unsafe; or ``{"unsupported": "why"}``.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import sys
import tempfile
import time
import traceback
from decimal import Decimal
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any


def op_being_read(trace: TracebackType | None) -> str | None:
    """The operator that the reader was processing when it raised, from the frames of the traceback."""
    found = None
    while trace is not None:
        found = getattr(trace.tb_frame.f_locals.get("node"), "op_type", found)
        trace = trace.tb_next
    return found


def layer_being_abstracted(trace: TracebackType | None) -> str | None:
    """The layer that NeVer2 has no abstraction for, if that is why it raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not trace.tb_frame.f_code.co_name.endswith("__get_abstract_node_class"):
        return None
    return type(trace.tb_frame.f_locals.get("node")).__name__.removesuffix("Node")


def read_network(path: Path) -> Any:
    """The network in NeVer2's own format."""
    from pynever.strategies.conversion.converters.onnx import ONNXConverter
    from pynever.strategies.conversion.representation import load_network_path

    return ONNXConverter().to_neural_network(load_network_path(str(path)))


def property_of(case: dict[str, Any]) -> Any:
    """One case as NeVer2's matrices: rows x <= upper and −x <= −lower in turn."""
    import torch
    from pynever.strategies.verification.properties import NeverProperty

    size = len(case["lower"])
    matrix, bias = torch.zeros((2 * size, size)), torch.zeros((2 * size, 1))
    for i in range(size):
        matrix[2 * i, i], bias[2 * i, 0] = 1.0, case["upper"][i]
        matrix[2 * i + 1, i], bias[2 * i + 1, 0] = -1.0, -case["lower"][i]
    matrices = [torch.tensor(part["matrix"], dtype=matrix.dtype) for part in case["unsafe"]]
    bounds = [torch.tensor([[b] for b in part["bound"]], dtype=matrix.dtype) for part in case["unsafe"]]
    return NeverProperty(matrix, bias, matrices, bounds)


def solve(network_file: Path, question: dict[str, Any], *, timeout_seconds: float) -> dict[str, Any]:
    """NeVer2's answer as the fields of a result file: `sat` if one case is, `unsat` if all are."""
    if "unsupported" in question:
        return {"answer": "unsupported", "detail": question["unsupported"]}
    deadline = time.monotonic() + timeout_seconds
    # It imports torchvision only for training, and PyPI's version does not match every build of torch.
    sys.modules["torchvision"] = ModuleType("torchvision")
    from pynever.strategies.verification.algorithms import SSBPVerification
    from pynever.strategies.verification.parameters import SSBPVerificationParameters

    logging.disable(logging.CRITICAL)
    try:
        network = read_network(network_file)
    except NotImplementedError as error:
        op = op_being_read(error.__traceback__)
        traceback.print_exc()
        return {"answer": "unsupported", "detail": f"operator {op}" if op else str(error)}
    for case in question["cases"]:
        left = max(1, math.ceil(deadline - time.monotonic()))
        strategy = SSBPVerification(SSBPVerificationParameters(timeout=left))
        try:
            is_safe, witness = strategy.verify(network, property_of(case))
        except Exception as error:
            layer = layer_being_abstracted(error.__traceback__)
            if layer is None:
                raise
            traceback.print_exc()
            return {"answer": "unsupported", "detail": f"operator {layer}"}
        if is_safe:
            continue
        if witness is None:
            # This is how it reports a timeout.
            return {"answer": "timeout", "detail": "NeVer2 gave up after its timeout"}
        return {"answer": "sat", "witness": [str(Decimal(float(x))) for x in witness.flatten().tolist()]}
    return {"answer": "unsat"}


def write_result(path: Path, fields: dict[str, Any]) -> None:
    """Write the whole file, or none."""
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps({"schema": 1, **fields}))
    os.replace(draft, path)  # noqa: PTH105


def smoke() -> None:
    """Run the two queries of command_line_smoke.py."""
    sys.path.insert(0, str(Path(__file__).parent))
    from command_line_smoke import QUERIES, write_network

    with tempfile.TemporaryDirectory() as name:
        network = Path(name) / "smoke.onnx"
        write_network(network)
        for bound, expected in QUERIES:
            unsafe = [{"matrix": [[-1.0]], "bound": [-float(bound)]}]
            case = {"lower": [0.0], "upper": [2.0], "unsafe": unsafe}
            fields = solve(network, {"cases": [case]}, timeout_seconds=60)
            if fields["answer"] != expected:
                sys.exit(f"NeVer2 answered {fields} instead of {expected}")


def main() -> None:
    """Answer the query on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    if options.smoke:
        smoke()
        return
    network, question, result = options.files
    fields = solve(network, json.loads(question.read_text()), timeout_seconds=options.timeout)
    write_result(result, fields)


if __name__ == "__main__":
    main()
