"""Gates that stay shut: every part of the lock counts, and nothing but a contradiction shuts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dokimos.checker.base import Proven, read_data
from dokimos.checker.check import prove
from dokimos.checker.lemmas.constraints import before
from dokimos.checker.lemmas.piecewise_linear import piecewise_linear
from dokimos.checker.proofs.on_other_kinds import ParityLockData, _Recogniser, _without_gate
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.instance import Certificate, Instance, Label, LabelledInstance
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.constructions.siblings import draw, truth_of

#: Six bits of three inputs, in seven equations of three bits.
KNOBS: dict[str, Any] = {"inputs": 3, "bits": 6, "levels": 2, "weight": 3, "width": 4}


@cache
def siblings() -> tuple[LabelledInstance, LabelledInstance]:
    return draw("parity-lock", **KNOBS)


def data() -> dict[str, Any]:
    return dict(truth_of(siblings()[0]).certificate.data)


def attempt(instance: Instance | None = None, **changes: Any) -> Proven:
    certificate = Certificate("parity-lock", {**data(), **changes})
    return prove(instance or siblings()[0].instance, certificate, Label.UNSAT, None)


def changed(edit: Callable[[dict[str, Any]], None], *, of: int = 0) -> Instance:
    """The network with its constants edited."""
    model = onnx.load_from_string(siblings()[of].instance.network_file)
    arrays = {t.name: numpy_helper.to_array(t).copy() for t in model.graph.initializer}
    edit(arrays)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(arrays[tensor.name], tensor.name))
    return replace(siblings()[of].instance, network_file=model.SerializeToString())


def test_the_lock_is_proven_for_both_semantics() -> None:
    proven = attempt()
    assert proven.real >= 1
    assert proven.floats is not None
    assert proven.floats > Fraction(99, 100)


def test_the_network_that_can_be_opened_is_not_proven() -> None:
    with pytest.raises(InvalidProof, match="not that of the lock"):
        attempt(siblings()[1].instance)


def test_consistent_equations_prove_nothing() -> None:
    """The twin's own equations are those of its gate, but they do not contradict each other."""
    equations = [dict(e) for e in data()["equations"]]
    flipped = []
    for number in data()["contradiction"]:
        other = [{**e, "odd": e["odd"] ^ (k == number)} for k, e in enumerate(equations)]
        flipped.append(other)
        with pytest.raises(InvalidProof, match="do not sum to 0 = 1"):
            attempt(siblings()[1].instance, equations=other)
    assert flipped


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contradiction": []}, "sum to 0 = 1"),
        ({"contradiction": [0]}, "sum to 0 = 1"),
        ({"contradiction": [99]}, "that does not exist"),
        ({"gate": 0}, "lock|gate"),
        ({"gate": 99}, "no gate"),
        ({"penalty": "1"}, "not that of the lock"),
        ({"penalty": "-2"}, "negative"),
        ({"kind": "parity-lock"}, "cannot prove the base"),
        ({"kind": "witness"}, "cannot prove the base"),
        ({"kind": "no-such-kind"}, "cannot prove the base"),
        ({"equations": []}, "that does not exist"),
    ],
)
def test_a_wrong_certificate_is_rejected(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProof, match=message):
        attempt(**change)


def test_a_wrong_combination_is_rejected() -> None:
    named = data()["contradiction"]
    others = [k for k in range(len(data()["equations"])) if k not in named]
    for wrong in (named[1:], [*named, named[0]], [*named, *others[:1]]):
        if wrong != named:
            with pytest.raises(InvalidProof, match=r"sum to 0 = 1|twice"):
                attempt(contradiction=wrong)


def test_equations_that_name_other_bits_are_rejected() -> None:
    """Other bits: all equations would contradict each other, if they were those of the gate."""
    empty = [{"bits": [], "odd": True}, *data()["equations"][1:]]
    with pytest.raises(InvalidProof, match="not that of the lock"):
        attempt(equations=empty, contradiction=[0])
    twice = [{"bits": [0, 0, 1], "odd": True}, *data()["equations"][1:]]
    with pytest.raises(InvalidProof, match="twice"):
        attempt(equations=twice)
    with pytest.raises(InvalidProof, match="between 0 and 1"):
        attempt(bits=[0, *data()["bits"][1:]])
    with pytest.raises(InvalidProof, match="between 0 and 1"):
        attempt(bits=[10_000, *data()["bits"][1:]])


@pytest.mark.parametrize("wrong", [{}, {"bits": "all"}, {"equations": [{"bits": [0]}]}, {"penalty": 2}])
def test_data_of_another_shape_is_unreadable(wrong: dict[str, Any]) -> None:
    given = {**data(), **wrong} if wrong else {"gate": 0}
    with pytest.raises(UnreadableFile):
        prove(siblings()[0].instance, Certificate("parity-lock", given), Label.UNSAT, None)


@pytest.mark.parametrize("layer", ["4", "6", "8", "10"])
@pytest.mark.parametrize("seed", range(3))
def test_a_perturbed_weight_of_the_lock_is_rejected(layer: str, seed: int) -> None:
    """From the second clamp of the bits on, every weight is one that the theorem needs."""
    rng = np.random.default_rng(seed)

    def edit(arrays: dict[str, Any]) -> None:
        weight = arrays[f"weight_{layer}"]
        row = int(rng.integers(KNOBS["width"] // 2, len(weight)))
        weight[row, int(rng.choice(np.flatnonzero(weight[row])))] *= np.float32(1 + 2.0**-20)

    with pytest.raises(InvalidProof):
        attempt(changed(edit))


@pytest.mark.parametrize(
    ("layer", "shift"), [("4", 2.0**-20), ("6", -(2.0**-20)), ("6", 2.0**-20), ("8", -0.5), ("10", 0.5)]
)
def test_a_shifted_bias_of_the_lock_is_rejected(layer: str, shift: float) -> None:
    """The last two add to θ alone: with half as much more, the gate may open."""

    def edit(arrays: dict[str, Any]) -> None:
        arrays[f"bias_{layer}"][-1] += np.float32(shift)

    with pytest.raises(InvalidProof):
        attempt(changed(edit))


def test_a_truncated_lock_is_rejected() -> None:
    """Without one equation of the contradiction, the others can be solved."""

    def edit(arrays: dict[str, Any]) -> None:
        arrays["weight_8"][-1, -2:] = 0.0

    with pytest.raises(InvalidProof):
        attempt(changed(edit))
    kept = data()["equations"][:-1]
    with pytest.raises(InvalidProof):
        attempt(equations=kept, contradiction=[k for k in data()["contradiction"] if k < len(kept)])


def test_what_the_base_loses_is_not_proven() -> None:
    def edit(arrays: dict[str, Any]) -> None:
        arrays["bias_12"][0] -= 100.0

    with pytest.raises(InvalidProof, match="a leaf's bound"):
        attempt(changed(edit))


def test_how_far_the_gate_opens_does_not_matter_while_it_is_shut() -> None:
    def edit(arrays: dict[str, Any]) -> None:
        arrays["weight_12"][:, -1] *= 2.0**20

    assert attempt(changed(edit)).real == attempt().real


def test_the_bound_on_the_gate_holds_in_float32_runs() -> None:
    """Float32 noise as large as the rounding bound allows, and a hundred times as large."""
    instance = siblings()[0].instance
    network = read_onnx(instance.network_file)
    given = read_data(data(), ParityLockData)
    lock = before(network, _without_gate(network, given.gate)[0])
    box = read_vnnlib(instance.property_file, file="p").cases[0].box
    rounding = rounding_bounds(lock, box.lower, box.upper)
    exact = _Recogniser(piecewise_linear(lock), given).most()
    noisy = piecewise_linear(lock, rounding=rounding)
    in_float32 = _Recogniser(noisy, given).most()
    assert exact == Fraction(-1, 2) < in_float32 < 0
    louder = replace(noisy, noise={v: 100 * bound for v, bound in noisy.noise.items()})
    assert _Recogniser(louder, given).most() - exact == 100 * (in_float32 - exact)
