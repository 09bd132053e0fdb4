from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dokimos.checker.lemmas.piecewise_linear import piecewise_linear
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.vnnlib.model import Box
from dokimos_studies.regions import count_regions


def box(size: int, radius: int = 1) -> Box:
    return Box((Fraction(-radius),) * size, (Fraction(radius),) * size)


def regions(*layers: tuple[object, object], inputs: int = 2, **limits: int) -> tuple[int, bool]:
    builder = ModelBuilder([inputs])
    for number, (weight, bias) in enumerate(layers):
        builder = (builder.relu() if number else builder).affine(weight, bias)
    form = piecewise_linear(read_onnx(builder.build(len(np.asarray(layers[-1][1])))))
    found = count_regions(form, box(inputs), **limits)
    return found.regions, found.is_exact


HEAD = ([[1, 1]], [0])


def test_lines_cut_the_plane_into_known_numbers() -> None:
    assert regions(([[1, 0], [0, 1]], [0, 0]), HEAD) == (4, True)
    parallel = ([[1, 0], [1, 0]], [0, -0.5])
    assert regions(parallel, HEAD) == (3, True)
    through_one_point = ([[1, 0], [0, 1], [1, 1]], [0, 0, 0])
    assert regions(through_one_point, ([[1, 1, 1]], [0])) == (6, True)
    in_general = ([[1, 0], [0, 1], [1, 1]], [0, 0, -0.5])
    assert regions(in_general, ([[1, 1, 1]], [0])) == (7, True)


def test_what_does_not_cut_the_box_does_not_count() -> None:
    outside = ([[1, 0], [0, 1]], [2, -3])
    assert regions(outside, HEAD) == (1, True)
    at_the_corner = ([[1, 1], [0, 1]], [-2, 0])
    assert regions(at_the_corner, HEAD) == (2, True)
    the_same_twice = ([[1, 1], [2, 2]], [0.25, 0.5])
    assert regions(the_same_twice, HEAD) == (2, True)
    opposite = ([[1, 1], [-1, -1]], [0.25, -0.25])
    assert regions(opposite, HEAD) == (2, True)


def test_deeper_layers_bend_where_they_do() -> None:
    """max(0, |x| - 1/2) has pieces at 0 and at ±1/2."""
    absolute = ([[1], [-1]], [0, 0])
    assert regions(absolute, ([[1, 1]], [-0.5]), ([[1]], [0]), inputs=1) == (4, True)


@pytest.mark.parametrize("seed", range(3))
def test_a_fine_grid_sees_no_more_and_nearly_as_many(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight, bias = rng.integers(-4, 5, size=(4, 2)) / 4, rng.integers(-2, 3, size=4) / 8
    second, other = rng.integers(-4, 5, size=(2, 4)) / 4, rng.integers(-2, 3, size=2) / 8
    found, is_exact = regions((weight, bias), (second, other), HEAD)
    assert is_exact
    grid = (np.arange(401) - 200) / 200 + 1 / 1999
    points = np.array([p for p in product(grid, grid) if max(map(abs, p)) < 1])
    first = points @ weight.T + bias
    patterns = np.concatenate([first, np.maximum(first, 0) @ second.T + other], axis=1) > 0
    seen = len(np.unique(patterns, axis=0))
    assert seen <= found <= seen + 4


def test_where_there_are_more_it_says_so() -> None:
    rng = np.random.default_rng(0)
    layer = (rng.integers(-8, 9, size=(8, 2)) / 8, rng.integers(-2, 3, size=8) / 16)
    found, is_exact = regions(layer, (np.ones((1, 8)), [0]), most_regions=5)
    assert not is_exact
    assert found > 5
