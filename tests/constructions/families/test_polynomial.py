from typing import Any

import numpy as np
import onnx
import pytest

from dokimos.checker.check import check
from dokimos.constructions.draft import uniform_points
from dokimos.constructions.families.polynomial import Polynomial
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.engine.runtimes.sessions import replay
from dokimos.suites.instance import Label, LabelledInstance, Semantics
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.constructions.siblings import draw

SMALL = {"inputs": 12, "width": 6}


def margins(labelled: LabelledInstance, sign: int) -> tuple[np.ndarray, float]:
    """Class 0's lead (negated for sign −1) and the largest |output|, at 2,000 uniform samples."""
    question = read_vnnlib(labelled.instance.property_file, file="q.vnnlib")
    points = uniform_points(question.cases[0].box, 2000, np.random.default_rng(7))
    outputs = replay(labelled.instance.network_file, points).astype(np.float64)
    return sign * (outputs[:, 0] - outputs[:, 1]), float(np.abs(outputs).max())


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"degree": 2},
        {"degree": 3},
        {"degree": 17},
        {"degree": 30},
        {"concave": 0.0, "inputs": 40},
        {"concave": 0.0, "inputs": 40, "degree": 5},
        {"concave": 1.0},
        {"sign": -1},
        {"sign": -1, "degree": 3, "concave": 0.0, "inputs": 40},
        {"buffer": 0.001},
        {"reach": 2.0},
    ],
)
def test_both_labels_are_proven_and_the_twin_violates_clearly(knobs: dict[str, Any]) -> None:
    robust, twin = draw("polynomial", 5, **{**SMALL, **knobs})
    assert robust.truth.label is Label.UNSAT
    assert twin.truth.label is Label.SAT
    for labelled in (robust, twin):
        check(labelled.instance, labelled.truth)
        assert labelled.truth.claims[Semantics.FLOAT32].proven
    sign = knobs.get("sign", 1)
    sampled, _ = margins(robust, sign)
    assert float(robust.truth.claims[Semantics.REAL].margin or 0) <= sampled.min()
    hidden, largest = margins(twin, sign)
    assert hidden.min() > 0
    assert float(twin.truth.claims[Semantics.REAL].margin or 0) >= 1e-3 * largest


def test_the_twin_differs_in_one_number() -> None:
    for knobs in (SMALL, {**SMALL, "inputs": 40, "concave": 0.0}):
        robust, twin = Polynomial()(seed=1, **knobs)
        assert robust.instance.property_file == twin.instance.property_file
        weights = [
            {
                each.name: onnx.numpy_helper.to_array(each)
                for each in onnx.load_from_string(labelled.instance.network_file).graph.initializer
            }
            for labelled in (robust, twin)
        ]
        assert weights[0].keys() == weights[1].keys()
        assert sum(int((weights[0][n] != weights[1][n]).sum()) for n in weights[0]) == 1


def test_the_same_seed_gives_the_same_files_and_another_seed_others() -> None:
    first, again, other = (Polynomial()(seed=s, **SMALL) for s in (3, 3, 4))
    for one, two, three in zip(first, again, other, strict=True):
        assert one.instance.network_file == two.instance.network_file
        assert one.truth == two.truth
        assert one.instance.network_file != three.instance.network_file


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": 13},
        {"degree": 7},
        {"width": 7},
        {"buffer": 0.004},
        {"epsilon": 0.02},
        {"reach": 0.5},
        {"concave": 0.8},
        {"sign": -1},
    ],
)
def test_every_knob_is_alive(change: dict[str, Any]) -> None:
    plain, changed = (draw("polynomial", 2, **{**SMALL, **more})[0] for more in ({}, change))
    files = [(x.instance.network_file, x.instance.property_file) for x in (plain, changed)]
    assert files[0] != files[1]


def test_a_larger_buffer_gives_a_larger_margin() -> None:
    found = [
        Polynomial()(seed=2, buffer=buffer, **SMALL)[0].truth.claims[Semantics.REAL].margin or 0
        for buffer in (0.0005, 0.002, 0.008)
    ]
    assert found[0] < found[1] < found[2]


def test_the_edge_is_proven_for_the_reals_only() -> None:
    robust, _ = Polynomial()(seed=0, buffer=1e-6, degree=2, inputs=12, width=6)
    assert robust.truth.claims[Semantics.REAL].proven
    assert not robust.truth.claims[Semantics.FLOAT32].proven


def test_bad_knobs_are_refused() -> None:
    with pytest.raises(ConstructionFailed, match="sign"):
        Polynomial()(seed=0, sign=0)
    with pytest.raises(InputError, match="degree"):
        Polynomial()(seed=0, degree=1)
