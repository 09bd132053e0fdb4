"""The family specs: each shape is read as what it means, and its siblings differ in one number."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from dokimos.constructions.families.specs import AWAY
from dokimos.constructions.property_shapes import FAR, LOWER, SHAPES, UPPER
from dokimos.constructions.recipes import shipped_recipe
from dokimos.engine.runtimes.cross_check import require_agreement
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Point
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import exact_decimal
from tests.constructions.siblings import draw, truth_of

_NUMBER = re.compile(r"[-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?")


def special_points(rng: np.random.Generator) -> list[tuple[Point, Point]]:
    """Inputs in the box, at its ends, at the ends of smaller boxes and beyond, with any outputs."""
    inputs = [Fraction(k, 8) for k in range(-10, 11)]
    outputs = [Fraction(k, 4) for k in range(-12, 13)] + [Fraction(FAR), Fraction(-FAR), Fraction(FAR + 1)]
    found = []
    for _ in range(600):
        x = tuple(inputs[k] for k in rng.integers(len(inputs), size=2))
        if rng.random() < 0.7:
            x = tuple(min(max(v, a), b) for v, a, b in zip(x, LOWER, UPPER, strict=True))
        found.append((x, tuple(outputs[k] for k in rng.integers(len(outputs), size=3))))
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_the_reader_reads_what_the_shape_means(name: str) -> None:
    shape = SHAPES[name]
    said = set()
    for t in (Fraction(-3, 4), Fraction(1, 4), Fraction(-1, 2)):
        text = "\n".join(shape.text(exact_decimal(-t if shape.turned else t)))
        asked = read_vnnlib(text.encode(), file=name)
        for x, y in special_points(np.random.default_rng(1)):
            said.add(asked.unsafe(x, y))
            assert asked.unsafe(x, y) is shape.unsafe(x, y, t), (x, y, t)
    assert said == {False, True}


@pytest.mark.parametrize("name", SHAPES)
def test_siblings_differ_in_one_number_and_no_runtime_contradicts_them(name: str) -> None:
    robust, twin = draw("specs", shape=name)
    assert (truth_of(robust).label, truth_of(twin).label) == (Label.UNSAT, Label.SAT)
    assert robust.instance.network_file == twin.instance.network_file
    texts = [each.instance.property_file.decode() for each in (robust, twin)]
    assert _NUMBER.sub("", texts[0]) == _NUMBER.sub("", texts[1])
    numbers = [_NUMBER.findall(text) for text in texts]
    changed = [pair for pair in zip(*numbers, strict=True) if pair[0] != pair[1]]
    assert len(changed) == 1
    for each in (robust, twin):
        require_agreement(each.instance, truth_of(each))
    if not (SHAPES[name].touches or SHAPES[name].is_wide):
        assert abs(Fraction(changed[0][0]) - Fraction(changed[0][1])) == 2 * AWAY


def test_the_suite_has_every_shape() -> None:
    assert [draw.knobs["shape"] for draw in shipped_recipe("specs").draws] == list(SHAPES)
