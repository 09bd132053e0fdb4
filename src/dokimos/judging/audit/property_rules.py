"""Rules about properties that ask nothing, hold always, repeat themselves, or are read differently."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from dokimos.engine.runtimes.sessions import nearest_float
from dokimos.judging.audit.file_rules import LintRule, Remark
from dokimos.judging.audit.subjects import PropertyFile
from dokimos.suites.folder import LintSeverity
from dokimos.suites.vnnlib.model import Linear

_FLOAT32 = np.dtype(np.float32)
#: A decimal, with an exponent of bounded length.
_DECIMAL = re.compile(r"(?<![\w.])\d{1,400}(?:\.\d{0,400})?(?:[eE][-+]?\d{1,3})?(?![\w.])")
_COMMENT = re.compile(r";[^\n]*")
_Terms = tuple[tuple[str, int, Fraction], ...]
_OUTPUT = r"\(assert[^;\n]*Y"


def can_never_hold(conjunction: Sequence[Linear]) -> bool:
    """Whether two of the constraints contradict each other whatever the inputs and outputs are.

    Theorem: t ≤ a and -t ≤ b have a common solution in t only if -b ≤ a, that is, a + b ≥ 0, and > 0 if one
    of them is strict. A constraint without terms, 0 ≤ a, is the same with t = 0.
    """
    least: dict[_Terms, tuple[Fraction, bool]] = {}
    for one in conjunction:
        terms, bound = _scaled(one)
        if not terms and (bound < 0 or (bound == 0 and one.strict)):
            return True
        key = (bound, not one.strict)
        if terms not in least or key < (least[terms][0], not least[terms][1]):
            least[terms] = (bound, one.strict)
    for terms, (bound, strict) in least.items():
        opposite = tuple((kind, index, -factor) for kind, index, factor in terms)
        if opposite in least and terms:
            other, other_strict = least[opposite]
            if bound + other < 0 or (bound + other == 0 and (strict or other_strict)):
                return True
    return False


def _scaled(one: Linear) -> tuple[_Terms, Fraction]:
    """A constraint divided by the magnitude of its first factor, so that multiples of it look the same."""
    terms = [("x", i, c) for i, c in one.inputs if c] + [("y", j, d) for j, d in one.outputs if d]
    if not terms:
        return (), one.bound
    size = abs(terms[0][2])
    return tuple((kind, index, factor / size) for kind, index, factor in terms), one.bound / size


def _empty_boxes(file: PropertyFile) -> Iterator[Remark]:
    if file.problem is not None:
        return
    for k, case in enumerate(file.property.cases):
        if case.box.is_empty:
            i = next(i for i in range(case.box.size) if case.box.lower[i] > case.box.upper[i])
            of = f" of case {k + 1}" if len(file.property.cases) > 1 else ""
            yield Remark(
                f"the box{of} is empty: input {i} has no value",
                file.line_of(rf"[<>]=?\s+X[^\s)]*[_\[,]{i}\b"),
            )


def _points(file: PropertyFile) -> Iterator[Remark]:
    boxes = [] if file.problem is not None else [case.box for case in file.property.cases]
    count = sum(box.lower == box.upper for box in boxes)
    if count:
        boxes_in_words = (
            "the box is a point" if len(boxes) == 1 else f"{count} of {len(boxes)} boxes are points"
        )
        yield Remark(f"{boxes_in_words}: evaluating the network decides it", file.line_of(r"[<>]=?\s+X"))


def _vacuous(file: PropertyFile) -> Iterator[Remark]:
    if file.problem is not None:
        return
    questions = file.property.questions()
    never = [can_never_hold(part) for _, part in questions]
    if all(never):
        why = "its constraints contradict each other" if questions else "nothing is unsafe"
        yield Remark(f"it is unsat whatever the network is: {why}", file.line_of(_OUTPUT))


def _dead_disjuncts(file: PropertyFile) -> Iterator[Remark]:
    never = [] if file.problem is not None else [can_never_hold(p) for _, p in file.property.questions()]
    if any(never) and not all(never):
        yield Remark(f"{sum(never)} of {len(never)} disjuncts contradict themselves", file.line_of(_OUTPUT))


def _trivial(file: PropertyFile) -> Iterator[Remark]:
    if file.problem is not None:
        return
    for _, part in file.property.questions():
        if all(not any(d for _, d in one.outputs) for one in part) and not can_never_hold(part):
            yield Remark("a disjunct constrains no output, so the network does not matter")
            return


def _unconstrained(file: PropertyFile) -> Iterator[Remark]:
    if file.problem is not None or any(_trivial(file)):
        return
    asked = file.property
    named = {j for _, part in asked.questions() for one in part for j, d in one.outputs if d}
    factors = {~v for product in asked.products for v in product if v < 0}
    free = sorted(set(range(asked.output_size)) - named - factors)
    if named and free:
        listed = ", ".join(map(str, free[:5])) + (", …" if len(free) > 5 else "")
        yield Remark(f"{len(free)} of {asked.output_size} outputs are never constrained: {listed}")


def _repeated(file: PropertyFile) -> Iterator[Remark]:
    if file.problem is not None:
        return
    counts = Counter(file.property.questions())
    again = sum(count - 1 for count in counts.values())
    if again:
        yield Remark(f"{again} of {counts.total()} disjuncts repeat another one", file.line_of(r"\(or\b"))


def _constants(file: PropertyFile) -> list[Fraction]:
    cases = [] if file.problem is not None else file.property.cases
    boxes = [end for case in cases for end in (*case.box.lower, *case.box.upper)]
    parts = [one for case in cases for part in case.any_of for one in part]
    return [
        *boxes,
        *(one.bound for one in parts),
        *(c for one in parts for _, c in (*one.inputs, *one.outputs)),
    ]


def _rounded(file: PropertyFile) -> Iterator[Remark]:
    """The decimals, as written, that a reader in float32 and one in float64 round to different numbers.

    A decimal with 17 digits may be no float32 number and yet be the same one to both.
    """
    if file.problem is not None:
        return
    odd = [
        text for text in dict.fromkeys(found[0] for found in _decimals(file)) if _is_read_differently(text)
    ]
    if odd:
        first, near = odd[0], float(np.float32(float(odd[0])))
        yield Remark(
            f"readers in float32 and in float64 see different properties, in {len(odd)} "
            f"constant{'s' * (len(odd) != 1)}, e.g. {first}: {near!r} in float32, "
            f"{float(first)!r} in float64",
            _line_of_number(file, [Fraction(first)]),
        )


def _is_read_differently(decimal: str) -> bool:
    """Whether the float64 number nearest to it is none of float32 (one that is too large is not asked)."""
    if nearest_float(Fraction(decimal), _FLOAT32) is None:
        return False
    return float(np.float32(float(decimal))) != float(decimal)


def _decimals(file: PropertyFile) -> Iterator[re.Match[str]]:
    """The decimals of a file, without those in comments."""
    text = _COMMENT.sub(lambda found: " " * len(found[0]), file.text)
    yield from _DECIMAL.finditer(text)


def _overflowing(file: PropertyFile) -> Iterator[Remark]:
    beyond = [x for x in set(_constants(file)) if nearest_float(x, _FLOAT32) is None]
    if beyond:
        reason = f"{len(beyond)} constants are outside the range of float32"
        yield Remark(reason, _line_of_number(file, beyond))


def _line_of_number(file: PropertyFile, numbers: Sequence[Fraction]) -> int | None:
    """The line of the first decimal that is one of `numbers`, or the negative of one."""
    wanted = {abs(x) for x in numbers}
    for found in _decimals(file):
        if Fraction(found[0]) in wanted:
            return file.text.count("\n", 0, found.start()) + 1
    return None


EMPTY_BOX: LintRule[PropertyFile] = LintRule(
    "empty-box", "boxes without a point", LintSeverity.ERROR, "correct the bounds", _empty_boxes
)
POINT_BOX: LintRule[PropertyFile] = LintRule(
    "point-box",
    "boxes that are points",
    LintSeverity.WARNING,
    "widen the box, or drop the instance",
    _points,
)
VACUOUS: LintRule[PropertyFile] = LintRule(
    "vacuous",
    "properties that hold for every network",
    LintSeverity.ERROR,
    "correct the constraints",
    _vacuous,
)
DEAD_DISJUNCT: LintRule[PropertyFile] = LintRule(
    "dead-disjunct",
    "disjuncts that can never hold",
    LintSeverity.WARNING,
    "leave them out, or correct them",
    _dead_disjuncts,
)
TRIVIAL: LintRule[PropertyFile] = LintRule(
    "trivial",
    "disjuncts that ask nothing of the network",
    LintSeverity.ERROR,
    "constrain an output in every disjunct",
    _trivial,
)
UNCONSTRAINED_OUTPUT: LintRule[PropertyFile] = LintRule(
    "unconstrained-output",
    "outputs that are never constrained",
    LintSeverity.NOTE,
    "make sure that none was forgotten",
    _unconstrained,
)
REPEATED_DISJUNCT: LintRule[PropertyFile] = LintRule(
    "repeated-disjunct",
    "disjuncts that repeat another one",
    LintSeverity.WARNING,
    "keep one of them",
    _repeated,
)
FLOAT32_ROUNDING: LintRule[PropertyFile] = LintRule(
    "float32-rounding",
    "decimals that readers round differently",
    LintSeverity.WARNING,
    "write constants that are exact in float32",
    _rounded,
)
FLOAT32_OVERFLOW: LintRule[PropertyFile] = LintRule(
    "float32-overflow",
    "constants outside the range of float32",
    LintSeverity.ERROR,
    "scale the network, or leave the constraint out",
    _overflowing,
)
