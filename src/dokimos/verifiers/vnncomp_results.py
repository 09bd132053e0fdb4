"""The result file of VNN-COMP: the verdict on its first line, for `sat` the witness below it.

A witness has the form of VNN-LIB 1.0, ``((X_0 0.025) (X_1 0.9) … (Y_0 -0.035))``, or that of 2.0: for each
tensor a line ``X float32 [1,5]`` and then its values, one per line, row-major.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType

from dokimos.properties.model import Point
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.results import read_content, read_point

#: The verdicts of VNN-COMP (including 2021) and of the VNN-LIB 2.0 command line, mapped to ours.
VERDICTS: Mapping[str, Answer] = MappingProxyType(
    {
        "sat": Answer.SAT,
        "unsat": Answer.UNSAT,
        "unknown": Answer.UNKNOWN,
        "timeout": Answer.TIMEOUT,
        "timed-out": Answer.TIMEOUT,
        "error": Answer.ERROR,
        "unsupported": Answer.UNSUPPORTED,
        "holds": Answer.UNSAT,
        "violated": Answer.SAT,
    }
)
#: A witness without any value, which is no witness.
_NO_VALUE = re.compile(r"[\s()]*+")
_PAIR = re.compile(r"\(\s*+([XY])_(\d{1,9}+)\s++([^\s()]++)\s*+\)\s*+")
#: All parts are possessive, so that matching a line of blanks takes linear time.
_TENSOR = re.compile(r"(\S++)\s++\S++\s++\[\s*+(\d{1,9}+(?:\s*+,\s*+\d{1,9}+)*+)?\s*+\]")


@dataclass(frozen=True)
class Assignment:
    """A witness: its inputs, and the claimed outputs (None if the verifier does not give them)."""

    inputs: Point
    outputs: Point | None


def read_verdict(path: Path, *, input_name: str = "X", output_name: str = "Y") -> VerifierAnswer:
    """The answer in a result file.

    Raises ValueError if its first line is not a verdict, OSError without a file. The names are those of the
    tensors in the witness of a 2.0 property. A witness that cannot be read becomes the empty point, as in
    `read_result`: nonsense must not pass as no witness at all. Text after a verdict other than `sat` is its
    detail.
    """
    first, _, rest = read_content(path).decode("utf-8", errors="replace").partition("\n")
    answer = VERDICTS.get(first.strip())
    if answer is None:
        raise ValueError(f"the result file begins with {first.strip()[:40]!r}, which is not a verdict")
    rest = rest.strip()
    if answer is not Answer.SAT:
        return VerifierAnswer(answer, detail=" ".join(rest.split())[:400])
    return sat_with(rest, input_name=input_name, output_name=output_name)


def sat_with(text: str, *, input_name: str = "X", output_name: str = "Y") -> VerifierAnswer:
    """The answer `sat` with the witness in `text`, of either form; without one if it states no value."""
    text = text.strip()
    if _NO_VALUE.fullmatch(text):
        return VerifierAnswer(Answer.SAT, detail="the witness is empty" if text else "")
    is_flat = text.startswith("(")
    found = flat_witness(text) if is_flat else tensor_witness(text, input_name, output_name)
    if found is None:
        return VerifierAnswer(Answer.SAT, (), "the witness is not one value for each input")
    return VerifierAnswer(Answer.SAT, found.inputs, outputs=found.outputs)


def flat_witness(text: str) -> Assignment | None:
    """The witness in ``((X_0 v) … (Y_0 v))``; None unless it has exactly one value for each input."""
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")):
        return None
    inside = text[1:-1].strip()
    values: dict[str, dict[int, str]] = {"X": {}, "Y": {}}
    at = 0
    while at < len(inside):
        match = _PAIR.match(inside, at)
        if match is None or int(match[2]) in values[match[1]]:
            return None
        values[match[1]][int(match[2])] = match[3]
        at = match.end()
    inputs = _in_order(values["X"])
    return None if inputs is None else Assignment(inputs, _in_order(values["Y"]))


def _in_order(values: Mapping[int, str]) -> Point | None:
    """The numbers in the order of their indices 0, 1, ...; None if one is missing or not finite."""
    if not values or sorted(values) != list(range(len(values))):
        return None
    return read_point([values[i] for i in range(len(values))])


def tensor_witness(text: str, input_name: str, output_name: str) -> Assignment | None:
    """The witness in tensors; None unless the input is there, and each occurs once with all its values."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    tensors: dict[str, Point | None] = {}
    at = 0
    while at < len(lines):
        match = _TENSOR.fullmatch(lines[at])
        if match is None or match[1] in tensors:
            return None
        count = prod(int(size) for size in match[2].split(",")) if match[2] else 1
        values = lines[at + 1 : at + 1 + count]
        if len(values) != count:
            return None
        tensors[match[1]] = read_point(values)
        at += 1 + count
    inputs = tensors.get(input_name)
    return None if inputs is None else Assignment(inputs, tensors.get(output_name))
