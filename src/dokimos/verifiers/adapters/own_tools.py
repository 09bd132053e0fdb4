"""Tools that users have in a place of their own.

Any VNN-COMP tool is a folder with run_instance.sh, and prepare_instance.sh if it needs preparation. Beside
it, verifiers from their repositories, and commands of solvers for VNN-LIB 2.0.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Self

from dokimos.core.errors import InputError
from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import NO_ATTACK, CertificateStyle, Finding, Invocation, Query, as_command
from dokimos.verifiers.environments import our_module
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.placed import (
    PYTHON_SETTING,
    PlacedVerifier,
    RepositoryTool,
    file_content,
    repository_of,
    tree_digest,
)
from dokimos.verifiers.result_file import INPUT_NAME, OUTPUT_NAME, read_result, read_verdict, refusal
from dokimos.verifiers.runners import RUNNERS
from dokimos.verifiers.runners.vnnlib2_runner import KILLED
from dokimos.verifiers.script_guard import called_file, finding, guarded

_RUNNER = RUNNERS / "vnncomp_runner.py"
_RUN, _RUN_WITHOUT_ATTACK = "run_instance.sh", "run_instance_without_attack.sh"
_PREPARE = "prepare_instance.sh"
#: The benchmark name that is passed to the tool; many tools choose their settings by it.
CATEGORY_VARIABLE = "DOKIMOS_VNNCOMP_CATEGORY"
_USUAL = "test"


class VnncompTool(PlacedVerifier):
    """Its scripts are called as in VNN-COMP, version v1; preparation counts towards the wall limit, except
    in an edition, where it has a limit of its own.

    They were written for machines on which nothing else runs, and run behind a guard (`script_guard.py`).
    Many write into their own folder, so it stays writable. If a tool's prepare script does nothing but kill
    processes and reset devices, `prepares` is false, and it is not called.

    The category is `test`, or what ``,category=…`` after the place or DOKIMOS_VNNCOMP_CATEGORY says; a
    different category counts as a different version. The version is a hash of the tool's files as they are,
    in its folder or in the repository that contains it.

    The competition's scripts have no switch for a tool's own attack. To add one, put
    run_instance_without_attack.sh, called in the same way, into the folder.
    """

    name = "vnncomp"
    limitations: ClassVar[str] = "what the tool at that place cannot read"
    settings: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"category": "the benchmark name that is passed to the tool; many choose their settings by it"}
    )
    prepares: ClassVar[bool] = True

    def how_to_get(self) -> str:
        """How to tell Dokimos where it is."""
        return (
            f"unpack and install it yourself, then --verifier {self.kind}=/path/to/the/folder/with/"
            f"run_instance.sh (or set {self.variable})"
        )

    def trouble(self, place: str) -> str | None:
        """A folder must hold run_instance.sh."""
        script = Path(place).expanduser() / _RUN
        return None if script.is_file() else f"there is no file {script}"

    def parts(self, place: str) -> Iterable[bytes]:
        """All its files."""
        yield tree_digest(Path(place).expanduser())

    @property
    def category(self) -> str:
        """The name of the benchmark that is passed to it."""
        return self.setting("category") or os.environ.get(CATEGORY_VARIABLE) or _USUAL

    @property
    def called_as(self) -> str:
        """Includes the category, which may come from the environment."""
        called = super().called_as
        if self.category == _USUAL or self.place is None or ",category=" in called:
            return called
        loud = called.removesuffix(NO_ATTACK)
        spelled = loud if self._given else f"{loud}={self.place}"
        return f"{spelled},category={self.category}{called[len(loud) :]}"

    def version(self) -> str | None:
        """A hash of its files, and the category if it is not the default."""
        found = super().version()
        is_usual = self.category == _USUAL or self.setting("category")
        return found if found is None or is_usual else f"{found}-{self.category}"

    @property
    def can_switch_attack_off(self) -> bool:
        """Whether there is a script without the attack."""
        return self.place is not None and (Path(self.place).expanduser() / _RUN_WITHOUT_ATTACK).is_file()

    def command(self, query: Query) -> Invocation:
        """Prepare, then run, in one process tree."""
        *prepare, script = self._called(self.require())
        if query.is_prepared:
            prepare = []
        return self._guarded(query, prepare, (script, query.result, f"{query.wall_seconds:g}"))

    def preparation(self, query: Query) -> Invocation | None:
        """Its script for that, alone."""
        *prepare, _ = self._called(self.require())
        return self._guarded(query, prepare, ()) if prepare else None

    def for_category(self, name: str) -> Self:
        """The same tool, with this category passed to its scripts."""
        if self.place is None or self.setting("category"):
            return self
        told = self.at(f"{self._given or self.place},category={name}")
        told.name = self.name
        return told

    def _guarded(self, query: Query, prepare: Sequence[Path], run: Sequence[object]) -> Invocation:
        """The runner on these scripts: `run` is that of the tool, its result and its time, if it is run."""
        script, *rest = map(str, run or ("",))
        files = (query.network_file, query.property_file)
        first = str(prepare[0]) if prepare else ""
        words = (first, called_file(query.folder), script, self.category, *files, *rest)
        scripts = [Path(each) for each in (first, script) if each]
        return guarded(
            as_command((sys.executable, "-I", "-S", _RUNNER, *map(str, words))),
            scripts=scripts,
            folder=query.folder,
            writes=(repository_of(scripts[0].parent),),
            trust=query.trust,
        )

    def guard(self) -> Finding | None:
        """What protects the user's processes from its scripts on this machine."""
        return finding(self._called(self.require()))

    def _called(self, place: str) -> tuple[Path, ...]:
        """The scripts that are called, in order."""
        folder = Path(place).expanduser().absolute()
        prepare = folder / _PREPARE
        script = folder / (_RUN if self.attacks else _RUN_WITHOUT_ATTACK)
        return (prepare, script) if self.prepares and prepare.is_file() else (script,)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The verdict in the result file of VNN-COMP."""
        return read_verdict(query.result)

    def explained(self, given: VerifierAnswer, log: Path) -> VerifierAnswer:
        """`unsupported` if its log ends with its message about an operator that it cannot read."""
        return refusal(given, log)


# PyRAT, as packaged for VNN-COMP


class Pyrat(VnncompTool):
    """Its place is the folder of its competition scripts."""

    name = "pyrat"
    prepares = False
    #: Abstract domains pushed forward, refined by splitting.
    styles = (CertificateStyle.PARTITION, CertificateStyle.REACHABILITY)


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


_NNENUM_RUNNER = RUNNERS / "nnenum_runner.py"


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
        return Invocation(as_command((self.python, _NNENUM_RUNNER, *options)), environment, start_words=2)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)


class Vnnlib2Solver(PlacedVerifier):
    """Its place is a command: ``COMMAND verify q.vnnlib --network f=a.onnx --timeout T`` is run.

    A property in VNN-LIB 1.0 is converted to 2.0 first, with the same decimals. The answer is the first
    line of standard output, and the witness follows it; exit codes are ignored, but a solver killed by a
    signal has not answered. Its version is a hash of the program's file, and of the files among its
    arguments. ``,no_attack=WORDS`` after the command says what more to write to switch its own attack off.
    """

    name = "vnnlib2"
    limitations: ClassVar[str] = "what that solver cannot read"
    settings: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"no_attack": "the arguments that switch its own attack off"}
    )

    def how_to_get(self) -> str:
        """How to tell Dokimos its command."""
        return (
            f"install a solver of VNN-LIB 2.0, then --verifier {self.kind}='its command' "
            f"(or set {self.variable})"
        )

    def trouble(self, place: str) -> str | None:
        """The first word must be an executable program."""
        try:
            words = shlex.split(place)
        except ValueError as error:
            return f"{place!r} is not a command ({error})"
        if not words or shutil.which(words[0]) is None:
            return f"{(words or [place])[0]!r} is not a program that can be run"
        try:
            shlex.split(self.setting("no_attack") or "")
        except ValueError as error:
            return f"its `no_attack` is not a list of arguments ({error})"
        return None

    @property
    def can_switch_attack_off(self) -> bool:
        """Whether its place says how."""
        return bool(self.setting("no_attack"))

    @property
    def switches(self) -> tuple[str, ...]:
        """What follows its command."""
        return () if self.attacks else tuple(shlex.split(self.setting("no_attack") or ""))

    def parts(self, place: str) -> Iterable[bytes]:
        """The program itself, and those of its arguments that are files."""
        program, *rest = shlex.split(place)
        yield file_content(Path(shutil.which(program) or program))
        yield from (file_content(Path(word)) for word in rest)

    def command(self, query: Query) -> Invocation:
        """The runner, which converts to 2.0, starts the solver and saves its standard output."""
        files = (str(query.network_file), str(query.property_file), str(query.result))
        options = ("--timeout", f"{query.wall_seconds:g}", *files)
        # It runs in another folder, but paths in its command are relative to this one.
        program, *rest = shlex.split(self.require())
        words = (str(Path(shutil.which(program) or program).absolute()), *map(_found, rest), *self.switches)
        return our_module("dokimos.verifiers.runners.vnnlib2_runner", *options, "--", *words)

    def accepts(self, exit_code: int) -> bool:
        """The standard gives exit codes no meaning, and solvers exit with 1 for `sat`."""
        return exit_code < KILLED

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The verdict on the first line of the standard output that the runner saved."""
        return read_verdict(query.result, input_name=INPUT_NAME, output_name=OUTPUT_NAME)

    def explained(self, given: VerifierAnswer, log: Path) -> VerifierAnswer:
        """`unsupported` if its log ends with its message about an operator that it cannot read."""
        return refusal(given, log)


def _found(word: str) -> str:
    """The absolute path if a word is the path of a file; otherwise the word."""
    path = Path(word)
    return str(path.absolute()) if path.is_file() else word
