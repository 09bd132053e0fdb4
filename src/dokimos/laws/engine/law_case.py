"""A single case of a law: everything that was drawn for it, and its values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.engine.calls import single_value
from dokimos.laws.engine.case_frame import UNCHANGED, Column, Frame, Records, Value, stack
from dokimos.laws.language.syntax import Law


@dataclass(frozen=True)
class LawCase:
    """The inputs, the data-set row of each, the draws, the seed, and all values by name."""

    inputs: Mapping[str, Any]
    rows: Mapping[str, int | None]
    draws: tuple[int | float, ...]
    seed: int
    values: Mapping[str, Any]


def case_of(frame: Frame, row: int, law: Law) -> LawCase:
    """One row of a frame; values that have not been computed yet are left out."""
    names = [each.name for each in law.inputs]
    rows: dict[str, int | None] = {}
    for name in names:
        value = frame.values[name]
        assert isinstance(value, Records)  # inputs are records
        rows[name] = None if value.origin is None else int(value.origin[row])
    every = {name: single_value(value, row) for name, value in frame.values.items()}
    return LawCase(
        inputs={name: every[name] for name in names},
        rows=rows,
        draws=tuple(draw[row].item() for draw in frame.draws),
        seed=int(frame.seeds[row]),
        values={name: value for name, value in every.items() if name not in names},
    )


def frame_of(cases: list[LawCase]) -> tuple[Frame, list[Column]]:
    """Cases ready to be run again: their inputs as a frame, and the result of each random call."""
    values: dict[str, Value] = {}
    for name in cases[0].inputs:
        rows = [case.rows[name] for case in cases]
        known = [row for row in rows if row is not None]
        origin = np.array(known, dtype=np.int64) if len(known) == len(rows) else None
        values[name] = Records(stack([case.inputs[name] for case in cases]), origin, UNCHANGED)
    seeds = np.array([case.seed for case in cases], dtype=np.int64)
    draws = [np.array(each) for each in zip(*(case.draws for case in cases), strict=True)]
    return Frame(np.arange(len(cases)), seeds, values), draws


def to_json(value: Any) -> Any:
    """A value for JSON; what JSON cannot hold becomes an object with one key that names its type."""
    if isinstance(value, np.ndarray):
        return to_json(value.tolist())
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return {"object": repr(value)}


def from_json(value: Any) -> Any:
    """The inverse of `to_json`. Raises InputError for an object that it could only describe."""
    if isinstance(value, list):
        return [from_json(each) for each in value]
    if isinstance(value, dict) and isinstance(value.get("float"), str):
        return float(value["float"])
    if isinstance(value, dict):
        raise InputError(f"{value.get('object')} was not saved, only a description of it.")
    return value


def as_record(value: Any) -> NDArray[Any] | Any:
    """A record from JSON, as user code and models see it."""
    plain = from_json(value)
    return stack([plain])[0] if isinstance(plain, list) else plain
