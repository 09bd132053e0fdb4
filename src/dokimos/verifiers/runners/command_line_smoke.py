"""Tries a verifier's own command line on two tiny queries. Run by the verifier's own interpreter.

command_line_smoke.py -- ARGUMENTS…

ARGUMENTS follow the interpreter; {network}, {property}, {result} and {timeout} in them are filled in. The
verifier must write `sat` and `unsat` on the first line of its result file. It imports nothing of Dokimos.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TIMEOUT_SECONDS = 60
#: y = relu(x) with x in [0, 2]: y >= 1 is sat, y >= 3 is unsat.
QUERIES = (("1.0", "sat"), ("3.0", "unsat"))


def write_network(path: Path) -> None:
    """y = w·relu(w·x) with w = 1, as exporters write it: each layer has its own weights."""
    from onnx import TensorProto, helper, save

    shape = [1, 1]
    constants = [
        helper.make_tensor(f"{name}{k}", TensorProto.FLOAT, size, [value])
        for k in range(2)
        for name, size, value in (("w", shape, 1.0), ("b", [1], 0.0))
    ]
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w0", "b0"], ["h"], transB=1),
            helper.make_node("Relu", ["h"], ["r"]),
            helper.make_node("Gemm", ["r", "w1", "b1"], ["y"], transB=1),
        ],
        "smoke",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        constants,
    )
    opset = [helper.make_opsetid("", 13)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))


def write_property(path: Path, bound: str) -> None:
    """The property: is there an x in [0, 2] with y >= bound?"""
    text = "(declare-const X_0 Real)\n(declare-const Y_0 Real)\n"
    text += f"(assert (>= X_0 0.0))\n(assert (<= X_0 2.0))\n(assert (>= Y_0 {bound}))\n"
    path.write_text(text)


def main() -> None:
    """Run both queries."""
    arguments = sys.argv[2:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_network(folder / "smoke.onnx")
        for bound, expected in QUERIES:
            write_property(folder / "smoke.vnnlib", bound)
            fill = {
                "network": folder / "smoke.onnx",
                "property": folder / "smoke.vnnlib",
                "result": folder / "result",
                "timeout": TIMEOUT_SECONDS,
            }
            (folder / "result").unlink(missing_ok=True)
            done = subprocess.run(
                [sys.executable, *(argument.format(**fill) for argument in arguments)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                check=False,
            )
            said = (folder / "result").read_text() if (folder / "result").is_file() else ""
            if said.partition("\n")[0].strip() != expected:
                sys.exit(f"it wrote {said[:200]!r} (exit code {done.returncode}), not {expected}")


if __name__ == "__main__":
    main()
