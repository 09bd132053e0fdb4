"""Static checks of a law: what can be found wrong before anything runs."""

from __future__ import annotations

import ast as python
import builtins
import keyword
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from dokimos.core.readable import did_you_mean
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Feature
from dokimos.laws.domain.functions import BUILTINS, SCORES
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.choices import decisions_of
from dokimos.laws.language.law_layout import parse_block
from dokimos.laws.language.set_conditions import AROUND_MEANS, is_over_all_tests, outside_means
from dokimos.laws.language.syntax import Expression, Law, LawError, Position, Type, caret
from dokimos.laws.language.type_rules import Typing

#: Names that the Python block may use besides Python's own.
BLOCK_NAMES = ("predict", "MAX_INT", *BUILTINS)


class Severity(Enum):
    """Errors keep a law from running, warnings do not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class LawProblem:
    """One problem of a law."""

    at: Position
    message: str
    severity: Severity = Severity.ERROR

    def shown(self, law: Law) -> str:
        """`file:line:column: message` with the line and a caret."""
        word = "" if self.severity is Severity.ERROR else "warning: "
        return (
            f"{law.name}:{self.at.line}:{self.at.column}: {word}{self.message}.{caret(law.text, self.at)}"
        )


def require_checked(law: Law, domain: Domain | None) -> None:
    """Raise LawError for the first error of a law, saying how many more there are."""
    errors = [each for each in check_law(law, domain) if each.severity is Severity.ERROR]
    if errors:
        more = f" (and {len(errors) - 1} more: see `dokimos law lint`)" if len(errors) > 1 else ""
        raise LawError(law.name, law.text, errors[0].at, f"{errors[0].message}{more}.")


def check_law(law: Law, domain: Domain | None = None) -> tuple[LawProblem, ...]:
    """All problems of a law, in the order of the text.

    Without a domain, functions and features are not checked.
    """
    checker = _Checker(law, domain)
    checker.run()
    return tuple(sorted(checker.problems, key=lambda each: (each.at.line, each.at.column)))


class _Checker:
    def __init__(self, law: Law, domain: Domain | None) -> None:
        self.law = law
        self.domain = domain
        self.problems: list[LawProblem] = []
        self.types: dict[str, Type] = {}
        self.used: set[str] = set()
        self.choices: dict[str, Feature] = decisions_of(law, domain)

    def error(self, at: Position, message: str) -> None:
        self.problems.append(LawProblem(at, message))

    def warn(self, at: Position, message: str) -> None:
        self.problems.append(LawProblem(at, message, Severity.WARNING))

    def run(self) -> None:
        law = self.law
        if not law.inputs:
            self.error(Position(1, 1), "the law has no input; declare one with `input x1;`")
        for statement in law.declarations:
            match statement:
                case laws.Input(name=name):
                    self._declare(name, self._record, statement.at)
                case laws.Output(name=name):
                    self._declare(name, Type.ANY, statement.at)
                case laws.Var(name=name, value=value):
                    kind = self._typed(value, outputs_allowed=False, name=name)
                    self._declare(name, kind, statement.at)
                case laws.Requires(condition=condition):
                    self._condition(condition, "requires", outputs_allowed=False)
        self._block()
        self._ensures()
        self._unused()

    @property
    def _record(self) -> Type:
        """The type of an input: if the domain names no features, records may be texts."""
        has_features = self.domain is not None and self.domain.layout is not None
        return Type.RECORD if has_features else Type.PLAIN_RECORD

    def _declare(self, name: str, kind: Type, at: Position) -> None:
        if name in self.types:
            self.error(at, f"{name} is declared twice; give each its own name")
        if name in BLOCK_NAMES:
            self.error(at, f"{name} is the name of a function; choose another name")
        elif keyword.iskeyword(name):
            self.error(at, f"{name} is a Python keyword, so the block cannot use it; choose another name")
        self.types[name] = kind

    def _typed(self, expression: Expression, *, outputs_allowed: bool, name: str | None = None) -> Type:
        """The type of an expression, which becomes the value of the variable `name` if that is given."""
        names = {each.name for each in self.law.outputs}
        later = {each.name: each.at for each in self.law.declarations if isinstance(each, laws.Named)}
        typing = Typing(
            types=self.types,
            later=later,
            outputs=names if not outputs_allowed else set(),
            domain=self.domain,
            error=self.error,
            warn=self.warn,
            choices=self.choices,
            takes_means=outputs_allowed,
        )
        kind = typing.of(expression)
        self.used |= typing.used
        chosen = typing.choice_of(expression)
        if name is not None and chosen is not None:
            self.choices[name] = chosen
        return kind

    def _condition(self, condition: Expression, word: str, *, outputs_allowed: bool) -> None:
        kind = self._typed(condition, outputs_allowed=outputs_allowed)
        if not kind.may_be(Type.BOOLEAN):
            self.error(condition.at, f"`{word}` needs a truth value, but this is {kind.value}")

    def _ensures(self) -> None:
        outputs = {each.name for each in self.law.outputs}
        for statement in self.law.ensures:
            self._condition(statement.condition, "ensures", outputs_allowed=True)
            self._over_all_tests(statement)
            mentioned = {each.name for each in statement.condition.walk() if isinstance(each, laws.Name)}
            if not mentioned & outputs and not self._scores(statement.condition):
                self.error(
                    statement.at, "this `ensures` mentions no output, so it says nothing about the model"
                )
        if not self.law.ensures:
            self.warn(self.law.block.at, "the law ensures nothing, so nothing can violate it")

    def _scores(self, condition: Expression) -> bool:
        """Whether a condition uses a score of the model."""
        own = {} if self.domain is None else self.domain.functions
        calls = [each.function for each in condition.walk() if isinstance(each, laws.Call)]
        return any(name in SCORES and name not in own for name in calls)

    def _over_all_tests(self, statement: laws.Ensures) -> None:
        """Check that an `ensures` on all tests together contains nothing about a single test."""
        percent, is_over_all = statement.percent, is_over_all_tests(statement, self.domain)
        if percent is not None and not 0 < (percent.value or 0) < 100:  # type: ignore[operator]
            self.error(
                percent.at, "the share must be above 0 % and below 100 %; leave it out for all tests"
            )
        if percent is not None and is_over_all:
            self.error(percent.at, "a mean is over all tests, so it cannot hold in a share of them")
        for each in outside_means(statement.condition, self.domain) if is_over_all else ():
            if isinstance(each, laws.Name):
                message = f"{each.name} is outside mean(…), but this `ensures` is about all tests together"
                self.error(each.at, message)
            elif isinstance(each, laws.Call) and each.function not in AROUND_MEANS:
                self.error(each.at, f"{each.function} is outside mean(…); only abs, min and max may be")
            elif isinstance(each, laws.ForAll | laws.FeatureOf | laws.Update):
                self.error(each.at, "this is outside mean(…), where only numbers are allowed")

    def _block(self) -> None:
        """Check that every output is assigned, and every name that is read is known."""
        block = self.law.block
        tree = python.Module(parse_block(block.text), [])
        stored, loaded = _names(tree)
        for output in self.law.outputs:
            if output.name not in stored:
                message = f"the block never assigns the output {output.name}"
                self.error(output.at, message + did_you_mean(output.name, stored))
        self.used |= {name for name, _ in loaded} | stored
        if self.domain is None:
            return
        known = {*self.types, *stored, *BLOCK_NAMES, *dir(builtins), *self.domain.functions}
        known |= {each.name for each in self.law.imports} | {self.domain.name}
        for name, node in loaded:
            if name not in known:
                known.add(name)
                at = self._place_in_block(node)
                self.error(
                    at, f"the block uses {name}, which is not declared{did_you_mean(name, known - {name})}"
                )

    def _place_in_block(self, node: python.Name) -> Position:
        block = self.law.block
        column = node.col_offset + 1
        first = block.text.partition("\n")[0]
        if node.lineno == 1 and first.strip():
            column += block.at.column + len(first) - len(first.lstrip())
        return Position(block.at.line + node.lineno - 1, column)

    def _unused(self) -> None:
        for each in self.law.inputs:
            if each.name not in self.used:
                self.error(each.at, f"the input {each.name} is never used")
        for variable in self.law.variables:
            if variable.name not in self.used:
                self.warn(variable.at, f"the variable {variable.name} is never used")


def _names(tree: python.AST) -> tuple[set[str], list[tuple[str, python.Name]]]:
    """The names that Python code binds, and those that it reads."""
    stored: set[str] = set()
    loaded: list[tuple[str, python.Name]] = []
    binders: dict[type, Callable[[python.AST], Iterable[str]]] = {
        python.arg: lambda node: [node.arg],  # type: ignore[attr-defined]
        python.FunctionDef: lambda node: [node.name],  # type: ignore[attr-defined]
        python.ClassDef: lambda node: [node.name],  # type: ignore[attr-defined]
        python.ExceptHandler: lambda node: [node.name] if node.name else [],  # type: ignore[attr-defined]
        python.alias: lambda node: [(node.asname or node.name).partition(".")[0]],  # type: ignore[attr-defined]
    }
    for node in python.walk(tree):
        if isinstance(node, python.Name):
            if isinstance(node.ctx, python.Load):
                loaded.append((node.id, node))
            else:
                stored.add(node.id)
        elif type(node) in binders:
            stored.update(binders[type(node)](node))
    return stored, loaded
