"""Marabou, from PyPI's maraboupy, which declares no dependencies: the working set is pinned here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dokimos.verifiers.answers import VerifierAnswer
from dokimos.verifiers.base import Invocation, Query, Verifier, as_command
from dokimos.verifiers.environments import PinnedEnvironment
from dokimos.verifiers.outcomes import Outcome
from dokimos.verifiers.results import read_result

_RUNNER = Path(__file__).with_name("runners") / "marabou_runner.py"

ENVIRONMENT = PinnedEnvironment(
    verifier="marabou",
    version="2.0.0",
    requirements=(
        "maraboupy==2.0.0",
        "numpy==2.4.6",
        "onnx==1.23.2",
        "onnxruntime==1.31.1",
        "flatbuffers==25.12.19",
        "ml_dtypes==0.6.0",
        "packaging==26.3",
        "protobuf==7.36.2",
        "typing_extensions==4.16.0",
    ),
)


class Marabou(Verifier):
    """Reads VNN-LIB 1.0; told the wall limit, which it overruns on some instances."""

    name = "marabou"

    def version(self) -> str | None:
        """The pinned version, once its environment is complete."""
        return ENVIRONMENT.version if ENVIRONMENT.is_complete else None

    def how_to_get(self) -> str:
        """The command that installs it."""
        return "dokimos verifiers install marabou (maraboupy 2.0.0 from PyPI, about 250 MB)"

    def install(self, say: Callable[[str], None]) -> None:
        """Install it into an environment of its own and solve one tiny query."""
        ENVIRONMENT.build((str(_RUNNER), "--smoke"), say)

    def command(self, query: Query) -> Invocation:
        """The runner script, in the environment's interpreter."""
        options = ("--timeout", str(max(1, round(query.wall_seconds))), "--threads", str(query.threads))
        files = (query.network_file, query.property_file, query.result)
        return Invocation(as_command((ENVIRONMENT.python, _RUNNER, *options, *files)))

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)
