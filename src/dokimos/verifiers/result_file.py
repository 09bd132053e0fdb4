"""The result file that our runner scripts write: one JSON object, complete or not written at all.

``{"schema": 1, "answer": "sat", "witness": ["0.25", "-1e-3"], "outputs": [...], "detail": ""}``

`answer` is one of the words of `Answer`; `witness` is null or the flat list of inputs as decimal strings,
written as the verifier gives them; `outputs`, the network's outputs at the witness according to the
verifier, is null or missing if the verifier does not give them, or if they are not a list of finite
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from dokimos.core import strict_json
from dokimos.core.errors import UnreadableFile
from dokimos.core.files import read_regular
from dokimos.core.typed_values import convert
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import read_onnx_file, read_vnnlib_file
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.reader import is_version_2, read_vnnlib
from dokimos.suites.vnnlib.writer import Version, write_vnnlib1, write_vnnlib_file
from dokimos.verifiers.base import log_tail

SCHEMA: Literal[1] = 1
#: Larger result files are refused.
MOST_BYTES = 16 << 20
#: Numerators and denominators stay below 4300 digits, Python's limit for converting integers to text.
_DECIMAL = re.compile(r"[+-]?(\d{1,1200}(\.\d{0,2000})?|\.\d{1,2000})([eE][+-]?0{0,9}\d{1,3})?", re.ASCII)


class _Result(Struct, frozen=True, forbid_unknown_fields=True):
    """The file's format. Witness and outputs may be anything: a `sat` with nonsense is still a `sat`."""

    schema: Literal[1]
    answer: Answer
    witness: Any = None
    outputs: Any = None
    detail: str = ""


def read_content(path: Path) -> bytes:
    """What a verifier wrote. Raises ValueError if it is too large, OSError if it does not exist."""
    try:
        return read_regular(path, most_bytes=MOST_BYTES)
    except UnreadableFile as error:
        is_large = path.is_file()
        reason = f"is larger than {MOST_BYTES} bytes" if is_large else error.reason.rstrip(".")
        raise ValueError(f"the result file {reason}") from None


def read_result(path: Path) -> VerifierAnswer:
    """The answer in a result file.

    Raises ValueError if it is not one, OSError if the file does not exist. A `sat` keeps its answer even if
    its witness is not a list of finite numbers: the witness becomes the empty point, which no property
    accepts, so that nonsense is judged as a witness that does not replay, not as a missing witness. An
    empty list is a missing one.
    """
    try:
        document = strict_json.parse(read_content(path), file=path, nan=True)
        result = convert(document, _Result, file=path, what="a result")
    except UnreadableFile as error:
        raise ValueError(f"the result file: {error.reason}") from error
    if result.answer is not Answer.SAT or result.witness is None or result.witness == []:
        return VerifierAnswer(result.answer, detail=result.detail)
    point = read_point(result.witness)
    if point is None:
        detail = result.detail or "the witness is not a list of finite numbers"
        return VerifierAnswer(result.answer, (), detail)
    return VerifierAnswer(result.answer, point, result.detail, read_point(result.outputs))


def read_point(values: object) -> Point | None:
    """The exact numbers in decimal strings; None if one of them is not a finite number."""
    if not isinstance(values, list) or not all(
        isinstance(v, str) and _DECIMAL.fullmatch(v) for v in values
    ):
        return None
    return tuple(Fraction(value) for value in values)


# How tools say in their log that they cannot read a network: the whole last line of an exception


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


# The result file of VNN-COMP: the verdict on its first line, for `sat` the witness below it


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
    tensors = tensors_in(text)
    inputs = tensors.get(input_name)
    return None if inputs is None else Assignment(inputs, tensors.get(output_name))


def tensors_in(text: str) -> Mapping[str, Point | None]:
    """The tensors in a witness of VNN-LIB 2.0, None for one with a value that is no finite number.

    There are none unless each occurs once, with all its values.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    tensors: dict[str, Point | None] = {}
    at = 0
    while at < len(lines):
        match = _TENSOR.fullmatch(lines[at])
        if match is None or match[1] in tensors:
            return {}
        count = prod(int(size) for size in match[2].split(",")) if match[2] else 1
        values = lines[at + 1 : at + 1 + count]
        if len(values) != count:
            return {}
        tensors[match[1]] = read_point(values)
        at += 1 + count
    return tensors


# Converts to VNN-LIB 1.0, for verifiers that read nothing else


def in_vnnlib1(content: bytes, *, file: str) -> bytes:
    """The property in VNN-LIB 1.0, with the same decimals; the content itself if it is already 1.0.

    An unreadable property stays as it is, so that the verifier reports the problem. Raises InputError if
    1.0 cannot express it, as with strict comparisons.
    """
    if not is_version_2(content.decode("utf-8-sig", "replace")):
        return content
    try:
        asked = read_vnnlib(content, file=file)
    except UnreadableFile:
        return content
    return write_vnnlib1(asked).encode()


# Converts to VNN-LIB 2.0, for verifiers that read nothing else


INPUT_NAME = "X"
OUTPUT_NAME = "Y"
NETWORK_NAME = "f"
_HEAD_CHARACTERS = 1 << 16
_FIRST_NETWORK = re.compile(r"^[^;\n]*\(\s*declare-network\s+([^\s()]+)", re.MULTILINE)


def declared_network(property_file: Path) -> str | None:
    """The name of the first network that the file declares; None for VNN-LIB 1.0, which names none."""
    with property_file.open(encoding="utf-8", errors="replace") as file:
        match = _FIRST_NETWORK.search(file.read(_HEAD_CHARACTERS))
    return match[1] if match else None


def in_vnnlib2(property_file: Path, network_file: Path, *, folder: Path) -> tuple[Path, str]:
    """The property in VNN-LIB 2.0, and the name that it gives its network.

    It is the file itself if that is already 2.0; otherwise a new file in `folder`, whose tensors have the
    network's shapes and whose numbers are the same decimals.
    """
    if (name := declared_network(property_file)) is not None:
        return property_file, name
    asked = read_vnnlib_file(property_file)
    if len(asked.networks) != 1:
        raise UnreadableFile(property_file, "it names several networks, but there is only one file")
    network = read_onnx_file(network_file)
    signature = replace(
        asked.networks[0],
        name=NETWORK_NAME,
        input_name=INPUT_NAME,
        input_shape=network.input_shape,
        output_name=OUTPUT_NAME,
        output_shape=network.output_shape,
    )
    path = folder / "query.vnnlib"
    write_vnnlib_file(Property((signature,), asked.cases), path, version=Version.TWO)
    return path, NETWORK_NAME
