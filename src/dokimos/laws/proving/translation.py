"""Translates a law into a question: `randInt(a, b)` becomes "for every value"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import lcm
from typing import Any

from dokimos.checker.lemmas.zones import (
    ALWAYS,
    FALSE,
    Comparison,
    Either,
    Every,
    ForbiddenDecisions,
    Formula,
    Grid,
    Number,
    Options,
    Quantity,
    Sign,
    Span,
    Values,
    Zone,
    comparisons,
    exact,
    simplified,
    with_terms,
)
from dokimos.checker.trees.leaves import ForbiddenScores, ScoreComparison
from dokimos.laws.domain.features import Feature, Kind, Layout
from dokimos.laws.domain.functions import Above
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.record_constraints import RECORD, constraints_of
from dokimos.laws.language.set_conditions import is_over_all_tests
from dokimos.laws.proving.expressions import ExpressionReader, Record, Refusal
from dokimos.laws.proving.question import CaseVariable, Forbidden, LawQuestion, PredictedRecord

#: The most combinations of decisions that are enumerated.
_MOST_COMBINATIONS = 10_000


def translate(
    plan: LawPlan, classes: Sequence[Any] | None, *, constrained: bool = True, reals: Grid = Grid.REAL
) -> LawQuestion:
    """The question whether a model with these classes violates the law in the set that the domain has.

    Without classes, the model's decisions are numbers, its only score for each record.

    A case is in the set if the features of all inputs, and of all records that the model decides on, are in
    their ranges and, with `constrained`, satisfy the CONSTRAINTS of the domain. `classes` are the decisions
    that the model's classes represent. The law's own arithmetic is exact. Raises Refusal, with the reason,
    if the law cannot be translated.
    """
    expect_translatable(plan)
    if plan.domain.layout is None:
        raise Refusal(f"the domain {plan.domain.name} declares no FEATURES, so there is no set of records")
    work = _Translation(plan, plan.domain.layout, reals)
    inputs = {each.name: work.add_input(each.name) for each in plan.law.inputs}
    reader = ExpressionReader(plan, dict(inputs), {})
    for step in plan.steps:
        for call in step.random:
            work.add_draw(call, reader)
        if isinstance(step.statement, laws.Var):
            reader.values[step.statement.name] = reader.value(step.expression)
        else:
            work.conditions.append(reader.condition(step.expression))
    for call in plan.random_in_ensures:
        work.add_draw(call, reader)
    predicted = list(dict.fromkeys(each.record for each in plan.predictions or ()))
    records = {name: work.settle(name, reader.record_named(name)) for name in predicted}
    if constrained:
        work.constrain([*inputs.values(), *(Record(each.features) for each in records.values())])
    return work.question(reader, list(records.values()), classes, constrained=constrained)


def expect_translatable(plan: LawPlan) -> None:
    """Raise Refusal where a law itself, whatever the model, cannot be asked of all cases."""
    if plan.predictions is None:
        raise Refusal("the block does more than predict: only a run can tell what its code does")
    for call in plan.calls:
        function = plan.domain.functions.get(call.function)
        if function is not None and function.takes_rng:
            reason = f"{call.function} draws noise at random itself: no set of cases stands for all draws"
            raise Refusal(reason, call.at)
    if plan.domain.encode is not None or not isinstance(plan.domain.decide, Above | None):
        what = "encode" if plan.domain.encode is not None else "decide"
        layout = plan.domain.layout
        texts = [each.name for each in layout.features if each.holds_strings] if layout else []
        about = f"records hold text ({', '.join(texts)}), and " if texts else ""
        raise Refusal(f"{about}the domain's function {what} is code: only a run can tell what it does")
    for each in plan.law.ensures:
        if each.percent is not None or is_over_all_tests(each, plan.domain):
            raise Refusal("an `ensures` is about a share or a mean of tests, not about every case", each.at)


@dataclass
class _Translation:
    """The variables, values and conditions collected so far."""

    plan: LawPlan
    layout: Layout
    reals: Grid
    names: list[CaseVariable] = field(default_factory=list)
    values: list[Values] = field(default_factory=list)
    conditions: list[Formula] = field(default_factory=list)
    draws: list[int] = field(default_factory=list)
    #: The two conditions that a draw is between its ends, by its variable.
    ranges: dict[int, tuple[Comparison, Comparison]] = field(default_factory=dict)
    #: The variable that a feature is given by, and the quantity that it equals, of every feature set.
    equalities: list[tuple[int, Quantity]] = field(default_factory=list)
    inputs: list[PredictedRecord] = field(default_factory=list)
    _settled: dict[tuple[int, Quantity], int] = field(default_factory=dict)

    def add_input(self, name: str) -> Record:
        """The record of an input: a variable for each feature."""
        features = []
        for feature in self.layout.features:
            value = Quantity.of(self._add(f"{name}.{feature.name}", self.declared(feature)))
            if feature.may_miss:
                gap = self._add(f"{name}.{feature.name} is missing", Span(0, 1))
                value = Quantity(value.constant, value.terms, frozenset({gap}))
            features.append(value)
        self.inputs.append(PredictedRecord(name, tuple(features)))
        return Record(tuple(features))

    def add_draw(self, call: laws.Call, reader: ExpressionReader) -> None:
        """A variable for what a random call gives: every value between its ends."""
        low, high = (reader.number(each) for each in call.arguments)
        zone = Zone(tuple(self.values))
        grid = Grid.WHOLE if call.function == "randInt" else self.reals
        ends = Span(low.ends(zone)[0], high.ends(zone)[1], grid)
        draw = self._add(f"draw {len(self.draws) + 1}", ends)
        self.draws.append(draw)
        reader.draws[id(call)] = Quantity.of(draw)
        self.conditions += [low.there, high.there]
        self.ranges[draw] = (
            Comparison(low.plus(Quantity.of(draw), -1), Sign.AT_MOST),
            Comparison(Quantity.of(draw).plus(high, -1), Sign.AT_MOST),
        )
        self.conditions += self.ranges[draw]

    def _add(self, name: str, values: Values) -> int:
        self.names.append(CaseVariable(name, isinstance(values, Options)))
        self.values.append(values)
        return len(self.names) - 1

    def declared(self, feature: Feature) -> Values:
        """The values that a feature is declared to have. Raises Refusal if there are none."""
        if feature.kind is Kind.CHOICE:
            return Options(frozenset(range(-1 if feature.has_none else 0, feature.width)))
        if feature.holds_strings or feature.low is None or feature.high is None:
            raise Refusal(f"the feature {feature.name} has no declared range")
        grid = Grid.WHOLE if feature.kind is Kind.INTEGER else self.reals
        return Span(exact(feature.low), exact(feature.high), grid)

    def settle(self, name: str, record: Record) -> PredictedRecord:
        """The record with a variable, or a number, for every feature; each within what is declared."""
        features = []
        for place, (feature, quantity) in enumerate(
            zip(self.layout.features, record.features, strict=True)
        ):
            features.append(self._settle(f"{name}.{feature.name}", place, feature, quantity))
        return PredictedRecord(name, tuple(features))

    def _settle(self, name: str, place: int, feature: Feature, quantity: Quantity) -> Quantity:
        declared = self.declared(feature)
        if quantity.gaps and not feature.may_miss:
            self.conditions.append(quantity.there)
            quantity = Quantity(quantity.constant, quantity.terms)
        if ALWAYS in quantity.gaps:
            return Quantity(declared.low, (), quantity.gaps)
        if quantity.is_constant:
            if quantity.constant not in declared:
                self.conditions.append(FALSE)
                return Quantity(declared.low)
            return quantity
        if quantity.variable is not None and self.values[quantity.variable] == declared:
            return quantity
        if (place, quantity) not in self._settled:
            added = self._add(name, declared)
            self._settled[place, quantity] = added
            self.equalities.append((added, quantity))
        return Quantity(0, ((self._settled[place, quantity], 1),), quantity.gaps)

    def constrain(self, records: Sequence[Record]) -> None:
        """The constraints of the domain, of each of these records."""
        for record in dict.fromkeys(records):
            for constraint in constraints_of(self.plan.domain):
                reader = ExpressionReader(self.plan, {RECORD: record}, {})
                self.conditions.append(reader.condition(constraint.condition))

    def question(
        self,
        reader: ExpressionReader,
        records: list[PredictedRecord],
        classes: Sequence[Any] | None,
        *,
        constrained: bool,
    ) -> LawQuestion:
        """The question, in as few variables as possible."""
        named = [each.name for each in records]
        forbidden: Sequence[Forbidden] = (
            _limits(self.plan, reader, named)
            if classes is None
            else _forbidden(self.plan, reader, named, classes)
        )
        known = self._solved([each.where for each in forbidden])
        kept = [index for index in range(len(self.names)) if index not in known]
        number = {old: Quantity.of(new) for new, old in enumerate(kept)}
        conditions = [with_terms(with_terms(each, known), number) for each in self.conditions]
        found = simplified(Every(tuple(conditions)))
        domain = self.plan.domain
        with_constraints = " with its constraints" if constrained and domain.constraints else ""
        gaps = [each.name for each in self.layout.features if each.may_miss]
        if gaps:
            with_constraints += f", {', '.join(gaps)} missing or not"
        return LawQuestion(
            law=self.plan.law.name,
            layout=self.layout,
            variables=tuple(self.names[index] for index in kept),
            zone=Zone(tuple(self.values[index] for index in kept)),
            conditions=found.parts if isinstance(found, Every) else (found,),
            records=tuple(_renumbered(each, number) for each in records),
            forbidden=tuple(_rewritten(each, known, number) for each in forbidden),
            inputs=tuple(_renumbered(each, number) for each in self.inputs),
            draws=tuple(Quantity.of(draw).with_terms(known).with_terms(number) for draw in self.draws),
            over=f"the whole domain{with_constraints}",
        )

    def _solved(self, others: Sequence[Formula]) -> dict[int, Quantity]:
        """Draws that the features set determine, as quantities of the other variables.

        Where u = rest ± r, with r drawn, the cases are those with r = ±(u − rest): r need not be a variable
        of its own. A whole r is one only where u and the rest are whole. Other equalities are conditions,
        in the cases in which nothing in them is missing.

        Where the rest may be missing, r is one only by `_is_free_where_missing`, so that it may be any.
        `others` are further conditions in which r may occur.
        """
        known: dict[int, Quantity] = {}
        gaps: set[int] = set()  # each has one such draw: u and v of two might not go together
        for variable, quantity in self.equalities:
            now = quantity.with_terms(known)
            draw = next((each for each in now.terms if self._can_solve(each, now, variable)), None)
            if draw is not None and now.gaps:
                is_free = self._is_free_where_missing(draw, now, variable, others)
                draw = draw if is_free and not gaps & now.gaps else None
            if draw is None:
                difference = Quantity.of(variable).plus(now, -1)
                same = Comparison(difference, Sign.ZERO)
                self.conditions.append(Either((now.there.negated(), same)) if now.gaps else same)
                continue
            gaps |= now.gaps
            rest = now.plus(Quantity(0, (draw,)), -1)
            solved = {draw[0]: Quantity.of(variable).plus(rest, -1).times(draw[1])}
            known = {old: each.with_terms(solved) for old, each in known.items()} | solved
        return known

    def _can_solve(self, term: tuple[int, Number], quantity: Quantity, variable: int) -> bool:
        draw, factor = term
        if draw not in self.draws or factor not in (1, -1):
            return False
        values = self.values[draw]
        if not (isinstance(values, Span) and values.grid is Grid.WHOLE):
            return True
        factors = [quantity.constant, *(each for _, each in quantity.terms)]
        others = [variable, *(each for each, _ in quantity.terms)]
        return all(isinstance(each, int) for each in factors) and all(map(self._is_whole, others))

    def _is_free_where_missing(
        self, term: tuple[int, Number], quantity: Quantity, variable: int, others: Sequence[Formula]
    ) -> bool:
        """Whether a draw r in u = v ± r, where v is missing, may be taken to be what some u and v make it.

        Theorem. Let v be a feature of an input with a gap of its own, let every other comparison in which r
        occurs have that gap, and let the ends of r be the same in all cases. If some u and v in their
        ranges differ by a value of r, then each case with v missing agrees, in its records and in which
        conditions hold, with one in which r = ±(u − v) is between its ends.

        *Proof.* A comparison that has the gap is false whatever r, u and v are, and a record that has it
        has no value there. ∎
        """
        draw, factor = term
        rest = quantity.plus(Quantity(0, (term,)), -1)
        if not any(rest in each.features for each in self.inputs) or rest.variable is None:
            return False
        drawn, old, new = self.values[draw], self.values[rest.variable], self.values[variable]
        ends = [factor * (new.low - old.high), factor * (new.high - old.low)]
        own = self.ranges[draw]
        mentions = [
            each.quantity
            for formula in (*self.conditions, *others)
            for each in comparisons(formula)
            if draw in dict(each.quantity.terms) and each not in own
        ]
        mentions += [each for _, each in self.equalities if draw in dict(each.terms)]
        return (
            max(min(ends), drawn.low) <= min(max(ends), drawn.high)
            and all(len(each.quantity.terms) == 1 for each in own)
            and all(quantity.gaps <= each.gaps for each in mentions)
        )

    def _is_whole(self, variable: int) -> bool:
        values = self.values[variable]
        return isinstance(values, Options) or values.grid is Grid.WHOLE


def _rewritten(each: Forbidden, known: dict[int, Quantity], number: dict[int, Quantity]) -> Forbidden:
    """What is forbidden, with draws that are determined as quantities, in the variables that are kept."""
    where = simplified(with_terms(with_terms(each.where, known), number))
    if isinstance(each, ForbiddenDecisions):
        return ForbiddenDecisions(each.classes, where)
    quantities = [part.quantity.with_terms(known).with_terms(number) for part in each.parts]
    parts = [replace(part, quantity=q) for part, q in zip(each.parts, quantities, strict=True)]
    return ForbiddenScores(tuple(parts), where)


def _renumbered(record: PredictedRecord, number: dict[int, Quantity]) -> PredictedRecord:
    return PredictedRecord(record.name, tuple(each.with_terms(number) for each in record.features))


def _forbidden(
    plan: LawPlan, reader: ExpressionReader, records: list[str], classes: Sequence[Any]
) -> list[ForbiddenDecisions]:
    """Every combination of decisions that violates an `ensures` somewhere in the set, and where."""
    if len(classes) ** len(records) > _MOST_COMBINATIONS:
        raise Refusal(f"{len(records)} records with {len(classes)} classes each have too many combinations")
    found = []
    for combination in product(range(len(classes)), repeat=len(records)):
        decision = dict(zip(records, combination, strict=True))
        given = {each.output: classes[decision[each.record]] for each in plan.predictions or ()}
        inner = reader.with_outputs(given)
        holds = Every(tuple(inner.condition(each.condition) for each in plan.law.ensures))
        where = simplified(holds.negated())
        if where != FALSE:
            found.append(ForbiddenDecisions(combination, where))
    return found


# Laws on numbers: each score is a variable of its own, below all others, until comparisons are taken apart


def _limits(plan: LawPlan, reader: ExpressionReader, records: list[str]) -> list[ForbiddenScores]:
    """What scores of the records violate an `ensures` somewhere in the set, and where."""
    given = {
        each.output: Quantity.of(_score(records.index(each.record))) for each in plan.predictions or ()
    }
    inner = ExpressionReader(plan, reader.values | given, reader.draws)
    holds = Every(tuple(inner.condition(each.condition) for each in plan.law.ensures))
    found = []
    for alternative in _alternatives(simplified(holds.negated())):
        parts = [_score_comparison(each) for each in alternative if _has_score(each)]
        where = simplified(Every(tuple(each for each in alternative if not _has_score(each))))
        if where != FALSE:
            found.append(ForbiddenScores(tuple(parts), where))
    return found


def _score(record: int) -> int:
    return -2 - record


def _has_score(formula: Formula) -> bool:
    return any(variable < ALWAYS for each in comparisons(formula) for variable, _ in each.quantity.terms)


def _alternatives(formula: Formula) -> list[tuple[Formula, ...]]:
    """Conditions, each without scores or a comparison, of which all of one alternative must hold."""
    if not _has_score(formula):
        return [(formula,)]
    if isinstance(formula, Comparison):
        if formula.sign in (Sign.AT_MOST, Sign.BELOW):
            return [(formula,)]
        sign = Sign.AT_MOST if formula.sign is Sign.ZERO else Sign.BELOW
        both = Comparison(formula.quantity, sign), Comparison(formula.quantity.times(-1), sign)
        return [both] if formula.sign is Sign.ZERO else [(both[0],), (both[1],)]
    parts = [_alternatives(each) for each in formula.parts]
    if isinstance(formula, Either):
        return [each for part in parts for each in part]
    found: list[tuple[Formula, ...]] = [()]
    for part in parts:
        if len(found) * len(part) > _MOST_COMBINATIONS:
            raise Refusal("the law has too many combinations of comparisons of predictions")
        found = [(*one, *other) for one in found for other in part]
    return found


def _score_comparison(formula: Formula) -> ScoreComparison:
    """A comparison, times what makes the factors of scores whole."""
    assert isinstance(formula, Comparison)  # so `_alternatives` takes them apart
    factors = [(variable, Fraction(f)) for variable, f in formula.quantity.terms if variable < ALWAYS]
    whole = formula.quantity.times(lcm(*(f.denominator for _, f in factors)))
    return ScoreComparison(
        tuple((_score(variable), 0, int(f)) for variable, f in whole.terms if variable < ALWAYS),
        replace(whole, terms=tuple(each for each in whole.terms if each[0] > ALWAYS)),
        formula.sign,
    )
