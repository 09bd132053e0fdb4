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
from pathlib import Path
from types import ModuleType, TracebackType


def main_script() -> Path:
    """Where the distribution called neuralsat keeps its src/main.py."""
    distribution = importlib.metadata.distribution("neuralsat")
    return Path(str(distribution.locate_file("src/main.py")))


def op_being_converted(trace: TracebackType | None) -> str | None:
    """The operator that the reader was at when it raised, from the frames of the traceback."""
    found = None
    while trace is not None:
        found = getattr(trace.tb_frame.f_locals.get("node"), "op_type", found)
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
    except SystemExit as end:
        # Its reader prints whatever it met and leaves with exit code 0, without a result.
        unknown = end.__context__
        if not isinstance(unknown, NotImplementedError):
            raise
        op = op_being_converted(unknown.__traceback__)
        said = " ".join(str(unknown).split()) or "no rule for it"
        result = Path(sys.argv[sys.argv.index("--result_file") + 1])
        result.write_text(f"unsupported\n{f'operator {op}: ' if op else ''}{said}\n")


if __name__ == "__main__":
    main()
