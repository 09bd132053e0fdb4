"""Ways to write a property: legal shapes of VNN-LIB, each with its meaning stated apart from any reader.

All of them are about two inputs and three outputs. A shape is a text with one open number t, and `level`:
the largest t for which an input with its outputs is unsafe. So a point is unsafe iff its level is at least
t.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from dokimos.suites.vnnlib.model import Point

Level = Callable[[Point, Point], Fraction | None]
#: The text with t written as this decimal.
Text = Callable[[str], Sequence[str]]

#: The inputs, unless a shape says more: −1 <= X_0 <= 1 and −1/2 <= X_1 <= 1.
LOWER = (Fraction(-1), Fraction(-1, 2))
UPPER = (Fraction(1), Fraction(1))
#: Unsafe whatever t is, and what no output of these networks reaches.
ALWAYS = Fraction(10**9)
FAR = 64


@dataclass(frozen=True)
class PropertyShape:
    """One way to write a property; `about` says what is unusual.

    With `strict` a point is unsafe iff its level is above t. With `touches` the `sat` sibling's t is the
    largest level, reached by equality alone. The number in the text is −t if `turned`. `is_wide` puts t out
    of reach on both sides. `empties` says that no input is left in the `unsat` sibling.
    """

    name: str
    about: str
    text: Text
    level: Level
    strict: bool = False
    touches: bool = False
    turned: bool = False
    is_wide: bool = False
    empties: bool = False

    def unsafe(self, x: Point, y: Point, t: Fraction) -> bool:
        """What the text means, for any numbers as outputs."""
        level = self.level(x, y)
        return level is not None and (level > t if self.strict else level >= t)


def _in_box(x: Point) -> bool:
    return all(a <= v <= b for a, v, b in zip(LOWER, x, UPPER, strict=True))


def _where(*held: Callable[[Point, Point], bool], of: int = 0) -> Level:
    """The level of Y_of >= t, inside the box and where all of these hold."""
    return lambda x, y: y[of] if _in_box(x) and all(each(x, y) for each in held) else None


def _or(first: Level, second: Level) -> Level:
    """The larger of two levels."""

    def level(x: Point, y: Point) -> Fraction | None:
        known = [found for found in (first(x, y), second(x, y)) if found is not None]
        return max(known, default=None)

    return level


def _always(*held: Callable[[Point, Point], bool]) -> Level:
    return lambda x, y: ALWAYS if _in_box(x) and all(each(x, y) for each in held) else None


def _x0_at_most(end: float) -> Callable[[Point, Point], bool]:
    return lambda x, y: x[0] <= Fraction(end)


def _y1_far(x: Point, y: Point) -> bool:
    return y[1] >= FAR


def _y2_far(x: Point, y: Point) -> bool:
    return y[2] >= FAR


def _y2_above(end: float) -> Callable[[Point, Point], bool]:
    return lambda x, y: y[2] >= Fraction(end)


NAMES = ("X_0", "X_1", "Y_0", "Y_1", "Y_2")
DECLARED = tuple(f"(declare-const {name} Real)" for name in NAMES)
BOUNDS = ("(>= X_0 -1.0)", "(<= X_0 1.0)", "(>= X_1 -0.5)", "(<= X_1 1.0)")
ASSERTED = tuple(f"(assert {bound})" for bound in BOUNDS)
SECOND = ASSERTED[2:]
PLAIN = _where()
#: (Y_0 >= t and X_0 <= 1/4), and nothing else that can happen.
LEFT = _where(_x0_at_most(0.25))


def _asserting(*formulas: str) -> Text:
    """The usual declarations and bounds, then these formulas, in which T stands for t."""
    return lambda t: [*DECLARED, *ASSERTED, *(f"(assert {each})".replace("T", t) for each in formulas)]


def _lines(*lines: str) -> Text:
    """The usual declarations, then these lines."""
    return lambda t: [*DECLARED, *(line.replace("$t", t) for line in lines)]


def _exactly(*lines: str) -> Text:
    """These lines alone."""
    return lambda t: [line.replace("$t", t) for line in lines]


_TWO = (
    "(vnnlib-version <2.0>)",
    "(declare-network f",
    "    (declare-input X real [1,2])",
    "    (declare-output Y real [1,3])",
    ")",
)


def _version2(*formulas: str, bounds: Sequence[str] = BOUNDS) -> Text:
    """VNN-LIB 2.0, with X_i and Y_j for the elements of its tensors, and T for t."""

    def text(t: str) -> list[str]:
        lines = [f"(assert {each})".replace("T", t) for each in (*bounds, *formulas)]
        for name in NAMES:
            lines = [line.replace(name, f"{name[0]}[0,{name[2]}]") for line in lines]
        return [*_TWO, *lines]

    return text


_BOUND_SHAPES = (
    PropertyShape(
        "input-bound-loose-last",
        "an input's upper bound is given twice, the tight one first",
        _lines("(assert (<= X_0 0.25))", *ASSERTED, "(assert (>= Y_0 $t))"),
        LEFT,
    ),
    PropertyShape(
        "input-bound-tight-last",
        "an input's upper bound is given twice, the tight one last",
        _lines(*ASSERTED, "(assert (<= X_0 0.25))", "(assert (>= Y_0 $t))"),
        LEFT,
    ),
    PropertyShape(
        "output-bound-loose-last",
        "an output's bound is given twice, the tight one first",
        _asserting("(>= Y_0 T)", "(>= Y_0 -64.0)"),
        _where(lambda x, y: y[0] >= -FAR),
    ),
    PropertyShape(
        "output-bound-tight-last",
        "an output's bound is given twice, the tight one last",
        _asserting("(>= Y_0 -64.0)", "(>= Y_0 T)"),
        _where(lambda x, y: y[0] >= -FAR),
    ),
    PropertyShape(
        "constant-first",
        "constants stand on the left",
        _lines(
            "(assert (<= -1.0 X_0))",
            "(assert (>= 0.25 X_0))",
            "(assert (<= -0.5 X_1))",
            "(assert (>= 1.0 X_1))",
            "(assert (<= $t Y_0))",
        ),
        LEFT,
    ),
    PropertyShape(
        "equality-as-two-bounds",
        "an input is fixed by two bounds",
        _lines("(assert (<= X_0 0.5))", "(assert (>= X_0 0.5))", *SECOND, "(assert (>= Y_0 $t))"),
        _where(lambda x, y: x[0] == Fraction(1, 2)),
    ),
    PropertyShape(
        "equality-sign",
        "an input is fixed by =",
        _lines("(assert (= X_0 0.5))", *SECOND, "(assert (>= Y_0 $t))"),
        _where(lambda x, y: x[0] == Fraction(1, 2)),
    ),
    PropertyShape(
        "negative-zero",
        "a bound is -0.0",
        _lines(ASSERTED[0], "(assert (<= X_0 -0.0))", *SECOND, "(assert (>= Y_0 $t))"),
        _where(_x0_at_most(0)),
    ),
    PropertyShape(
        "inputs-empty",
        "in the unsat sibling the bounds of an input leave nothing",
        _lines("(assert (>= X_0 0.25))", "(assert (<= X_0 $t))", *SECOND, "(assert (>= Y_0 -64.0))"),
        lambda x, y: -x[0] if Fraction(1, 4) <= x[0] and _second(x) and y[0] >= -FAR else None,
        turned=True,
        empties=True,
    ),
    PropertyShape(
        "inputs-empty-by-sum",
        "in the unsat sibling a sum of inputs would leave the box",
        _asserting("(>= (+ X_0 X_1) T)", "(>= Y_0 -64.0)"),
        lambda x, y: x[0] + x[1] if _in_box(x) and y[0] >= -FAR else None,
    ),
)


def _second(x: Point) -> bool:
    return LOWER[1] <= x[1] <= UPPER[1]


_JOINED_SHAPES = (
    PropertyShape(
        "everything-in-one-and",
        "bounds and constraints are one `and`",
        _lines(f"(assert (and {' '.join(BOUNDS)} (<= X_0 0.25) (>= Y_0 $t)))"),
        LEFT,
    ),
    PropertyShape(
        "and-at-top",
        "two constraints on outputs in one `and`, both needed",
        _asserting("(and (>= Y_0 T) (>= Y_2 -1.0))"),
        _where(_y2_above(-1)),
    ),
    PropertyShape(
        "single-operands",
        "`or` and `and` of a single operand",
        _asserting("(or (and (or (>= Y_0 T))))"),
        PLAIN,
    ),
    PropertyShape(
        "or-of-atoms",
        "an `or` of bare comparisons, the last of which can hold",
        _asserting("(or (>= Y_1 64.0) (>= Y_2 64.0) (>= Y_0 T))"),
        _or(PLAIN, _or(_always(_y1_far), _always(_y2_far))),
    ),
    PropertyShape(
        "two-ors",
        "a conjunction of two disjunctions, as two asserts",
        _asserting("(or (>= Y_0 T) (>= Y_1 64.0))", "(or (>= Y_1 64.0) (>= Y_2 -1.0))"),
        _or(_where(_y2_above(-1)), _always(_y1_far)),
    ),
    PropertyShape(
        "three-ors",
        "a conjunction of three disjunctions, as three asserts",
        _asserting(
            "(or (>= Y_2 64.0) (>= Y_2 -1.0))",
            "(or (>= Y_1 64.0) (>= Y_0 T))",
            "(or (<= X_0 0.75) (>= Y_1 64.0))",
        ),
        _or(_where(_y2_above(-1), _x0_at_most(0.75)), _always(_y1_far, _y2_above(-1))),
    ),
    PropertyShape(
        "atoms-around-or",
        "comparisons before and after an `or`, all of them needed",
        _asserting("(>= Y_2 -1.5)", "(or (>= Y_1 64.0) (>= Y_0 T))", "(<= X_0 0.5)"),
        _or(_where(_y2_above(-1.5), _x0_at_most(0.5)), _always(_y1_far, _y2_above(-1.5), _x0_at_most(0.5))),
    ),
    PropertyShape(
        "atom-after-or",
        "a comparison of outputs after an `or`",
        _asserting("(or (and (>= Y_1 64.0)) (and (>= Y_0 T)))", "(>= Y_2 -1.0)"),
        _or(_where(_y2_above(-1)), _always(_y1_far, _y2_above(-1))),
    ),
    PropertyShape(
        "or-inside-and",
        "an `or` inside an `and` inside an `or`",
        _asserting("(or (and (or (>= Y_1 64.0) (>= Y_0 T)) (>= Y_2 -1.0)) (and (>= Y_2 64.0)))"),
        _or(_where(_y2_above(-1)), _or(_always(_y1_far, _y2_above(-1)), _always(_y2_far))),
    ),
    PropertyShape(
        "boxes-in-some",
        "the second disjunct has a bound on an input, the first has none",
        _asserting("(or (and (>= Y_1 64.0)) (and (<= X_0 0.25) (>= Y_0 T)))"),
        _or(LEFT, _always(_y1_far)),
    ),
    PropertyShape(
        "boxes-overlapping",
        "two disjuncts with overlapping boxes",
        _lines(
            *SECOND,
            "(assert (or",
            "  (and (>= X_0 -0.25) (<= X_0 1.0) (>= Y_2 64.0))",
            "  (and (>= X_0 -1.0) (<= X_0 0.25) (>= Y_0 $t))",
            "))",
        ),
        _or(LEFT, _always(_y2_far, lambda x, y: x[0] >= Fraction(-1, 4))),
    ),
    PropertyShape(
        "boxes-disjoint",
        "two disjuncts with disjoint boxes",
        _lines(
            *SECOND,
            "(assert (or",
            "  (and (>= X_0 0.5) (<= X_0 1.0) (>= Y_0 64.0))",
            "  (and (>= X_0 -1.0) (<= X_0 -0.25) (>= Y_0 $t))",
            "))",
        ),
        _or(_where(_x0_at_most(-0.25)), _always(lambda x, y: x[0] >= Fraction(1, 2) and y[0] >= FAR)),
    ),
    PropertyShape(
        "boxes-one-empty",
        "the box of the first disjunct is empty",
        _lines(
            *SECOND,
            "(assert (or",
            "  (and (>= X_0 0.5) (<= X_0 -0.5) (>= Y_0 -64.0))",
            "  (and (>= X_0 -1.0) (<= X_0 0.25) (>= Y_0 $t))",
            "))",
        ),
        LEFT,
    ),
    PropertyShape(
        "input-bound-after-outputs",
        "a bound on an input stands beside an output's in an `and`",
        _asserting("(and (>= Y_0 T) (<= X_0 0.25))"),
        LEFT,
    ),
)

_TERM_SHAPES = (
    PropertyShape(
        "sum-of-inputs",
        "a constraint on a sum of inputs",
        _asserting("(<= (+ X_0 X_1) 0.5)", "(>= Y_0 T)"),
        _where(lambda x, y: x[0] + x[1] <= Fraction(1, 2)),
    ),
    PropertyShape(
        "outputs-compared",
        "an output is compared with another, and with a constant",
        _asserting("(<= Y_0 Y_1)", "(>= Y_0 T)"),
        _where(lambda x, y: y[0] <= y[1]),
    ),
    PropertyShape(
        "output-and-input-compared",
        "an output is compared with an input",
        _asserting("(<= Y_0 X_1)", "(>= Y_0 T)"),
        _where(lambda x, y: y[0] <= x[1]),
    ),
    PropertyShape(
        "output-minus-input",
        "the difference of an output and an input",
        _asserting("(>= (- Y_0 X_0) T)"),
        lambda x, y: y[0] - x[0] if _in_box(x) else None,
    ),
    PropertyShape(
        "factors",
        "outputs with factors",
        _asserting("(>= (+ (* 2.0 Y_0) (* -0.5 Y_1)) T)"),
        lambda x, y: 2 * y[0] - y[1] / 2 if _in_box(x) else None,
    ),
    PropertyShape(
        "terms-on-both-sides",
        "sums on both sides",
        _asserting("(<= (+ Y_1 T) (+ Y_0 0.5))"),
        lambda x, y: y[0] - y[1] + Fraction(1, 2) if _in_box(x) else None,
    ),
    PropertyShape(
        "smtlib-negative",
        "negative numbers as SMT-LIB writes them: (- 1.0)",
        _lines(
            "(assert (>= X_0 (- 1.0)))",
            "(assert (<= X_0 0.25))",
            "(assert (>= X_1 (- 0.5)))",
            "(assert (<= X_1 1.0))",
            "(assert (>= Y_0 $t))",
        ),
        LEFT,
    ),
    PropertyShape("strict", "a strict comparison", _asserting("(> Y_0 T)"), PLAIN, strict=True),
    PropertyShape(
        "equality-reached",
        "the sat sibling is unsafe by equality alone",
        _asserting("(>= Y_0 T)"),
        PLAIN,
        touches=True,
    ),
    PropertyShape(
        "unused-outputs", "only the last output is asked about", _asserting("(>= Y_2 T)"), _where(of=2)
    ),
    PropertyShape(
        "trivially-true", "every output is unsafe, or none", _asserting("(>= Y_0 T)"), PLAIN, is_wide=True
    ),
    PropertyShape(
        "true-beside",
        "a constraint that always holds beside one that need not",
        _asserting("(<= Y_1 64.0)", "(>= Y_0 T)"),
        _where(lambda x, y: y[1] <= FAR),
    ),
)

_SPELLED_SHAPES = (
    PropertyShape(
        "exponents",
        "bounds with exponents",
        _lines(
            "(assert (>= X_0 -1e0))",
            "(assert (<= X_0 2.5e-1))",
            "(assert (>= X_1 -5.0E-01))",
            "(assert (<= X_1 0.1e+1))",
            "(assert (>= Y_0 $te0))",
        ),
        LEFT,
    ),
    PropertyShape(
        "many-digits",
        "numbers with forty digits",
        _lines(
            "(assert (>= X_0 -1.0000000000000000000000000000000000000000))",
            "(assert (<= X_0 0.2500000000000000000000000000000000000000))",
            *SECOND,
            "(assert (>= Y_0 $t0000000000000000000000000000000000000000))",
        ),
        LEFT,
    ),
    PropertyShape(
        "whole-numbers",
        "bounds without a point",
        _lines("(assert (>= X_0 -1))", "(assert (<= X_0 0))", *SECOND, "(assert (>= Y_0 $t))"),
        _where(_x0_at_most(0)),
    ),
    PropertyShape(
        "no-spaces",
        "everything on one line, no space that is not needed",
        _exactly(
            "".join(
                [
                    *DECLARED,
                    *(each.replace(" (", "(") for each in ASSERTED),
                    "(assert(<= X_0 0.25))(assert(>= Y_0 $t))",
                ]
            )
        ),
        LEFT,
    ),
    PropertyShape(
        "a-word-on-each-line",
        "line ends and tabs between all words",
        _lines(*ASSERTED, "( assert\n(\n<=\n\tX_0\n\t0.25\n)\n)", "(assert\n(>=\nY_0\n$t))"),
        LEFT,
    ),
    PropertyShape(
        "comments-everywhere",
        "comments at the ends of lines and inside of formulas, with asserts and parentheses in them",
        _lines(
            "; (assert (>= Y_0 64.0))",
            *ASSERTED,
            "(assert ; (or",
            "  (<= X_0 0.25) ; (<= X_0 1.0)))",
            ") ; )",
            ";",
            "(assert (>= Y_0 $t)) ; (assert (<= Y_0 -64.0))",
        ),
        LEFT,
    ),
    PropertyShape(
        "declared-in-odd-order",
        "outputs are declared before inputs, the last first, with asserts between",
        _exactly(
            "(declare-const Y_2 Real)",
            "(declare-const Y_0 Real)",
            "(assert (>= Y_0 $t))",
            "(declare-const X_1 Real)",
            *SECOND,
            "(declare-const Y_1 Real)",
            "(declare-const X_0 Real)",
            "(assert (<= X_0 0.25))",
            ASSERTED[0],
        ),
        LEFT,
    ),
    PropertyShape(
        "declare-fun",
        "variables are declared as functions without arguments",
        _exactly(
            *(f"(declare-fun {name} () Real)" for name in NAMES),
            *ASSERTED,
            "(assert (<= X_0 0.25))",
            "(assert (>= Y_0 $t))",
        ),
        LEFT,
    ),
    PropertyShape(
        "solver-commands",
        "set-logic before, check-sat after",
        _exactly(
            "(set-logic QF_LRA)",
            *DECLARED,
            *ASSERTED,
            "(assert (<= X_0 0.25))",
            "(assert (>= Y_0 $t))",
            "(check-sat)",
        ),
        LEFT,
    ),
)

_VERSION_2_SHAPES = (
    PropertyShape("v2-plain", "VNN-LIB 2.0", _version2("(<= X_0 0.25)", "(>= Y_0 T)"), LEFT),
    PropertyShape(
        "v2-equal",
        "VNN-LIB 2.0: an input is fixed by ==",
        _version2("(== X_0 0.5)", "(>= Y_0 T)", bounds=BOUNDS[2:]),
        _where(lambda x, y: x[0] == Fraction(1, 2)),
    ),
    PropertyShape(
        "v2-not-equal",
        "VNN-LIB 2.0: an output differs from a constant",
        _version2("(!= Y_1 64.0)", "(>= Y_0 T)"),
        _where(lambda x, y: y[1] != FAR),
    ),
    PropertyShape(
        "v2-strict",
        "VNN-LIB 2.0: a strict comparison, the constant first",
        _version2("(< T Y_0)"),
        PLAIN,
        strict=True,
    ),
    PropertyShape(
        "v2-two-ors",
        "VNN-LIB 2.0: a conjunction of two disjunctions",
        _version2("(or (>= Y_1 64.0) (>= Y_0 T))", "(or (>= Y_2 -1.0) (>= Y_1 64.0))"),
        _or(_where(_y2_above(-1)), _always(_y1_far)),
    ),
)

SHAPES: Mapping[str, PropertyShape] = MappingProxyType(
    {
        shape.name: shape
        for shape in (*_BOUND_SHAPES, *_JOINED_SHAPES, *_TERM_SHAPES, *_SPELLED_SHAPES, *_VERSION_2_SHAPES)
    }
)
