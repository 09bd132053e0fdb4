"""Verifiers from their repositories: α,β-CROWN and nnenum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from dokimos.core.errors import InputError
from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import CertificateStyle, Invocation, Query, as_command
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.placed import PYTHON_SETTING, RepositoryTool, file_content
from dokimos.verifiers.result_file import read_result, read_verdict
from dokimos.verifiers.runners import RUNNERS

# α,β-CROWN, from its repository


#: Imports its main script once.
_CROWN_RUNNER = RUNNERS / "alpha_beta_crown_runner.py"
#: An empty configuration, that is its defaults: it does not start without one.
_DEFAULTS = RUNNERS / "alpha_beta_crown.yaml"
_CONFIGURATIONS = "complete_verifier/exp_configs"


class AlphaBetaCrown(RepositoryTool):
    """Runs its main script, with its own defaults unless a configuration is named.

    ``config=`` is a file, or the name of one that ships with it, such as ``vnncomp21/mnistfc``.
    """

    name = "alpha-beta-crown"
    #: Where the licence of gurobipy is.
    variables = ("GRB_LICENSE_FILE", "GUROBI_HOME")
    #: A dual relaxation at each node of a partition search.
    styles = (CertificateStyle.DUAL, CertificateStyle.PARTITION)
    reads_vnnlib2 = False
    limitations: ClassVar[str] = "`<` and `>` of VNN-LIB 2.0; operators that its ONNX importer lacks"
    main = "complete_verifier/abcrown.py"
    can_stay_warm = True
    attack_off = ("--pgd_order", "skip")
    settings: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            **PYTHON_SETTING,
            "config": "a file, or the name of a configuration that ships with it (default: no changes)",
            "device": "the device (default: cpu)",
        }
    )

    def trouble(self, place: str) -> str | None:
        """As for any repository; in addition, the configuration must exist."""
        if trouble := super().trouble(place):
            return trouble
        try:
            self._configuration(place)
        except InputError as error:
            return str(error).rstrip(".")
        return None

    def parts(self, place: str) -> Iterable[bytes]:
        """Its files, those of its packages, and the configuration."""
        yield from super().parts(place)
        yield file_content(self._configuration(place))

    def _configuration(self, place: str) -> Path:
        """The file that ``config=`` names. Raises InputError if there is none."""
        given = self.setting("config")
        if given is None:
            return _DEFAULTS
        known = Path(place).expanduser().absolute() / _CONFIGURATIONS
        for path in (Path(given).expanduser(), known / given, known / f"{given}.yaml"):
            if path.is_file():
                return path.absolute()
        raise InputError(f"there is no configuration {given}, neither here nor in {known}.")

    def command(self, query: Query) -> Invocation:
        """Its main script, which writes the verdict with the point, and a file beside the property."""
        configuration = self._configuration(str(self.repository))
        script = _CROWN_RUNNER if self.is_warm else self.repository / self.main
        words: list[str | Path] = [self.python, script, "--config", configuration]
        words += ["--device", self.setting("device") or "cpu", "--timeout", f"{query.wall_seconds:g}"]
        words += ["--onnx_path", query.network_file, "--vnnlib_path", query.property_file]
        words += ["--results_file", query.result, "--save_adv_example", *self.switches]
        path = f"{(self.repository / self.main).parent}:{self.repository}"
        # A process that stays may write in all folders of its queries anyway.
        writes = () if self.is_warm else (query.property_file.parent,)
        return Invocation(as_command(words), {"PYTHONPATH": path}, start_words=2, writes=writes)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The verdict in the result file of VNN-COMP."""
        return read_verdict(query.result)


# nnenum, from its repository


_RUNNER = RUNNERS / "nnenum_runner.py"


class Nnenum(RepositoryTool):
    """Its front end prints `holds` or `violated`; the runner saves the counterexample that it found."""

    name = "nnenum"
    variables = ("GRB_LICENSE_FILE", "GUROBI_HOME")
    #: Zonotopes, refined by splitting.
    styles = (CertificateStyle.PARTITION, CertificateStyle.REACHABILITY)
    reads_vnnlib2 = False
    can_stay_warm = True
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
        return Invocation(as_command((self.python, _RUNNER, *options)), environment, start_words=2)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)
