"""What every pair of siblings must be, measured apart from the checker."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.checker import check
from dokimos.constructions import CONSTRUCTIONS
from dokimos.engine.runtimes.sessions import replay
from dokimos.suites.instance import Instance, Label, LabelledInstance, Semantics, Truth
from dokimos.suites.vnnlib.model import Box
from dokimos.suites.vnnlib.reader import read_vnnlib

Pair = tuple[LabelledInstance, LabelledInstance]


def draw_anew(family: str, seed: int = 1, **knobs: Any) -> Pair:
    """Siblings as the family writes them: class 0 should win (`test_mixing` is about the rest)."""
    drawn = CONSTRUCTIONS[family].draw(
        seed=seed, timeout_seconds=60, disguise=(), with_twin=True, knobs=knobs, mix=False
    )
    robust, twin = drawn.instances
    return robust, twin


#: The same, drawn once: many tests look at one pair, or compare others with it.
draw = lru_cache(maxsize=64, typed=True)(draw_anew)


def truth_of(labelled: LabelledInstance) -> Truth:
    assert labelled.truth is not None
    return labelled.truth


def proven_in_float32(labelled: LabelledInstance) -> bool:
    return truth_of(labelled).claims[Semantics.FLOAT32].proven


def margin_of(labelled: LabelledInstance, semantics: Semantics = Semantics.REAL) -> float:
    margin = truth_of(labelled).claims[semantics].margin
    assert margin is not None
    return float(margin)


def box_of(instance: Instance) -> Box:
    (case,) = read_vnnlib(instance.property_file, file="property").cases
    return case.box


def weights_of(instance: Instance) -> dict[str, NDArray[np.float32]]:
    model = onnx.load_from_string(instance.network_file)
    return {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}


def differing_weights(pair: Pair) -> int:
    """In how many numbers the networks differ; their graphs, shapes and properties must be the same."""
    robust, twin = (labelled.instance for labelled in pair)
    assert robust.property_file == twin.property_file
    graphs = [onnx.load_from_string(i.network_file).graph for i in (robust, twin)]
    assert [n.SerializeToString() for n in graphs[0].node] == [
        n.SerializeToString() for n in graphs[1].node
    ]
    first, second = weights_of(robust), weights_of(twin)
    assert {n: a.shape for n, a in first.items()} == {n: a.shape for n, a in second.items()}
    return sum(int((first[name] != second[name]).sum()) for name in first)


def scores(instance: Instance, *, samples: int, corners: int, seed: int = 0) -> NDArray[np.float64]:
    """What onnxruntime computes at the centre, at uniform points and at random corners."""
    box, rng = box_of(instance), np.random.default_rng(seed)
    lower, upper = (np.array([float(x) for x in end]) for end in (box.lower, box.upper))
    inside = rng.uniform(lower, upper, size=(samples, box.size))
    ends = np.where(rng.random((corners, box.size)) < 0.5, lower, upper)
    points = np.vstack([(lower + upper) / 2, inside, ends]).astype(np.float32)
    return replay(instance.network_file, points).astype(np.float64)


def leads(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much class 0 is above the best other class."""
    return np.asarray(values[:, 0] - values[:, 1:].max(axis=1))


def assert_well_hidden(twin: LabelledInstance) -> None:
    """The witness is strictly inside and violates by at least 1e-3 of the outputs; nobody else does."""
    box, witness = box_of(twin.instance), truth_of(twin).witness
    assert witness is not None
    assert all(a < x < b for a, x, b in zip(box.lower, witness, box.upper, strict=True))
    seen = scores(twin.instance, samples=10_000, corners=0)
    assert leads(seen).min() > 0
    there = replay(twin.instance.network_file, np.array([[float(x) for x in witness]], dtype=np.float32))
    assert leads(there.astype(np.float64))[0] <= -1e-3 * abs(seen).max()


def assert_margins_hold(robust: LabelledInstance) -> None:
    """No lead that onnxruntime shows is below the margin proven for float32."""
    smallest = leads(scores(robust.instance, samples=2000, corners=2000)).min()
    assert smallest >= margin_of(robust, Semantics.FLOAT32)


Pair = tuple[LabelledInstance, LabelledInstance]


def assert_both_are_proven(pair: Pair) -> None:
    """The labels of a robust instance and its twin, for the reals and for float32."""
    for labelled, label in zip(pair, (Label.UNSAT, Label.SAT), strict=True):
        check(labelled.instance, truth_of(labelled))
        assert truth_of(labelled).label is label
        assert proven_in_float32(labelled)
    assert_margins_hold(pair[0])


def assert_another_knob_gives_other_files(plain: Pair, other: Pair) -> None:
    """Both files of both siblings differ, and are proven for float32."""
    files = [[(x.instance.network_file, x.instance.property_file) for x in pair] for pair in (plain, other)]
    assert all(a != b for a, b in zip(*files, strict=True))
    assert all(proven_in_float32(labelled) for labelled in other)
