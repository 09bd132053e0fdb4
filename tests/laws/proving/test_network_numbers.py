"""Laws on networks of one number, and on what a last operator or a threshold makes of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from dokimos.checker.lemmas.relu_layers import bounded
from dokimos.checker.lemmas.zones import Cover, Options
from dokimos.core.errors import InputError, InvalidProof
from dokimos.laws import above
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_plan import make_plan
from dokimos.laws.models.model_files import onnx_model
from dokimos.laws.proving.network_closing import read_layers
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.stated_laws import REAL, state_law
from dokimos.laws.proving.verifying import verify_law
from dokimos.networks.semantics.outward import Interval, point
from dokimos.networks.writing.builder import ModelBuilder
from tests.laws.proving.small import MORE, SET, domain
from tests.laws.proving.test_numbers import ENSURED
from tests.laws.toy import law


def _network(seed: int, rising: bool = False) -> bytes:
    """A network of whole numbers, so that floats compute it exactly."""
    rng = np.random.default_rng(seed)
    builder, last = ModelBuilder([5]), 5
    for number, size in enumerate((3, 3, 1)):
        weight = rng.integers(-2, 3, (size, last)).astype(np.float64)
        if rising:
            weight[:, : 1 if number == 0 else last] = np.abs(weight[:, : 1 if number == 0 else last])
        builder = (builder.relu() if number else builder).affine(weight, rng.integers(-3, 4, size) / 2.0)
        last = size
    return builder.build(1)


def _ending(content: bytes, op: str) -> bytes:
    model = onnx.ModelProto.FromString(content)
    graph = model.graph
    graph.node.append(helper.make_node(op, [graph.output[0].name], ["ended"]))
    graph.output[0].name = "ended"
    return model.SerializeToString()


def _numbers(**more: Any) -> Domain:
    return replace(domain(), classes=(), **more)


def _decided(ensures: str, content: bytes, of: Domain | None = None, start: str = MORE) -> LawDecision:
    of = of or _numbers()
    text = law(f"{start} ENSURES {ensures}")
    model = onnx_model(content, of, name="network")
    found = verify_law(text, model=model, domain=of, settings=VerifySettings(seconds=10))
    if found.cover is not None:
        assert state_law(make_plan(text, of), model).check(found.cover) == found.semantics
    return found


def _is_kept(ensures: str, content: bytes, start: str) -> bool:
    """Whether all cases keep a law, of the network as onnxruntime runs it."""
    plan, model = (
        make_plan(law(f"{start} ENSURES {ensures}"), _numbers()),
        onnx_model(content, _numbers(), name="network"),
    )
    question = state_law(plan, model).question
    axes = [
        sorted(each.left) if isinstance(each, Options) else range(int(each.low), int(each.high) + 1)
        for each in question.zone.values
    ]
    cases = [case for case in product(*axes) if question.admits(case)]
    one, two = (
        model.predict(np.stack([question.columns(record, case) for case in cases])).astype(float).tolist()
        for record in question.records
    )
    holds = ENSURED[ensures]
    return all(holds(*pair) for pair in zip(one, two, strict=True))


@pytest.mark.parametrize("ensures", [each for each, holds in ENSURED.items() if holds])
def test_the_answer_is_that_of_all_cases(ensures: str) -> None:
    found = set()
    for seed in range(4):
        content = _network(seed, rising=seed % 2 == 0)
        for start in (MORE, SET):
            kept = _is_kept(ensures, content, start)
            answer = _decided(ensures, content, start=start).answer
            assert answer is (LawAnswer.PROVEN if kept else LawAnswer.VIOLATED)
            found.add(kept)
    assert found


def test_both_answers_are_among_these() -> None:
    kept = {_is_kept("d1 <= d2", _network(seed, seed % 2 == 0), MORE) for seed in range(4)}
    assert kept == {True, False}


def test_a_proof_is_refused_for_a_network_that_violates_the_law() -> None:
    """A cover cut into single cases proves what holds, and is refused where one case is against the law."""
    plan, of = make_plan(law(f"{MORE} ENSURES d1 <= d2"), _numbers()), _numbers()
    rising, other = _network(0, rising=True), _network(1)
    found = _decided("d1 <= d2", rising)
    assert isinstance(found.cover, Cover) and not _is_kept("d1 <= d2", other, MORE)
    for content, is_proven in ((rising, True), (other, False)):
        stated = state_law(plan, onnx_model(content, of, name="network"))
        if is_proven:
            stated.check(found.cover)
        else:
            with pytest.raises(InvalidProof):
                stated.check(found.cover)


def test_a_limit_is_met_exactly_or_not_at_all() -> None:
    """Of 2 · points + 0.5, steps of one are of 2: at most 2 apart, not at most a little less."""
    weight = np.array([[2.0, 0, 0, 0, 0]])
    content = ModelBuilder([5]).affine(weight, np.array([0.5])).build(1)
    start = "input x1; var x2 := x1[points := x1.points + 1];"
    for ensures, answer in (
        ("d2 - d1 <= 2", LawAnswer.PROVEN),
        ("d2 - d1 < 2", LawAnswer.VIOLATED),
        ("d2 - d1 <= 1.9999999999", LawAnswer.VIOLATED),
        ("2 * d2 - 3 * d1 <= 4", LawAnswer.PROVEN),
        ("2 * d2 - 3 * d1 <= 3.4", LawAnswer.VIOLATED),
    ):
        assert _decided(ensures, content, start=start).answer is answer, ensures


@pytest.mark.parametrize("op", ["Sigmoid", "Exp"])
def test_behind_an_increasing_operator_the_order_is_proven_and_nothing_else(op: str) -> None:
    rising = _ending(_network(0, rising=True), op)
    found = _decided("d1 <= d2", rising)
    assert found.answer is LawAnswer.PROVEN and found.semantics == REAL
    assert _decided("d1 <= d2", _ending(_network(1), op)).answer is LawAnswer.VIOLATED
    assert _decided("d1 >= 0.25", rising).answer is LawAnswer.REFUSED


def test_a_softmax_changes_no_decision() -> None:
    builder = ModelBuilder([5]).affine(np.array([[1.0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]), np.array([0.0, 2.5]))
    content = builder.build(2)
    for each in (content, _ending(content, "Softmax")):
        found = _decided("d1 >= d2", each, replace(domain(), classes=("low", "high")))
        assert found.answer is LawAnswer.PROVEN
        assert (found.semantics == REAL) == (each is not content)


def test_a_threshold_decides_between_two_classes() -> None:
    classes = ("no", "yes")
    for content, threshold in (
        (_network(0, rising=True), 3.5),
        (_ending(_network(0, True), "Sigmoid"), 0.5),
    ):
        of = _numbers(decide=above(threshold))
        of = replace(of, classes=classes)
        assert _decided("d1 <= d2", content, of).answer is LawAnswer.PROVEN
        other = onnx_model(content, of, name="network").predict(np.eye(6, 5) * 5)
        assert set(other.tolist()) <= {0, 1}
    of = replace(_numbers(decide=above(0.3)), classes=classes)
    found = _decided("d1 <= d2", _ending(_network(0, True), "Sigmoid"), of)
    assert found.answer is LawAnswer.REFUSED and "only at 0.5" in found.reason
    with pytest.raises(InputError, match="several"):
        above(0.5)(np.zeros((3, 2)))


def test_a_network_that_is_not_read_is_tested() -> None:
    """A hidden Tanh has no layers here; where it falls with the points, tests say so."""
    falling = ModelBuilder([5]).affine(np.array([[-1.0, 0, 0, 0, 0]]), np.zeros(1)).build(1)
    model = onnx.ModelProto.FromString(_ending(falling, "Tanh"))
    found = _decided("d1 <= d2", model.SerializeToString())
    assert found.answer is LawAnswer.VIOLATED and found.step == "draws from the ranges"
    kept = _decided("d1 >= d2", model.SerializeToString())
    assert kept.answer is LawAnswer.REFUSED and "tests found no violation" in kept.reason


def _scaled(seed: int) -> tuple[bytes, list[list[Fraction]]]:
    """A network that subtracts, divides and multiplies by constants; and its first weights."""
    rng = np.random.default_rng(seed)
    nodes, constants, last = [], [], "x"
    factor = [Fraction(1)] * 5
    for number, op in enumerate(("Sub", "Div", "Mul", "Div")):
        value = rng.uniform(0.5, 3, 5).astype(np.float32)
        name = f"c{number}"
        constants.append(onnx.numpy_helper.from_array(value, name))
        nodes.append(helper.make_node(op, [last, name], [f"t{number}"]))
        last = f"t{number}"
        if op != "Sub":
            one = [Fraction(float(each)) for each in value]
            factor = [a * b if op == "Mul" else a / b for a, b in zip(factor, one, strict=True)]
    weights = []
    for number, (size, taken) in enumerate(((3, 5), (1, 3))):
        weight, bias = rng.normal(size=(size, taken)).astype(np.float32), np.zeros(size, np.float32)
        names = [f"w{number}", f"b{number}"]
        constants += [
            onnx.numpy_helper.from_array(v, n) for v, n in zip((weight, bias), names, strict=True)
        ]
        nodes.append(helper.make_node("Gemm", [last, *names], [f"s{number}"], transB=1))
        last = f"s{number}"
        if number == 0:
            nodes.append(helper.make_node("Relu", [last], ["r"]))
            last = "r"
        weights.append(weight)
    kind = onnx.TensorProto.FLOAT
    ends = [
        helper.make_tensor_value_info(*each) for each in (("x", kind, ["b", 5]), (last, kind, ["b", 1]))
    ]
    graph = helper.make_graph(nodes, "scaled", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    first = [[Fraction(float(w)) * f for w, f in zip(row, factor, strict=True)] for row in weights[0]]
    return model.SerializeToString(), first


@pytest.mark.parametrize("seed", range(4))
def test_a_network_that_divides_by_constants_is_read_with_what_its_coefficients_lose(seed: int) -> None:
    """Coefficients that are no float64 numbers were refused; rounded ones would be another network's."""
    content, exact = _scaled(seed)
    layer, *others = read_layers(content, name="network")[1]
    assert layer.inexact is not None and all(each.inexact is None for each in others)
    found, rounded = layer.coefficients, replace(layer, inexact=None).coefficients
    is_rounded = 0
    for row, weights in enumerate(exact):
        for k, weight in enumerate(weights):
            assert found.lower[row, k] <= weight <= found.upper[row, k]
            is_rounded += not rounded.lower[row, k] <= weight <= rounded.upper[row, k]
    assert is_rounded
    # The bounds have it: they widen by what the coefficients may lose, times the size of the inputs.
    box = Interval(np.full(5, -2.0), np.full(5, 2.0))
    more = replace(layer, inexact=layer.inexact + 0.25)
    rows, least = point(np.eye(3)), [np.zeros(0), np.zeros(0)]
    for number, each in enumerate((layer, more)):
        over = bounded((each,), box)
        least[number] = over.lower_bounds(rows, over.silent(3))
    assert (least[1] <= least[0] - 5 * 0.25 * 2).all()


def test_laws_on_a_network_that_divides_by_constants_are_decided() -> None:
    content, _ = _scaled(0)
    for ensures in ("d1 <= d2 + 1000", "d1 <= d2 - 1000"):
        found = _decided(ensures, content)
        assert found.answer is (LawAnswer.PROVEN if "+" in ensures else LawAnswer.VIOLATED)
