"""Marabou, from PyPI's maraboupy, which declares no dependencies: a working set is pinned here."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import CertificateStyle, Invocation, Query, as_command
from dokimos.verifiers.environments import PinnedEnvironment, PinnedVerifier, pins_of
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.result_file import read_result
from dokimos.verifiers.runners import RUNNERS

_RUNNER = RUNNERS / "marabou_runner.py"


_PROGRAM = """from maraboupy import Marabou

network = Marabou.read_onnx("network.onnx")
options = Marabou.createOptions(verbosity=0, timeoutInSeconds={seconds}, numBlasThreads=1)
answer, values, _ = network.solve(
    propertyFilename="property.vnnlib", options=options, verbose=False
)
print(answer)
if answer == "sat":
    print("inputs:", [values[int(v)] for array in network.inputVars for v in array.flatten()])
    print("outputs:", [values[int(v)] for array in network.outputVars for v in array.flatten()])
"""


class Marabou(PinnedVerifier):
    """Reads VNN-LIB 1.0. It is given the wall limit, which it overruns on some instances."""

    name = "marabou"
    #: One worker: its DPLL(T) engine. (Its divide-and-conquer mode, which we do not call, partitions.)
    styles = (CertificateStyle.SAT,)
    takes = "maraboupy 2.0.0 from PyPI, about 250 MB"
    reads_vnnlib2 = False
    can_stay_warm = True
    limitations: ClassVar[str] = (
        "`<` and `>` of VNN-LIB 2.0; Abs, AveragePool, Clip, Div, Exp, Max, Pow, Mul of two variables"
    )
    unread_operators = (
        "Abs AveragePool Clip ConstantOfShape Div Exp Expand Gather GlobalAveragePool Max Min "
        "Neg Pad Pow ReduceMean ReduceSum Slice"
    )
    environment = PinnedEnvironment(
        verifier="marabou",
        version="2.0.0",
        requirements=pins_of("marabou"),
    )

    def smoke(self) -> tuple[str, ...]:
        """Solve two tiny queries."""
        return (str(_RUNNER), "--smoke")

    def command(self, query: Query) -> Invocation:
        """The runner script, in the environment's interpreter."""
        options = ("--timeout", str(max(1, round(query.wall_seconds))), "--threads", str(query.threads))
        files = (query.network_file, query.property_file, query.result)
        start = as_command((self.environment.python, _RUNNER))
        return Invocation((*start, *as_command((*options, *files))), start_words=len(start))

    def program(self, folder: Path, seconds: float) -> str:
        """By the interface that its README shows."""
        return _PROGRAM.format(seconds=max(1, round(seconds)))

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)
