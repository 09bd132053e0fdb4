"""NeuralSAT, from PyPI, by its own main script."""

from __future__ import annotations

from typing import ClassVar

from dokimos.suites.instance import Answer, VerifierAnswer
from dokimos.verifiers.base import CertificateStyle, Invocation, Query, as_command
from dokimos.verifiers.environments import PinnedEnvironment, PinnedVerifier
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.result_file import read_verdict
from dokimos.verifiers.runners import RUNNERS

_RUNNER = RUNNERS / "neuralsat_runner.py"
_SMOKE = RUNNERS / "command_line_smoke.py"


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
    attack_off = ("--disable_attack",)
    #: Where the licence of gurobipy is.
    variables = ("GRB_LICENSE_FILE", "GUROBI_HOME")
    environment = PinnedEnvironment(
        variables=variables,
        verifier="neuralsat",
        version="0.2.17",
        requirements=(
            "beartype==0.23.1",
            "certifi==2026.10.18",
            "charset-normalizer==3.5.2",
            "cloudpickle==3.1.2",
            "coloredlogs==15.0.1",
            "filelock==4.2.10",
            "flatbuffers==25.12.19",
            "fsspec==2026.9.0",
            "gurobipy==13.0.3",
            "humanfriendly==10.0",
            "idna==3.20",
            "Jinja2==3.1.6",
            "joblib==1.6.0",
            "MarkupSafe==3.0.4",
            "ml_dtypes==0.6.0",
            "mpmath==1.3.0",
            "networkx==3.6.1",
            "neuralsat==0.2.17",
            "numpy==2.4.6",
            "onnx==1.22.0",
            "onnxruntime==1.31.1",
            "onnxsim==0.8.1",
            "packaging==26.3",
            "pillow==13.0.0",
            "protobuf==5.29.6",
            "psutil==7.2.2",
            "requests==2.34.2",
            "scipy==1.17.1",
            "setuptools==84.2.1",
            "sortedcontainers==2.4.0",
            "sympy==1.14.0",
            "termcolor==3.3.0",
            "torch==2.13.0",
            "tqdm==4.70.1",
            "typing_extensions==4.16.0",
            "urllib3==2.8.0",
        ),
    )

    def smoke(self) -> tuple[str, ...]:
        """Answer two tiny queries by the same command line."""
        return (str(_SMOKE), "--", *_arguments("{property}", "{network}", "{result}", "{timeout}"))

    def command(self, query: Query) -> Invocation:
        """Its main script, on the processor."""
        files = (str(query.property_file), str(query.network_file), str(query.result))
        arguments = (*_arguments(*files, f"{query.wall_seconds:g}"), *self.switches)
        return Invocation(as_command((self.environment.python, *arguments)))

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
