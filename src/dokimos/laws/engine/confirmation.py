"""Confirms violations as more than rounding: they are shrunk, and run again record by record."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError, InputError
from dokimos.laws.domain.definition import Domain, domain_file
from dokimos.laws.engine.case_frame import Column, Frame, Records, full
from dokimos.laws.engine.descriptions import describe
from dokimos.laws.engine.draws import Given, InputSource, Sampler, find_source, labels_of
from dokimos.laws.engine.law_case import LawCase, case_of, frame_of
from dokimos.laws.engine.law_plan import make_plan
from dokimos.laws.engine.law_results import LawViolation
from dokimos.laws.engine.pools import as_records
from dokimos.laws.engine.runner import Runner
from dokimos.laws.engine.tallies import KeptViolation
from dokimos.laws.engine.values import same_values
from dokimos.laws.language.law_layout import predictions
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import is_code
from dokimos.laws.models.tested_model import Model

# Shrinks violations: to a locally smallest change of the records that still violates the law


#: How many values of one draw are tried for one case at a time.
_TRIED = 48
#: The same for each of a pair of draws; and how many pairs are tried.
_TRIED_OF_PAIR = 12
_MOST_PAIRS = 6
#: A real number is bisected to this many bits.
_BISECTED = 24
_ROUNDS = 40
#: How many values are tried first where time is limited; then twice as many, and so on.
_FIRST_TRIED = 2


def shrink(
    cases: list[LawCase], runner: Runner, *, tolerated: bool = False, end: float = math.inf
) -> list[LawCase]:
    """Each case, with other draws that also violate the law and change the records less, if there are any.

    All draws of a case are tried in turn, then all pairs of them, for all cases at once, until nothing gets
    smaller: the change is locally the smallest, not always globally. The inputs of a case never change. The
    cases passed in must violate the law; so do those returned. It stops at the time `end`.
    """
    if not cases or not cases[0].draws:
        return cases
    best = list(cases)
    for _ in range(_ROUNDS):
        if time.perf_counter() > end:
            break
        before = [case.draws for case in best]
        for draw in range(len(best[0].draws)):
            best = _shrink_draws(best, (draw,), runner, tolerated, end)
        if [case.draws for case in best] == before:
            for pair in list(combinations(range(len(best[0].draws)), 2))[:_MOST_PAIRS]:
                best = _shrink_draws(best, pair, runner, tolerated, end)
        if [case.draws for case in best] == before:
            break
    return best


def _shrink_draws(
    cases: list[LawCase], which: tuple[int, ...], runner: Runner, tolerated: bool, end: float
) -> list[LawCase]:
    """Each case, with other values of some of its draws if those also violate the law and are smaller."""
    tried: list[LawCase] = []
    owner: list[int] = []
    for index, case in enumerate(cases):
        choices = [_candidates(case.draws[draw]) for draw in which]
        if len(which) > 1:
            choices = [_fewer(values) for values in choices]
        for values in product(*choices):
            draws = list(case.draws)
            for draw, value in zip(which, values, strict=True):
                draws[draw] = value
            tried.append(replace(case, draws=tuple(draws)))
            owner.append(index)
    best = list(cases)
    chosen: dict[int, tuple[tuple[float, ...], Frame, int]] = {}
    for start, judged in _judged(tried, runner, tolerated, end):
        sizes = change_sizes(judged, [each.name for each in runner.plan.law.inputs]) if judged.size else []
        for row in range(judged.size):
            index = owner[start + int(judged.ids[row])]
            values = tuple(judged.draws[draw][row].item() for draw in which)
            size = (*sizes[row], sum(abs(value) for value in values), *values)
            if index not in chosen or size < chosen[index][0]:
                chosen[index] = (size, judged, row)
    for index, (_, judged, row) in chosen.items():
        best[index] = case_of(judged, row, runner.plan.law)
    return best


def _judged(
    tried: list[LawCase], runner: Runner, tolerated: bool, end: float
) -> Iterator[tuple[int, Frame]]:
    """Those of the cases that violate the law, and where their numbers begin.

    With an end, they are run in parts that grow, until it is over.
    """
    start, size = 0, len(tried) if end == math.inf else _FIRST_TRIED
    while start < len(tried) and (start == 0 or time.perf_counter() < end):
        yield start, run_cases(tried[start : start + size], runner, tolerated=tolerated)
        start, size = start + size, 2 * size


def _fewer(values: list[int | float]) -> list[int | float]:
    """Some of the candidates, evenly spread, including the ones nearest to zero and the last ones."""
    step = max(1, len(values) // _TRIED_OF_PAIR)
    return list(dict.fromkeys([*values[: _TRIED_OF_PAIR // 2], *values[::step], *values[-2:]]))


def _candidates(value: int | float) -> list[int | float]:
    """Values nearer to zero: all of the nearest, then in ever coarser steps, and the value itself."""
    if isinstance(value, float):
        even = [value * step / _TRIED for step in range(_TRIED)]
        return [*even, *(value * (1 - 2.0**-bit) for bit in range(6, _BISECTED)), value]
    sign = -1 if value < 0 else 1
    near = [sign * step for step in range(min(abs(value), _TRIED // 2) + 1)]
    steps = [value - sign * (abs(value) * step // _TRIED) for step in range(_TRIED)]
    below = [value - sign * (1 << bit) for bit in range(abs(value).bit_length())]
    beyond = [-each for each in near[1:4]]
    return list(dict.fromkeys([*near, *steps, *below, *beyond, value + sign, value]))


def run_cases(
    cases: list[LawCase], runner: Runner, *, one_by_one: bool = False, tolerated: bool = False
) -> Frame:
    """Run cases with their current draws; returns the frame of those that violate the law.

    With `tolerated`, it includes those that violate only what is ensured of a share of the tests.
    """
    frame, draws = frame_of(cases)
    given = Given(draws)
    prepared = runner.prepare(frame, given)
    judged = runner.judge(prepared, given, one_by_one=one_by_one)
    return judged.frame.where(~judged.holds & (tolerated | ~judged.tolerated))


def change_sizes(frame: Frame, inputs: list[str]) -> list[tuple[float, float]]:
    """How far each case's records are from its first input: how many entries differ, and by how much."""
    base = frame.values[inputs[0]]
    assert isinstance(base, Records)  # inputs are records
    places, amount = np.zeros(frame.size), np.zeros(frame.size)
    for name, value in frame.values.items():
        if name in inputs or not isinstance(value, Records) or value.data.shape != base.data.shape:
            continue
        differs = _differs(base.data, value.data)
        places += differs.sum(axis=1)
        amount += _amount(base.data, value.data, differs)
    return list(zip(places.tolist(), amount.tolist(), strict=True))


def _differs(a: NDArray[np.generic], b: NDArray[np.generic]) -> NDArray[np.bool_]:
    return ~same_values(a, b).reshape(len(a), -1)


def _amount(
    a: NDArray[np.generic], b: NDArray[np.generic], differs: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The sum of differences of numbers, and of lengths of strings."""
    if a.dtype.kind in "biuf" and b.dtype.kind in "biuf":
        gaps = np.abs(a.astype(np.float64) - b.astype(np.float64)).reshape(len(a), -1)
        return np.asarray(np.where(differs & np.isfinite(gaps), gaps, 0.0).sum(axis=1))
    total = np.zeros(len(a))
    flat_a, flat_b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    for row, place in np.argwhere(differs):
        old, new = flat_a[row, place], flat_b[row, place]
        if isinstance(old, str) and isinstance(new, str):
            total[row] += abs(len(old) - len(new)) + 1
        elif isinstance(old, int | float) and isinstance(new, int | float):
            total[row] += abs(old - new)
    return total


# Whether user code gives the same results when run again: checked before a claim about all draws


#: How many cases are run twice, and how many records are predicted together to compare with single runs.
_CASES = 64
_BATCH = 64
#: Scores closer than this share of the largest of them differ only by rounding.
_CLOSE = 1e-4


def what_wavers(runner: Runner, source: InputSource, most: int = _CASES) -> str:
    """What gives other results for the same cases when run a second time; empty if nothing does.

    Only `most` cases are run twice, so code that rarely draws at random may go unnoticed.
    """
    quiet = runner.alike()
    size = source.size or 0
    rows = np.unique(np.linspace(0, size - 1, min(size, most)).astype(np.int64))
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


#: A violation and its sort key.
_Ranked = tuple[tuple[float, ...], LawViolation]
#: Runs some work; an interruption (Ctrl-C) ends only that work.
Guard = Callable[[Callable[[], None]], None]


@dataclass(frozen=True)
class Confirmed:
    """The violations that are more than rounding, the largest first, and how many are not.

    `unrepeatable` ones did not violate when run again although no scores are close, so not by rounding.
    """

    violations: tuple[LawViolation, ...]
    rounding: int
    unrepeatable: int


def confirm(
    kept: Sequence[KeptViolation],
    runner: Runner,
    *,
    shrinks: bool,
    guard: Guard,
    end: float = math.inf,
) -> Confirmed:
    """The violations that also show when records are predicted one by one, and how many do not.

    They are shrunk first if asked for. An interruption keeps those confirmed so far; so does the time
    `end`, but one is confirmed in any case.
    """
    sure: list[_Ranked] = []
    vanished: list[LawCase] = []
    for tolerated in (False, True):
        frames = [each.frame for each in kept if each.is_tolerated is tolerated]
        cases = [case_of(frame, 0, runner.plan.law) for frame in frames]
        small = list(cases)
        if shrinks and cases:
            guard(partial(_make_small, small, runner, tolerated, end))
        guard(partial(_run_again, small, cases, runner, tolerated, sure, vanished, end))
    unrepeatable = 0

    def compare() -> None:
        nonlocal unrepeatable
        unrepeatable = sum(not scores_are_close(case, runner) for case in vanished)

    guard(compare)
    ordered = sorted(sure, key=lambda each: each[0])
    return Confirmed(tuple(each for _, each in ordered), len(vanished) - unrepeatable, unrepeatable)


def _make_small(cases: list[LawCase], runner: Runner, tolerated: bool, end: float) -> None:
    cases[:] = shrink(cases, runner, tolerated=tolerated, end=end)


def _run_again(
    small: list[LawCase],
    cases: list[LawCase],
    runner: Runner,
    tolerated: bool,
    sure: list[_Ranked],
    vanished: list[LawCase],
    end: float,
) -> None:
    for smallest, original in zip(small, cases, strict=True):
        if sure and time.perf_counter() > end:
            return
        found = _confirmed(smallest, runner, tolerated) or _confirmed(original, runner, tolerated)
        if found is None:
            vanished.append(original)
        else:
            sure.append(found)


def _confirmed(case: LawCase, runner: Runner, is_tolerated: bool) -> _Ranked | None:
    """The violation and its sort key: the largest first, then those that change the least."""
    again = run_cases([case], runner, one_by_one=True, tolerated=is_tolerated)
    if again.size == 0:
        return None
    (change,) = change_sizes(again, [each.name for each in runner.plan.law.inputs])
    rank = (float(is_tolerated), -float(runner.sizes(again, np.array([0]))[0]), *change)
    found = case_of(again, 0, runner.plan.law)
    return rank, LawViolation(found, put_in_words(again, runner), is_tolerated)


def put_in_words(violating: Frame, runner: Runner) -> str:
    """The first of these cases in words: the change, the decisions, and what is not declared."""
    plan = runner.plan
    said = describe(case_of(violating, 0, plan.law), plan.law, plan.domain)
    outside = runner.rules.reasons(violating, plan.judged_records, plan.law.inputs[0].name)
    return f"{said}, outside what the domain declares: {'; '.join(outside)}" if outside else said


# Violations of an earlier test, run again


@dataclass(frozen=True)
class SavedViolations:
    """A saved test: the law itself, the names of its domain and its model, and the cases."""

    law: Law
    domain: str | None
    model: str
    model_sha256: str | None
    source: str
    cases: tuple[LawCase, ...]
    words: tuple[str, ...]
    #: Whether all random calls of a case had the same numbers, as in files of version 1.
    one_stream: bool = False
    #: The violated conditions on all tests together, which no single case shows.
    over_all: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replayed:
    """A saved violation run again: in words if it still violates the law, otherwise None."""

    before: str
    now: str | None


def replay_violations(
    saved: SavedViolations, model: Model, domain: Domain | None, *, allow_code: bool = True
) -> tuple[Replayed, ...]:
    """Run every saved case again, record by record. Raises InputError if that is not possible."""
    plan = make_plan(saved.law, domain, allow_code=allow_code, one_stream=saved.one_stream)
    wanted = len(plan.random)
    uses_labels = "label(" in saved.law.text and saved.source == "test" and plan.domain.inputs is not None
    source = find_source("test", plan.domain) if uses_labels else None
    labels = _no_labels if source is None else labels_of(plan.domain, source)
    runner = Runner(plan, model, labels)
    replayed = []
    for case, words in zip(saved.cases, saved.words, strict=True):
        if len(case.draws) != wanted:
            raise InputError(f"A saved case has {len(case.draws)} draws, but the law makes {wanted}.")
        for name, record in case.inputs.items():
            as_records([record], plan.domain.layout, f"The saved input {name}")
        if source is not None and any(row >= (source.size or 0) for row in case.rows.values() if row):
            raise InputError(f"A saved case refers to a row outside the test set of {source.size} rows.")
        frame = run_cases([case], runner, one_by_one=True, tolerated=True)
        if runner.errors.count:
            raise InputError(f"Replaying failed: {runner.errors.kept[0].reason}.")
        now = put_in_words(frame, runner) if frame.size else None
        replayed.append(Replayed(words, now))
    return tuple(replayed)


def _no_labels() -> Any:
    raise InputError("The saved cases do not come from a test set with labels.")


# The Python code that replaying a file of violations would run


def code_named(law: Law, *, domain: str | None, model: str | None) -> tuple[str, ...]:
    """Which of the law, the domain and the model that a file names are code, in words; None if none is.

    Shipped domains are ours, and files of numbers (ONNX, trees) are not code.
    """
    found = []
    if predictions(law) is None:
        found.append(f"the block of its law (line {law.block.at.line})")
    if domain is not None and (path := domain_file(domain)) is not None:
        found.append(f"the domain {path}")
    if model is not None and is_code(model):
        found.append(f"the model {model}")
    return tuple(found)
