"""A lowered property says the same as the one it comes from: at every point, exactly."""

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import InputError
from dokimos.engine.runtimes.sessions import Replayer
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import GraphBuilder, ModelBuilder
from dokimos.suites.lower import is_plain, lower
from dokimos.suites.vnnlib.reader import parse_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.suites.vnnlib.writer import write_vnnlib2

HEADER = (
    "(vnnlib-version <2.0>)\n"
    "(declare-network f (declare-input X real [2]) (declare-output Y real [1]))\n"
    "(declare-network g (isomorphic-to f) (declare-input U real [2]) (declare-output V real [1]))\n"
    "(assert (and (<= X[0] 2.0) (>= X[0] -2.0) (<= X[1] 2.0) (>= X[1] -1.0)))\n"
    "(assert (and (<= U[0] 1.5) (>= U[0] -2.0) (<= U[1] 2.0) (>= U[1] -2.0)))\n"
)
NAMES = ("X[0]", "X[1]", "U[0]", "U[1]", "Y[0]", "V[0]")
TERMS = st.recursive(
    st.one_of(st.sampled_from(NAMES), st.integers(-2, 2).map(lambda k: f"{k}.0")),
    lambda inner: st.builds("({} {} {})".format, st.sampled_from("+-*"), inner, inner),
    max_leaves=4,
)
COMPARED = st.builds("({} {} {})".format, st.sampled_from(["<", "<=", ">=", "==", "!="]), TERMS, TERMS)
FORMULAS = st.one_of(COMPARED, st.builds("(or {} {})".format, COMPARED, COMPARED))
LINKS = st.sampled_from(["(== X[0] U[0])", "(== U[1] X[1])", "(== X[0] X[1])", "(>= X[0] U[0])"])
COORDINATES = st.sampled_from([Fraction(k, 2) for k in range(-5, 6)])


def network(seed: int, hidden: int = 3) -> bytes:
    numbers = random.Random(seed)
    rows = [[numbers.randint(-4, 4) / 2 for _ in range(2)] for _ in range(hidden)]
    out = [[numbers.randint(-2, 2) / 2 for _ in range(hidden)]]
    offsets = [numbers.randint(-2, 2) for _ in range(hidden)]
    return ModelBuilder([2]).affine(rows, offsets).relu().affine(out, [0]).build(1)


F, G = network(1), network(2)


def exact(network: Network, x: Sequence[Fraction]) -> tuple[Fraction, ...]:
    found = evaluate(network, x)
    assert found.lower == found.upper
    return tuple(found.lower)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(FORMULAS, min_size=1, max_size=2),
    st.lists(LINKS, max_size=3),
    st.lists(st.tuples(*[COORDINATES] * 4), min_size=6, max_size=6),
)
def test_lowered_and_direct_evaluation_agree(
    formulas: list[str], links: list[str], points: list[tuple[Fraction, ...]]
) -> None:
    asked = parse_vnnlib(HEADER + "\n".join(f"(assert {formula})" for formula in (*formulas, *links)))
    f, g = read_onnx(F), read_onnx(G)
    lowered = lower(asked, {"f": F, "g": G})
    assert is_plain(lowered.property)
    product = read_onnx(lowered.network)

    def direct(x: tuple[Fraction, ...]) -> bool:
        return asked.unsafe(x, (*exact(f, x[:2]), *exact(g, x[2:])))

    for point in points:
        z = point[: lowered.property.input_size]
        x = lowered.original(z)
        assert lowered.property.unsafe(z, exact(product, z)) == direct(x)
        assert violation_at(product, lowered.property, z).violates == direct(x)
        if direct(point):  # then it is an input of the lowered network, too
            assert lowered.original([point[lowered.links.index(k)] for k in range(len(z))]) == point


def test_linked_inputs_are_one_and_inputs_in_constraints_become_outputs() -> None:
    text = HEADER + "(assert (== X[1] U[1]))(assert (>= X[0] U[0]))(assert (< Y[0] V[0]))"
    lowered = lower(parse_vnnlib(text), {"f": F, "g": G})
    assert lowered.links == (0, 1, 2, 1)
    (case,) = lowered.property.cases
    assert (case.box.lower, case.box.upper) == ((-2, -1, -2), (2, 2, Fraction(3, 2)))
    assert all(not c.inputs for part in case.any_of for c in part)
    assert lowered.property.output_size == 4
    assert lower(parse_vnnlib(text), {"f": F, "g": G}).network == lowered.network


def test_what_the_box_implies_is_no_constraint() -> None:
    lowered = lower(
        parse_vnnlib(HEADER + "(assert (> X[0] -3.0))(assert (<= (* Y[0] V[0]) 1.0))"), {"f": F, "g": G}
    )
    assert [len(part) for part in lowered.property.cases[0].any_of] == [1]


def test_the_product_computes_the_same_in_onnxruntime() -> None:
    text = HEADER + "(assert (<= (* X[0] Y[0] V[0]) (+ U[1] (* X[1] X[1]))))"
    lowered = lower(parse_vnnlib(text), {"f": F, "g": G})
    z = (Fraction(1, 2), Fraction(-1), Fraction(1), Fraction(3, 2))
    expected = exact(read_onnx(lowered.network), z)
    points = np.array([[float(x) for x in z]], dtype=np.float32)
    assert Replayer(lowered.network, name="p")(points)[0].tolist() == [float(y) for y in expected]


def test_the_standards_own_parser_accepts_the_lowered_form() -> None:
    vnnlib = pytest.importorskip("vnnlib", reason="the standard's own parser is not installed")
    text = HEADER + "(assert (or (< (* Y[0] V[0]) X[0]) (!= Y[0] V[0])))"
    vnnlib.parse_query_string(text)
    written = write_vnnlib2(lower(parse_vnnlib(text), {"f": F, "g": G}).property)
    assert len(vnnlib.parse_query_string(written).networks) == 1


def equal_to(text: str) -> str:
    return text.replace("isomorphic-to", "equal-to")


def old_opset(content: int = 0) -> bytes:
    builder = GraphBuilder(opset=9)
    weight = builder.constant([[1, 1]])
    last = builder.node("Gemm", "X", weight, builder.constant([content]), transB=1)
    return builder.build({"X": ("float", [1, 2])}, last, [1, 1], output_name="Y")


@pytest.mark.parametrize(
    ("text", "contents", "reason"),
    [
        (HEADER, {"f": F}, "declares the network g, for which there is no file"),
        (HEADER, {"f": F, "g": G, "h": G}, "declares no network 'h', only f, g"),
        (equal_to(HEADER), {"f": F, "g": G}, "g is declared equal-to f, but their files differ"),
        (HEADER, {"f": F, "g": network(3, 4)}, "g is declared isomorphic-to f, but their layers differ"),
        (
            HEADER.replace("real [1]", "real [2]"),
            {"f": F, "g": G},
            "declares f with 2 inputs and 2 outputs",
        ),
        (HEADER.replace("(isomorphic-to f) ", ""), {"f": F, "g": old_opset()}, "opset 13 and g opset 9"),
    ],
)
def test_networks_that_are_not_what_is_declared_are_refused(
    text: str, contents: dict[str, bytes], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        lower(parse_vnnlib(text + "(assert (<= Y[0] 0.0))"), contents)


def test_a_network_equal_to_another_needs_no_file() -> None:
    asked = parse_vnnlib(equal_to(HEADER) + "(assert (< Y[0] V[0]))")
    assert lower(asked, {"f": F}).network == lower(asked, {"f": F, "g": F}).network
