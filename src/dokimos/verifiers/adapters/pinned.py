"""Verifiers from PyPI, each in an environment of its own with pinned packages.

Marabou declares no dependencies: a working set is pinned here. NeuralSAT runs by its own main script,
NeVer2 (pynever) by its Python interface, vibecheck by the command line of the VNN-LIB standard.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

from dokimos.core.errors import InputError
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import read_vnnlib_file
from dokimos.suites.vnnlib.model import Case, Conjunction, Property
from dokimos.verifiers.base import CertificateStyle, Invocation, Query, as_command, log_tail
from dokimos.verifiers.environments import PinnedEnvironment, PinnedVerifier, pins_of
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.result_file import declared_network, read_result, read_verdict
from dokimos.verifiers.runners import RUNNERS

_MARABOU_RUNNER = RUNNERS / "marabou_runner.py"


_MARABOU_PROGRAM = """from maraboupy import Marabou

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
        return (str(_MARABOU_RUNNER), "--smoke")

    def command(self, query: Query) -> Invocation:
        """The runner script, in the environment's interpreter."""
        options = ("--timeout", str(max(1, round(query.wall_seconds))), "--threads", str(query.threads))
        files = (query.network_file, query.property_file, query.result)
        start = as_command((self.environment.python, _MARABOU_RUNNER))
        return Invocation((*start, *as_command((*options, *files))), start_words=len(start))

    def program(self, folder: Path, seconds: float) -> str:
        """By the interface that its README shows."""
        return _MARABOU_PROGRAM.format(seconds=max(1, round(seconds)))

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)


_NEURALSAT_RUNNER = RUNNERS / "neuralsat_runner.py"
_SMOKE = RUNNERS / "command_line_smoke.py"


_NEURALSAT_PROGRAM = """import importlib.metadata
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
        return (str(_SMOKE), "--", *_neuralsat_words("{property}", "{network}", "{result}", "{timeout}"))

    def command(self, query: Query) -> Invocation:
        """Its main script, on the processor."""
        files = (str(query.property_file), str(query.network_file), str(query.result))
        arguments = (*_neuralsat_words(*files, f"{query.wall_seconds:g}"), *self.switches)
        return Invocation(as_command((self.environment.python, *arguments)), start_words=2)

    def program(self, folder: Path, seconds: float) -> str:
        """By its own main script, which expects its folder on the path."""
        options = f"--timeout {seconds:g} --device cpu --result_file result".split()
        words = ["--net", "network.onnx", "--spec", "property.vnnlib", *options, *self.switches]
        return _NEURALSAT_PROGRAM.format(words=words)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The verdict in the result file; `unsupported` is written by our runner."""
        with query.result.open(errors="replace") as file:
            if file.readline(100).strip() == Answer.UNSUPPORTED.value:
                return VerifierAnswer(Answer.UNSUPPORTED, detail=file.read(400).strip())
        return read_verdict(query.result)


def _neuralsat_words(property_file: str, network: str, result: str, timeout: str) -> tuple[str, ...]:
    files = ("--net", network, "--spec", property_file, "--result_file", result)
    return (
        str(_NEURALSAT_RUNNER),
        *files,
        "--timeout",
        timeout,
        "--device",
        "cpu",
        "--export_cex",
        "--verbosity",
        "0",
    )


_NEVER2_RUNNER = RUNNERS / "never2_runner.py"
_QUESTION = "question.json"


class Never2(PinnedVerifier):
    """Takes the property as matrices, one query per case; strict constraints become non-strict.

    torchvision, which it declares as a dependency, is left out: it is imported for training only.
    """

    name = "never2"
    #: Star sets, refined by splitting.
    styles = (CertificateStyle.PARTITION, CertificateStyle.REACHABILITY)
    takes = "pynever 1.3.2 from PyPI with torch, about 1.4 GB"
    limitations: ClassVar[str] = (
        "all but fully connected ReLU networks; constraints mixing inputs and outputs"
    )
    unread_operators = (
        "AveragePool BatchNormalization Clip Concat Constant ConstantOfShape Exp Expand "
        "Gather GlobalAveragePool Identity LeakyRelu Max Min Neg Pad Pow ReduceMean ReduceSum "
        "Sigmoid Slice Softmax Split Squeeze Tanh Unsqueeze"
    )
    environment = PinnedEnvironment(
        verifier="never2",
        version="1.3.2",
        requirements=pins_of("never2"),
    )

    def smoke(self) -> tuple[str, ...]:
        """Answer two tiny queries."""
        return (str(_NEVER2_RUNNER), "--smoke")

    def command(self, query: Query) -> Invocation:
        """The runner script, with the property as matrices in the run's folder."""
        timeout = ("--timeout", f"{query.wall_seconds:g}")
        files = (query.network_file, query.folder / _QUESTION, query.result)
        return Invocation(
            as_command((self.environment.python, _NEVER2_RUNNER, *timeout, *files)),
            files={_QUESTION: json.dumps(_question(query.property_file))},
        )

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)


def _question(property_file: Path) -> dict[str, Any]:
    """The property as the runner reads it."""
    try:
        asked = read_vnnlib_file(property_file)
    except InputError as error:
        return {"unsupported": f"the property cannot be put into matrices: {error}"}
    if len(asked.networks) != 1:
        return {"unsupported": "NeVer2 verifies one network at a time"}
    if any(c.inputs for case in asked.cases for part in case.any_of for c in part):
        return {"unsupported": "NeVer2 does not support constraints mixing inputs and outputs"}
    cases = [case for case in asked.cases if case.any_of and not case.box.is_empty]
    return {"cases": [_case(case, asked) for case in cases]}


def _case(case: Case, asked: Property) -> dict[str, Any]:
    return {
        "lower": [float(x) for x in case.box.lower],
        "upper": [float(x) for x in case.box.upper],
        "unsafe": [_polytope(part, asked.output_size) for part in case.any_of],
    }


def _polytope(part: Conjunction, outputs: int) -> dict[str, Any]:
    """matrix·y <= bound; a conjunction without constraints holds where 0 <= 0."""
    rows, bound = [], []
    for constraint in part:
        row = [0.0] * outputs
        for j, d in constraint.outputs:
            row[j] = float(d)
        rows.append(row)
        bound.append(float(constraint.bound))
    return {"matrix": rows or [[0.0] * outputs], "bound": bound or [0.0]}


_VIBECHECK_RUNNER = RUNNERS / "vibecheck_runner.py"
_MODULE = ("-m", "vibecheck")
#: How its result file begins if it cannot read a network.
_UNSUPPORTED = "NotImplementedError: "
#: The line of its log that explains an `unknown` due to an unsupported operator or property.
_EXPLAINED = re.compile(
    r"(?:\[ *[\d.]+s\] )?\[vibecheck\] "
    r"(?:net not supported|spec not supported|not implemented): (.+); verdict unknown"
)
_OPERATOR = re.compile(r"op '(\w+)' \(node .*\) (not yet in .*)")


class Vibecheck(PinnedVerifier):
    """Its verdict is in the file that --results-file names; its exit code is 1 for `sat` and `unknown`.

    If it does not support an operator or a form of the property, it says `unknown`, and gives the reason in
    one line of its log: that becomes `unsupported`. After an error its exit code is 2, and the file names
    the exception: NotImplementedError becomes `unsupported` too.
    """

    name = "vibecheck"
    #: Bounds pushed backward at each node of a branch and bound.
    styles = (CertificateStyle.DUAL, CertificateStyle.PARTITION)
    takes = "vibecheck-nn 1.1.0 from PyPI with torch, about 1.4 GB"
    limitations: ClassVar[str] = "takes `<` for `<=`"
    unread_operators = "Clip Expand GlobalAveragePool Pad Slice"
    attack_off = ("--no-attack",)
    can_stay_warm = True
    #: Where the licence of gurobipy is.
    variables = ("GRB_LICENSE_FILE", "GUROBI_HOME")
    environment = PinnedEnvironment(
        variables=variables,
        verifier="vibecheck",
        version="1.1.0",
        requirements=pins_of("vibecheck"),
    )

    def smoke(self) -> tuple[str, ...]:
        """Answer two tiny queries by the same command line."""
        return (str(_SMOKE), "--", *_vibecheck_words("{property}", "N={network}", "{result}", "{timeout}"))

    def command(self, query: Query) -> Invocation:
        """The standard's command line, on the CPU; its own command line if the attack is off."""
        network = f"{declared_network(query.property_file) or 'N'}={query.network_file}"
        timeout = f"{query.wall_seconds:g}"
        arguments = _vibecheck_words(str(query.property_file), network, str(query.result), timeout)
        if not self.attacks:
            question = ("--net", str(query.network_file), "--spec", str(query.property_file))
            options = _options(str(query.result), timeout)
            arguments = (*_MODULE, *question, *options, *self.switches)
        if not self.is_warm:
            return Invocation(as_command((self.environment.python, *arguments)))
        start = as_command((self.environment.python, _VIBECHECK_RUNNER))
        return Invocation((*start, *arguments[len(_MODULE) :]), start_words=len(start))

    def accepts(self, exit_code: int) -> bool:
        """0 for `unsat`, 1 for the other verdicts, 2 if the result file says what went wrong."""
        return exit_code in (0, 1, 2)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The verdict in the result file."""
        given = read_verdict(query.result)
        if given.answer is Answer.ERROR and given.detail.startswith(_UNSUPPORTED):
            return VerifierAnswer(Answer.UNSUPPORTED, detail=given.detail.removeprefix(_UNSUPPORTED))
        return given

    def explained(self, given: VerifierAnswer, log: Path) -> VerifierAnswer:
        """`unsupported` if its log gives that as the reason for `unknown`."""
        if given.answer is not Answer.UNKNOWN:
            return given
        for line in reversed(log_tail(log, characters=4000).splitlines()):
            if found := _EXPLAINED.fullmatch(line):
                operator = _OPERATOR.fullmatch(found[1])
                why = f"operator {operator[1]}: {operator[2]}" if operator else found[1]
                return VerifierAnswer(Answer.UNSUPPORTED, detail=why)
        return given


def _vibecheck_words(property_file: str, network: str, result: str, timeout: str) -> tuple[str, ...]:
    return (*_MODULE, "verify", property_file, "--network", network, *_options(result, timeout))


def _options(result: str, timeout: str) -> tuple[str, ...]:
    """The options that its two command lines share."""
    style = ("--device", "cpu", "--verdict-style", "vnncomp")
    return ("--timeout", timeout, *style, "--results-file", result)
