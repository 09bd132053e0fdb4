"""The result file that our runner scripts write: one JSON object, complete or not written at all.

``{"schema": 1, "answer": "sat", "witness": ["0.25", "-1e-3"], "outputs": [...], "detail": ""}``

`answer` is one of the words of `Answer`; `witness` is null or the flat list of inputs as decimal strings,
written as the verifier gives them; `outputs`, the network's outputs at the witness according to the
verifier, is null or missing if the verifier does not give them, or if they are not a list of finite
numbers.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from dokimos.core import strict_json
from dokimos.core.errors import UnreadableFile
from dokimos.core.regular_files import read_regular
from dokimos.properties.model import Point
from dokimos.suites.answers import Answer, VerifierAnswer

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
        result = strict_json.convert(document, _Result, file=path, what="a result")
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
