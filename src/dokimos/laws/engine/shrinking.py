"""Shrinks violations: to a locally smallest change of the records that still violates the law."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.engine.cases import LawCase, case_of, frame_of
from dokimos.laws.engine.drawing import Given
from dokimos.laws.engine.equality import same_values
from dokimos.laws.engine.frame import Frame, Records
from dokimos.laws.engine.runner import Runner

#: How many values of one draw are tried for one case at a time.
_TRIED = 48
#: The same for each of a pair of draws; and how many pairs are tried.
_TRIED_OF_PAIR = 12
_MOST_PAIRS = 6
#: A real number is bisected to this many bits.
_BISECTED = 24
_ROUNDS = 40


def shrink(cases: list[LawCase], runner: Runner, *, tolerated: bool = False) -> list[LawCase]:
    """Each case, with other draws that also violate the law and change the records less, if there are any.

    All draws of a case are tried in turn, then all pairs of them, for all cases at once, until nothing gets
    smaller: the change is locally the smallest, not always globally. The inputs of a case never change. The
    cases passed in must violate the law; so do those returned.
    """
    if not cases or not cases[0].draws:
        return cases
    best = list(cases)
    for _ in range(_ROUNDS):
        before = [case.draws for case in best]
        for draw in range(len(best[0].draws)):
            best = _shrink_draws(best, (draw,), runner, tolerated)
        if [case.draws for case in best] == before:
            for pair in list(combinations(range(len(best[0].draws)), 2))[:_MOST_PAIRS]:
                best = _shrink_draws(best, pair, runner, tolerated)
        if [case.draws for case in best] == before:
            break
    return best


def _shrink_draws(
    cases: list[LawCase], which: tuple[int, ...], runner: Runner, tolerated: bool
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
    judged = run_cases(tried, runner, tolerated=tolerated)
    best = list(cases)
    if judged.size == 0:
        return best
    sizes = change_sizes(judged, [each.name for each in runner.plan.law.inputs])
    chosen: dict[int, tuple[tuple[float, ...], int]] = {}
    for row in range(judged.size):
        index = owner[int(judged.ids[row])]
        values = tuple(judged.draws[draw][row].item() for draw in which)
        size = (*sizes[row], sum(abs(value) for value in values), *values)
        if index not in chosen or size < chosen[index][0]:
            chosen[index] = (size, row)
    for index, (_, row) in chosen.items():
        best[index] = case_of(judged, row, runner.plan.law)
    return best


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
