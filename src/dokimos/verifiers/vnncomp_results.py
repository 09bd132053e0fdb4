"""The result file of VNN-COMP: the verdict on its first line, for `sat` the witness below it.

A witness has the form of VNN-LIB 1.0, ``((X_0 0.025) (X_1 0.9) … (Y_0 -0.035))``, or that of 2.0: for each
tensor a line ``X float32 [1,5]`` and then its values, one a line, row-major.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from types import MappingProxyType

from dokimos.properties.model import Point
from dokimos.verifiers.answers import Answer, VerifierAnswer
from dokimos.verifiers.results import read_point

_LIMIT_BYTES = 64 << 20
#: The verdicts of VNN-COMP and of the VNN-LIB 2.0 command line, in our words.
VERDICTS: Mapping[str, Answer] = MappingProxyType(
    {
        "sat": Answer.SAT,
        "unsat": Answer.UNSAT,
        "unknown": Answer.UNKNOWN,
        "timeout": Answer.TIMEOUT,
        "timed-out": Answer.TIMEOUT,
        "error": Answer.ERROR,
    }
)
_PAIR = re.compile(r"\(\s*([XY])_(\d{1,9})\s+([^\s()]+)\s*\)\s*")
_TENSOR = re.compile(r"(\S+)\s+\S+\s+\[\s*(\d+(?:\s*,\s*\d+)*)?\s*\]")


def read_verdict(path: Path, *, input_name: str = "X") -> VerifierAnswer:
    """The answer in a result file; ValueError where its first line is no verdict, OSError without a file.

    `input_name` is the tensor that the witness of a 2.0 property gives. A witness that cannot be read is
    the empty point, as in `read_result`: nonsense must not pass for no witness at all. What follows
    another verdict than `sat` is its detail.
    """
    with path.open("rb") as file:
        content = file.read(_LIMIT_BYTES + 1)
    if len(content) > _LIMIT_BYTES:
        raise ValueError(f"the result file is larger than {_LIMIT_BYTES} bytes")
    first, _, rest = content.decode("utf-8", errors="replace").partition("\n")
    answer = VERDICTS.get(first.strip())
    if answer is None:
        raise ValueError(f"the result file begins with {first.strip()[:40]!r}, which is no verdict")
    rest = rest.strip()
    if answer is not Answer.SAT:
        return VerifierAnswer(answer, detail=" ".join(rest.split())[:400])
    if not rest:
        return VerifierAnswer(answer)
    point = flat_witness(rest) if rest.startswith("(") else tensor_witness(rest, input_name)
    if point is None:
        return VerifierAnswer(answer, (), "the witness is not one value for each input")
    return VerifierAnswer(answer, point)


def flat_witness(text: str) -> Point | None:
    """The inputs of ``((X_0 v) … (Y_0 v))``; None unless there is one value for each, and nothing else."""
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")):
        return None
    inside = text[1:-1].strip()
    inputs: dict[int, str] = {}
    at = 0
    while at < len(inside):
        match = _PAIR.match(inside, at)
        if match is None:
            return None
        kind, number, value = match[1], int(match[2]), match[3]
        if kind == "X":
            if number in inputs:
                return None
            inputs[number] = value
        at = match.end()
    if not inputs or sorted(inputs) != list(range(len(inputs))):
        return None
    return read_point([inputs[i] for i in range(len(inputs))])


def tensor_witness(text: str, name: str) -> Point | None:
    """The values of the tensor `name`; None unless it is there once, with as many values as it says."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found: Point | None = None
    at = 0
    while at < len(lines):
        match = _TENSOR.fullmatch(lines[at])
        if match is None:
            return None
        count = prod(int(size) for size in match[2].split(",")) if match[2] else 1
        values = lines[at + 1 : at + 1 + count]
        point = read_point(values)
        if len(values) != count or point is None:
            return None
        if match[1] == name:
            if found is not None:
                return None
            found = point
        at += 1 + count
    return found
