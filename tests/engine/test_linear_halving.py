"""Boxes cut until linear bounds decide them."""

from __future__ import annotations

import pytest
import z3

from dokimos.checker.check import prove
from dokimos.core.errors import InvalidProof
from dokimos.engine.halving import LinearHalving, prove_by_linear_halving
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Certificate, Instance, Label
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from tests.checker.files import instance_of, model, question
from tests.checker.proofs.test_relu_tree_outward import exact_question
from tests.engine.test_layered_networks import lifted


def search(instance: Instance, *, seconds: float = 60.0) -> LinearHalving:
    asked = read_vnnlib(instance.property_file, file="p")
    return prove_by_linear_halving(read_onnx(instance.network_file), asked, seconds=seconds)


def test_halving_decides_as_z3_does() -> None:
    proven = refuted = 0
    for seed in range(12):
        small = lifted(seed)
        instance = small.instance()
        found = search(instance)
        if found.data is not None:
            margin = prove(instance, Certificate("enclosure", found.data), Label.UNSAT, None).real
            assert found.bound <= float(small.grid_minimum()) and margin <= small.grid_minimum()
            assert exact_question(small).check() == z3.unsat
            proven += 1
        else:
            (candidate,) = found.candidates
            asked = read_vnnlib(instance.property_file, file="p")
            assert violation_at(read_onnx(instance.network_file), asked, candidate).violates
            refuted += 1
    assert proven >= 3 and refuted >= 3


def test_constraints_on_inputs_and_outputs_together_count() -> None:
    """relu(x) <= x / 2 holds nowhere on [1, 2]."""
    nodes = [("Gemm", ["X", "w", "b"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "w", "b"], "Y")]
    network = model(nodes, {"w": [[1.0]], "b": [0.0]}, [1, 1], [1, 1])
    instance = instance_of(network, question([(1, 2)], 1, "(<= Y_0 (* 0.5 X_0))"))
    found = search(instance)
    assert found.data is not None
    assert prove(instance, Certificate("enclosure", found.data), Label.UNSAT, None).real > 0


def test_without_time_nothing_is_claimed() -> None:
    """relu(x + 2) − 2 − |x| <= 0 takes a cut."""
    nodes = [("Gemm", ["X", "w", "b"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "v", "c"], "Y")]
    constants = {"w": [[1.0, -1.0, 1.0]], "b": [0.0, 0.0, 2.0], "v": [[-1.0], [-1.0], [1.0]], "c": [-2.0]}
    network = model(nodes, constants, [1, 1], [1, 1])
    instance = instance_of(network, question([(-1, 1)], 1, "(>= Y_0 0.75)"))
    assert search(instance).data is not None
    found = search(instance, seconds=0.0)
    assert found.data is None and found.candidates == () and found.bound < 0


def test_other_networks_are_refused() -> None:
    network = model([("Tanh", ["X"], "Y")], {}, [1, 1], [1, 1])
    with pytest.raises(InvalidProof, match="not affine layers"):
        search(instance_of(network, question([(0, 1)], 1, "(>= Y_0 9)")))
