from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import InputError
from dokimos.engine.runtimes.sessions import NO_RUNTIME, ONNXRUNTIME, REFERENCE, Replayer, nearest_float
from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.networks.semantics.exact import Enclosure, Undecided
from tests.scripting import at_least, relu_network, sigmoid_network

F = Fraction
FLOAT32 = np.dtype(np.float32)


def question(bound: str = "1.5", *, scale: float = 1.0, low: str = "-1.0", high: str = "1.0") -> Question:
    return Question(relu_network(scale), at_least(bound, low=low, high=high), "it")


@settings(deadline=None)
@given(st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(Fraction))
def test_no_float32_is_nearer(x: Fraction) -> None:
    near = nearest_float(x, FLOAT32)
    if near is None:
        assert abs(x) >= 2**128 - 2**103
        return
    value = np.float32(float(near))
    assert Fraction(float(value)) == near
    with np.errstate(over="ignore", under="ignore"):
        for other in (np.nextafter(value, np.float32(np.inf)), np.nextafter(value, np.float32(-np.inf))):
            if np.isfinite(other):
                assert abs(near - x) <= abs(Fraction(float(other)) - x)


def test_rounding_twice_is_avoided() -> None:
    # Just above the middle of 1 and the next float32; float64 rounds it to the middle, and that to 1.
    x = 1 + F(1, 2**24) + F(1, 2**80)
    assert np.float32(float(x)) == 1
    assert nearest_float(x, FLOAT32) == 1 + F(1, 2**23)
    assert nearest_float(1 + F(1, 2**24), FLOAT32) == 1
    assert nearest_float(F(10) ** 400, FLOAT32) is None
    assert nearest_float(F(10) ** 39, FLOAT32) is None


def test_a_violation_inside_the_box() -> None:
    replays = replay_witness(question(), (F(1), F(3, 4)))
    replay = replays.as_written
    assert replay is not None
    assert replay is replays.in_floats is replays.exact is replays.floating is replays.telling
    assert (replay.in_box, replay.outside_by, replay.violates_exactly) == (True, 0, True)
    assert (replay.violation, replay.exact_outputs) == (F(1, 4), (F(7, 4),))
    assert (replay.violates_in_onnxruntime, replay.onnxruntime_outputs) == (True, (1.75,))
    assert replay.witness_in_float32


def test_a_point_that_does_not_violate() -> None:
    replays = replay_witness(question(), (F(1), F(1, 4)))
    assert replays.exact is replays.floating is None
    assert replays.telling is not None
    assert replays.telling.violation == F(-1, 4)


def test_what_the_runtime_says_is_about_the_point_given() -> None:
    # 1 + 1e-9 leaves the box, and its nearest float32 number, 1, does not.
    outside = replay_witness(question(), (1 + F(1, 10**9), F(1)))
    assert outside.as_written is not None and outside.in_floats is not None
    assert (outside.as_written.in_box, outside.as_written.violates_in_onnxruntime) == (False, False)
    assert (outside.in_floats.in_box, outside.in_floats.violates_in_onnxruntime) == (True, True)
    # 0.1 is in [-1, 0.1], and its nearest float32 number is not.
    inside = replay_witness(question("0.15", high="0.1"), (F("0.1"), F("0.1")))
    assert inside.as_written is not None and inside.in_floats is not None
    assert (inside.as_written.in_box, inside.as_written.violates_in_onnxruntime) == (True, True)
    assert (inside.in_floats.in_box, inside.in_floats.violates_in_onnxruntime) == (False, False)


def test_a_point_outside_the_box() -> None:
    replays = replay_witness(question(), (F(3), F(0)))
    replay = replays.telling
    assert replay is not None
    assert replays.exact is replays.floating is None
    assert (replay.in_box, replay.outside_by) == (False, 2)
    assert replay.violation == F(3, 2)
    assert not replay.violates_exactly


def test_out_of_the_box_by_a_double_but_not_by_a_float() -> None:
    written = (F("1.0000000000000002"), F(3, 4))
    replays = replay_witness(question(), written)
    assert replays.as_written is not None
    assert not replays.as_written.in_box
    assert not replays.as_written.witness_in_float32
    assert replays.exact is replays.in_floats is replays.telling


def test_in_the_box_as_written_but_not_as_a_float() -> None:
    # 0.1 in float32 is larger than 0.1, the box's end.
    asked = question("0.2", high="0.1")
    replays = replay_witness(asked, (F("0.1"), F("0.1")))
    assert replays.in_floats is not None
    assert not replays.in_floats.in_box
    assert replays.exact is replays.as_written
    assert replays.floating is None


def test_violating_in_float32_only() -> None:
    # 1 + 2**-24 + ... : relu(x0) + relu(x1) = 1 + 2**-24·1.5 over the reals, which float32 rounds up.
    asked = question("1.00000011920928955078125", low="0.0")
    replays = replay_witness(asked, (F(1), F(3, 2**25)))
    assert replays.exact is None
    assert replays.floating is not None
    assert replays.telling is replays.floating
    assert replays.floating.onnxruntime_outputs == (1 + 2**-23,)


def test_beyond_float32_there_is_nothing_to_run() -> None:
    replays = replay_witness(question(), (F(10) ** 60, F(0)))
    assert replays.in_floats is replays.floating is None
    assert replays.as_written is not None
    assert replays.as_written.onnxruntime_outputs == ()


def test_overflow_in_float32_shows_nothing() -> None:
    asked = question("1.0", scale=3e38, high="100.0")
    replays = replay_witness(asked, (F(100), F(0)))
    assert replays.floating is None
    assert replays.exact is not None
    assert replays.exact.onnxruntime_outputs == (float("inf"),)


@pytest.mark.parametrize(
    ("witness", "problem"), [((), "is not a list"), ((F(1),) * 3, "has 3 coordinates")]
)
def test_no_point_at_all(witness: tuple[Fraction, ...], problem: str) -> None:
    replays = replay_witness(question(), witness)
    assert problem in replays.problem
    assert replays.telling is replays.exact is replays.floating is None


def test_irrational_outputs_are_decided_by_precision() -> None:
    # sigmoid(1) = 0.731058578630004879251159944…: a bound that 64 bits do not tell from it.
    below = "0.73105857863000487925115924182183627436514464016505651927636590791904045307"
    above = below[:-1] + "8"
    for bound, violates in ((below, True), (above, False)):
        asked = Question(sigmoid_network(), at_least(bound), "it")
        replay = replay_witness(asked, (F(1), F(0))).as_written
        assert replay is not None
        assert replay.violates_exactly is violates
        assert replay.violation is not None
        assert abs(replay.violation) < F(1, 10**60)


def test_equality_at_an_irrational_output_is_not_shown() -> None:
    asked = Question(sigmoid_network(), at_least("0.5"), "it")
    replays = replay_witness(asked, (F(0), F(0)))
    assert replays.floating is not None


def test_a_network_of_an_opset_that_onnxruntime_does_not_read_is_replayed_by_the_reference() -> None:
    model = onnx.load_from_string(relu_network())
    model.opset_import[0].version, model.ir_version = onnx.defs.onnx_opset_version(), onnx.IR_VERSION
    question = Question(model.SerializeToString(), at_least("1.5"), "i")
    found = replay_witness(question, (F(1), F(1)))
    assert found.exact is not None
    assert (found.exact.onnxruntime_outputs, found.exact.float_type) == ((2.0,), "float32")
    assert found.exact.runtime in (ONNXRUNTIME, REFERENCE)


@pytest.mark.parametrize("fails_at", ["__init__", "__call__"])
def test_where_no_runtime_runs_the_network_exact_values_show_and_none_is_refuted(
    monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InputError("no kernel")

    monkeypatch.setattr(Replayer, fails_at, refuse)
    question = Question(relu_network(), at_least("1.5"), "i")
    shown, failing, outside = (replay_witness(question, (F(x), F(x))) for x in (1, 0, 2))
    assert shown.exact is not None
    assert (shown.exact.runtime, shown.exact.onnxruntime_outputs) == (NO_RUNTIME, ())
    assert not failing.proves_sat
    assert not failing.is_refuted  # in floats it may violate
    assert outside.is_refuted


def test_files_that_do_not_belong_together() -> None:
    text = at_least("1.0").replace(b"(declare-const Y_0", b"(declare-const Y_1 Real)\n(declare-const Y_0")
    with pytest.raises(InputError, match="belong together"):
        replay_witness(Question(relu_network(), text, "it"), (F(0), F(0)))


def test_a_value_that_no_precision_tells_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def undecided(*_: object, **__: object) -> Enclosure:
        raise Undecided("it divides by zero")

    monkeypatch.setattr("dokimos.networks.semantics.exact.evaluate", undecided)
    replays = replay_witness(question(), (F(1), F(1)))
    assert replays.as_written is not None
    assert (replays.as_written.violates_exactly, replays.as_written.violation) == (False, None)
    assert replays.as_written.exact_outputs == ()
    assert replays.floating is not None


def test_an_enclosure_that_cannot_be_narrowed_decides_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    def wide(*_: object, relative_width: Fraction, **__: object) -> Enclosure:
        if relative_width < F(1, 2**100):
            raise Undecided("no narrower")
        return Enclosure((F(1),), (F(2),))

    monkeypatch.setattr("dokimos.networks.semantics.exact.evaluate", wide)
    for bound, violates in (("1.0", True), ("1.5", False), ("2.5", False)):
        replay = replay_witness(question(bound), (F(1), F(1))).as_written
        assert replay is not None
        assert replay.violates_exactly is violates
        assert replay.exact_outputs == (F(3, 2),)
        assert replay.violation == 1 - F(bound)


def test_what_float64_decides_is_said_to_be_near_the_exact_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.networks.semantics.exact.EXACT_FIRST", -1)
    for bound, violates in (("1.5", True), ("1.8", False)):
        replay = replay_witness(question(bound), (F(1), F(3, 4))).as_written
        assert replay is not None
        assert (replay.violates_exactly, replay.is_decided) == (violates, True)
        assert 0 < replay.output_error < F(1, 10**14)
        assert abs(replay.exact_outputs[0] - F(7, 4)) <= replay.output_error
        assert replay.violation is not None
        assert F(7, 4) - F(bound) - F(1, 10**14) < replay.violation <= F(7, 4) - F(bound)
    touching = replay_witness(question("1.75"), (F(1), F(3, 4))).as_written
    assert touching is not None
    assert (touching.violates_exactly, touching.violation, touching.output_error) == (True, 0, 0)
