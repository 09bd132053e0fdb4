"""Bounders: the one without a bug is never wrong; each bug makes one wrong on an instance made for it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.answers import Answer
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.verifiers.planted.base import PlantedVerifier, Task, violates
from dokimos.verifiers.planted.bounder import PlainBounder
from dokimos.verifiers.planted.catalogue import BOUNDERS, FLAWED_BOUNDERS, PLANTED
from tests.constructions.siblings import draw
from tests.networks.building import Builder

Grow = Callable[[Builder], str]


def network_of(inputs: int, grow: Grow) -> Network:
    builder = Builder((1, inputs), opset=13)
    return read_onnx(builder.model(grow(builder)).SerializeToString())


def task(
    grow: Grow, *unsafe: tuple[int, str, float], low: float = -1, high: float = 1, inputs: int = 1
) -> Task:
    """Unsafe where one of the (output, relation, bound) holds, on [low, high]."""
    network = network_of(inputs, grow)
    signs = {">=": -1, "<=": 1}
    any_of = tuple(
        (Linear((), ((k, Fraction(signs[word])),), signs[word] * Fraction(bound)),)
        for k, word, bound in unsafe
    )
    box = Box((Fraction(low),) * inputs, (Fraction(high),) * inputs)
    signature = Signature("f", "X", (inputs,), "Y", (network.output_size,))
    return Task(network, Property((signature,), (Case(box, any_of),)), None, None, 60.0)


def _same(b: Builder) -> str:
    return b.add("Identity", "x")


def _relu(b: Builder) -> str:
    return b.add("Relu", "x")


def _late(b: Builder) -> str:
    """Nonzero on the last 10^-4 of the box only."""
    return _late_of(b, "x")


def _tiny_slope(b: Builder) -> str:
    return b.add("Add", b.add("Mul", "x", b.constant([[2.0**-30]])), b.constant([[1.0]]))


def _small_unit(b: Builder) -> str:
    """x, by way of x·2^-30."""
    small = b.add("Relu", b.add("Mul", "x", b.constant([[2.0**-30]])))
    return b.add("Mul", small, b.constant([[2.0**30]]))


def _product(b: Builder) -> str:
    first, second = (b.add("Gather", "x", b.integers([k]), axis=1) for k in (0, 1))
    return b.add("Mul", first, second)


def _first_late(b: Builder) -> str:
    return _late_of(b, b.add("Gather", "x", b.integers([0]), axis=1))


def _late_of(b: Builder, name: str) -> str:
    return b.add("Relu", b.add("Sub", name, b.constant([[0.9999]])))


def _improved(b: Builder) -> str:
    """Two layers; what is known of the second one is improved."""
    first = b.add("Gemm", "x", b.constant([[2.0, 0.5, 1.0]]), b.constant([1.0, 0.0, 0.5]))
    weights = b.constant([[1.5, -1.0], [-2.0, -1.0], [-1.0, 1.5]])
    second = b.add("Gemm", b.add("Relu", first), weights, b.constant([2.0, -2.0]))
    return b.add("MatMul", b.add("Relu", second), b.constant([[0.0], [1.0]]))


def _larger(b: Builder) -> str:
    """max(1.25·x₀, x₁) − 1.25·x₀: the first entry can be larger, the second one is."""
    wide = b.add("Mul", "x", b.constant([[1.25, 1.0]]))
    pooled = b.add("MaxPool", b.add("Reshape", wide, b.integers([1, 1, 2])), kernel_shape=[2])
    first = b.add("Gather", wide, b.integers([0]), axis=1)
    return b.add("Sub", b.add("Reshape", pooled, b.integers([1, 1])), first)


def _deep() -> Task:
    """A counterexample behind many splits."""
    _, twin = draw("splits")
    asked = read_vnnlib(twin.instance.property_file, file="p")
    return Task(read_onnx(twin.instance.network_file), asked, None, None, 60.0)


#: For each bug, a question that it answers wrongly.
WRONG: dict[str, tuple[Callable[[], Task], Answer]] = {
    "relu-slope": (lambda: task(_relu, (0, ">=", 2), high=3), Answer.UNSAT),
    "relu-intercept": (lambda: task(_relu, (0, ">=", 0.9)), Answer.UNSAT),
    "relu-at-centre": (lambda: task(_relu, (0, ">=", 0.5), low=-3), Answer.UNSAT),
    "abs-missing": (lambda: task(_same, (0, ">=", 0.5)), Answer.UNSAT),
    "float32-bounds": (lambda: task(_tiny_slope, (0, ">=", 1 + 2.0**-31)), Answer.UNSAT),
    "half-radius": (lambda: task(_same, (0, ">=", 0.9)), Answer.UNSAT),
    "power-by-ends": (
        lambda: task(lambda b: b.add("Pow", "x", b.constant(2.0)), (0, "<=", 0.5)),
        Answer.UNSAT,
    ),
    "product-by-ends": (lambda: task(_product, (0, "<=", 0), inputs=2), Answer.UNSAT),
    "softmax-by-ends": (
        lambda: task(lambda b: b.add("Softmax", "x", axis=1), (0, ">=", 0.75), inputs=2),
        Answer.UNSAT,
    ),
    "nan-is-proven": (lambda: task(_small_unit, (0, ">=", 0.5)), Answer.UNSAT),
    "overwritten-bounds": (lambda: task(_improved, (0, ">=", -0.02)), Answer.UNSAT),
    "tanh-tangents": (
        lambda: task(lambda b: b.add("Tanh", "x"), (0, ">=", -0.3), low=-2.5, high=-0.25),
        Answer.UNSAT,
    ),
    "max-pool-upper": (lambda: task(_larger, (0, ">=", 2), inputs=2), Answer.UNSAT),
    "half-gradient": (
        lambda: task(lambda b: b.add("Mul", "x", "x"), (0, "<=", 0.1), low=0.25, high=1.5),
        Answer.UNSAT,
    ),
    "stale-bounds": (lambda: task(_late, (0, ">=", 0.00005)), Answer.UNSAT),
    "swallowed-queue": (_deep, Answer.UNSAT),
    "timeout-is-unsat": (lambda: task(_first_late, (0, ">=", 0.00005), inputs=11), Answer.UNSAT),
    "lost-half": (lambda: task(_late, (0, ">=", 0.00005)), Answer.UNSAT),
    "any-disjunct": (lambda: task(_same, (0, ">=", 0.5), (0, ">=", 5)), Answer.UNSAT),
    "unchecked-attack": (lambda: task(lambda b: b.add("Mul", "x", "x"), (0, "<=", -0.0005)), Answer.SAT),
}


def test_every_bug_has_an_instance() -> None:
    assert set(WRONG) == {bug.name for bug in FLAWED_BOUNDERS}
    assert [bug.name for bug in BOUNDERS if bug.is_sound] == ["bounds"]


@pytest.mark.parametrize("name", WRONG)
def test_a_bug_makes_a_wrong_answer(name: str) -> None:
    make, wrong = WRONG[name]
    asked = make()
    assert PLANTED[name].answer(asked).answer is wrong
    sound = PlainBounder().answer(asked)
    assert sound.answer is not wrong
    if sound.answer is Answer.SAT:
        assert sound.witness is not None and violates(asked.network, asked.property, sound.witness)


def _random(rng: np.random.Generator) -> Grow:
    first, bias, last = rng.normal(size=(2, 4)), rng.normal(size=4), rng.normal(size=(4, 1))

    def grow(b: Builder) -> str:
        hidden = b.add("Gemm", "x", b.constant(first), b.constant(bias))
        return b.add("MatMul", b.add("Relu", hidden), b.constant(last))

    return grow


@pytest.mark.parametrize("seed", range(4))
def test_the_sound_one_is_right_about_random_networks(seed: int) -> None:
    """No `unsat` below the largest value on a grid, and no `sat` without a witness."""
    rng = np.random.default_rng(seed)
    grow = _random(rng)
    network = network_of(2, grow)
    ends = np.linspace(-1, 1, 21)
    grid = [(Fraction(float(a)), Fraction(float(b))) for a in ends for b in ends]
    said = set()
    for bound in (-1.0, 0.0, 1.0, 4.0, 20.0):
        asked = task(grow, (0, ">=", bound), inputs=2)
        given = PlainBounder().answer(asked)
        said.add(given.answer)
        if given.answer is Answer.SAT:
            assert given.witness is not None and violates(network, asked.property, given.witness)
        elif given.answer is Answer.UNSAT:
            assert not any(violates(network, asked.property, point) for point in grid)
    assert {Answer.SAT, Answer.UNSAT} <= said


def test_boxes_without_constraints_and_without_outputs() -> None:
    asked = task(_same, (0, ">=", 0.5))
    (case,) = asked.property.cases
    everything = Property(asked.property.networks, (Case(case.box, ((),)),))
    nothing = Property(asked.property.networks, (Case(case.box, ()),))

    def answer(bug: PlantedVerifier, property: Property) -> Answer:
        return bug.answer(Task(asked.network, property, None, None, 10.0)).answer

    assert answer(PlainBounder(), everything) is Answer.SAT
    assert answer(PlainBounder(), nothing) is Answer.UNSAT


def test_an_infinite_enclosure_proves_nothing() -> None:
    asked = task(lambda b: b.add("Exp", b.add("Mul", "x", b.constant([[1000.0]]))), (0, "<=", 1))
    assert PlainBounder().answer(asked).answer is not Answer.UNSAT
