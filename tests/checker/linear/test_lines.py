"""Lines hold at every point of the interval, by exact evaluation, whatever is chosen."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.linear.lines import UNITS, Lines, difference_lines, product_lines
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Node
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.outward import Floats, Interval

#: Sums and products of a few float64 numbers of any size fit in so many bits, so that lines are exact.
EXACT_BITS = 4400
POWERS = (2.0, 3.0, 4.0, 5.0, 0.0, 1.0, -1.0, -2.0, -3.0, 0.5, 1.5, -0.5, 70.0, 0.25)
NODES: Mapping[str, Node] = {
    **{op: Node(op, ("x",), "y") for op in UNITS if op not in ("Pow", "Truncate")},
    "Truncate": Node("Truncate", ("x",), "y", {"least": -(2**63), "beyond": 2**63}),
    **{f"Pow {p:g}": Node("Pow", ("x",), "y", {"exponent": p}) for p in POWERS},
}
POSITIVE = {f"Pow {p:g}" for p in POWERS if not p.is_integer()}
UNDEFINED_AT_ZERO = {f"Pow {p:g}" for p in POWERS if p < 0}
EXP_END = 709.0


def fit(name: str, low: Floats, high: Floats) -> Interval:
    """The interval, moved to where the operator is defined and finite."""
    low, high = np.minimum(low, high), np.maximum(low, high)
    if name in POSITIVE:
        low, high = np.sort(np.abs([low, high]), axis=0)
    if name in UNDEFINED_AT_ZERO:
        crosses = (low <= 0) & (high >= 0)
        sizes = np.sort(np.maximum(np.abs([low, high]), 1e-60), axis=0)
        low, high = np.where(crosses, sizes[0], low), np.where(crosses, sizes[1], high)
        low, high = (np.sign(end) * np.maximum(np.abs(end), 1e-60) for end in (low, high))
    limit = {"Exp": EXP_END, "Truncate": 2.0**61, "Pow 70": 1e4}.get(name, 1e60)
    least = -limit if name != "Exp" else -1e60
    return Interval(np.clip(low, least, limit), np.clip(high, least, limit))


def intervals(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """Intervals of all kinds: ordinary, tiny, huge, points, beside or across 0 and other numbers."""
    centres = rng.choice([0.0, 1.0, -1.0, 3.0, np.pi, -np.pi / 2, 0.5, 2.0, 45.0, -45.0], count)
    scale = 10.0 ** rng.choice([-300, -20, -8, -3, -1, 0, 0, 0, 1, 2, 3, 15, 30], count)
    centres = np.where(rng.random(count) < 0.4, centres, rng.normal(size=count) * scale)
    width = 10.0 ** rng.choice([-300, -17, -12, -5, -2, -1, 0, 0, 0, 1, 2, 30], count) * rng.random(count)
    width = np.where(rng.random(count) < 0.1, 0.0, width)
    side = rng.choice([0.0, 1.0, 0.5, 0.1, 0.9], count)
    low, high = centres - side * width, centres + (1.0 - side) * width
    whole = rng.random(count) < 0.15
    return np.where(whole, np.rint(low), low), np.where(whole, np.rint(high), high)


def choices(rng: np.random.Generator, count: int) -> Floats:
    return rng.choice([0.0, 1.0, 0.5, np.nan, np.nan, *rng.random(4), 127 / 254, -3.0, np.inf], count)


def points(rng: np.random.Generator, low: float, high: float, more: list[float]) -> list[float]:
    width = min(high - low, 1e308)
    inside = (low + width * rng.random(6)).tolist()
    near = [np.nextafter(low, np.inf), np.nextafter(high, -np.inf), 0.5 * low + 0.5 * high]
    specials = [
        0.0,
        *(np.floor(x) for x in inside[:2]),
        *(np.nextafter(np.rint(x), -1e99) for x in inside[:3]),
    ]
    turns = [np.rint(inside[0] / np.pi) * np.pi, (np.rint(inside[1] / np.pi) + 0.5) * np.pi]
    spread = [low + width * 2.0**-k for k in (3, 10, 40)] + [high - width * 2.0**-k for k in (3, 10)]
    found = [low, high, *inside, *near, *specials, *turns, *spread, *more]
    return [float(x) for x in found if low <= x <= high]


def nearest(node: Node, low: float, high: float, slope: float) -> list[float]:
    """Where f(x) − slope·x is least and greatest, by sampling floats and sampling again around these."""
    rough = {
        "Erf": np.vectorize(math.erf),
        "Sigmoid": lambda t: 0.5 + 0.5 * np.tanh(0.5 * t),
        **dict.fromkeys(["Relu", "Sign", "Floor", "Round", "Truncate"], lambda t: t),
        "Pow": lambda t: np.power(t, node.attributes.get("exponent", 1.0)),
    }.get(node.op) or getattr(np, node.op.lower())
    found = []
    with np.errstate(all="ignore"):
        for choose in (np.argmin, np.argmax):
            a, b = low, high
            for _ in range(5):
                at = np.linspace(a, b, 41)
                k = int(choose(rough(at) - slope * at))
                a, b = float(at[max(k - 1, 0)]), float(at[min(k + 1, 40)])
            found += [a, b, float(at[k])]
    return found


def value_at(node: Node, x: float | arb) -> arb:
    found = ball.TABLE[node.op](node, [np.array(arb(x), dtype=object)])
    return arb(found.item())


def crossings(node: Node, x: Interval, found: Lines, rng: np.random.Generator) -> list[str]:
    """Points at which a line is on the wrong side, by exact evaluation of the line."""
    wrong = []
    flat = [np.broadcast_to(a, x.shape).reshape(-1).tolist() for a in (x.lower, x.upper)]
    parts = [
        getattr(found, name).reshape(-1).tolist()
        for name in ("lower_slope", "lower_shift", "upper_slope", "upper_shift")
    ]
    with ball.precision(EXACT_BITS):
        for low, high, p, c, q, d in zip(*flat, *parts, strict=True):
            touched = nearest(node, low, high, p) + nearest(node, low, high, q)
            for at in points(rng, low, high, touched):
                with ball.precision(300):
                    value = value_at(node, at)
                below, above = arb(p) * arb(at) + arb(c), arb(q) * arb(at) + arb(d)
                if below > value or above < value:
                    wrong.append(f"[{low!r}, {high!r}] at {at!r}: {below} {value} {above}")
    return wrong


@pytest.mark.parametrize("name", NODES)
def test_lines_hold_everywhere_whatever_is_chosen(name: str) -> None:
    rng = np.random.default_rng(list(NODES).index(name))
    count = 150
    x = fit(name, *intervals(rng, count))
    node = NODES[name]
    found = UNITS[node.op](node, x, choices(rng, count))
    assert crossings(node, x, found, rng) == []


@pytest.mark.parametrize("name", ["Sin", "Cos"])
def test_waves_of_every_width_hold(name: str) -> None:
    rng = np.random.default_rng(2)
    low = rng.uniform(-20.0, 20.0, 200)
    x = Interval(low, low + rng.uniform(1.0, 7.0, 200))
    found = UNITS[name](NODES[name], x, choices(rng, 200))
    assert crossings(NODES[name], x, found, rng) == []


@pytest.mark.parametrize("name", ["Floor", "Round", "Truncate"])
@pytest.mark.parametrize("start", [2.0**50 - 3, 2.0**52, 2.0**53, -(2.0**53) - 6, 2.0**54])
@pytest.mark.parametrize("choice", [1.0, 0.3, float("nan")])
def test_steps_hold_between_floats_that_are_far_apart(name: str, start: float, choice: float) -> None:
    x = Interval(np.array([start]), np.array([start + 6.0]))
    found = UNITS[name](NODES[name], x, np.array([choice]))
    p, c, q, d = (
        arb(float(part.item()))
        for part in (found.lower_slope, found.lower_shift, found.upper_slope, found.upper_shift)
    )
    with ball.precision(EXACT_BITS):
        for eighths in range(49):
            at = fmpq(8 * int(start) + eighths, 8)
            value = ball.TABLE[name](NODES[name], [np.array([at])]).item()  # exact, also at a half
            assert p * at + c <= arb(value) <= q * at + d


@pytest.mark.parametrize(
    "name", ["Sigmoid", "Tanh", "Erf", "Exp", "Pow 2", "Pow 3", "Pow -1", "Sin", "Cos"]
)
@pytest.mark.parametrize("part", ["lower_shift", "upper_shift"])
def test_lines_moved_by_little_more_than_rounding_are_found_to_cross(name: str, part: str) -> None:
    rng = np.random.default_rng(11)
    x = Interval(*np.sort(0.1 + 2.0 * rng.random((2, 20)), axis=0))
    node = NODES[name]
    found = UNITS[node.op](node, x, choices(rng, 20))
    moved = getattr(found, part) + (3e-8 if part == "lower_shift" else -3e-8)
    wrong = crossings(node, x, dataclasses.replace(found, **{part: moved}), rng)
    assert len({each.split(" at ")[0] for each in wrong}) == 20


numbers = st.floats(-1e40, 1e40) | st.floats(-12.0, 12.0) | st.sampled_from([0.0, 1.0, -1.0, 40.0, -800.0])


@pytest.mark.parametrize("name", NODES)
@settings(max_examples=20, deadline=None)
@given(a=numbers, b=numbers, choice=st.floats(0.0, 1.0) | st.just(float("nan")))
def test_lines_hold_at_what_hypothesis_finds(name: str, a: float, b: float, choice: float) -> None:
    x = fit(name, np.array(a), np.array(b))
    node = NODES[name]
    found = UNITS[node.op](node, x, np.array(choice))
    assert found.lower_slope.shape == ()
    assert crossings(node, x, found, np.random.default_rng(0)) == []


@pytest.mark.parametrize("name", NODES)
def test_shapes_and_batches_are_of_no_account(name: str) -> None:
    rng = np.random.default_rng(5)
    x = fit(name, *intervals(rng, 24))
    choice = choices(rng, 4)
    node = NODES[name]
    flat = UNITS[node.op](node, x, np.tile(choice, 6))
    deep = UNITS[node.op](node, x.map(lambda end: end.reshape(2, 3, 1, 4)), choice)
    for part in ("lower_slope", "lower_shift", "upper_slope", "upper_shift"):
        assert (getattr(deep, part).reshape(-1) == getattr(flat, part)).all()


def envelope_in_the_middle(values: Floats) -> float:
    """The greatest convex function below an odd number of samples at equal distances, at the middle one."""
    half = len(values) // 2
    left, right = values[: half + 1], values[half:]
    down, beyond = np.arange(half, -1, -1.0)[:, None], np.arange(0.0, half + 1)[None, :]
    with np.errstate(invalid="ignore"):
        chords = (left[:, None] * beyond + right[None, :] * down) / (down + beyond)
    return float(np.nanmin(chords))


@pytest.mark.parametrize(
    "name", [name for name in NODES if name not in ("Sign", "Floor", "Round", "Truncate")]
)
def test_usual_lines_have_the_best_mean(name: str) -> None:
    """No line below a function is above its convex envelope in the middle; the mean of a line is there."""
    rng = np.random.default_rng(7)
    ends = np.sort(rng.normal(size=(2, 40)) * 10.0 ** rng.uniform(-2, 0.7, 40), axis=0)
    if name in POSITIVE | UNDEFINED_AT_ZERO:
        ends = np.sort(np.abs(ends) + 0.05, axis=0)
    if name in ("Sin", "Cos"):
        ends[1] = ends[0] + np.minimum(ends[1] - ends[0], 2.9)
    if name == "Exp":
        ends[1] = ends[0] + np.minimum(ends[1] - ends[0], 1.9)
    node = NODES[name]
    found = UNITS[node.op](node, Interval(*ends), np.array(np.nan))
    middle = ends.mean(axis=0)
    below, above = (
        found.lower_slope * middle + found.lower_shift,
        found.upper_slope * middle + found.upper_shift,
    )
    for k in range(ends.shape[1]):
        at = np.linspace(ends[0, k], ends[1, k], 401)
        values = np.array([float(value_at(node, t)) for t in at.tolist()])
        tolerance = 2e-4 * np.ptp(values) + 1e-14 * np.abs(values).max()
        assert envelope_in_the_middle(values) - below[k] <= tolerance
        assert above[k] + envelope_in_the_middle(-values) <= tolerance


def test_the_usual_line_below_exp_is_positive() -> None:
    x = Interval(np.array([-30.0, 0.0, -4.0]), np.array([1.0, 100.0, 4.0]))
    found = UNITS["Exp"](NODES["Exp"], x, np.array(np.nan))
    assert (found.lower_slope * x.lower + found.lower_shift > 0).all()


@pytest.mark.parametrize(
    "name", ["Sigmoid", "Tanh", "Erf", "Exp", "Pow 2", "Pow 3", "Pow 0.5", "Sin", "Cos"]
)
def test_lines_of_a_narrow_interval_lose_rounding_only(name: str) -> None:
    node = NODES[name]
    rng = np.random.default_rng(3)
    low = rng.random(200) * 6 + (-3 if name != "Pow 0.5" else 0.1)
    for width in (0.0, 1e-300, 1e-15, 1e-9):
        x = Interval(low, low + width)
        found = UNITS[node.op](node, x, np.full(200, np.nan))
        spread = (found.upper_slope - found.lower_slope) * low + found.upper_shift - found.lower_shift
        scale = 1 + np.abs(found.upper_shift) + np.abs(found.upper_slope * low)
        assert (spread <= 1e-14 * scale + 100 * width).all()


def test_a_relu_is_as_the_choice_says() -> None:
    x = Interval(np.array([-1.0, -1.0, -2.0, 1.0, -3.0, 0.0]), np.array([3.0, 3.0, 1.0, 2.0, -1.0, 0.0]))
    found = UNITS["Relu"](NODES["Relu"], x, np.array([0.25, np.nan, np.nan, 0.3, 0.3, 0.3]))
    assert found.lower_slope.tolist() == [0.25, 1.0, 0.0, 1.0, 0.0, 1.0]
    assert found.upper_slope.tolist() == [0.75, 0.75, 1.0 / 3.0, 1.0, 0.0, 1.0]
    assert not found.lower_shift.any()
    assert found.upper_shift[3:].tolist() == [0.0, 0.0, 0.0]
    assert found.upper_shift[0] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("name", "low", "high", "below", "above"),
    [
        ("Sign", -1.0, 4.0, (0.5, -1.0), (0.0, 1.0)),
        ("Sign", -4.0, 1.0, (0.0, -1.0), (0.5, 1.0)),
        ("Sign", 0.0, 2.0, (0.5, 0.0), (0.0, 1.0)),
        ("Sign", 0.0, 0.0, (0.0, 0.0), (0.0, 0.0)),
        ("Floor", 0.75, 2.0, (1.0, -1.0), (1.0, 0.0)),
        ("Floor", 0.25, 0.75, (0.0, 0.0), (0.0, 0.0)),
        ("Round", 0.5, 2.5, (1.0, -0.5), (0.0, 2.0)),
        ("Truncate", -0.75, 0.75, (0.0, 0.0), (0.0, 0.0)),
        ("Truncate", -0.5, 3.0, (0.5, -0.5), (0.0, 3.0)),
    ],
)
def test_steps_have_the_expected_lines(
    name: str, low: float, high: float, below: tuple[float, float], above: tuple[float, float]
) -> None:
    x = Interval(np.array([low]), np.array([high]))
    found = UNITS[name](NODES[name], x, np.array([np.nan]))
    assert (found.lower_slope.item(), found.lower_shift.item()) == pytest.approx(below)
    if not below[0]:
        assert found.lower_shift.item() == below[1]
    if name != "Truncate" or high < 1:
        assert (found.upper_slope.item(), found.upper_shift.item()) == pytest.approx(above)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("Exp", 0.0, 711.0),
        ("Pow -1", -1.0, 1.0),
        ("Pow -1", 0.0, 1.0),
        ("Pow -2", -1.0, 0.0),
        ("Pow 0.5", -1e-9, 1.0),
        ("Pow -0.5", 0.0, 1.0),
        ("Pow 2", 0.0, 1e200),
        ("Truncate", 0.0, 2.0**63),
    ],
)
def test_no_finite_line_is_refused_by_name(name: str, low: float, high: float) -> None:
    x = Interval(np.array([0.5, low]), np.array([0.6, high]))
    with pytest.raises(InvalidProof, match=NODES[name].op):
        UNITS[NODES[name].op](NODES[name], x, np.array(np.nan))


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize(
    "ends", [(-1.7e308, 1.7e308), (1.0, 1.7e308), (1.7e308, 1.7e308), (5e-324, 5e-324)]
)
def test_the_ends_of_float64_have_lines_that_hold_or_none(name: str, ends: tuple[float, float]) -> None:
    x = Interval(*(np.array([end]) for end in ends))
    try:
        found = UNITS[NODES[name].op](NODES[name], x, np.array(np.nan))
    except InvalidProof:
        assert name in ("Exp", "Truncate") or name.startswith("Pow")
    else:
        assert crossings(NODES[name], x, found, np.random.default_rng(0)) == []


@pytest.mark.parametrize("name", NODES)
def test_no_units_have_no_lines(name: str) -> None:
    none = np.zeros((0, 3))
    assert UNITS[NODES[name].op](NODES[name], Interval(none, none), np.array(np.nan)).upper_shift.size == 0


def test_an_infinite_exponent_is_refused() -> None:
    node = Node("Pow", ("x",), "y", {"exponent": float("inf")})
    with pytest.raises(InvalidProof, match="Pow"):
        UNITS["Pow"](node, Interval(np.ones(1), np.ones(1)), np.array(np.nan))


# Products


def test_planes_hold_on_the_box_whatever_is_chosen() -> None:
    rng = np.random.default_rng(1)
    a, b = (fit("Relu", *intervals(rng, 300)) for _ in range(2))
    found = product_lines(a, b, choices(rng, 300))
    with ball.precision(EXACT_BITS):
        for k in range(300):
            xs = [a.lower[k], a.upper[k], rng.uniform(a.lower[k], a.upper[k])]
            ys = [b.lower[k], b.upper[k], rng.uniform(b.lower[k], b.upper[k])]
            for x in map(arb, xs):
                for y in map(arb, ys):
                    (p, q, c), (r, s, d) = ([arb(float(part[k])) for part in plane] for plane in found)
                    assert p * x + q * y + c <= x * y <= r * x + s * y + d


def test_planes_are_mccormicks() -> None:
    a, b = Interval(np.array([1.0]), np.array([2.0])), Interval(np.array([-1.0]), np.array([3.0]))
    usual = product_lines(a, b, np.array(np.nan))
    assert [part.item() for part in usual[0]] == pytest.approx([-1.0, 1.0, 1.0])
    assert [part.item() for part in usual[1]] == pytest.approx([3.0, 1.0, -3.0])
    other = product_lines(a, b, np.array(0.0))
    assert [part.item() for part in other[0]] == pytest.approx([3.0, 2.0, -6.0])
    assert [part.item() for part in other[1]] == pytest.approx([-1.0, 2.0, 2.0])


def test_planes_broadcast_and_refuse_what_overflows() -> None:
    a = Interval(np.zeros((4, 1, 3)), np.ones((4, 1, 3)))
    b = Interval(np.zeros((2, 1)), np.ones((2, 1)))
    found = product_lines(a, b, np.array(0.5))
    assert all(part.shape == (4, 2, 3) for part in (*found[0], *found[1]))
    with pytest.raises(InvalidProof, match="Mul"):
        product_lines(Interval(a.lower, a.upper * 1e200), Interval(b.lower, b.upper * 1e200), np.array(0.5))


@pytest.mark.parametrize("wide", range(3))
def test_differences_of_relus_are_bounded_where_one_fact_is_of_many_regions(wide: int) -> None:
    """d = a − b of a = x and b = y; the facts about one of the three are those of two regions."""
    ends = [(-3.0, 3.0), (-1.0, 2.0), (-2.0, 1.0)]
    facts = [Interval(*(np.full((1, 1), end) for end in pair)) for pair in ends]
    facts[wide] = facts[wide].map(lambda end: np.repeat(end, 2, axis=0))
    lower, upper = difference_lines(*facts, np.full((1,), 0.25))
    assert {part.shape for part in (*lower, *upper)} == {(2, 1)}
    for x in np.linspace(-1, 2, 13):
        for y in np.linspace(-2, 1, 13):
            value = max(0.0, x) - max(0.0, y)
            below, above = (p[0] * (x - y) + p[1] * x + p[2] * y + p[3] for p in (lower, upper))
            assert (below - 1e-9 <= value).all()
            assert (value <= above + 1e-9).all()
