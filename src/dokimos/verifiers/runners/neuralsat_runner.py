"""Runs NeuralSAT's own main script. Run by NeuralSAT's own interpreter.

neuralsat_runner.py --net NETWORK --spec PROPERTY --timeout SECONDS --device cpu --result_file RESULT …

It imports nothing of Dokimos; the arguments are NeuralSAT's. NeuralSAT installs itself as a package called
`src`, whose modules expect its folder on the path, and imports a torchvision that it does not use.
Where it has no rule for an operator of the network, or finds that what it made of the network does not run,
RESULT becomes ``unsupported`` and what it said.
"""

from __future__ import annotations

import importlib.metadata
import runpy
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType

#: What its reader raises where it has converted a network and the result does not run.
CONVERSION_FAILED = "OnnxConversionError"


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
        say_unsupported(unknown, why_unknown(unknown))
    except SystemExit as end:
        # Its reader prints whatever it met and leaves with exit code 0, without a result.
        met = end.__context__
        if isinstance(met, NotImplementedError):
            say_unsupported(met, why_unknown(met))
        elif type(met).__name__ == CONVERSION_FAILED:
            say_unsupported(met, why_not_converted(met))
        else:
            raise


def why_unknown(unknown: NotImplementedError) -> str:
    """The operator that it has no rule for, and what it said."""
    op = op_being_converted(unknown.__traceback__)
    return f"{f'operator {op}: ' if op else ''}{_one_line(unknown) or 'no rule for it'}"


def why_not_converted(failed: BaseException | None) -> str:
    """What stopped its trial run of the network that it made, and where.

    The operator where that shows need not be the one that it converts wrongly.
    """
    met = failed.__context__ if failed else None
    if met is None:
        return "the network that it made of this one does not run"
    op = op_being_converted(met.__traceback__)
    where = f" (at {op})" if op else ""
    said = f"{type(met).__name__}: {_one_line(met)}".removesuffix(": ")
    return f"the network that it made of this one does not run{where}: {said}"


def say_unsupported(met: BaseException | None, why: str) -> None:
    """Write what it cannot read as its result, and how that came about into the log."""
    traceback.print_exception(met)
    result = Path(sys.argv[sys.argv.index("--result_file") + 1])
    result.write_text(f"unsupported\n{why}\n")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


if __name__ == "__main__":
    main()
