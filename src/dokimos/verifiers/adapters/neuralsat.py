"""NeuralSAT, from PyPI, by its own main script."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.base import CertificateStyle, Invocation, Query, as_command
from dokimos.verifiers.environments import PinnedEnvironment, PinnedVerifier, pins_of
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.result_file import read_verdict
from dokimos.verifiers.runners import RUNNERS

_RUNNER = RUNNERS / "neuralsat_runner.py"
_SMOKE = RUNNERS / "command_line_smoke.py"


_PROGRAM = """import importlib.metadata
import runpy
import sys
from types import ModuleType

sys.modules["torchvision"] = ModuleType("torchvision")  # imported, and not used
script = str(importlib.metadata.distribution("neuralsat").locate_file("src/main.py"))
sys.path.insert(0, script.removesuffix("main.py"))
sys.argv = [script, *{words}]
try:
    runpy.run_path(script, run_name="__main__")
finally:
    print(open("result").read())
"""


class NeuralSat(PinnedVerifier):
    """Reads VNN-LIB 1.0. It is given the wall limit, which it overruns.

    torchvision and torchaudio, which it declares as dependencies, are left out: it uses neither, and the
    runner provides a stub for the one that it imports.
    """

    name = "neuralsat"
    styles = (CertificateStyle.SAT,)
    takes = "neuralsat 0.2.17 from PyPI with torch, about 1.5 GB"
    reads_vnnlib2 = False
    limitations: ClassVar[str] = "`<` and `>` of VNN-LIB 2.0"
    unread_operators = "Concat Gather Max Pad Slice"
    can_stay_warm = True
    attack_off = ("--disable_attack",)
    #: Where the licence of gurobipy is.
    variables = ("GRB_LICENSE_FILE", "GUROBI_HOME")
    environment = PinnedEnvironment(
        variables=variables,
        verifier="neuralsat",
        version="0.2.17",
        requirements=pins_of("neuralsat"),
    )

    def smoke(self) -> tuple[str, ...]:
        """Answer two tiny queries by the same command line."""
        return (str(_SMOKE), "--", *_arguments("{property}", "{network}", "{result}", "{timeout}"))

    def command(self, query: Query) -> Invocation:
        """Its main script, on the processor."""
        files = (str(query.property_file), str(query.network_file), str(query.result))
        arguments = (*_arguments(*files, f"{query.wall_seconds:g}"), *self.switches)
        return Invocation(as_command((self.environment.python, *arguments)), start_words=2)

    def program(self, folder: Path, seconds: float) -> str:
        """By its own main script, which expects its folder on the path."""
        options = f"--timeout {seconds:g} --device cpu --result_file result".split()
        words = ["--net", "network.onnx", "--spec", "property.vnnlib", *options, *self.switches]
        return _PROGRAM.format(words=words)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The verdict in the result file; `unsupported` is written by our runner."""
        with query.result.open(errors="replace") as file:
            if file.readline(100).strip() == Answer.UNSUPPORTED.value:
                return VerifierAnswer(Answer.UNSUPPORTED, detail=file.read(400).strip())
        return read_verdict(query.result)


def _arguments(property_file: str, network: str, result: str, timeout: str) -> tuple[str, ...]:
    files = ("--net", network, "--spec", property_file, "--result_file", result)
    return (
        str(_RUNNER),
        *files,
        "--timeout",
        timeout,
        "--device",
        "cpu",
        "--export_cex",
        "--verbosity",
        "0",
    )
