"""Answers in floats alone: what is proven of all runs, and what must not be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker import check, prove
from dokimos.checker.base import FLOATS
from dokimos.checker.check import RUNS, prove_in_floats
from dokimos.checker.proofs.runs import Rounding
from dokimos.constructions import CONSTRUCTIONS
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.engine.runtimes.cross_check import cross_check
from dokimos.judging.judge import is_proven_for
from dokimos.networks.semantics.outward import BFLOAT16, FLOAT16, FLOAT32, Format
from dokimos.suites.entry import load_truth
from dokimos.suites.instance import (
    Certificate,
    Claim,
    Instance,
    Label,
    LabelledInstance,
    Order,
    OwnAnswer,
    Semantics,
    Truth,
)
from dokimos.suites.suite_files import dump_truth
from tests.checker.files import instance_of, lines, model, question

F = Fraction
FLOATING = (Semantics.FLOAT32, Semantics.FLOAT16, Semantics.BFLOAT16)
DTYPES: dict[str, Any] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}


def asked(
    nodes: Sequence[tuple[Any, ...]],
    weights: Mapping[str, Any],
    ends: Sequence[tuple[Any, Any]],
    unsafe: str,
) -> Instance:
    """One row of inputs in a box, one output."""
    return instance_of(model(nodes, weights, [1, len(ends)], [1, 1]), question(ends, 1, unsafe))


def margin(
    instance: Instance, semantics: Semantics, label: Label, witness: Sequence[Any] | None = None
) -> Fraction:
    point = None if witness is None else tuple(map(F, witness))
    found = prove_in_floats(instance, OwnAnswer(label, Certificate(RUNS), point), semantics)
    assert found is not None
    return found


def refused(
    match: str, instance: Instance, semantics: Semantics, label: Label, witness: Sequence[Any] | None = None
) -> None:
    with pytest.raises(InvalidProof, match=match):
        margin(instance, semantics, label, witness)


ADDED = [("Add", ["X", "c"], "a"), ("Sub", ["a", "c"], "Y")]


def absorbed(unsafe: str, by: float = 4096.0) -> Instance:
    """(x + c) − c for x in [1/4, 1]."""
    return asked(ADDED, {"c": [[by]]}, [(0.25, 1)], unsafe)


def test_what_a_large_number_absorbs_is_gone() -> None:
    """In float16, 4096 + x is 4096: Y is 0; in float32 and over the reals it is x."""
    instance = absorbed("(>= Y_0 0.125)")
    assert margin(instance, Semantics.FLOAT16, Label.UNSAT) == F(1, 8)
    assert margin(instance, Semantics.FLOAT32, Label.SAT, [0.5]) == F(3, 8)
    assert prove(instance, Certificate("witness"), Label.SAT, (F(1, 2),)).real == F(3, 8)
    refused("not above 0", instance, Semantics.FLOAT32, Label.UNSAT)
    refused("not all unsafe", instance, Semantics.FLOAT16, Label.SAT, [0.5])
    with pytest.raises(InvalidProof):
        prove(instance, Certificate("linear", lines()), Label.UNSAT, None)


def test_the_witness_is_a_number_of_the_type() -> None:
    instance = absorbed("(<= Y_0 0.125)")
    assert margin(instance, Semantics.FLOAT16, Label.SAT, [0.5]) == F(1, 8)
    refused("not a float16 point", instance, Semantics.FLOAT16, Label.SAT, [0.5 + 2.0**-13])
    refused("not a float16 point", instance, Semantics.FLOAT16, Label.SAT, None)
    refused("not all unsafe", instance, Semantics.FLOAT16, Label.SAT, [2.0])


def test_an_overflow_in_float16_proves_nothing() -> None:
    """256·x is 65536 at 256, which float16 does not hold: neither label, though min(256·x, 1) is 1."""
    nodes = [("Mul", ["X", "c"], "m"), ("Min", ["m", "one"], "Y")]
    over = asked(nodes, {"c": [[256.0]], "one": [[1.0]]}, [(250, 256)], "(>= Y_0 0.5)")
    refused("may overflow in float16", over, Semantics.FLOAT16, Label.SAT, [256])
    assert margin(over, Semantics.FLOAT16, Label.SAT, [255]) == F(1, 2)
    assert margin(over, Semantics.BFLOAT16, Label.SAT, [256]) == F(1, 2)
    safe = asked(nodes, {"c": [[256.0]], "one": [[1.0]]}, [(250, 256)], "(>= Y_0 2)")
    refused("may overflow in float16", safe, Semantics.FLOAT16, Label.UNSAT)
    assert margin(safe, Semantics.FLOAT32, Label.UNSAT) == 1
    large = asked(ADDED, {"c": [[1e5]]}, [(0, 1)], "(>= Y_0 2)")
    refused("may overflow in float16", large, Semantics.FLOAT16, Label.UNSAT)
    witnessed = prove(over, Certificate("witness"), Label.SAT, (F(256),), semantics=Semantics.FLOAT16)
    assert witnessed.floats is None


def test_what_is_subnormal_may_be_flushed_or_kept() -> None:
    """x·2^-12 is from 2^-16 to 2^-15: gradually it is that in float16, flushed it is 0."""
    nodes = [("Mul", ["X", "down"], "m"), ("Mul", ["m", "up"], "Y")]
    weights = {"down": [[2.0**-12]], "up": [[2.0**12]]}
    ends = [(0.0625, 0.125)]
    refused("not above 0", asked(nodes, weights, ends, "(<= Y_0 0.03125)"), Semantics.FLOAT16, Label.UNSAT)
    kept = asked(nodes, weights, ends, "(>= Y_0 0.03125)")
    refused("not all unsafe", kept, Semantics.FLOAT16, Label.SAT, [0.125])
    flushed = asked(nodes, weights, ends, "(<= Y_0 0.03125)")
    refused("not all unsafe", flushed, Semantics.FLOAT16, Label.SAT, [0.125])
    assert margin(kept, Semantics.BFLOAT16, Label.SAT, [0.125]) == F(3, 32)


def test_what_rounds_up_to_the_smallest_normal_number_may_be_flushed() -> None:
    """Arm flushes what is subnormal before it is rounded, x86 what is subnormal after that."""
    way, below = Rounding(FLOAT32, Order.ANY), F(FLOAT32.tiny) * (1 - F(1, 2**26))
    assert way.stored(below, below) == (0, F(FLOAT32.tiny))
    assert way.stored(-below, -below) == (-F(FLOAT32.tiny), 0)
    assert way.stored(F(FLOAT32.tiny), F(FLOAT32.tiny)) == (F(FLOAT32.tiny), F(FLOAT32.tiny))


def test_rounding_once_and_twice_are_both_allowed() -> None:
    """Just above a tie of float16 it goes up; but through float32 it comes to the tie, and goes down."""
    middle = 1 + F(1, 2**11)
    way = Rounding(FLOAT16, Order.ANY)
    above = middle + F(1, 2**40)
    assert way.stored(above, above) == (1, 1 + F(1, 2**10))
    assert way.stored(middle + F(1, 2**20), middle + F(1, 2**20)) == (1 + F(1, 2**10),) * 2


def test_a_product_that_is_rounded_twice_decides_nothing() -> None:
    """1 + 2^-11 + 2^-26 lies just above a tie of float16; a float32 accumulator holds only the tie."""
    weights = {"w": [[1.0], [2.0**-11], [2.0**-14]]}
    nodes = [("MatMul", ["X", "w"], "Y")]
    ends = [(1, 1), (1, 1), (2.0**-12, 2.0**-12)]
    high = asked(nodes, weights, ends, "(>= Y_0 1.0009)")
    refused("not all unsafe", high, Semantics.FLOAT16, Label.SAT, [1, 1, 2.0**-12])
    low = asked(nodes, weights, ends, "(<= Y_0 1.0001)")
    refused("not all unsafe", low, Semantics.FLOAT16, Label.SAT, [1, 1, 2.0**-12])


SUM = [("MatMul", ["X", "w"], "Y")]
ONE, LARGE = (1, 1), 2.0**24


def test_a_sum_whose_order_matters_has_an_answer_for_each_order_only() -> None:
    """2^24 − 2^24 + x is x from the front, and 0 from the back."""
    weights = {"w": [[LARGE], [-LARGE], [1.0]]}
    for unsafe, (front, back) in {
        "(>= Y_0 0.125)": (Label.SAT, Label.UNSAT),
        "(<= Y_0 0.125)": (Label.UNSAT, Label.SAT),
    }.items():
        instance = asked(SUM, weights, [ONE, ONE, (0.25, 0.375)], unsafe)
        point = [1, 1, 0.25]
        for semantics, label in ((Semantics.FORWARD, front), (Semantics.BACKWARD, back)):
            other = Label.SAT if label is Label.UNSAT else Label.UNSAT
            witness, none = (point, None) if label is Label.SAT else (None, point)
            assert margin(instance, semantics, label, witness) >= F(1, 8)
            refused(".", instance, semantics, other, none)
        refused("not above 0", instance, Semantics.FLOAT32, Label.UNSAT)
        refused("not all unsafe", instance, Semantics.FLOAT32, Label.SAT, point)


def test_an_order_of_two_terms_and_their_bias_is_both() -> None:
    """A bias may come first or last, so nothing is known where that matters."""
    nodes = [("Gemm", ["X", "w", "b"], "Y")]
    weights = {"w": [[LARGE], [-LARGE]], "b": [0.25]}
    instance = asked(nodes, weights, [ONE, ONE], "(>= Y_0 0.125)")
    for semantics in (Semantics.FORWARD, Semantics.FLOAT32):
        refused("not all unsafe", instance, semantics, Label.SAT, [1, 1])
        refused("not above 0", instance, semantics, Label.UNSAT)


def test_nodes_that_are_read_as_several_roundings_are_refused() -> None:
    """A runtime may round such a node once, or compute it by another formula."""
    plain = asked([("Relu", ["X"], "Y")], {}, [(0, 1)], "(>= Y_0 4)")
    file = onnx.load_model_from_string(plain.network_file)
    file.graph.node[0].op_type, file.opset_import[0].version = "Gelu", 20
    gelu = replace(plain, network_file=file.SerializeToString())
    refused("read as several roundings", gelu, Semantics.FLOAT32, Label.UNSAT)
    file.graph.node[0].op_type = "Exp"
    unknown = replace(plain, network_file=file.SerializeToString())
    refused("has no rule for it", unknown, Semantics.FLOAT32, Label.UNSAT)
    rounds = [("QuantizeLinear", ["X", "s"], "q"), ("DequantizeLinear", ["q", "s"], "Y")]
    refused("operators of quantisation", asked(rounds, {"s": 0.5}, [(0, 1)], "(>= Y_0 4)"), *FLOATED)


FLOATED = (Semantics.FLOAT32, Label.UNSAT)


def test_a_box_without_a_number_of_the_type_proves_nothing() -> None:
    instance = asked(ADDED, {"c": [[1.0]]}, [(1.0002, 1.0004)], "(>= Y_0 9)")
    assert margin(instance, Semantics.FLOAT32, Label.UNSAT) > 7
    refused("the box holds no float16 point", instance, Semantics.FLOAT16, Label.UNSAT)


# Against runs that are simulated one operation at a time


def nearest(form: Format, exact: Fraction) -> Fraction:
    return F(float(np.float64(float(exact)).astype(DTYPES[form.name])))


@given(
    semantics=st.sampled_from([*FLOATING, Semantics.FORWARD, Semantics.BACKWARD]),
    products=st.lists(st.tuples(st.integers(-40, 40), st.integers(-12, 3)), min_size=1, max_size=9),
    fused=st.booleans(),
    flush=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(deadline=None, max_examples=300)
def test_simulated_sums_lie_within_the_runs(
    semantics: Semantics, products: list[tuple[int, int]], fused: bool, flush: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    form, order = FLOATS[semantics]
    exact = [F(k, 7) * F(2) ** e for k, e in products]

    def rounded(number: Fraction, *, stored: bool = False) -> Fraction:
        ways = [lambda x: nearest(form, x), lambda x: nearest(form, nearest(FLOAT32, x))]
        ways += [] if stored else [lambda x: nearest(FLOAT32, x)]
        found = ways[rng.integers(len(ways))](number)
        return F(0) if flush and abs(found) < form.tiny else found

    terms = exact if fused else [rounded(product) for product in exact]
    if order is not Order.ANY:
        terms = terms if order is Order.FORWARD else terms[::-1]
        total = terms[0]
        for term in terms[1:]:
            total = rounded(total + term)
    else:
        while len(terms) > 1:
            i, j = rng.choice(len(terms), 2, replace=False)
            terms = [rounded(terms[i] + terms[j]), *(t for k, t in enumerate(terms) if k not in (i, j))]
        total = terms[0]
    low, high = Rounding(form, order).sum_of([(x, x) for x in exact])
    assert low <= rounded(total, stored=True) <= high


@pytest.mark.parametrize("form", [FLOAT16, BFLOAT16, FLOAT32], ids=lambda form: form.name)
def test_nearest_is_what_numpy_rounds_to(form: Format) -> None:
    rng = np.random.default_rng(0)
    way = Rounding(form, Order.ANY)
    values = rng.uniform(-2, 2, 400) * 2.0 ** rng.integers(-30, 15, 400)
    steps = [float(F(form.step(F(x)))) for x in values.tolist()]
    ties = np.floor(values / steps) * steps + np.array(steps) / 2
    for x in (*values.tolist(), *ties.tolist()):
        assert way.nearest(F(x), form) == F(float(np.float64(x).astype(DTYPES[form.name])))


# Truths with several answers


@pytest.fixture(scope="module")
def drawn() -> tuple[LabelledInstance, LabelledInstance]:
    robust, twin = CONSTRUCTIONS["precision"](seed=5, float32="differs", float16="agrees")
    return robust, twin


def truth_of(labelled: LabelledInstance) -> Truth:
    assert labelled.truth is not None
    return labelled.truth


def test_each_semantics_has_its_own_proven_answer(
    drawn: tuple[LabelledInstance, LabelledInstance],
) -> None:
    for labelled, label in zip(drawn, (Label.UNSAT, Label.SAT), strict=True):
        truth = truth_of(labelled)
        check(labelled.instance, truth)
        answers = {s: alone.label for s in FLOATING if (alone := truth.under(s)) is not None}
        other = Label.SAT if label is Label.UNSAT else Label.UNSAT
        assert truth.label is label
        assert answers == {
            Semantics.FLOAT32: other,
            Semantics.FLOAT16: label,
            Semantics.BFLOAT16: label,
        }
        read = load_truth(dump_truth(truth, origin={}), file="truth")
        assert read == truth
        assert [s for s in Semantics if truth.holds_in(s)] == [
            *(Semantics.REAL, Semantics.FLOAT16, Semantics.BFLOAT16)
        ]
        assert not is_proven_for(truth, Semantics.FLOAT32)
        compared = cross_check(labelled.instance, truth)
        assert compared.is_done and not compared.contradiction


def changed(truth: Truth, semantics: Semantics, **changes: Any) -> Truth:
    return replace(truth, claims={**truth.claims, semantics: replace(truth.claim(semantics), **changes)})


@pytest.mark.parametrize("semantics", FLOATING)
@pytest.mark.parametrize("half", [0, 1])
def test_another_answer_is_refused(
    drawn: tuple[LabelledInstance, LabelledInstance], half: int, semantics: Semantics
) -> None:
    instance, truth = drawn[half].instance, truth_of(drawn[half])
    claim = truth.claim(semantics)
    assert claim.own is not None and claim.margin is not None
    is_sat = claim.own.label is Label.SAT
    witness = next(
        c.own.witness for d in drawn for c in truth_of(d).claims.values() if c.own and c.own.witness
    )
    turned = OwnAnswer(Label.UNSAT if is_sat else Label.SAT, Certificate(RUNS), None if is_sat else witness)
    with pytest.raises(InvalidProof):
        check(instance, changed(truth, semantics, own=turned, margin=F(0)))
    with pytest.raises(InvalidProof, match=f"margin claimed for {semantics.value} is larger"):
        check(instance, changed(truth, semantics, margin=claim.margin * F(101, 100)))
    with pytest.raises(InvalidProof):
        check(instance, changed(truth, semantics, own=None))
    with pytest.raises(InvalidProof, match="sat needs a witness"):
        lost = replace(claim.own, witness=None if is_sat else witness)
        check(instance, changed(truth, semantics, own=lost))
    false = changed(truth, semantics, own=turned)
    if false.witness or any(each.own and each.own.witness for each in false.claims.values()):
        assert "but the label is" in cross_check(instance, false).contradiction


def test_what_is_not_about_floats_has_no_answer_of_its_own(
    drawn: tuple[LabelledInstance, LabelledInstance],
) -> None:
    instance, truth = drawn[0].instance, truth_of(drawn[0])
    own = OwnAnswer(Label.UNSAT, Certificate(RUNS))
    with pytest.raises(InvalidProof, match="the label is not claimed for the reals"):
        check(instance, changed(truth, Semantics.REAL, own=own))
    integer = Claim(True, F(0))
    with pytest.raises(InvalidProof, match="the label is claimed for integer, but not proven there"):
        check(instance, replace(truth, claims={**truth.claims, Semantics.INTEGER: integer}))
    with pytest.raises(UnreadableFile, match="unknown kind 'runs'"):
        check(instance, replace(truth, certificate=Certificate(RUNS)))
    text = dump_truth(truth, origin={})
    with pytest.raises(UnreadableFile, match="needs its label and its certificate"):
        load_truth(text.replace('"label": "sat",\n   "certificate"', '"certificate"', 1), file="truth")


def test_a_quantised_label_is_proven_for_integers_by_name() -> None:
    robust, twin = CONSTRUCTIONS["quantised"](seed=1)
    for labelled in (robust, twin):
        truth = truth_of(labelled)
        assert truth.claim(Semantics.INTEGER) == truth.claim(Semantics.REAL)
        check(labelled.instance, truth)
        larger = changed(truth, Semantics.INTEGER, margin=2 * (truth.claim(Semantics.REAL).margin or F(1)))
        with pytest.raises(InvalidProof, match="margin claimed for integer is larger"):
            check(labelled.instance, larger)


# Margins that the rounding of a type leaves of those over the reals


def sloped(limit: float) -> Instance:
    """Y = relu(x + 1/2)·3 <= 4.5 on [0, 1]."""
    nodes = [("Add", ["X", "h"], "a"), ("Relu", ["a"], "r"), ("Mul", ["r", "t"], "Y")]
    return asked(nodes, {"h": [[0.5]], "t": [[3.0]]}, [(0, 1)], f"(>= Y_0 {limit})")


def test_a_claim_in_float16_is_about_its_own_ulps() -> None:
    """Not about those of a claim in float32, which need not even be proven."""
    nodes = [("Tanh", ["X"], "Y")]
    given = instance_of(model(nodes, {}, [1, 1], [1, 1]), question([(0.5, 0.5)], 1, "(<= Y_0 0.25)"))
    proof = Certificate("linear", {"questions": [{}]})
    exact, loose = (
        prove(given, proof, Label.UNSAT, None, ulps=ulps, semantics=Semantics.FLOAT16).floats
        for ulps in (1, 64)
    )
    assert exact is not None and loose is not None and loose < exact
    claims = {
        Semantics.REAL: Claim(True, F(1, 10)),
        Semantics.FLOAT32: Claim(False, ulps=1),
        Semantics.FLOAT16: Claim(True, exact, ulps=64),
    }
    truth = Truth(Label.UNSAT, claims, proof, given.network_sha256, given.property_sha256)
    with pytest.raises(InvalidProof, match="margin claimed for float16 is larger"):
        check(given, truth)
    check(given, replace(truth, claims={**claims, Semantics.FLOAT16: Claim(True, loose, ulps=64)}))


def test_a_margin_that_is_too_small_for_float16_is_refused() -> None:
    close, far = sloped(4.501), sloped(4.6)
    proof = Certificate("linear", lines(1.0))
    margins = {}
    for semantics in FLOATING:
        margins[semantics] = prove(far, proof, Label.UNSAT, None, semantics=semantics).floats
        found = prove(close, proof, Label.UNSAT, None, semantics=semantics)
        assert (found.floats is None) == (semantics is not Semantics.FLOAT32)
        assert found.real > F(9, 10_000)
    single, half, brain = (margins[s] for s in FLOATING)
    assert single is not None and half is not None and brain is not None
    assert F(9, 100) < half < single and brain < half
    truth = Truth(
        Label.UNSAT,
        {Semantics.REAL: Claim(True, F(9, 100)), Semantics.FLOAT16: Claim(True, half)},
        proof,
        far.network_sha256,
        far.property_sha256,
    )
    assert check(far, truth).floats is None
    for semantics, claimed in ((Semantics.FLOAT16, half * F(10001, 10000)), (Semantics.BFLOAT16, half)):
        with pytest.raises(InvalidProof, match=f"margin claimed for {semantics.value} is larger"):
            check(far, replace(truth, claims={**truth.claims, semantics: Claim(True, claimed)}))
    assert {semantics: FLOATS[semantics][0] for semantics in FLOATING} == {
        Semantics.FLOAT32: FLOAT32,
        Semantics.FLOAT16: FLOAT16,
        Semantics.BFLOAT16: BFLOAT16,
    }
