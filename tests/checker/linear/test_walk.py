"""Facts hold, and bounds are below, at every point of a region, whatever is chosen."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.linear.cover import CutCover, QuestionData
from dokimos.checker.linear.walk import BoundedNetwork, BoxRegions, Steps, steps_of
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.outward import Floats, Interval
from tests.checker.files import model
from tests.checker.small_networks import SmallReluNetwork
from tests.networks.graphs import ONE_OF_EACH, models


def values_at(network: Network, x: Floats) -> dict[str, Interval]:
    exact = [Fraction(float(each)) for each in x]
    return enclose(network, exact, exact)


def assert_bounded(network: Network, rng: np.random.Generator) -> bool:
    """Facts and random functionals of random tensors, with random lines; False if nothing is bounded."""
    steps: Steps = steps_of(network)
    low = rng.integers(-8, 8, network.input_size) / 8
    box = Interval(low, low + rng.integers(0, 9, network.input_size) / 8)
    units = steps.units

    def lines(count: int) -> dict[str, Floats]:
        drawn = {name: rng.random((count, *shape)) for name, shape in units.items()}
        return {n: np.where(rng.random(each.shape) < 0.3, np.nan, each) for n, each in drawn.items()}

    refined = {name: (lines(1), lines(1)) for name in steps.tensors if rng.random() < 0.7}
    try:
        bounded = BoundedNetwork(steps, box, refined=refined, ulps=None)
    except InvalidProof:
        return False
    halves = [box.lower + (box.upper - box.lower) * each / 2 for each in (0, 1)]
    ends = [(halves[0], halves[1]), (halves[1], box.upper)]
    stacked = Interval(
        *(np.stack(each).reshape(2, *network.input_shape) for each in zip(*ends, strict=True))
    )
    regions = BoxRegions(2, {network.input: stacked})
    for name in steps.tensors[1:]:
        if rng.random() < 0.4:
            regions = bounded.refine(regions, name, (lines(2), lines(2)))
    name = str(rng.choice(steps.tensors))
    rows = rng.integers(-4, 5, size=(1, 3, *steps.shapes[name])) / 4
    for near in (False, True):
        bounds = bounded.lower_bounds({name: rows}, regions, lines(2), near=near)
        assert bounds.shape == (2, 3)
        for region, (first, last) in enumerate(ends):
            for share in (0.0, 1.0, *rng.random(3)):
                x = first + share * (last - first) if share in (0, 1) else rng.uniform(first, last)
                seen = values_at(network, x)
                for tensor, fact in seen.items():
                    known = bounded.facts[tensor]
                    assert (known.lower <= fact.upper).all() and (fact.lower <= known.upper).all(), tensor
                    if (own := regions.facts.get(tensor)) is not None and tensor != network.input:
                        assert (own.lower[region] <= fact.upper).all(), tensor
                        assert (fact.lower <= own.upper[region]).all(), tensor
                if name in seen:
                    most = sum(
                        np.maximum(rows[0] * end, 0).reshape(3, -1).sum(1)
                        + np.minimum(rows[0] * other, 0).reshape(3, -1).sum(1)
                        for end, other in ((seen[name].upper, seen[name].lower),)
                    )
                    assert (bounds[region] <= most + 1e-9 * (1 + np.abs(most))).all()
    return True


def small(seed: int) -> SmallReluNetwork:
    return SmallReluNetwork.draw(np.random.default_rng(seed), sizes=(3, 8, 8, 2))


def test_what_is_bounded_in_a_region_depends_on_that_region_alone() -> None:
    """So that leaves that were proven some at a time are proven all together."""
    for seed in range(3):
        network = read_onnx(small(seed).instance().network_file)
        steps = steps_of(network)
        bounded = BoundedNetwork(steps, Interval(-np.ones(3), np.ones(3)), refined={}, ulps=1)
        ends = np.linspace(-1, 1, 6).repeat(3).reshape(6, 1, 3)
        inner = BoxRegions(5, {network.input: Interval(ends[:-1], ends[1:])})
        units = [step.sources[0] for step in steps.steps if step.transposes is None]
        for number in range(5):
            one = slice(number, number + 1)
            alone = BoxRegions(1, {network.input: Interval(ends[:-1][one], ends[1:][one])})
            together = inner
            for name in units:
                alone, together = (bounded.refine(each, name, ({}, {})) for each in (alone, together))
                for end in ("lower", "upper"):
                    own, shared = (getattr(each.facts[name], end) for each in (alone, together))
                    assert own[0] == pytest.approx(shared[number], rel=1e-12, abs=1e-12), (seed, name)


def test_one_of_each_operator() -> None:
    bounded = [
        name
        for name, made in ONE_OF_EACH.items()
        if assert_bounded(read_onnx(made.SerializeToString()), np.random.default_rng(len(name)))
    ]
    assert len(bounded) > 0.9 * len(ONE_OF_EACH)


@settings(max_examples=80, deadline=None)
@given(made=models(), seed=st.integers(0, 2**32))
def test_random_networks(made: onnx.ModelProto, seed: int) -> None:
    assert_bounded(read_onnx(made.SerializeToString()), np.random.default_rng(seed))


def hat() -> Network:
    """Y = relu(x) + relu(−x) − relu(x − y), and so on: a ReLU network of two inputs."""
    rng = np.random.default_rng(0)
    weights = {"a": rng.integers(-4, 5, (2, 5)) / 4, "b": rng.integers(-4, 5, (5, 1)) / 4}
    nodes = [("MatMul", ["X", "a"], "h"), ("Relu", ["h"], "r"), ("MatMul", ["r", "b"], "Y")]
    return read_onnx(model(nodes, weights, [1, 2], [1, 1]))


@pytest.mark.parametrize("seed", range(20))
def test_cuts_of_units_hold_where_they_say(seed: int) -> None:
    """At a point of the box, the leaf that holds it has a bound below the value, for any multipliers."""
    network, rng = hat(), np.random.default_rng(seed)
    steps = steps_of(network)
    box = Interval(np.full(2, -1.0), np.full(2, 1.0))
    bounded = BoundedNetwork(steps, box, refined={}, ulps=None)
    first = 2 + int(rng.integers(5))  # an entry of h, the second tensor
    second = 2 + int(rng.integers(5))
    at = {"0": float(rng.normal() / 2)} if seed % 2 else {}
    data = QuestionData(tree=(first, -1, second, -1, -1), at=at)
    cover = CutCover(steps, box, data, 1)
    cover._multipliers = rng.exponential(1.0, 5)
    regions, kept = cover.regions(bounded.facts, range(3))
    rows = np.ones((1, 1, 1, 1))
    bounds = dict(zip(kept, bounded.lower_bounds({"Y": rows}, regions)[:, 0], strict=True))
    hits = 0
    for x in rng.uniform(-1, 1, (60, 2)):
        seen = values_at(network, x)
        inside = seen["h"].lower.reshape(-1)
        for number, leaf in enumerate(cover.leaves):
            if all(sign * (inside[entry - 2] - value) >= 1e-9 for entry, sign, value in leaf.cuts):
                hits += 1
                assert bounds[number] <= seen["Y"].upper.item() + 1e-9
    assert hits


def test_the_sizes_of_tensors_are_counted() -> None:
    network = hat()
    steps = steps_of(network)
    assert [prod(steps.shapes[name]) for name in steps.tensors] == [2, 5, 5, 1]
    assert list(steps.units) == ["r"]
