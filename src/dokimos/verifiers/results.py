"""The result file that our runner scripts write: one JSON object, complete or not there at all.

``{"schema": 1, "answer": "sat", "witness": ["0.25", "-1e-3"], "outputs": [...], "detail": ""}``

`answer` is one of the words of `Answer`; `witness` is null or the flat list of inputs as decimal strings,
spelt as the verifier gives them; `outputs`, what the verifier believes the network gives there, is null or
missing where it does not say, or where it is no list of finite numbers.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

from dokimos.properties.model import Point
from dokimos.suites.answers import Answer, VerifierAnswer

SCHEMA = 1
_LIMIT_BYTES = 64 << 20
_DECIMAL = re.compile(r"[+-]?(\d{1,2000}(\.\d{0,2000})?|\.\d{1,2000})([eE][+-]?\d{1,4})?")


def read_result(path: Path) -> VerifierAnswer:
    """The answer in a result file; ValueError where it is not one, OSError where it is not there.

    A `sat` keeps its answer even where its witness is no list of finite numbers: that witness becomes the
    empty point, which no property accepts, so that nonsense is judged as a witness that does not replay
    rather than passed over as none.
    """
    with path.open("rb") as file:
        content = file.read(_LIMIT_BYTES + 1)
    if len(content) > _LIMIT_BYTES:
        raise ValueError(f"the result file is larger than {_LIMIT_BYTES} bytes")
    try:
        data = json.loads(content)
    except RecursionError as error:
        raise ValueError("the result file is nested too deeply") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"the result file is no JSON object of schema {SCHEMA}")
    try:
        answer = Answer(data.get("answer"))
    except ValueError as error:
        raise ValueError(f"the result file answers {str(data.get('answer'))[:40]!r}") from error
    detail = data.get("detail", "")
    if not isinstance(detail, str):
        raise ValueError("the result file's detail is no text")
    witness = data.get("witness")
    if answer is not Answer.SAT or witness is None:
        return VerifierAnswer(answer, detail=detail)
    point = read_point(witness)
    if point is None:
        return VerifierAnswer(answer, (), detail or "the witness is not a list of finite numbers")
    return VerifierAnswer(answer, point, detail, read_point(data.get("outputs")))


def read_point(values: object) -> Point | None:
    """The exact numbers that decimal strings spell; None where one of them is not a finite number."""
    if not isinstance(values, list) or not all(
        isinstance(v, str) and _DECIMAL.fullmatch(v) for v in values
    ):
        return None
    return tuple(Fraction(value) for value in values)
