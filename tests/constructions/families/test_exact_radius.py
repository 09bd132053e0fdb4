from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
import z3

from dokimos.checker.check import check
from dokimos.constructions.base import ATTEMPTS, Unusable
from dokimos.constructions.draft import uniform_points
from dokimos.constructions.families import exact_radius
from dokimos.constructions.families.exact_radius import ExactRadius
from dokimos.core.errors import ConstructionFailed
from dokimos.engine.relu_relaxation import Relaxation
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.chain import as_chain
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Label, LabelledInstance, Semantics
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.constructions.siblings import draw

SMALL = {"inputs": 6, "width": 6, "distance": 0.1}
TINY = {"inputs": 2, "width": 4, "depth": 2, "classes": 2, "distance": 0.2}


def radius_of(labelled: LabelledInstance) -> Fraction:
    return read_vnnlib(labelled.instance.property_file, file="q.vnnlib").cases[0].box.upper[0]


def z3_answer(labelled: LabelledInstance) -> z3.CheckSatResult:
    """Is there a point of the box that is unsafe? From the two files, in real arithmetic."""
    graph = onnx.load_from_string(labelled.instance.network_file).graph
    arrays = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    (case,) = read_vnnlib(labelled.instance.property_file, file="q.vnnlib").cases
    box = case.box
    exact = [z3.Real(f"x{i}") for i in range(box.size)]
    solver = z3.Solver()
    for x, low, high in zip(exact, box.lower, box.upper, strict=True):
        solver.add(x >= z3.Q(low.numerator, low.denominator), x <= z3.Q(high.numerator, high.denominator))
    values = list(exact)
    for node in graph.node:
        if node.op_type == "Relu":
            values = [z3.If(v > 0, v, 0) for v in values]
            continue
        rows, biases = (arrays[name].tolist() for name in node.input[1:])
        values = [
            sum((_q(w) * v for w, v in zip(row, values, strict=True)), _q(b))
            for row, b in zip(rows, biases, strict=True)
        ]
    solver.add(
        z3.Or(*(_q(c.bound) >= sum(_q(d) * values[j] for j, d in c.outputs) for (c,) in case.any_of))
    )
    return solver.check()


def _q(value: float | Fraction) -> Any:
    exact = Fraction(value)
    return z3.Q(exact.numerator, exact.denominator)


@pytest.mark.parametrize("seed", range(6))
def test_z3_agrees_with_both_labels_almost_at_the_radius(seed: int) -> None:
    robust, twin = ExactRadius()(seed=seed, slack=0.999999, **TINY)
    assert z3_answer(robust) == z3.unsat
    assert z3_answer(twin) == z3.sat


@pytest.mark.parametrize(
    "knobs", [{}, {"depth": 1}, {"depth": 3}, {"classes": 2}, {"classes": 5}, {"slack": 0.5}]
)
def test_both_labels_are_proven_and_the_twin_violates_clearly(knobs: dict[str, Any]) -> None:
    robust, twin = draw("exact-radius", 3, **{**SMALL, **knobs})
    assert robust.truth.label is Label.UNSAT
    assert twin.truth.label is Label.SAT
    for labelled in (robust, twin):
        check(labelled.instance, labelled.truth)
        assert labelled.truth.claims[Semantics.FLOAT32].proven
    largest = 0.0
    for labelled in (robust, twin):
        question = read_vnnlib(labelled.instance.property_file, file="q.vnnlib")
        points = uniform_points(question.cases[0].box, 2000, np.random.default_rng(7))
        outputs = replay(labelled.instance.network_file, points).astype(np.float64)
        lead = (outputs[:, :1] - outputs[:, 1:]).min()
        largest = float(np.abs(outputs).max())
        assert lead > 0
        if labelled is robust:
            assert float(robust.truth.claims[Semantics.REAL].margin or 0) <= lead
    assert float(twin.truth.claims[Semantics.REAL].margin or 0) >= 1e-3 * largest
    assert max(abs(x) for x in twin.truth.witness or ()) < radius_of(twin)


def test_a_network_is_solved_once_for_every_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    first, twin = ExactRadius()(seed=11, **SMALL)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr(Relaxation, "solve", never)
    radii = [radius_of(first)]
    for slack in (0.99, 0.9999, 0.9999999):
        robust, same = ExactRadius()(seed=11, slack=slack, **SMALL)
        assert robust.instance.network_file == first.instance.network_file
        assert same.instance.network_file == twin.instance.network_file
        radii.append(radius_of(robust))
    assert radii == sorted(radii)
    assert radii[-1] < radius_of(twin)


def test_a_network_that_cannot_be_solved_is_not_tried_for_every_slack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def unsolvable(key: int, knobs: exact_radius.Knobs) -> exact_radius.Solved:
        tried.append(key)
        raise Unusable("too hard")

    monkeypatch.setattr(exact_radius, "_solve", unsolvable)
    for slack in (0.5, 0.9):
        with pytest.raises(ConstructionFailed, match="too hard"):
            ExactRadius()(seed=12345, slack=slack, **SMALL)
    assert len(tried) == ATTEMPTS
    exact_radius._outcome.cache_clear()


def test_the_last_hidden_layer_may_have_a_width_of_its_own() -> None:
    robust, _ = ExactRadius()(seed=11, last_width=3, **SMALL)
    layers = as_chain(read_onnx(robust.instance.network_file)).layers
    assert [len(layer.bias) for layer in layers[:-1]] == [SMALL["width"], 3]


def test_the_edge_is_proven_for_the_reals_only() -> None:
    robust, _ = ExactRadius()(seed=11, slack=0.9999999, **SMALL)
    assert robust.truth.claims[Semantics.REAL].proven
    assert not robust.truth.claims[Semantics.FLOAT32].proven


def test_the_same_seed_gives_the_same_files_and_another_seed_others() -> None:
    first, again, other = (ExactRadius()(seed=s, **SMALL) for s in (3, 3, 4))
    for one, two, three in zip(first, again, other, strict=True):
        assert one.instance.network_file == two.instance.network_file
        assert one.truth == two.truth
        assert one.instance.network_file != three.instance.network_file


@pytest.mark.parametrize(
    "change",
    [{"inputs": 7}, {"width": 7}, {"depth": 3}, {"classes": 4}, {"distance": 0.05}, {"slack": 0.7}],
)
def test_every_knob_is_alive(change: dict[str, Any]) -> None:
    plain, changed = (ExactRadius()(seed=2, **{**SMALL, **more})[0] for more in ({}, change))
    files = [(x.instance.network_file, x.instance.property_file) for x in (plain, changed)]
    assert files[0] != files[1]
