"""What a truth may say, and what it must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.checker import check, prove
from dokimos.core.errors import InputError, InvalidProof, UnreadableFile
from dokimos.engine.outcome import claims_of, round_down
from dokimos.suites.instance import Certificate, Claim, Instance, Label, Semantics, Truth
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.checker.files import instance_of, lines, model, question, repaired, stated

ABOVE_ONE = model([("Relu", ["X"], "r"), ("Add", ["r", "one"], "Y")], {"one": [1.0]}, [1, 1], [1, 1])
HALF = lines(0.5)


#: Kinds of proof that the kind `linear` has taken the place of.
GONE = ("enclosure", "paired-relus", "relu-tree", "slopes-and-splits")


def holds() -> Instance:
    """Y = max(0, x) + 1 > 1/2 on [−1, 1], by 1/2."""
    return instance_of(ABOVE_ONE, question([(-1, 1)], 1, "(<= Y_0 0.5)"))


def fails() -> Instance:
    """Y = max(0, x) + 1 <= 1 for x <= 0."""
    return instance_of(ABOVE_ONE, question([(-1, 1)], 1, "(<= Y_0 1.25)"))


def witnessed(x: str, **changes: Any) -> Truth:
    return stated(fails(), "witness", label=Label.SAT, witness=(Fraction(x),), **changes)


def test_true_statements_are_accepted() -> None:
    wanted = Fraction(499, 1000)
    assert wanted < check(holds(), stated(holds(), "linear", HALF, real=wanted)).real <= Fraction(1, 2)
    assert check(fails(), witnessed("-0.5", real=Fraction(1, 4))).real == Fraction(1, 4)
    assert check(fails(), witnessed("-0.5", float32=Fraction(1, 5))).floats is not None


@pytest.mark.parametrize("part", ["network", "property"])
def test_other_files_are_refused_by_their_hash(part: str) -> None:
    truth = stated(holds(), "linear", lines(0))
    check(holds(), truth)
    other = replace(truth, **{f"{part}_sha256": "0" * 64})
    with pytest.raises(InvalidProof, match=f"the {part} is not the file"):
        check(holds(), other)


@pytest.mark.parametrize(
    ("truth", "reason"),
    [
        (lambda: stated(holds(), "linear", lines(0), real=Fraction(51, 100)), "larger"),
        (lambda: stated(holds(), "linear", lines(0), real=None), "for the reals"),
        (lambda: stated(holds(), "linear", {"questions": [{"tree": [0]}]}), "ends before"),
        (lambda: stated(holds(), "linear", {"questions": [{"tree": [4, -1, -1]}]}), "no entry 4"),
        (lambda: stated(holds(), "convex-corners"), "not concave"),
        (lambda: stated(holds(), "linear", HALF, label=Label.SAT), "witness"),
        (lambda: stated(holds(), "linear", HALF, witness=(Fraction(0),)), "witness"),
        (
            lambda: stated(holds(), "linear", HALF, label=Label.SAT, witness=(Fraction(0),)),
            "cannot prove",
        ),
        (lambda: stated(holds(), "witness"), "cannot prove"),
        (lambda: stated(holds(), "ordered-pairs", {"convolution": "r", "pairs": []}), "no convolution"),
    ],
)
def test_false_statements_of_a_true_label(truth: Callable[[], Truth], reason: str) -> None:
    with pytest.raises(InvalidProof, match=reason):
        check(holds(), truth())


@pytest.mark.parametrize(
    ("truth", "reason"),
    [
        (lambda: witnessed("0.5"), "not unsafe"),
        (lambda: witnessed("-1.5"), "outside the box by 0.5"),
        (lambda: witnessed("-" + "9" * 308), "outside the box by"),
        (lambda: replace(witnessed("0"), witness=(Fraction(0), Fraction(0))), "2 coordinates"),
        (lambda: replace(witnessed("0"), witness=()), "0 coordinates"),
        (lambda: witnessed("0", real=Fraction(26, 100)), "larger"),
        (lambda: witnessed("-0.1", float32=Fraction(0)), "claimed for float32"),
        (lambda: witnessed("0", float32=Fraction(1, 4)), "larger"),
        (lambda: witnessed("0.25", float32=Fraction(0)), "claimed for float32"),
    ],
)
def test_false_statements_about_a_witness(truth: Callable[[], Truth], reason: str) -> None:
    with pytest.raises(InvalidProof, match=reason):
        check(fails(), truth())


def test_an_exact_tie_is_unsafe_without_margin() -> None:
    assert check(fails(), witnessed("0.25", real=Fraction(0))).real == 0
    with pytest.raises(InvalidProof, match="larger"):
        check(fails(), witnessed("0.25", real=Fraction(1, 10**400)))


def test_a_claim_without_margin_is_refused() -> None:
    truth = stated(holds(), "linear", lines(0))
    bare = replace(truth, claims={Semantics.REAL: Claim(proven=True)})
    with pytest.raises(InvalidProof):
        check(holds(), bare)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("linear", {}),
        ("linear", {"questions": "all"}),
        ("linear", {"questions": [0.5]}),
        ("linear", {"questions": [None]}),
        ("linear", {"questions": []}),
        ("linear", {"questions": [{"tree": [True]}]}),
        ("linear", {"questions": [{"tree": [-1.0]}]}),
        ("linear", {"questions": [{"lines": [0.5]}]}),
        ("linear", {"questions": [{"lines": "9" * 10**6}]}),
        ("linear", {"questions": [{"lines": "١"}]}),
        ("linear", {"questions": [{"at": {"0": 10**400}}]}),
        ("linear", {"questions": [{"own": 1}]}),
        ("linear", {"questions": [{}], "extra": 1}),
        *((kind, {}) for kind in GONE),
        ("convex-corners", {"corner": 1}),
        ("ordered-pairs", {"pairs": []}),
        ("ordered-pairs", {"convolution": 3, "pairs": []}),
        ("ordered-pairs", {"convolution": "c", "pairs": {}}),
        ("ordered-pairs", {"convolution": "c", "pairs": [[0]]}),
        ("ordered-pairs", {"convolution": "c", "pairs": [[0, True]]}),
        ("ordered-pairs", {"convolution": "c", "pairs": [[0, -1]]}),
        ("ordered-pairs", {"convolution": "c", "pairs": [[0, 1.0]]}),
        ("ordered-pairs", {"convolution": "c", "pairs": [[0, 1, 2]]}),
        ("nonsense", {}),
    ],
)
def test_data_of_the_wrong_shape_is_unreadable(kind: str, data: dict[str, Any]) -> None:
    with pytest.raises(UnreadableFile):
        check(holds(), stated(holds(), kind, data))


def test_deeply_nested_data_is_unreadable() -> None:
    nested: list[Any] = []
    for _ in range(900):
        nested = [nested]
    for _ in range(200):
        with pytest.raises(UnreadableFile):
            check(holds(), stated(holds(), "linear", {"questions": nested}))
        nested = [nested]


def test_a_witness_carries_no_data() -> None:
    with pytest.raises(UnreadableFile):
        check(fails(), replace(witnessed("0"), certificate=Certificate("witness", {"x": 1})))


def test_unreadable_files_are_not_invalid_proofs() -> None:
    for instance in (
        instance_of(b"", holds().property_file),
        instance_of(ABOVE_ONE, b"(assert"),
        instance_of(ABOVE_ONE, b""),
    ):
        with pytest.raises(UnreadableFile):
            check(instance, repaired(stated(holds(), "linear", lines(0)), instance))


def test_a_property_of_another_size_is_refused() -> None:
    instance = instance_of(ABOVE_ONE, question([(-1, 1)] * 2, 1, "(<= Y_0 0.5)"))
    with pytest.raises(InvalidProof, match="2 inputs"):
        check(instance, stated(instance, "linear", lines(0)))


def test_an_operator_that_is_not_piecewise_linear_is_refused() -> None:
    network = model([("Tanh", ["X"], "Y")], {}, [1, 1], [1, 1])
    instance = instance_of(network, question([(-1, 1)], 1, "(<= Y_0 -2)"))
    with pytest.raises(InvalidProof, match="Tanh"):
        check(instance, stated(instance, "convex-corners"))


def test_a_network_without_value_at_the_witness() -> None:
    network = model([("Div", ["X", "X"], "q"), ("Exp", ["q"], "Y")], {}, [1, 1], [1, 1])
    instance = instance_of(network, question([(-1, 1)], 1, "(<= Y_0 5)"))
    with pytest.raises(InvalidProof, match="not known"):
        check(instance, stated(instance, "witness", label=Label.SAT, witness=(Fraction(0),)))


def test_a_witness_where_no_comparison_is_exact() -> None:
    network = model([("Exp", ["X"], "Y")], {}, [1, 1], [1, 1])
    instance = instance_of(network, question([(-1, 1)], 1, "(<= Y_0 2.75)"))
    truth = stated(instance, "witness", label=Label.SAT, witness=(Fraction(1),), float32=Fraction(3, 100))
    assert check(instance, truth).real > Fraction(317, 10000)
    with pytest.raises(InvalidProof):
        check(instance, replace(truth, claims={Semantics.REAL: Claim(True, Fraction(318, 10000))}))


CASES = "(or (and (<= X_0 -1) (>= X_0 -2) (<= Y_0 0.5)) (and (>= X_0 1) (<= X_0 2) {}))"


@pytest.mark.parametrize(
    ("second", "true"),
    [("(<= Y_0 0.5)", True), ("(<= Y_0 2.5)", False), ("(<= Y_0 2.5) (>= Y_0 9)", True), ("", False)],
)
def test_every_case_and_conjunction_counts(second: str, true: bool) -> None:
    text = f"(declare-const X_0 Real)\n(declare-const Y_0 Real)\n(assert {CASES.format(second)})"
    instance = instance_of(ABOVE_ONE, text.encode())
    asked = read_vnnlib(instance.property_file, file="p")
    truth = stated(instance, "linear", lines(0, questions=len(asked.questions())))
    if true:
        check(instance, truth)
    else:
        with pytest.raises(InvalidProof):
            check(instance, truth)


def test_a_property_that_calls_nothing_unsafe_is_not_proven() -> None:
    empty = instance_of(ABOVE_ONE, question([(1, -1)], 1, "(<= Y_0 0.5)"))
    with pytest.raises(InvalidProof, match="nothing to prove"):
        check(empty, stated(empty, "linear", lines(0)))


def test_constraints_may_speak_of_inputs() -> None:
    """Y − x = max(0, −x) + 1 >= 1: the slope of 1 shows it, a margin above 1 is false."""
    instance = instance_of(ABOVE_ONE, question([(-1, 1)], 1, "(<= Y_0 X_0)"))
    check(instance, stated(instance, "linear", lines(1), real=Fraction(99, 100)))
    with pytest.raises(InvalidProof):
        check(instance, stated(instance, "linear", lines(1), real=Fraction(101, 100)))
    with pytest.raises(InvalidProof):
        check(instance, stated(instance, "linear", lines(0)))


def test_ordered_pairs_know_nothing_of_inputs() -> None:
    network = model(
        [
            ("Conv", ["X", "w"], "c"),
            ("Relu", ["c"], "r"),
            ("Reshape", ["r", "i_flat"], "f"),
            ("Add", ["f", "one"], "Y"),
        ],
        {"w": np.ones((1, 1, 1, 1)), "i_flat": np.array([1, 1]), "one": [1.0]},
        [1, 1, 1, 1],
        [1, 1],
    )
    data: dict[str, Any] = {"convolution": "c", "pairs": []}
    plain = instance_of(network, question([(-1, 1)], 1, "(<= Y_0 0)"))
    assert check(plain, stated(plain, "ordered-pairs", data, float32=Fraction(1, 2))).real == 1
    mixed = instance_of(network, question([(-1, 1)], 1, "(<= Y_0 (+ X_0 X_0))"))
    with pytest.raises(InvalidProof, match="involves inputs"):
        check(mixed, stated(mixed, "ordered-pairs", data))


def test_too_many_inputs_in_one_hinge_are_not_enumerated() -> None:
    network = model(
        [("Gemm", ["X", "w"], "g"), ("Relu", ["g"], "r"), ("Neg", ["r"], "n"), ("Add", ["n", "b"], "Y")],
        {"w": np.ones((13, 1)), "b": [100.0]},
        [1, 13],
        [1, 1],
    )
    instance = instance_of(network, question([(-1, 1)] * 13, 1, "(<= Y_0 0)"))
    with pytest.raises(InvalidProof, match="tie 13 inputs"):
        check(instance, stated(instance, "convex-corners"))
    fixed = instance_of(network, question([(-1, 1)] * 12 + [(1, 1)], 1, "(<= Y_0 0)"))
    assert check(fixed, stated(fixed, "convex-corners")).real == 87


def test_hinges_in_two_layers_and_hinges_on_a_fixed_input() -> None:
    deep = model(
        [
            ("Relu", ["X"], "r"),
            ("Sub", ["b", "r"], "a"),
            ("Relu", ["a"], "s"),
            ("Sub", ["c", "s"], "Y"),
        ],
        {"b": [1.0], "c": [9.0]},
        [1, 1],
        [1, 1],
    )
    instance = instance_of(deep, question([(-1, 1)], 1, "(<= Y_0 0)"))
    with pytest.raises(InvalidProof, match="another hinge"):
        check(instance, stated(instance, "convex-corners"))
    flat = model(
        [("Relu", ["X"], "r"), ("Neg", ["r"], "n"), ("Add", ["n", "b"], "Y")], {"b": [9.0]}, [1, 1], [1, 1]
    )
    still = instance_of(flat, question([(2, 2)], 1, "(<= Y_0 0)"))
    assert check(still, stated(still, "convex-corners")).real == 7


@given(st.fractions(min_value=0), st.integers(-2000, 2000))
def test_rounding_down_never_rounds_up(value: Fraction, shift: int) -> None:
    margin = value * Fraction(10) ** shift
    rounded = round_down(margin)
    assert 0 <= rounded <= margin
    if margin > Fraction(1, 10**900):
        assert margin < rounded * (1 + Fraction(1, 10**8))
        scaled = rounded
        while scaled.denominator > 1 or scaled >= 10**9:
            scaled = scaled * 10 if scaled.denominator > 1 else scaled / 10
        assert scaled.numerator < 10**9


def test_claims_restate_what_is_proven() -> None:
    certificate = Certificate("linear", HALF)
    proven = prove(holds(), certificate, Label.UNSAT, None)
    claims = claims_of(proven)
    assert claims[Semantics.REAL].margin == Fraction("0.499999999") < proven.real <= Fraction(1, 2)
    assert claims[Semantics.FLOAT32].proven
    truth = replace(stated(holds(), "linear", HALF), claims=claims)
    check(holds(), truth)


def test_unknown_kinds_are_input_errors() -> None:
    with pytest.raises(InputError):
        prove(holds(), Certificate("slopes"), Label.UNSAT, None)


@pytest.fixture
def float64_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.networks.semantics.exact.EXACT_FIRST", -1)


@pytest.mark.usefixtures("float64_first")
def test_a_claimed_margin_is_proven_exactly_where_float64_falls_short_of_it() -> None:
    rough = check(fails(), witnessed("-0.5", real=Fraction(1, 5))).real
    assert Fraction(1, 5) < rough < Fraction(1, 4)
    assert check(fails(), witnessed("-0.5", real=Fraction(1, 4))).real == Fraction(1, 4)
    with pytest.raises(InvalidProof, match="larger"):
        check(fails(), witnessed("-0.5", real=Fraction(1, 4) + Fraction(1, 10**30)))


@pytest.mark.usefixtures("float64_first")
def test_a_float32_margin_is_proven_exactly_where_float64_falls_short_of_it() -> None:
    exact = prove(fails(), Certificate("witness"), Label.SAT, (Fraction(-1, 2),)).floats
    assert exact is not None
    assert check(fails(), witnessed("-0.5", float32=exact)).floats == exact
    rough = check(fails(), witnessed("-0.5", float32=exact / 2)).floats
    assert rough is not None and exact / 2 < rough < exact
    with pytest.raises(InvalidProof, match="larger"):
        check(fails(), witnessed("-0.5", float32=exact + Fraction(1, 10**30)))


@pytest.mark.usefixtures("float64_first")
@pytest.mark.parametrize(("x", "reason"), [("0.5", "not unsafe"), ("-2", "outside the box by 1")])
def test_a_witness_that_shows_nothing_is_refused_by_float64_too(x: str, reason: str) -> None:
    with pytest.raises(InvalidProof, match=reason):
        check(fails(), witnessed(x))


@pytest.mark.usefixtures("float64_first")
def test_without_a_claim_the_margin_is_the_largest_there_is() -> None:
    assert prove(fails(), Certificate("witness"), Label.SAT, (Fraction(-1, 2),)).real == Fraction(1, 4)
