"""Whether user code gives the same results when run again: checked before a claim about all draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from dokimos.core.errors import DokimosError
from dokimos.laws.engine.cases import LawCase, case_of, frame_of
from dokimos.laws.engine.drawing import Given, Sampler
from dokimos.laws.engine.equality import same_values
from dokimos.laws.engine.frame import Column, Frame, Records, full
from dokimos.laws.engine.runner import Runner
from dokimos.laws.engine.sources import InputSource

#: How many cases are run twice, and how many records are predicted together to compare with single runs.
_CASES = 64
_BATCH = 64
#: Scores closer than this share of the largest of them differ only by rounding.
_CLOSE = 1e-4


def what_wavers(runner: Runner, source: InputSource) -> str:
    """What gives other results for the same cases when run a second time; empty if nothing does.

    Only a sample of cases is run twice, so code that rarely draws at random may go unnoticed.
    """
    quiet = runner.alike()
    size = source.size or 0
    rows = np.unique(np.linspace(0, size - 1, min(size, _CASES)).astype(np.int64))
    inputs = {each.name: source.at(rows) for each in runner.plan.law.inputs}
    frame = Frame(np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64), dict(inputs))
    first = quiet.prepare(frame, Sampler(np.random.default_rng(0)))
    if quiet.errors.count:  # the tests themselves will say what fails, and in which cases
        return ""
    second = quiet.prepare(frame, Sampler(np.random.default_rng(0)))
    for name in first.values:
        if name in second.values and not _same(first, second, name):
            return f"{name} changes when computed again"
    if not np.array_equal(first.ids, second.ids):
        return "what the law requires changes when computed again"
    if first.size == 0 or runner.plan.predictions is None:
        return ""
    records = [first.values[name] for name in runner.plan.judged_records]
    if not records or not all(isinstance(each, Records) for each in records):
        return ""
    data = np.concatenate([each.data for each in records if isinstance(each, Records)])
    try:
        scores = [runner.model.scores(data) for _ in range(2)]
    except DokimosError:
        raise
    except Exception:  # as above
        return ""
    return "" if _are_close(*scores) else "the model gives different results when run again"


def _same(first: Frame, second: Frame, name: str) -> bool:
    a, b = (_column(frame, name) for frame in (first, second))
    return a.shape == b.shape and bool(same_values(a, b).all())


def _column(frame: Frame, name: str) -> Column:
    value = frame.values[name]
    if not isinstance(value, Records):
        return full(value, frame.size)
    if value.data.dtype == object and value.data.ndim == 1:
        return np.array([repr(each) if isinstance(each, str | int | float) else 0 for each in value.data])
    return value.data


def _are_close(a: Any, b: Any) -> bool:
    first, second = np.asarray(a), np.asarray(b)
    if first.shape != second.shape:
        return False
    if first.dtype.kind not in "fiub" or second.dtype.kind not in "fiub":
        return bool(np.all(first == second))
    if first.dtype.kind != "f":
        return bool(np.array_equal(first, second))
    scale = float(np.max(np.abs(first[np.isfinite(first)]), initial=0.0))
    return bool(np.allclose(first, second, rtol=_CLOSE, atol=_CLOSE * scale, equal_nan=True))


def _has_values_of(case: LawCase, prepared: Frame, runner: Runner) -> bool:
    """Whether the variables of a case, computed again, have about the same values."""
    again = case_of(prepared, 0, runner.plan.law).values
    pairs = [
        (np.asarray(again[name]), np.asarray(case.values[name])) for name in again if name in case.values
    ]
    return all(
        _are_close(a, b) or (a.shape == b.shape and bool(np.all(same_values(a, b)))) for a, b in pairs
    )


def scores_are_close(case: LawCase, runner: Runner) -> bool:
    """Whether a case has about the same values again, and about the same scores in a batch and one by one.

    If so, a different answer is due to rounding. Code always runs case by case, so it never is there.
    """
    if runner.plan.predictions is None:
        return False
    frame, draws = frame_of([case])
    prepared = runner.alike().prepare(frame, Given(draws))
    records = [prepared.values[name] for name in runner.plan.judged_records if name in prepared.values]
    found = [each.data for each in records if isinstance(each, Records)]
    if prepared.size == 0 or not found or not _has_values_of(case, prepared, runner):
        return False
    data = np.concatenate(found)
    batch = np.repeat(data, _BATCH, axis=0)
    try:
        together = np.asarray(runner.model.scores(batch))
        alone = [np.asarray(runner.model.scores(data[row : row + 1]))[0] for row in range(len(data))]
    except DokimosError:
        raise
    except Exception:  # it did not fail before: this is not the same answer either
        return False
    return _are_close(together, np.repeat(np.stack(alone), _BATCH, axis=0))
