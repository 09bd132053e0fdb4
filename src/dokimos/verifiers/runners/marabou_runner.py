"""Runs one query on Marabou and writes its answer as JSON. Run by Marabou's own interpreter.

marabou_runner.py --timeout SECONDS --threads N NETWORK PROPERTY RESULT
marabou_runner.py --smoke
marabou_runner.py --queries QUERIES REPLIES

It imports nothing of Dokimos. NETWORK may be gzipped, PROPERTY too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
import traceback
import warnings
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any

#: Marabou's exit codes, in VNN-LIB's words.
_ANSWERS = {"sat": "sat", "unsat": "unsat", "TIMEOUT": "timeout", "UNKNOWN": "unknown"}


def plain_file(path: Path, folder: Path) -> Path:
    """`path` itself or, if it is gzipped, an unpacked copy in `folder`."""
    if path.suffix != ".gz":
        return path
    copy = folder / path.with_suffix("").name
    copy.write_bytes(gzip.decompress(path.read_bytes()))
    return copy


def op_being_read(trace: TracebackType | None) -> str | None:
    """The operator that Marabou's parser was reading when it raised, from the frames of the traceback."""
    found = None
    while trace is not None:
        found = getattr(trace.tb_frame.f_locals.get("node"), "op_type", found)
        trace = trace.tb_next
    return found


def solve(network_file: Path, property_file: Path, *, timeout_seconds: int, threads: int) -> dict[str, Any]:
    """Marabou's answer as the fields of a result file."""
    if "(vnnlib-version" in property_file.read_text():
        return {"answer": "unsupported", "detail": "Marabou reads VNN-LIB 1.0, but this is a later version"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from maraboupy import Marabou
    try:
        network = Marabou.read_onnx(str(network_file))
    except NotImplementedError as error:
        op = op_being_read(error.__traceback__)
        return {"answer": "unsupported", "detail": f"operator {op}: {error}" if op else str(error)}
    except Exception as error:
        op = op_being_read(error.__traceback__)
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        return {"answer": "error", "detail": f"operator {op}: {reason}" if op else reason}
    options = Marabou.createOptions(
        timeoutInSeconds=timeout_seconds, verbosity=0, numWorkers=threads, numBlasThreads=threads
    )
    exit_code, values, _ = network.solve(
        propertyFilename=str(property_file), options=options, verbose=False
    )
    answer = _ANSWERS.get(exit_code, "error")
    fields: dict[str, Any] = {"answer": answer, "detail": f"Marabou's exit code: {exit_code}"}
    if answer == "sat":
        # All digits of the exact double that Marabou gives: the shortest decimal for it is a different
        # number, and may lie on the other side of a boundary.
        fields["witness"] = exact_decimals(values, network.inputVars)
        fields["outputs"] = exact_decimals(values, network.outputVars)
    return fields


def exact_decimals(values: dict[int, float], variables: list[Any]) -> list[str]:
    """The values of arrays of variables, flat and row-major."""
    return [str(Decimal(float(values[int(v)]))) for array in variables for v in array.flatten()]


def write_result(path: Path, fields: dict[str, Any]) -> None:
    """Write the whole file, or none."""
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps({"schema": 1, **fields}))
    os.replace(draft, path)  # noqa: PTH105


def smoke() -> None:
    """Ask the two queries of command_line_smoke.py."""
    sys.path.insert(0, str(Path(__file__).parent))
    from command_line_smoke import QUERIES, write_network, write_property

    with tempfile.TemporaryDirectory() as name:
        network, asked = (Path(name) / file for file in ("smoke.onnx", "smoke.vnnlib"))
        write_network(network)
        for bound, expected in QUERIES:
            write_property(asked, bound)
            fields = solve(network, asked, timeout_seconds=10, threads=1)
            if fields["answer"] != expected:
                sys.exit(f"Marabou answered {fields} instead of {expected}")


def load() -> None:
    """Import what every query needs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from maraboupy import Marabou  # noqa: F401


def main() -> None:
    """Answer the query on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--timeout", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    if options.smoke:
        smoke()
        return
    network, property_file, result = options.files
    with tempfile.TemporaryDirectory(dir=result.parent) as name:
        folder = Path(name)
        fields = solve(
            plain_file(network, folder),
            plain_file(property_file, folder),
            timeout_seconds=options.timeout,
            threads=options.threads,
        )
    write_result(result, fields)


if __name__ == "__main__":
    from warm_queries import serve

    serve(main, load)
