"""A checked law, ready to run: which steps are done in which order."""

from __future__ import annotations

import ast as python
from dataclasses import dataclass, replace
from functools import cached_property
from types import CodeType

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.functions import RANDOM, SCORES
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.choices import resolve_choices, with_values
from dokimos.laws.language.law_layout import Prediction, predictions, runnable
from dokimos.laws.language.set_conditions import SetCondition, is_over_all_tests, set_conditions
from dokimos.laws.language.syntax import Expression, Law
from dokimos.laws.language.validation import require_checked


@dataclass(frozen=True)
class PlanStep:
    """The assignment of one variable, or one precondition; and the random calls to draw before it."""

    statement: laws.Var | laws.Requires
    random: tuple[laws.Call, ...]

    @property
    def expression(self) -> Expression:
        """What is evaluated."""
        return self.statement.value if isinstance(self.statement, laws.Var) else self.statement.condition


@dataclass(frozen=True)
class LawPlan:
    """The plan: the steps, the block (predictions in batches, or code case by case), the ensures."""

    law: Law
    domain: Domain
    steps: tuple[PlanStep, ...]
    random_in_ensures: tuple[laws.Call, ...]
    order_of_draws: dict[int, int]
    call_sites: dict[int, int]
    predictions: tuple[Prediction, ...] | None
    code: CodeType | None
    set_conditions: tuple[SetCondition, ...] = ()

    @cached_property
    def case_ensures(self) -> tuple[laws.Ensures, ...]:
        """What is ensured of each case, including what is ensured of a share of the tests only."""
        return tuple(each for each in self.law.ensures if not is_over_all_tests(each, self.domain))

    @property
    def calls(self) -> tuple[laws.Call, ...]:
        """All calls in the law."""
        return tuple(_calls(self.law))

    @property
    def random(self) -> tuple[laws.Call, ...]:
        """All random calls, in the order in which they are drawn."""
        return (*(call for step in self.steps for call in step.random), *self.random_in_ensures)

    @cached_property
    def judged_records(self) -> tuple[str, ...]:
        """The names of the records that the model is run on; all candidates if code runs it."""
        if self.predictions is not None:
            return tuple(dict.fromkeys([*(each.record for each in self.predictions), *self._scored]))
        return tuple(each.name for each in self.law.variables)

    @property
    def _scored(self) -> list[str]:
        """The names of the records whose scores the law uses."""
        own = self.domain.functions
        calls = [each for each in _calls(self.law) if each.function in SCORES and each.function not in own]
        first = [each.arguments[0] for each in calls]
        return [each.name for each in first if isinstance(each, laws.Name) and each.name in self._names]

    @property
    def _names(self) -> set[str]:
        return {each.name for each in (*self.law.inputs, *self.law.variables)}

    @property
    def calls_case_by_case(self) -> bool:
        """Whether the law calls a function of the domain that runs once for each case."""
        found = (self.domain.functions.get(each.function) for each in _calls(self.law))
        return any(each is not None and (each.batch is None or each.takes_rngs) for each in found)

    @cached_property
    def joins(self) -> int:
        """How many calls join strings."""
        return sum(each.function == "strConcat" for each in _calls(self.law))

    @property
    def is_finite(self) -> bool:
        """Whether only inputs and integers are drawn, before the block: all draws can be enumerated."""
        return self.endless is None

    @property
    def endless(self) -> str | None:
        """Why not all draws can be enumerated; None if they can."""
        if self.code is not None:
            return "the block does more than predict, and may draw at random itself"
        for each in _calls(self.law):
            function = self.domain.functions.get(each.function)
            if function is not None and function.takes_rng:
                return f"{each.function} draws at random itself"
        if any(call.function != "randInt" for call in self.random):
            return "randReal draws from infinitely many numbers"
        return "an `ensures` draws at random" if self.random_in_ensures else None


def make_plan(
    law: Law, domain: Domain | None, *, allow_code: bool = True, one_stream: bool = False
) -> LawPlan:
    """The plan of a law.

    Raises LawError if the law is wrong, InputError if code is refused. With `one_stream`, all random calls
    of a case get the same numbers, as in version 1 of files of violations.
    """
    domain = domain or Domain("none")
    require_checked(law, domain)
    written = set_conditions(law, domain)
    law, domain = resolve_choices(law, domain), with_values(domain)
    over_all = tuple(
        replace(each, text=other.text, mean_texts=other.mean_texts)
        for each, other in zip(set_conditions(law, domain), written, strict=True)
    )
    found = predictions(law)
    if found is None and not allow_code:
        place = f"{law.name}:{law.block.at.line}"
        raise InputError(
            f"{place}: the block does more than `d = predict(x)`; `allow_code=False` refuses to run it."
        )
    code = _compiled(law) if found is None else None
    steps = _scheduled(law)
    in_ensures = tuple(call for each in law.ensures for call in _random(each.condition))
    calls = [*(call for step in steps for call in step.random), *in_ensures]
    order = {id(call): index for index, call in enumerate(calls)}
    sites = {} if one_stream else {id(call): number for number, call in enumerate(_calls(law))}
    return LawPlan(law, domain, steps, in_ensures, order, sites, found, code, over_all)


def _compiled(law: Law) -> CodeType:
    """The block as code with the line numbers of the law's file."""
    tree = python.parse(runnable(law.block.text))
    return compile(python.increment_lineno(tree, law.block.at.line - 1), law.name, "exec")


def _scheduled(law: Law) -> tuple[PlanStep, ...]:
    """Variables in order, each precondition as early as it and those before it can be evaluated."""
    steps: list[PlanStep] = []
    waiting = list(law.requires)
    declared: set[str] = {each.name for each in law.inputs}
    variables = {each.name for each in law.variables}

    def judge_what_can_be() -> None:
        while waiting and _names(waiting[0].condition) & variables <= declared:
            condition = waiting.pop(0)
            steps.append(PlanStep(condition, _random(condition.condition)))

    judge_what_can_be()
    for variable in law.variables:
        steps.append(PlanStep(variable, _random(variable.value)))
        declared.add(variable.name)
        judge_what_can_be()
    return tuple(steps)


def _names(expression: Expression) -> set[str]:
    return {each.name for each in expression.walk() if isinstance(each, laws.Name)}


def _random(expression: Expression) -> tuple[laws.Call, ...]:
    return tuple(
        each for each in expression.walk() if isinstance(each, laws.Call) and each.function in RANDOM
    )


def _calls(law: Law) -> list[laws.Call]:
    return [each for each in law.expressions() if isinstance(each, laws.Call)]
