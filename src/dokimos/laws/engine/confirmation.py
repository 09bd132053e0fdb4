"""Confirms violations as more than rounding: they are shrunk, and run again record by record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dokimos.laws.engine.cases import LawCase, case_of
from dokimos.laws.engine.descriptions import describe
from dokimos.laws.engine.determinism import scores_are_close
from dokimos.laws.engine.frame import Frame
from dokimos.laws.engine.results import LawViolation
from dokimos.laws.engine.runner import Runner
from dokimos.laws.engine.shrinking import change_sizes, run_cases, shrink
from dokimos.laws.engine.tallies import KeptViolation

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


def confirm(kept: Sequence[KeptViolation], runner: Runner, *, shrinks: bool, guard: Guard) -> Confirmed:
    """The violations that also show when records are predicted one by one, and how many do not.

    They are shrunk first if asked for. An interruption keeps those confirmed so far.
    """
    sure: list[_Ranked] = []
    vanished: list[LawCase] = []
    for tolerated in (False, True):
        frames = [each.frame for each in kept if each.is_tolerated is tolerated]
        cases = [case_of(frame, 0, runner.plan.law) for frame in frames]
        small = list(cases)
        if shrinks and cases:
            guard(partial(_make_small, small, runner, tolerated))
        guard(partial(_run_again, small, cases, runner, tolerated, sure, vanished))
    unrepeatable = 0

    def compare() -> None:
        nonlocal unrepeatable
        unrepeatable = sum(not scores_are_close(case, runner) for case in vanished)

    guard(compare)
    ordered = sorted(sure, key=lambda each: each[0])
    return Confirmed(tuple(each for _, each in ordered), len(vanished) - unrepeatable, unrepeatable)


def _make_small(cases: list[LawCase], runner: Runner, tolerated: bool) -> None:
    cases[:] = shrink(cases, runner, tolerated=tolerated)


def _run_again(
    small: list[LawCase],
    cases: list[LawCase],
    runner: Runner,
    tolerated: bool,
    sure: list[_Ranked],
    vanished: list[LawCase],
) -> None:
    for smallest, original in zip(small, cases, strict=True):
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
