"""What is true of every record of a domain: `is_recid == 0 ==> r_charge_degree == "none"`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain, load_domain
from dokimos.laws.domain.features import Layout
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.choices import ChoiceNames, rewrite
from dokimos.laws.language.parser import parse_condition
from dokimos.laws.language.syntax import Expression, Law, LawError, Position, Type
from dokimos.laws.language.type_rules import Typing

#: The name of the record in the condition of a constraint.
RECORD = "record"
#: Functions that need nothing but numbers and strings.
_FUNCTIONS = ("abs", "min", "max", "strConcat")


@dataclass(frozen=True)
class Constraint:
    """A condition that every record of a domain satisfies, as written and as an expression on RECORD.

    Features are `FeatureOf(Name(RECORD), …)`, and values of choices are indices. `features` are those that
    it mentions.
    """

    text: str
    condition: Expression
    features: frozenset[str]


def constraints_of(domain: Domain) -> tuple[Constraint, ...]:
    """The constraints of a domain. Raises LawError, with the place, if one is wrong."""
    if domain.layout is None:
        return ()
    return tuple(_constraint(text, domain, domain.layout) for text in domain.constraints)


def _constraint(text: str, domain: Domain, layout: Layout) -> Constraint:
    name = f"CONSTRAINTS of the domain {domain.name}"

    def error(at: Position, message: str) -> None:
        raise LawError(name, text, at, f"{message}.")

    condition = parse_condition(text, name=name)
    for each in condition.walk():
        if isinstance(each, laws.Call) and each.function not in _FUNCTIONS:
            error(each.at, f"a constraint can call only {', '.join(_FUNCTIONS)}, not {each.function}")
        if isinstance(each, laws.FeatureOf | laws.Update):
            error(each.at, "a constraint is about one record: write its features by their names")
        if isinstance(each, laws.ForAll) and each.variable in layout.names:
            error(each.at, f"{each.variable} is a feature; give the variable of `forall` another name")
    features = frozenset(_features(condition, layout, name, text))
    on_record = rewrite(condition, lambda each: _of_record(each, features))
    typing = Typing(types={RECORD: Type.RECORD}, later={}, outputs=set(), domain=domain, error=error)
    kind = typing.of(on_record)
    if not kind.may_be(Type.BOOLEAN):
        error(condition.at, f"a constraint must be a truth value, but this is {kind.value}")
    return Constraint(text, rewrite(on_record, ChoiceNames(layout).resolved), features)


def _features(
    expression: Expression, layout: Layout, name: str, text: str, bound: tuple[str, ...] = ()
) -> Iterator[str]:
    """The names of features in an expression. Raises LawError if a name is not a feature."""
    if isinstance(expression, laws.Name) and expression.name not in bound:
        try:
            layout.named(expression.name)
        except InputError as problem:
            raise LawError(name, text, expression.at, f"{problem}.") from None
        yield expression.name
    inside = (*bound, expression.variable) if isinstance(expression, laws.ForAll) else bound
    for child in expression.children():
        yield from _features(child, layout, name, text, inside)


def _of_record(expression: Expression, features: frozenset[str]) -> Expression:
    if isinstance(expression, laws.Name) and expression.name in features:
        return laws.FeatureOf(laws.Name(RECORD, at=expression.at), expression.name, at=expression.at)
    return expression


# The domain that a law imports


def domain_of(
    law: Law, *, folder: Path | None = None, given: str | Path | None = None, allow_code: bool = True
) -> Domain | None:
    """The domain that a law imports, or `given`; None if there is neither.

    If a law imports several, the first one counts, extended by the others. Raises what `load_domain` does,
    and LawError if a constraint of the domain is wrong.
    """
    names = [given] if given is not None else [each.name for each in law.imports]
    found: Domain | None = None
    for name in names:
        domain = load_domain(name, folder=folder, allow_code=allow_code)
        found = domain if found is None else found.with_functions_of(domain)
    if found is not None:
        constraints_of(found)
    return found
