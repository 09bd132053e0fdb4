"""Runs NeuralSAT's own main script. Run by NeuralSAT's own interpreter.

neuralsat_runner.py --net NETWORK --spec PROPERTY --timeout SECONDS --device cpu --result_file RESULT …
neuralsat_runner.py --queries QUERIES REPLIES

It imports nothing of Dokimos; the arguments are NeuralSAT's. NeuralSAT installs itself as a package called
`src`, whose modules expect its folder on the path, and imports a torchvision that it does not use. If it
does not support an operator of the network, or its converted network does not run, RESULT becomes
``unsupported`` with its message.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import runpy
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType

#: What its reader raises if the network that it converted does not run.
CONVERSION_FAILED = "OnnxConversionError"


def main_script() -> Path:
    """Where the installed package neuralsat keeps its src/main.py."""
    distribution = importlib.metadata.distribution("neuralsat")
    return Path(str(distribution.locate_file("src/main.py")))


def op_being_converted(trace: TracebackType | None) -> str | None:
    """The operator that the reader was processing when it raised, from the frames of the traceback.

    The ONNX reader processes one node; the bounding code has a list of the operators that it does not
    support.
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


def load() -> None:
    """Import what every query needs."""
    for name in ("torch", "onnx", "onnxruntime"):
        importlib.import_module(name)


def main() -> None:
    """Run NeuralSAT in this process."""
    script = main_script()
    sys.modules["torchvision"] = ModuleType("torchvision")
    sys.path[0] = str(script.parent)
    sys.argv[0] = str(script)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except NotImplementedError as unknown:
        say_unsupported(unknown, why_unknown(unknown))
    except SystemExit as end:
        # Its reader prints the problem and exits with code 0, without a result.
        met = end.__context__
        if isinstance(met, NotImplementedError):
            say_unsupported(met, why_unknown(met))
        elif type(met).__name__ == CONVERSION_FAILED:
            say_unsupported(met, why_not_converted(met))
        else:
            raise


def why_unknown(unknown: NotImplementedError) -> str:
    """The unsupported operator, and its message."""
    op = op_being_converted(unknown.__traceback__)
    return f"{f'operator {op}: ' if op else ''}{_one_line(unknown) or 'no rule for it'}"


def why_not_converted(failed: BaseException | None) -> str:
    """What stopped its trial run of the converted network, and where.

    The operator that fails need not be the one that it converts wrongly.
    """
    met = failed.__context__ if failed else None
    if met is None:
        return "the network that it made of this one does not run"
    op = op_being_converted(met.__traceback__)
    where = f" (at {op})" if op else ""
    said = f"{type(met).__name__}: {_one_line(met)}".removesuffix(": ")
    return f"the network that it made of this one does not run{where}: {said}"


def say_unsupported(met: BaseException | None, why: str) -> None:
    """Write what it cannot read as the result, and the traceback to the log."""
    traceback.print_exception(met)
    result = Path(sys.argv[sys.argv.index("--result_file") + 1])
    result.write_text(f"unsupported\n{why}\n")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


if __name__ == "__main__":
    from warm_queries import serve

    serve(main, load)
