"""The syntax tree of a law: frozen values that know their line and column (ignored in comparisons)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


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


@dataclass(frozen=True)
class Law:
    """One parsed file. `name` is what messages call it, `text` is what was parsed."""

    imports: tuple[Import, ...]
    declarations: tuple[Declaration, ...]
    block: Block
    ensures: tuple[Ensures, ...]
    name: str = field(default="law", compare=False)
    text: str = field(default="", compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)

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
