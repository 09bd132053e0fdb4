"""Which of the violations found are more than rounding: made small, and run again record by record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dokimos.laws.engine.cases import LawCase, case_of
from dokimos.laws.engine.descriptions import describe
from dokimos.laws.engine.frame import Frame
from dokimos.laws.engine.results import LawViolation
from dokimos.laws.engine.runner import Runner
from dokimos.laws.engine.shrinking import run_cases, shrink

#: Runs some work; an interruption ends that work and nothing else.
Guard = Callable[[Callable[[], None]], None]


def confirm(
    kept: Sequence[Frame], runner: Runner, *, shrinks: bool, guard: Guard
) -> tuple[tuple[LawViolation, ...], int]:
    """The violations, shrunk where asked for, that also show when records are predicted one by one.

    And how many do not. An interruption leaves what has been confirmed until then.
    """
    law = runner.plan.law
    cases = [case_of(frame, 0, law) for frame in kept]
    small = list(cases)

    def make_small() -> None:
        small[:] = shrink(cases, runner)

    if shrinks:
        guard(make_small)
    sure: list[LawViolation] = []
    rounding: list[LawCase] = []

    def run_again() -> None:
        for smallest, original in zip(small, cases, strict=True):
            found = _confirmed(smallest, runner) or _confirmed(original, runner)
            if found is None:
                rounding.append(original)
            else:
                sure.append(found)

    guard(run_again)
    return tuple(sure), len(rounding)


def _confirmed(case: LawCase, runner: Runner) -> LawViolation | None:
    again = run_cases([case], runner, one_by_one=True)
    if again.size == 0:
        return None
    return LawViolation(case_of(again, 0, runner.plan.law), put_in_words(again, runner))


def put_in_words(violating: Frame, runner: Runner) -> str:
    """The first of these cases: what changed, what the model made of it, and what is not declared."""
    plan = runner.plan
    said = describe(case_of(violating, 0, plan.law), plan.law, plan.domain)
    outside = runner.rules.reasons(violating, plan.judged_records, plan.law.inputs[0].name)
    return f"{said}, outside of what the domain declares: {'; '.join(outside)}" if outside else said
