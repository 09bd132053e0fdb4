"""Sign, Floor, Round and Truncate, which jump, and Cos and Sin, in every semantics."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.difficulty.phases import phases
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import outward
from dokimos.networks.semantics.exact import Undecided, evaluate
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.outward import Interval
from dokimos.networks.semantics.rounding import ROUNDING_RULES, rounding_bounds
from tests.networks.building import Builder
from tests.networks.runtime import run

F = Fraction
INT8 = {"least": -128, "beyond": 128}
#: Every step function, its attributes, and what it is by definition.
STEPS: dict[str, tuple[dict[str, int], Any]] = {
    "Floor": ({}, lambda x: x.numerator // x.denominator),
    "Round": ({}, round),
    "Sign": ({}, lambda x: (x > 0) - (x < 0)),
    "Truncate": (INT8, int),
}
numbers = st.fractions(-9, 9, max_denominator=12)


def net(*steps: tuple[str, dict[str, int]], first: np.ndarray | None = None) -> Network:
    """One number; multiplied by `first`, where that is given, and then sent through the steps."""
    nodes, name = [], "x"
    if first is not None:
        nodes.append(Node("Mul", ("x", "c"), "m"))
        name = "m"
    for position, (op, attributes) in enumerate(steps):
        nodes.append(Node(op, (name,), str(position), attributes))
        name = str(position)
    constants = {} if first is None else {"c": first}
    return Network("x", name, tuple(nodes), constants, {"x": (1,)})


@pytest.mark.parametrize("op", STEPS)
@given(x=numbers)
@settings(max_examples=25, deadline=None)
def test_step_functions_are_exact(op: str, x: Fraction) -> None:
    attributes, definition = STEPS[op]
    network = net((op, attributes))
    found = evaluate(network, [x])
    assert found.is_exact
    assert found.lower == (definition(x),)


@pytest.mark.parametrize("op", STEPS)
@given(a=numbers, b=numbers, share=st.fractions(0, 1, max_denominator=7))
@settings(max_examples=25, deadline=None)
def test_enclosures_of_steps_hold_every_value_and_no_wider(
    op: str, a: Fraction, b: Fraction, share: Fraction
) -> None:
    attributes, definition = STEPS[op]
    low, high = min(a, b), max(a, b)
    found = enclose(net((op, attributes)), [low], [high])["0"]
    assert found.lower[0] <= definition(low + share * (high - low)) <= found.upper[0]
    # Ends are rounded outward, by less than any of these numbers differs from the next integer.
    assert found.lower[0] >= definition(low) - (2 if low.denominator == 1 else 0)
    assert found.upper[0] <= definition(high) + (2 if high.denominator == 1 else 0)


def test_an_irrational_argument_of_a_step_is_decided_by_more_bits() -> None:
    """⌊exp(x)⌋ at x = 1 is 2; at x = 0 the argument is the integer 1 itself."""
    network = net(("Exp", {}), ("Floor", {}))
    assert evaluate(network, [F(1)]).lower == (F(2),)
    assert evaluate(network, [F(0)]).lower == (F(1),)
    # e^x − e^x is 0, but no ball ever shows that a number is exactly where a step is.
    never = Network(
        "x",
        "s",
        (Node("Exp", ("x",), "e"), Node("Sub", ("e", "e"), "z"), Node("Sign", ("z",), "s")),
        {},
        {"x": (1,)},
    )
    with pytest.raises(Undecided):
        evaluate(never, [F(1, 3)])


def test_a_step_is_decided_exactly_before_what_is_irrational() -> None:
    """x/3 − x/3 is 0 though a third is no ball: what is rational stays so until the exponential."""
    third = np.array([1 / 3], dtype=np.float32)
    nodes = (
        Node("Mul", ("x", "c"), "m"),
        Node("Sub", ("m", "m"), "z"),
        Node("Sign", ("z",), "s"),
        Node("Add", ("s", "m"), "t"),
        Node("Exp", ("t",), "e"),
        Node("Sign", ("m",), "u"),
        Node("Mul", ("e", "u"), "y"),
    )
    found = evaluate(Network("x", "y", nodes, {"c": third}, {"x": (1,)}), [F(1, 7)])
    expected = np.exp(1 / 21)
    assert float(found.lower[0]) == pytest.approx(expected, abs=1e-6)
    assert found.upper[0] - found.lower[0] < F(1, 2**39)


@pytest.mark.parametrize("x", [F(128), F(-129), F(10**40)])
def test_what_an_integer_type_cannot_hold_is_undefined_everywhere(x: Fraction) -> None:
    network = net(("Truncate", INT8))
    with pytest.raises(Undecided):
        evaluate(network, [x])
    found = enclose(network, [x], [x])["0"]
    assert (found.lower[0], found.upper[0]) == (-np.inf, np.inf)
    assert rounding_bounds(network, [x], [x])["0"].error[0] == np.inf


def test_the_last_numbers_that_an_integer_type_holds_are_defined() -> None:
    network = net(("Truncate", INT8))
    for x in (F(1279, 10), F(-1289, 10)):
        assert evaluate(network, [x]).lower == (F(int(x)),)
        assert rounding_bounds(network, [x], [x])["0"].error[0] == 0


@pytest.mark.parametrize("op", STEPS)
def test_a_step_of_an_exact_argument_has_no_error(op: str) -> None:
    bound = rounding_bounds(net((op, STEPS[op][0])), [F(-3)], [F(3)])["0"]
    assert bound.error[0] == 0


@pytest.mark.parametrize("op", STEPS)
def test_an_argument_within_rounding_of_a_step_may_land_on_either_side(op: str) -> None:
    """x·(1/3) rounds: at x = 3 its float32 value may be 1 or the number below."""
    third = np.array([1 / 3], dtype=np.float32)
    attributes, definition = STEPS[op]
    at_step, between = {"Sign": F(0), "Round": F(3, 2)}.get(op, F(3)), F(5)
    network = net((op, attributes), first=third)
    tiny = F(1, 2**140)
    there = rounding_bounds(network, [at_step - tiny], [at_step + tiny])["0"]
    assert there.error[0] >= 1
    assert there.error[0] <= 2.001
    assert rounding_bounds(network, [between], [between])["0"].error[0] == 0
    assert definition(between / 3) == float(rounding_bounds(network, [between], [between])["0"].lower[0])


def test_both_numbers_may_lie_at_halves() -> None:
    """From 1/2, which is rounded to 0, to 3/2, which is rounded to 2, an error of 1 passes on 2."""
    step = outward.RoundedNode(
        Node("Round", ("x",), "y"),
        Interval(np.zeros(1), np.zeros(1)),
        [outward.Rounded(np.array([0.5]), np.array([0.5]), np.ones(1))],
        8,
        outward.FLOAT32,
    )
    assert ROUNDING_RULES["Round"](step).item() == 2.0


@pytest.mark.parametrize("op", STEPS)
@given(x=st.floats(-40, 40, width=32), factor=st.floats(-3, 3, width=32))
@settings(max_examples=40, deadline=None)
def test_every_float32_value_of_a_step_is_within_the_bound(op: str, x: float, factor: float) -> None:
    attributes, definition = STEPS[op]
    weight = np.array([factor], dtype=np.float32)
    network = net((op, attributes), first=weight)
    bound = rounding_bounds(network, [F(x)], [F(x)])["0"]
    exact = definition(F(x) * F(float(weight[0])))
    product = np.float32(x) * weight[0]
    # What is rounded may also be flushed to 0.
    for computed in (product, np.float32(0) if abs(product) < 2**-126 else product):
        assert abs(definition(F(float(computed))) - exact) <= bound.error[0]


def test_no_number_stays_none_through_a_step_or_a_wave() -> None:
    """Where float32 may overflow, Sign and Cos of it may be no number, however small they are elsewhere."""
    for op in ("Sign", "Floor", "Round", "Cos", "Sin", "Erf"):
        network = net((op, {}), first=np.array([1e30], dtype=np.float32))
        assert rounding_bounds(network, [F(10) ** 30], [F(10) ** 30])["0"].error[0] == np.inf


@pytest.mark.parametrize("function", ["cos", "sin"])
@given(a=st.floats(-20, 20), width=st.floats(0, 8), share=st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_waves_are_enclosed_between_their_extremes(
    function: str, a: float, width: float, share: float
) -> None:
    found = getattr(outward, function)(Interval(np.array([a]), np.array([a + width])))
    inside = getattr(np, function)(a + share * width)
    assert found.lower[0] - 1e-14 <= inside <= found.upper[0] + 1e-14
    assert -1 <= found.lower[0] <= found.upper[0] <= 1
    grid = getattr(np, function)(np.linspace(a, a + width, 2000))
    assert found.lower[0] >= grid.min() - 0.1
    assert found.upper[0] <= grid.max() + 0.1


@pytest.mark.parametrize("op", ["Cos", "Sin"])
def test_waves_are_exact_to_any_width_at_any_point(op: str) -> None:
    found = evaluate(net((op, {})), [F(10**6, 7)], relative_width=F(1, 2**200))
    assert found.upper[0] - found.lower[0] <= F(1, 2**200)
    value = {"Cos": np.cos, "Sin": np.sin}[op](1e6 / 7)
    assert float(found.lower[0]) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("op", ["Cos", "Sin", "Erf"])
def test_onnxruntime_keeps_the_ulps_of_waves_for_arguments_of_any_size(op: str) -> None:
    """The claim for float32 allows 8 ulps of 1; the exact value is that at the very float32 number."""
    rng = np.random.default_rng(3)
    points = (rng.uniform(-1, 1, 400) * 10.0 ** rng.uniform(-6, 38, 400)).astype(np.float32)
    builder = Builder((1, 400), opset=17)
    computed = run(builder.model(builder.add(op, "x")), points[None])[0]
    for x, y in zip(points.tolist(), computed.tolist(), strict=True):
        bound = rounding_bounds(net((op, {})), [F(x)], [F(x)])["0"]
        value = evaluate(net((op, {})), [F(x)])
        assert value.lower[0] - F(bound.error[0]) <= F(y) <= value.upper[0] + F(bound.error[0])


def test_a_step_counts_as_unstable_where_it_lies_inside() -> None:
    for op, box, unstable in [
        ("Floor", (0.25, 0.75), 0),
        ("Floor", (0.75, 1.25), 1),
        ("Round", (0.75, 1.25), 0),
        ("Round", (0.25, 0.75), 1),
        ("Sign", (0.25, 0.75), 0),
        ("Sign", (-0.25, 0.75), 1),
        ("Truncate", (-0.75, 0.75), 0),
        ("Truncate", (-1.75, 0.75), 1),
    ]:
        network = net((op, STEPS[op][0]))
        enclosures = [enclose(network, [F(box[0])], [F(box[1])])]
        assert (phases(network, enclosures, 0.1).unstable, op) == (unstable, op)


def test_a_wave_counts_as_unstable_where_its_slope_varies() -> None:
    network = net(("Cos", {}))
    for box, unstable in (((0.0, 0.05), 0), ((-0.5, 0.5), 1), ((1.5, 1.6), 0), ((0.0, 7.0), 1)):
        enclosures = [enclose(network, [F(box[0])], [F(box[1])])]
        assert phases(network, enclosures, 0.1).unstable == unstable
