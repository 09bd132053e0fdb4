"""Runs NeuralSAT's own main script. Run by NeuralSAT's own interpreter.

neuralsat_runner.py --net NETWORK --spec PROPERTY --timeout SECONDS --device cpu --result_file RESULT …

It imports nothing of Dokimos; the arguments are NeuralSAT's. NeuralSAT installs itself as a package called
`src`, whose modules expect its folder on the path, and imports a torchvision that it does not use.
Where it has no rule for an operator of the network, RESULT becomes ``unsupported`` and what it said.
"""

from __future__ import annotations

import importlib.metadata
import runpy
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType


def main_script() -> Path:
    """Where the distribution called neuralsat keeps its src/main.py."""
    distribution = importlib.metadata.distribution("neuralsat")
    return Path(str(distribution.locate_file("src/main.py")))


def op_being_converted(trace: TracebackType | None) -> str | None:
    """The operator that the reader was at when it raised, from the frames of the traceback.

    The reader of ONNX looks at one node; what bounds the network has a list of those it has no rule for.
    """
    found = None
    while trace is not None:
        names = trace.tb_frame.f_locals
        found = getattr(names.get("node"), "op_type", found)
        if unknown := names.get("unsupported_ops"):
            # A torch operator without an ONNX form is called aten::ATen, and named by an attribute.
            found = ", ".join(sorted({str(node.attr.get("operator", node.op)) for node in unknown}))
        trace = trace.tb_next
    return found


def main() -> None:
    """Become NeuralSAT."""
    script = main_script()
    sys.modules["torchvision"] = ModuleType("torchvision")
    sys.path[0] = str(script.parent)
    sys.argv[0] = str(script)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except NotImplementedError as unknown:
        say_unsupported(unknown)
    except SystemExit as end:
        # Its reader prints whatever it met and leaves with exit code 0, without a result.
        if not isinstance(end.__context__, NotImplementedError):
            raise
        say_unsupported(end.__context__)


def say_unsupported(unknown: NotImplementedError) -> None:
    """Write what it has no rule for as its result."""
    traceback.print_exception(unknown)
    op = op_being_converted(unknown.__traceback__)
    said = " ".join(str(unknown).split()) or "no rule for it"
    result = Path(sys.argv[sys.argv.index("--result_file") + 1])
    result.write_text(f"unsupported\n{f'operator {op}: ' if op else ''}{said}\n")


if __name__ == "__main__":
    main()
