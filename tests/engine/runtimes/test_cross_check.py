"""A network that runtimes run otherwise than it is read here proves nothing."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import pytest

import dokimos
from dokimos.core.errors import InvalidProof
from dokimos.engine.runtimes import cross_check as module
from dokimos.engine.runtimes.cross_check import Contradiction, CrossCheck, cross_check, points_to_compare
from dokimos.engine.runtimes.sessions import CannotRun, OnnxRuntime
from dokimos.judging import witness_replay
from dokimos.judging.witness_replay import RecentNetworks
from dokimos.networks.graph import Network
from dokimos.networks.reading import onnx_file
from dokimos.networks.reading.lowering import Lowering, OnnxCall, Rule
from dokimos.networks.semantics.exact import Enclosure, evaluate
from dokimos.suites.instance import Instance, Label, LabelledInstance, Truth
from dokimos.suites.suite_files import files_of, store_files, write_index
from dokimos.suites.vnnlib.model import Point
from dokimos.suites.vnnlib.reader import parse_vnnlib
from dokimos.testing.statements import instance_of, question, stated
from tests.cli.conftest import Dokimos
from tests.networks.building import Builder, single


def of(model: onnx.ModelProto, bounds: list[tuple[float, float]], *unsafe: str) -> tuple[Instance, Truth]:
    """An instance of one output, and the claim that intervals prove it unsat."""
    asked = question(bounds, 1, *(unsafe or ("(<= Y_0 -100.0)",)))
    instance = instance_of(model.SerializeToString(), asked)
    return instance, stated(instance, "linear", {"questions": [{}]})


def leaky() -> tuple[Instance, Truth]:
    model = single("LeakyRelu", (1, 1), attributes={"alpha": 0.5})
    return of(model, [(-2.0, -1.0)], "(<= Y_0 -1.25)")


def suite_of(folder: Path, instance: Instance, truth: Truth) -> Path:
    store_files(folder, files_of(LabelledInstance(instance, truth)))
    write_index(folder, [(instance.name, "small")], 1, recipe={}, version="0")
    return folder


def misread(monkeypatch: pytest.MonkeyPatch, op: str, rule: Rule) -> None:
    """Read that operator by `rule`; what is kept of networks that were read so is let go of after."""
    monkeypatch.setattr(onnx_file, "_RULES", MappingProxyType({**onnx_file._RULES, op: rule}))
    monkeypatch.setattr(witness_replay, "NETWORKS", RecentNetworks(most_bytes=1 << 20))


def slope_of_zero(lowering: Lowering, call: OnnxCall) -> None:
    call.attribute("alpha")
    lowering.emit(call, "LeakyRelu", call.inputs, {"alpha": 0.0}, output=call.outputs[0])


def shifted_window(lowering: Lowering, call: OnnxCall) -> None:
    for name in ("kernel_shape", "pads", "strides"):
        call.attribute(name)
    attributes = {"kernel": (2,), "strides": (2,), "dilations": (1,), "pads": (0, 1)}
    lowering.emit(call, "MaxPool", call.inputs, attributes, output=call.outputs[0])


def test_what_is_read_rightly_agrees() -> None:
    assert cross_check(*leaky()) == CrossCheck("onnxruntime")


def test_a_label_of_a_misread_network_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run_dokimos: Dokimos
) -> None:
    instance, truth = leaky()
    misread(monkeypatch, "LeakyRelu", slope_of_zero)
    suite = suite_of(tmp_path, instance, truth)
    (entry,) = dokimos.check(suite, core_only=True).entries
    assert entry.is_proven  # of the network as it is misread, the proof is right
    checked = dokimos.check(suite)
    assert not checked.is_proven
    said = checked.failed[0].problem
    assert "onnxruntime computes Y_0 = -" in said
    assert "as read is 0," in said
    ran = run_dokimos("check", suite)
    assert ran.code == 1
    assert "0 of 1 labels proven" in ran.out
    assert said in ran.err
    assert "cross-check" not in run_dokimos("check", suite, "--core-only").out


def test_windows_that_runtimes_place_elsewhere_prove_nothing(tmp_path: Path, run_dokimos: Dokimos) -> None:
    """onnxruntime crops the input here and sees its second entry, others see the first: nobody is right."""
    attributes = {"kernel_shape": [1], "dilations": [2], "strides": [3], "auto_pad": "SAME_UPPER"}
    model = single("MaxPool", (1, 1, 3), attributes=attributes)
    instance, truth = of(model, [(0.5, 0.5), (5.5, 5.5), (0.5, 0.5)], "(>= Y_0 5.0)")
    suite = suite_of(tmp_path, instance, truth)
    for words in ((), ("--core-only",)):
        ran = run_dokimos("check", suite, *words)
        assert ran.code == 2
        assert "runtimes disagree on auto_pad" in ran.err


def test_a_window_in_the_wrong_place_is_seen_at_a_corner(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lower ends are alike here, as are the centres: only a corner of both ends tells."""
    attributes = {"kernel_shape": [2], "strides": [2], "pads": [1, 0]}
    model = single("MaxPool", (1, 1, 7), attributes=attributes)
    instance = instance_of(model.SerializeToString(), question([(0.0, 1.0)] * 7, 4, "(<= Y_0 -1.0)"))
    truth = stated(instance, "linear", {"questions": [{}]})
    assert not cross_check(instance, truth).contradiction
    misread(monkeypatch, "MaxPool", shifted_window)
    assert "at a corner of the first box" in cross_check(instance, truth).contradiction


def test_another_number_of_outputs_is_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnnxRuntime, "outputs", lambda self, point: [0.0, 0.0])
    assert "gives 2 outputs, but the network is read as having 1" in cross_check(*leaky()).contradiction


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_a_contradiction(monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    monkeypatch.setattr(OnnxRuntime, "outputs", lambda self, point: [value])
    assert cross_check(*leaky()).contradiction


def test_one_float_beyond_the_bound_is_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of 1/3 and x rounds once: half an ulp of float32 is what the bound allows, about."""
    instance, truth = of(single("Mul", (1, 1), [np.array([1 / 3], np.float32)]), [(1.0, 1.0)])
    third = np.float32(1 / 3)
    for steps, agrees in ((0, True), (2, False), (-2, False)):
        value = float(third + steps * np.spacing(third))
        monkeypatch.setattr(OnnxRuntime, "outputs", lambda self, point, value=value: [value])
        assert bool(cross_check(instance, truth).contradiction) is not agrees


def test_optimisations_that_leave_the_bound_are_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    class Folding(OnnxRuntime):
        def __init__(self, content: bytes, network: Any, *, optimised: bool = False) -> None:
            super().__init__(content, network, optimised=optimised)
            self.shift = 0.5 if optimised else 0.0

        def outputs(self, point: Point) -> list[float]:
            return [y + self.shift for y in super().outputs(point)]

    monkeypatch.setattr(module, "OnnxRuntime", Folding)
    compared = cross_check(*leaky())
    assert compared.is_done
    assert not compared.contradiction
    assert "with its optimisations computes Y_0" in compared.remark


def dilated_alone() -> tuple[Instance, Truth]:
    """onnxruntime refuses to run it; ONNX's reference evaluator does not."""
    attributes = {"kernel_shape": [1], "dilations": [2], "auto_pad": "SAME_UPPER"}
    model = single("Conv", (1, 1, 1), [np.full((1, 1, 1), 3, np.float32)], attributes=attributes)
    return of(model, [(-2.0, 1.0)])


def test_where_onnxruntime_cannot_the_reference_evaluator_does(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = cross_check(*dilated_alone())
    assert compared.runtime == "ONNX's reference evaluator"
    assert "onnxruntime failed" in compared.remark
    assert not compared.contradiction

    def halved(lowering: Lowering, call: OnnxCall) -> None:
        lowering.alias(call.outputs[0], call.inputs[0])
        for name in call.attributes:
            call.attribute(name)

    misread(monkeypatch, "Conv", halved)
    assert "reference evaluator computes Y_0" in cross_check(*dilated_alone()).contradiction


@pytest.mark.parametrize("bias", [0.1, 1 / 3])
def test_a_network_of_float64_is_compared_in_float64(bias: float, monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder((1, 1), opset=17, dtype=np.float64)
    instance, truth = of(b.model(b.add("Add", "x", b.constant([[bias]]))), [(-2.0, 1.0)])
    assert cross_check(instance, truth) == CrossCheck("onnxruntime")
    misread(monkeypatch, "Add", lambda lowering, call: lowering.alias(call.outputs[0], call.inputs[0]))
    assert cross_check(instance, truth).contradiction


def test_what_onnxruntime_lacks_in_float64_is_left_to_the_reference() -> None:
    b = Builder((1, 1, 1), opset=17, dtype=np.float64)
    model = b.model(b.add("AveragePool", b.add("Mul", "x", b.constant(0.1)), kernel_shape=[1]))
    compared = cross_check(*of(model, [(-2.0, 1.0)]))
    assert compared.runtime == "ONNX's reference evaluator"
    assert "onnxruntime cannot load it" in compared.remark


def test_a_network_of_float64_has_the_limits_of_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its range, its precision, and also without a constant that would tell its type."""
    b = Builder((1, 1), opset=17, dtype=np.float64)
    squared = of(b.model(b.add("Mul", "x", "x")), [(1e100, 2e100)])
    assert cross_check(*squared) == CrossCheck("onnxruntime")
    too_far = of(b.model(b.add("Mul", "x", "x")), [(1e200, 2e200)])
    assert "float64 evaluation may overflow" in cross_check(*too_far).remark
    b = Builder((1, 1), opset=17, dtype=np.float64)
    shifted = of(b.model(b.add("Add", "x", b.constant([[1e-9]]))), [(1.0, 2.0)])
    assert cross_check(*shifted) == CrossCheck("onnxruntime")
    misread(monkeypatch, "Add", lambda lowering, call: lowering.alias(call.outputs[0], call.inputs[0]))
    assert cross_check(*shifted).contradiction


def test_the_reference_evaluator_is_not_asked_where_it_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It computes other values here than onnxruntime, and would refuse a true label."""
    parameters = [np.array([value], np.float32) for value in (2.0, 1.0, 3.0, 4.0)]
    instance, truth = of(single("BatchNormalization", (1, 1), parameters, opset=9), [(-1.0, 1.0)])
    assert cross_check(instance, truth).runtime == "onnxruntime"

    def fail(*_: object, **__: object) -> None:
        raise CannotRun("it is too new")

    monkeypatch.setattr(module, "OnnxRuntime", fail)
    compared = cross_check(instance, truth)
    assert (compared.is_done, compared.contradiction) == (False, "")
    assert "nothing shows that it is right on BatchNormalization of opset 9" in compared.remark


def test_what_nothing_can_run_is_not_cross_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise CannotRun("it is too new")

    monkeypatch.setattr(module, "OnnxRuntime", fail)
    monkeypatch.setattr(module, "OnnxReference", fail)
    assert cross_check(*leaky()) == CrossCheck("", remark="it is too new; it is too new")


def test_what_overflows_is_not_cross_checked(tmp_path: Path, run_dokimos: Dokimos) -> None:
    instance, truth = of(single("Exp", (1, 1)), [(100.0, 101.0)])
    assert not cross_check(instance, truth).is_done
    ran = run_dokimos("check", suite_of(tmp_path, instance, truth))
    assert ran.code == 0, ran.err
    assert "small: not cross-checked: float32 evaluation may overflow" in ran.out
    assert "0 of 1 cross-checked" in ran.out


def test_a_large_network_is_compared_at_fewer_points() -> None:
    """By an enclosure instead of the exact value, which would take long."""
    weights = np.random.default_rng(0).uniform(-1, 1, (800, 800)).astype(np.float32)
    instance = instance_of(
        single("Gemm", (1, 800), [weights]).SerializeToString(),
        question([(0.0, 1.0)] * 800, 800, "(<= Y_0 -1000.0)"),
    )
    assert cross_check(instance, stated(instance, "linear")) == CrossCheck("onnxruntime")


def test_the_witness_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    model = single("LeakyRelu", (1, 1), attributes={"alpha": 0.5})
    instance = instance_of(model.SerializeToString(), question([(0.0, 2.0)], 1, "(<= Y_0 0.0)"))
    truth = stated(instance, "witness", label=Label.SAT, witness=(Fraction(-1, 4),))
    misread(monkeypatch, "LeakyRelu", slope_of_zero)
    assert "at the witness" in cross_check(instance, truth).contradiction


def test_generation_refuses_what_the_runtimes_contradict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = OnnxRuntime.outputs
    monkeypatch.setattr(OnnxRuntime, "outputs", lambda self, point: [y + 1 for y in run(self, point)])
    knobs = {"inputs": 20, "pairs": 2}
    with pytest.raises(Contradiction, match="onnxruntime computes Y_0") as caught:
        dokimos.generate(out=tmp_path / "pairs", family="exclusive-pairs", knobs=knobs)
    assert isinstance(caught.value, InvalidProof)
    assert not (tmp_path / "pairs").exists()


def test_generation_names_what_onnxruntime_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run_dokimos: Dokimos
) -> None:
    def refuse(self: object, *_: object, **__: object) -> None:
        raise CannotRun("onnxruntime cannot load it: no kernel")

    monkeypatch.setattr(OnnxRuntime, "__init__", refuse)
    words = ("generate", "exclusive-pairs", "--inputs", 20, "--pairs", 2, "--out", tmp_path / "pairs")
    ran = run_dokimos(*words)
    assert ran.code == 0, ran.err
    assert ran.out.count("onnxruntime cannot load it: no kernel") == 2
    assert "2 of 2 cross-checked: 2 with ONNX's reference evaluator" in ran.out


def test_points_are_float32_mixed_and_different() -> None:
    asked = parse_vnnlib(question([(0.1, 0.9)] * 9, 1, "(<= Y_0 0.0)").decode())
    witness = (Fraction(1, 3),) * 9
    points = points_to_compare(asked, witness, few=False)
    assert set(points) == {"the witness", "a corner of the first box", "the centre of the first box"}
    for point in points.values():
        assert all(Fraction(float(np.float32(float(x)))) == x for x in point)
    assert len(set(points["a corner of the first box"])) == 2
    assert set(points_to_compare(asked, witness, few=True)) == {"the witness", "a corner of the first box"}
    assert points_to_compare(asked, None, few=True) == points_to_compare(asked, None, few=True)


def test_points_beyond_float32_are_left_out() -> None:
    asked = parse_vnnlib(question([("0.0", "1" + "0" * 39 + ".0")] * 9, 1, "(<= Y_0 0.0)").decode())
    assert points_to_compare(asked, None, few=False) == {}


def test_exact_values_are_computed_only_where_float64_does_not_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Point] = []

    def noted(network: Network, point: Point) -> Enclosure:
        asked.append(point)
        return evaluate(network, point)

    monkeypatch.setattr(module, "evaluate", noted)
    instance, truth = leaky()
    assert cross_check(instance, truth) == CrossCheck("onnxruntime")
    assert not asked
    misread(monkeypatch, "LeakyRelu", slope_of_zero)
    assert "as read is 0," in cross_check(instance, truth).contradiction
    assert len(asked) == 1


def sum_of_two(threshold: str, *, float32: Fraction | None = None) -> tuple[Instance, Truth]:
    """Y = X_0 + X_1 on [−1, 1]², called `unsat` for Y >= threshold whether or not it is."""
    model = single("MatMul", (1, 2), [np.ones((2, 1), np.float32)])
    instance = instance_of(model.SerializeToString(), question([(-1, 1)] * 2, 1, f"(>= Y_0 {threshold})"))
    return instance, stated(instance, "linear", {"questions": [{}]}, float32=float32)


@pytest.mark.parametrize(
    ("threshold", "refuted"), [("-0.5", True), ("1.5", True), ("2.0", True), ("2.5", False)]
)
def test_an_exact_value_that_is_unsafe_refutes_an_unsat(threshold: str, refuted: bool) -> None:
    """At the centre, or at a point drawn from the box."""
    found = cross_check(*sum_of_two(threshold))
    assert ("the proof is false" in found.contradiction) is refuted
    if not refuted:
        assert found == CrossCheck("onnxruntime")


def test_where_floats_overflow_the_exact_value_still_refutes_an_unsat() -> None:
    """Y = 1e38·X on [90, 101]: no runtime can be asked, as everything overflows there."""
    content = single("Mul", (1, 1), [np.array([1e38], np.float32)]).SerializeToString()
    for threshold, refuted in (("1.0", True), ("1e41", False)):
        instance = instance_of(content, question([(90, 101)], 1, f"(>= Y_0 {threshold})"))
        found = cross_check(instance, stated(instance, "linear", {"questions": [{}]}))
        assert not found.is_done
        assert ("the proof is false" in found.contradiction) is refuted


def test_a_false_label_is_refused_by_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run_dokimos: Dokimos
) -> None:
    """A lemma that proves too much, whichever it is, is seen by the values."""
    from dokimos.checker.linear.proof import Goals

    monkeypatch.setattr(Goals, "slacks", lambda self, bounds: [Fraction(1)] * len(bounds))
    suite = suite_of(tmp_path, *sum_of_two("1.5"))
    assert dokimos.check(suite, core_only=True).is_proven
    ran = run_dokimos("check", suite)
    assert ran.code == 1
    assert "the label is unsat, but the exact outputs at" in ran.err


def three_thirds(relation: str) -> Instance:
    """Exactly, Y = 1.0000000298; onnxruntime rounds it to 1. Unsafe is above, or below, 1.00000001."""
    model = single("Mul", (1, 1), [np.array([1 / 3], np.float32)])
    return instance_of(model.SerializeToString(), question([(3, 3)], 1, f"({relation} Y_0 1.00000001)"))


def test_what_a_runtime_computes_refutes_an_unsat_for_float32() -> None:
    instance = three_thirds("<=")
    for float32 in (None, Fraction(0)):
        found = cross_check(instance, stated(instance, "linear", {"questions": [{}]}, float32=float32))
        assert ("finds an unsafe output at" in found.contradiction) is (float32 is not None)


def test_a_runtime_that_finds_the_witness_safe_refutes_a_sat_for_float32() -> None:
    instance = three_thirds(">=")
    for float32 in (None, Fraction(0)):
        truth = stated(instance, "witness", label=Label.SAT, witness=(Fraction(3),), float32=float32)
        assert ("finds the witness safe" in cross_check(instance, truth).contradiction) is (
            float32 is not None
        )
