"""nnenum, from its repository."""

from __future__ import annotations

from typing import ClassVar

from dokimos.execution.outcomes import Outcome
from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import Invocation, Query, as_command
from dokimos.verifiers.repository_tool import RepositoryTool
from dokimos.verifiers.results import read_result
from dokimos.verifiers.runners import RUNNERS
from dokimos.verifiers.styles import CertificateStyle

_RUNNER = RUNNERS / "nnenum_runner.py"


class Nnenum(RepositoryTool):
    """Its front end prints `holds` or `violated`; the runner saves the counterexample that it found."""

    name = "nnenum"
    variables = ("GRB_LICENSE_FILE", "GUROBI_HOME")
    #: Zonotopes, refined by splitting.
    styles = (CertificateStyle.PARTITION, CertificateStyle.REACHABILITY)
    reads_vnnlib2 = False
    limitations: ClassVar[str] = (
        "`<` and `>` of VNN-LIB 2.0; networks without a ReLU; other nonlinear operators"
    )
    main = "src/nnenum/nnenum.py"

    def command(self, query: Query) -> Invocation:
        """Its front end, wrapped by a runner, in its own interpreter."""
        files = (query.network_file, query.property_file, query.result)
        options = (*files, f"{query.wall_seconds:g}", str(query.threads))
        environment = {"PYTHONPATH": str(self.repository / "src")}
        # As in its own competition script: it uses processes, not threads.
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        return Invocation(as_command((self.python, _RUNNER, *options)), environment)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)
