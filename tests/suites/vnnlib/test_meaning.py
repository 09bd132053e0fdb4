"""What a text means, by reading it, against evaluating its formulas directly."""

import gzip
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import UnreadableFile
from dokimos.suites.vnnlib.reader import parse_vnnlib, read_vnnlib
from tests.shared import SHARED

Point = tuple[Fraction, Fraction, Fraction, Fraction]
Term = tuple[str, Callable[[Point], Fraction]]
Formula = tuple[str, Callable[[Point], bool]]

HEADER = (
    "(vnnlib-version <2.0>)\n"
    "(declare-network f (declare-input X real [1,2]) (declare-output Y real [2]))\n"
    "(assert (and (<= X[0,0] 3.0) (>= X[0,0] -3.0) (<= X[0,1] 2.0) (>= X[0,1] -2.0)))\n"
)
NAMES = ("X[0,0]", "X[0,1]", "Y[0]", "Y[1]")
COMPARISONS = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
ARITHMETIC = {"+": add, "-": sub, "*": mul}
# Few and round numbers, so that points often lie on the edges of the constraints.
NUMBERS = st.integers(-3, 3)
CORPUS = sorted((Path(__file__).resolve().parents[2] / "corpus" / "vnnlib").glob("*/*.vnnlib"))


def literal(value: int) -> Term:
    return f"{value}.0", lambda point: Fraction(value)


def variable(index: int) -> Term:
    return NAMES[index], lambda point: point[index]


def combined(operator: str, left: Term, right: Term) -> Term:
    function = ARITHMETIC[operator]
    return f"({operator} {left[0]} {right[0]})", lambda point: function(left[1](point), right[1](point))


def negated(term: Term) -> Term:
    return f"(- {term[0]})", lambda point: -term[1](point)


CONSTANTS = NUMBERS.map(literal)
TERMS = st.recursive(
    st.one_of(CONSTANTS, st.integers(0, 3).map(variable)),
    lambda inner: st.one_of(
        st.builds(combined, st.sampled_from("+-"), inner, inner),
        st.builds(combined, st.just("*"), CONSTANTS, inner),
        st.builds(combined, st.just("*"), inner, CONSTANTS),
        st.builds(combined, st.just("*"), inner, inner),
        st.builds(negated, inner),
    ),
    max_leaves=4,
)


def compared(operator: str, left: Term, right: Term) -> Formula:
    function = COMPARISONS[operator]
    return f"({operator} {left[0]} {right[0]})", lambda point: function(left[1](point), right[1](point))


def joined(operator: str, parts: list[Formula]) -> Formula:
    function = all if operator == "and" else any
    text = f"({operator} {' '.join(text for text, _ in parts)})"
    return text, lambda point: function(holds(point) for _, holds in parts)


FORMULAS = st.recursive(
    st.builds(compared, st.sampled_from(sorted(COMPARISONS)), TERMS, TERMS),
    lambda inner: st.builds(
        joined, st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)
COORDINATES = st.one_of(NUMBERS.map(Fraction), st.fractions(-4, 4, max_denominator=4))
POINTS = st.lists(st.tuples(*[COORDINATES] * 4), min_size=8, max_size=8)


@settings(deadline=None, max_examples=80)
@given(st.lists(FORMULAS, min_size=1, max_size=3), POINTS)
def test_reading_keeps_the_meaning(formulas: list[Formula], points: list[Point]) -> None:
    text = HEADER + "\n".join(f"(assert {formula})" for formula, _ in formulas)
    property = parse_vnnlib(text)
    for point in points:
        inside = abs(point[0]) <= 3 and abs(point[1]) <= 2
        expected = inside and all(holds(point) for _, holds in formulas)
        assert property.unsafe(point[:2], point[2:]) == expected


def test_the_standards_own_parser_accepts_the_corpus() -> None:
    vnnlib = pytest.importorskip("vnnlib", reason="the standard's own parser is not installed")
    accepted = [path for path in CORPUS if path.parent.name == "accept" and path.stem.startswith("v2")]
    assert len(accepted) >= 3
    for path in accepted:
        vnnlib.parse_query_string(path.read_text())


REAL = sorted(SHARED.glob("2026/*/2.0/vnnlib/*.vnnlib.gz"))


@pytest.mark.skipif(not REAL, reason="the published files are not here")
def test_the_standards_own_parser_accepts_the_published_files_that_we_read() -> None:
    vnnlib = pytest.importorskip("vnnlib", reason="the standard's own parser is not installed")
    ours, theirs = set(), set()
    for path in REAL:
        content = gzip.decompress(path.read_bytes())
        with suppress(UnreadableFile):
            read_vnnlib(content, file=path.name)
            ours.add(path)
        with suppress(vnnlib.VNNLibException):
            vnnlib.parse_query_string(content.decode())
            theirs.add(path)
    assert ours == theirs
    assert len(ours) == len(REAL) - 1, "one of them has an operator between its operands"


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_damaged_texts_are_refused_in_one_sentence(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(CORPUS)).read_bytes()[:1500])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 20)))
        piece = st.one_of(
            st.sampled_from([b"(", b")", b"[", b"]", b"X_0", b"<", b"1e5", b";", b'"']),
            st.binary(max_size=4),
        )
        content[start:end] = data.draw(piece)
    try:
        read_vnnlib(bytes(content), file="p")
    except UnreadableFile as problem:
        assert str(problem).startswith("p") and problem.reason.endswith(".")
        assert len(problem.reason) < 300 and "\n" not in problem.reason
