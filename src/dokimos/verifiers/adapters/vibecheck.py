"""vibecheck, from PyPI's vibecheck-nn: the command line of the VNN-LIB standard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.base import CertificateStyle, Invocation, Query, as_command, log_tail
from dokimos.verifiers.conversions import declared_network
from dokimos.verifiers.environments import PinnedEnvironment, PinnedVerifier, pins_of
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.result_file import read_verdict
from dokimos.verifiers.runners import RUNNERS

_RUNNER = RUNNERS / "vibecheck_runner.py"
_SMOKE = RUNNERS / "command_line_smoke.py"
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
        return (str(_SMOKE), "--", *_arguments("{property}", "N={network}", "{result}", "{timeout}"))

    def command(self, query: Query) -> Invocation:
        """The standard's command line, on the CPU; its own command line if the attack is off."""
        network = f"{declared_network(query.property_file) or 'N'}={query.network_file}"
        timeout = f"{query.wall_seconds:g}"
        arguments = _arguments(str(query.property_file), network, str(query.result), timeout)
        if not self.attacks:
            question = ("--net", str(query.network_file), "--spec", str(query.property_file))
            options = _options(str(query.result), timeout)
            arguments = (*_MODULE, *question, *options, *self.switches)
        if not self.is_warm:
            return Invocation(as_command((self.environment.python, *arguments)))
        start = as_command((self.environment.python, _RUNNER))
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


def _arguments(property_file: str, network: str, result: str, timeout: str) -> tuple[str, ...]:
    return (*_MODULE, "verify", property_file, "--network", network, *_options(result, timeout))


def _options(result: str, timeout: str) -> tuple[str, ...]:
    """The options that its two command lines share."""
    style = ("--device", "cpu", "--verdict-style", "vnncomp")
    return ("--timeout", timeout, *style, "--results-file", result)
