"""How tools say in their log that they cannot read a network: the whole last line of an exception.

A log never decides anything; it may explain why nothing was decided.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.base import log_tail

_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        # nnenum
        r"AssertionError: Onnx model contains node with op (?P<operator>\w+), which .*",
        r"AssertionError: unsupported onnx op_type (?P<operator>\w+) in node .*",
        r"AssertionError: (?P<reason>general Gemm node unsupported)",
        r"AssertionError: (?P<reason>expected at least one relu layer in network)",
        # onnx2pytorch, the importer of α,β-CROWN
        r"NotImplementedError: Conversion not implemented for op_type=(?P<operator>\w+)\.",
        # any other tool in Python
        r"NotImplementedError: (?P<reason>.+)",
    )
)
#: How much of the end of a log is searched.
_CHARACTERS, _LAST = 4000, 5


def refusal(given: VerifierAnswer, log: Path) -> VerifierAnswer:
    """`unsupported`, with the operator, if the log ends in a line of a known form; otherwise as given."""
    if given.answer not in (Answer.ERROR, Answer.UNKNOWN):
        return given
    lines = [line for line in log_tail(log, characters=_CHARACTERS).splitlines() if line.strip()]
    for line in reversed(lines[-_LAST:]):
        for pattern in _LINES:
            if found := pattern.fullmatch(line.strip()):
                parts = found.groupdict()
                operator = parts.get("operator")
                why = f"operator {operator}" if operator else (parts.get("reason") or "")
                return replace(given, answer=Answer.UNSUPPORTED, detail=why[:200])
    return given
