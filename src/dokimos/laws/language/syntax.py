"""The syntax tree of a law: frozen values that know their line and column (ignored in comparisons)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dokimos.core.errors import Place, UnreadableFile
from dokimos.laws.domain.features import Slot

if TYPE_CHECKING:
    import dokimos


@dataclass(frozen=True)
class Position:
    """A place in the text of a law, both 1-based."""

    line: int
    column: int


NOWHERE = Position(1, 1)


@dataclass(frozen=True)
class SyntaxNode:
    """Anything that has a place in a law."""

    at: Position = field(default=NOWHERE, compare=False, kw_only=True)


@dataclass(frozen=True)
class Expression(SyntaxNode):
    """Anything that has a value."""

    def children(self) -> tuple[Expression, ...]:
        """The expressions directly inside this one, in the order they are written."""
        return ()

    def walk(self) -> Iterator[Expression]:
        """This expression and all its parts, each after its own parts."""
        for child in self.children():
            yield from child.walk()
        yield self


@dataclass(frozen=True)
class Literal(Expression):
    """A value as written; None is `null`."""

    value: bool | int | float | str | None

    def __eq__(self, other: object) -> bool:
        """The same value of the same type: 1, 1.0 and true are three literals."""
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Name(Expression):
    """An input, a variable, an output, a variable of `forall`, or a feature where one is expected."""

    name: str


@dataclass(frozen=True)
class Unary(Expression):
    """`!` or `-` before an operand."""

    operator: str
    operand: Expression

    def children(self) -> tuple[Expression, ...]:
        """See Expression."""
        return (self.operand,)


@dataclass(frozen=True)
class Binary(Expression):
    """An operator between two operands."""

    operator: str
    left: Expression
    right: Expression

    def children(self) -> tuple[Expression, ...]:
        """See Expression."""
        return (self.left, self.right)


@dataclass(frozen=True)
class Call(Expression):
    """A builtin, or a function of the domain."""

    function: str
    arguments: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        """See Expression."""
        return self.arguments


@dataclass(frozen=True)
class FeatureOf(Expression):
    """`x1.income`, or `x1.f3` for the feature at index 3."""

    record: Expression
    feature: str

    def children(self) -> tuple[Expression, ...]:
        """See Expression."""
        return (self.record,)


@dataclass(frozen=True)
class Update(Expression):
    """`x1[income := v]`: the record with features changed; values are computed from the old record."""

    record: Expression
    changes: tuple[tuple[str | int, Expression], ...]
    #: Where each feature is in the text.
    places: tuple[Position, ...] = field(default=(), compare=False, kw_only=True)

    def children(self) -> tuple[Expression, ...]:
        """See Expression."""
        return (self.record, *(value for _, value in self.changes))


@dataclass(frozen=True)
class ForAll(Expression):
    """`forall i in 0..9: body`, true if the body is true for every integer, both ends included."""

    variable: str
    low: Expression
    high: Expression
    body: Expression

    def children(self) -> tuple[Expression, ...]:
        """See Expression."""
        return (self.low, self.high, self.body)


@dataclass(frozen=True)
class LawStatement(SyntaxNode):
    """One statement of a law; `end_line` is the line of its semicolon."""

    end_line: int = field(default=1, compare=False, kw_only=True)


@dataclass(frozen=True)
class Named(LawStatement):
    """A statement that is about one name."""

    name: str


@dataclass(frozen=True)
class Import(Named):
    """`import NAME;`"""


@dataclass(frozen=True)
class Input(Named):
    """`input x1;`"""


@dataclass(frozen=True)
class Var(Named):
    """`var v1 := …;`"""

    value: Expression


#: What a variable is called with that has every value of a feature, which is the only argument: a literal.
EVERY_VALUE = "every value of"


@dataclass(frozen=True)
class Requires(LawStatement):
    """`requires …;`"""

    condition: Expression


@dataclass(frozen=True)
class Output(Named):
    """`output d1;`"""


@dataclass(frozen=True)
class Block(LawStatement):
    """The Python between the braces: the text as written, and what it means to Python (compared)."""

    text: str = field(compare=False)
    meaning: str


@dataclass(frozen=True)
class Ensures(LawStatement):
    """`ensures …;`, or `ensures … in 99 %;` with the share of tests in which it must hold."""

    condition: Expression
    percent: Literal | None = None


Declaration = Input | Var | Requires | Output


@dataclass(frozen=True)
class Comment(SyntaxNode):
    """A comment as written, with its own marks."""

    text: str
    end_line: int = field(compare=False, kw_only=True)


class _OfText(type):
    """Makes `Law("input x1; …")` the law with that text."""

    def __call__(cls, *parts: Any, **named: Any) -> Any:
        if len(parts) == 1 and isinstance(parts[0], str):
            from dokimos.laws.language.parser import parse_law

            return parse_law(parts[0], **named)
        return super().__call__(*parts, **named)


@dataclass(frozen=True)
class Law(metaclass=_OfText):
    """One parsed text. `name` is what messages call it, `text` is what was parsed, `path` the file, if any.

    `Law("input x1; …")` parses a text; raises LawError.
    """

    imports: tuple[Import, ...]
    declarations: tuple[Declaration, ...]
    block: Block
    ensures: tuple[Ensures, ...]
    name: str = field(default="law", compare=False)
    text: str = field(default="", compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)
    path: Path | None = field(default=None, compare=False)

    def test(self, model: Any = None, **options: Any) -> dokimos.LawResult:
        """Test a model against the law: `dokimos.test_law`, which says what the options are.

        Here and below, the `domain` may also be a DataFrame, whose rows are the records.
        """
        import dokimos

        return dokimos.test_law(self, model=model, **_with_domain(options)).results[0]

    def verify(self, model: Any = None, **options: Any) -> dokimos.VerifiedLaw:
        """Prove the law of a model, or find a violation: `dokimos.verify_law`."""
        import dokimos

        [verified] = dokimos.verify_law(self, model=model, **_with_domain(options))
        return verified

    def repair(self, model: Any = None, **options: Any) -> Any:
        """Change a network until it keeps the law: `dokimos.repair_law`, one for each seed."""
        import dokimos

        return dokimos.repair_law(self, model=model, **_with_domain(options))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs, in order."""
        return tuple(each for each in self.declarations if isinstance(each, Input))

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables, in order."""
        return tuple(each for each in self.declarations if isinstance(each, Var))

    @property
    def requires(self) -> tuple[Requires, ...]:
        """The preconditions, in order."""
        return tuple(each for each in self.declarations if isinstance(each, Requires))

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs, in order."""
        return tuple(each for each in self.declarations if isinstance(each, Output))

    @property
    def value_names(self) -> set[str]:
        """The names of inputs and variables."""
        return {each.name for each in self.declarations if isinstance(each, Input | Var)}

    def expressions(self) -> Iterator[Expression]:
        """Every expression of the law, with all its parts."""
        for statement in (*self.declarations, *self.ensures):
            if isinstance(statement, Var):
                yield from statement.value.walk()
            elif isinstance(statement, Requires | Ensures):
                yield from statement.condition.walk()


def _with_domain(options: dict[str, Any]) -> dict[str, Any]:
    if not hasattr(options.get("domain"), "columns"):
        return options
    from dokimos.laws.domain.data_frames import domain_of

    return options | {"domain": domain_of(options["domain"])}


# Errors in a law, shown with the line and a caret under the place


#: How many characters of a long line are shown on either side.
_AROUND = 60


class LawError(UnreadableFile):
    """A law that cannot be read or makes no sense. The message ends with the line and a caret under it."""

    def __init__(self, name: str, text: str, at: Position, reason: str) -> None:
        self.at = at
        super().__init__(Place(name, at.line, at.column), f"{reason}{caret(text, at)}")


def caret(text: str, at: Position) -> str:
    """The line at `at` and a caret under its column, each after a line break and four spaces."""
    lines = text.splitlines()
    if not 1 <= at.line <= len(lines):
        return ""
    line, before = lines[at.line - 1], at.column - 1
    if len(line) > 2 * _AROUND:
        start, end = max(0, before - _AROUND), before + _AROUND
        left, right = "…" if start else "", "…" if end < len(line) else ""
        line, before = f"{left}{line[start:end]}{right}", before - start + len(left)
    under = "".join("\t" if mark == "\t" else " " for mark in line[:before])
    return f"\n    {line}\n    {under}^"


# What messages, pages and proofs call the law in a file


#: A folder for each shipped domain, with the files of its laws.
LIBRARY = Path(__file__).parents[1] / "examples" / "library"


def name_of(path: Path) -> str:
    """DOMAIN/LAW for a law that comes with Dokimos, as commands take it; for any other, its path."""
    if not path.is_relative_to(LIBRARY):
        return str(path)
    return f"{path.relative_to(LIBRARY).parts[0]}/{path.stem}"


# Literal integers in an expression, and features given by a literal name or index


def constant(expression: Expression) -> int | None:
    """The integer value of an expression of literals; None for any other expression."""
    match expression:
        case Literal(value=bool()):
            return None
        case Literal(value=int() as value):
            return value
        case Unary(operator="-", operand=operand):
            inner = constant(operand)
            return None if inner is None else -inner
        case Binary(operator="+" | "-" | "*" as operator, left=left, right=right):
            sides = constant(left), constant(right)
            if sides[0] is None or sides[1] is None:
                return None
            return {"+": sides[0] + sides[1], "-": sides[0] - sides[1], "*": sides[0] * sides[1]}[operator]
    return None


def feature_reference(expression: Expression, declared: Mapping[str, object]) -> str | int | None:
    """The feature that an argument of getFeat or setFeat names literally; None if it is computed."""
    if isinstance(expression, Name) and expression.name not in declared:
        return expression.name
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        return expression.value
    return constant(expression)


# The types of values in a law, and which of them an expression may have


class Type(Enum):
    """The type of a value; ANY if only a run can tell."""

    BOOLEAN = "a truth value"
    NUMBER = "a number"
    STRING = "a string"
    RECORD = "a record"
    #: An input of a domain that names no features: its records may be strings.
    PLAIN_RECORD = "a record or a text"
    NULL = "null"
    ANY = "any value"

    def may_be(self, *others: Type) -> bool:
        """Whether a value of this type can be of one of the others."""
        if self is Type.PLAIN_RECORD and (Type.RECORD in others or Type.STRING in others):
            return True
        return self is Type.ANY or self in others


def type_of_slot(slot: Slot | None) -> Type:
    """The type of a feature's values."""
    if slot is None:
        return Type.ANY
    return Type.STRING if slot.feature.holds_strings else Type.NUMBER
