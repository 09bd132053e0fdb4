"""Float64 first, exact numbers where it does not decide: what is concluded is true of the exact value."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.networks.graph import CORE_OPS, Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics import exact
from dokimos.networks.semantics.exact import Enclosure, Undecided, enclosures, evaluate, in_float64
from dokimos.suites.vnnlib.reader import parse_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from tests.networks.building import Builder, single
from tests.networks.graphs import ONE_OF_EACH, models

F = Fraction


@pytest.fixture
def float64_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask float64 first however small the network is."""
    monkeypatch.setattr(exact, "EXACT_FIRST", -1)


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[Fraction]:
    """The widths of the evaluations that are not by float64, as they happen."""
    asked: list[Fraction] = []

    def counted(network: Network, point: list[Fraction], *, relative_width: Fraction) -> Enclosure:
        asked.append(relative_width)
        return evaluate(network, point, relative_width=relative_width)

    monkeypatch.setattr(exact, "evaluate", counted)
    return asked


def assert_each_holds_the_next(network: Network, point: list[Fraction]) -> bool:
    """Whether float64 has an enclosure; it is seen to hold the value, whose narrow enclosure it meets."""
    try:
        value = evaluate(network, point, relative_width=F(1, 2**200))
    except Undecided:
        assert in_float64(network, point) is None
        return False
    rough = in_float64(network, point)
    if rough is None:
        return False
    for j, (low, high) in enumerate(zip(rough.lower, rough.upper, strict=True)):
        assert low <= value.upper[j]
        assert value.lower[j] <= high
        assert not value.is_exact or low <= value.lower[j] <= high
    return True


def test_float64_holds_the_exact_value_of_every_operator() -> None:
    seen: set[str] = set()
    rng = np.random.default_rng(3)
    for name, model in ONE_OF_EACH.items():
        if not name.endswith("@22"):
            continue
        network = read_onnx(model.SerializeToString())
        # Decimals that no float64 is: the point itself is enclosed, too.
        point = [F(int(n), 10**9) for n in rng.integers(-(2 * 10**9), 2 * 10**9, network.input_size)]
        if assert_each_holds_the_next(network, point):
            seen.update(node.op for node in network.nodes)
    assert seen == set(CORE_OPS)


@settings(max_examples=40, deadline=None)
@given(models(), st.integers(0, 2**32 - 1), st.sampled_from([10**-30, 10**-6, 1.0, 10**6, 10**300]))
def test_float64_holds_the_exact_value_of_random_networks(
    model: onnx.ModelProto, seed: int, scale: float
) -> None:
    network = read_onnx(model.SerializeToString())
    numbers = np.random.default_rng(seed).integers(-(10**9), 10**9, network.input_size)
    assert_each_holds_the_next(network, [F(int(n), 10**9) * F(scale) for n in numbers])


def thirds() -> Network:
    """y = x / 3 by a product, which float64 rounds."""
    return read_onnx(single("Mul", (1, 1), [np.array([[1 / 3]], np.float32)]).SerializeToString())


THIRD = F(float(np.float32(1 / 3)))


def test_a_small_network_has_its_exact_value_at_once() -> None:
    (found,) = enclosures(thirds(), [F(1, 7)])
    assert found == Enclosure((THIRD / 7,), (THIRD / 7,))
    assert (found.width, found.middle) == (0, (THIRD / 7,))


@pytest.mark.usefixtures("float64_always")
def test_enclosures_narrow_until_they_are_exact() -> None:
    rough, fine = enclosures(thirds(), [F(1, 7)])
    assert rough.lower[0] < THIRD / 7 < rough.upper[0]
    assert rough.width == rough.upper[0] - rough.lower[0] < F(1, 2**50)
    assert fine.is_exact and fine.lower == (THIRD / 7,)
    (alone,) = enclosures(thirds(), [F(1, 7)], floats_first=False)
    assert alone == fine


@pytest.mark.usefixtures("float64_always")
def test_a_value_that_is_not_rational_is_enclosed_ever_more_narrowly() -> None:
    network = read_onnx(single("Exp", (1, 1)).SerializeToString())
    widths = [found.width for found in enclosures(network, [F(1)])]
    assert len(widths) == 4
    assert all(b < a for a, b in pairwise(widths))
    assert widths[-1] < F(1, 2**998)


def asking(bound: Fraction, comparison: str = "<=") -> str:
    scaled = bound * 10**60
    assert scaled.denominator == 1
    literal = f"{'-' if bound < 0 else ''}0.{abs(int(scaled)):060d}"
    declared = "(declare-const X_0 Real)\n(declare-const Y_0 Real)\n"
    return (
        f"{declared}(assert (>= X_0 -1.0))\n(assert (<= X_0 1.0))\n(assert ({comparison} Y_0 {literal}))\n"
    )


@pytest.mark.usefixtures("float64_always")
@pytest.mark.parametrize(("by", "violates"), [(1, True), (-1, False)])
def test_a_margin_outside_the_enclosure_needs_no_exact_number(
    by: int, violates: bool, evaluations: list[Fraction]
) -> None:
    bound = F(int(THIRD * F(1, 8) * 10**60), 10**60) + by * F(1, 10**9)
    found = violation_at(thirds(), parse_vnnlib(asking(bound)), [F(1, 8) + F(1, 10**40)])
    assert found.violates is violates
    assert not evaluations
    assert not found.outputs.is_exact


@pytest.mark.usefixtures("float64_always")
@pytest.mark.parametrize(("by", "violates"), [(1, True), (-1, False)])
def test_a_margin_inside_the_enclosure_is_decided_exactly(
    by: int, violates: bool, evaluations: list[Fraction]
) -> None:
    point = F(1, 8) + F(1, 10**40)
    exact_value = THIRD * point
    bound = F(int(exact_value * 10**60) + by * 10**5, 10**60)
    rough = in_float64(thirds(), [point])
    assert rough is not None and rough.lower[0] < bound < rough.upper[0]
    found = violation_at(thirds(), parse_vnnlib(asking(bound)), [point])
    assert found.violates is violates
    assert found.margin_lower == bound - exact_value
    assert len(evaluations) == 1


@pytest.mark.usefixtures("float64_always")
@pytest.mark.parametrize(("comparison", "violates"), [("<=", True), ("<", False)])
def test_equality_is_decided_exactly(comparison: str, violates: bool, evaluations: list[Fraction]) -> None:
    found = violation_at(thirds(), parse_vnnlib(asking(THIRD, comparison)), [F(1)])
    assert (found.violates, found.margin_lower) == (violates, 0)
    assert len(evaluations) == 1


def clipped_quotient() -> Network:
    """y = min(max(1 / x, -1), 1), which has no value at 0 although everything after it has bounds."""
    b = Builder((1, 1), opset=17)
    quotient = b.add("Div", b.constant(1.0), "x")
    low, high = b.constant(np.float32(-1)), b.constant(np.float32(1))
    return read_onnx(b.model(b.add("Clip", quotient, low, high)).SerializeToString())


@pytest.mark.usefixtures("float64_always")
def test_a_network_without_a_value_shows_nothing() -> None:
    network = clipped_quotient()
    assert in_float64(network, [F(1, 3)]) is not None
    assert in_float64(network, [F(0)]) is None
    with pytest.raises(Undecided):
        violation_at(network, parse_vnnlib(asking(F(-1, 2), ">=")), [F(0)])


@pytest.mark.usefixtures("float64_always")
def test_a_value_beyond_float64_is_left_to_exact_numbers() -> None:
    network = read_onnx(single("Mul", (1, 1), [np.array([[3e38]], np.float32)]).SerializeToString())
    huge = F(10) ** 300
    assert in_float64(network, [huge]) is None
    (found,) = enclosures(network, [huge])
    assert found.is_exact


@pytest.mark.usefixtures("float64_always")
def test_what_float64_leaves_open_stays_open_where_nothing_else_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def undecided(*_: object, **__: object) -> Enclosure:
        raise Undecided("no precision tells")

    monkeypatch.setattr(exact, "evaluate", undecided)
    found: Iterator[Enclosure] = enclosures(thirds(), [F(1)])
    assert len(list(found)) == 1
    assert violation_at(thirds(), parse_vnnlib(asking(THIRD)), [F(1)]).violates is None


def test_multiplications_are_counted_where_sums_of_products_are() -> None:
    b = Builder((1, 2, 5, 4), opset=17)
    image = b.add("Conv", "x", b.constant(np.ones((3, 2, 2, 2), np.float32)))
    flat = b.add("Flatten", b.add("Relu", image))
    network = read_onnx(
        b.model(b.add("MatMul", flat, b.constant(np.ones((36, 5), np.float32)))).SerializeToString()
    )
    moved = sum(36 for node in network.nodes if node.op in ("Relu", "Reshape"))
    assert network.multiplications == 36 * 8 + moved + 5 * 36
