from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.check import prove
from dokimos.constructions.draft import float32_above, float32_below
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.suites.instance import Certificate, Label
from tests.checker.small_networks import SmallPolynomial, grid


def convex(rng: np.random.Generator, degree: int) -> SmallPolynomial:
    drawn = SmallPolynomial.draw(rng, degree=degree)
    signs = [1] * len(drawn.rows)
    if degree % 2:
        # Biases so large that no unit changes sign on the box.
        signs = [int(s) for s in rng.choice([-1, 1], size=len(drawn.rows))]
        drawn = replace(drawn, biases=[s * (abs(b) + 8) for s, b in zip(signs, drawn.biases, strict=True)])
    bent = [s * abs(c) for s, c in zip(signs, drawn.coefficients, strict=True)]
    return replace(drawn, coefficients=bent)


def attempt(drawn: SmallPolynomial, point: list[Fraction]) -> Fraction:
    data = {"point": [str(x) for x in point]}
    return prove(drawn.instance(), Certificate("convex-tangent", data), Label.UNSAT, None).real


@pytest.mark.no_cover
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7])
def test_a_tangent_at_the_lowest_grid_point_proves_most_of_the_margin(degree: int) -> None:
    proven = 0
    for seed in range(8):
        drawn = convex(np.random.default_rng(seed), degree)
        lowest = drawn.grid_minimum()
        raised = replace(drawn, offset=float32_above(2**16 + 4 * abs(lowest)))
        best = min(grid(drawn.centre, drawn.radius), key=raised.value)
        margin = attempt(raised, list(best))
        assert margin <= raised.grid_minimum()
        proven += 1
    assert proven == 8


@pytest.mark.no_cover
@settings(deadline=None, max_examples=70)
@given(seed=st.integers(0, 2**32 - 1), degree=st.integers(1, 5), choice=st.data())
def test_no_point_proves_a_false_label(seed: int, degree: int, choice: st.DataObject) -> None:
    """The margin is not positive on the grid, so the label is false, whatever the certificate says."""
    drawn = convex(np.random.default_rng(seed), degree)
    false = replace(drawn, offset=float32_below(-drawn.grid_minimum()))
    assert false.grid_minimum() <= 0
    point = choice.draw(st.sampled_from(grid(drawn.centre, drawn.radius)))
    with pytest.raises(InvalidProof):
        attempt(false, list(point))


def test_terms_that_are_not_convex_are_refused() -> None:
    drawn = SmallPolynomial(
        rows=[[Fraction(1)]],
        biases=[Fraction(0)],
        coefficients=[Fraction(1)],
        offset=Fraction(10),
        degree=3,
        centre=[Fraction(0)],
        radius=Fraction(1),
    )
    with pytest.raises(InvalidProof, match="not convex"):
        attempt(drawn, [Fraction(0)])
    with pytest.raises(InvalidProof, match="not convex"):
        attempt(replace(drawn, degree=2, coefficients=[Fraction(-1)]), [Fraction(0)])
    # The same cube away from 0 is convex, and so is its negative on the other side.
    away = replace(drawn, centre=[Fraction(2)])
    assert attempt(away, [Fraction(1)]) == 11
    mirrored = replace(drawn, centre=[Fraction(-2)], coefficients=[Fraction(-1)])
    assert attempt(mirrored, [Fraction(-1)]) == 11


def test_points_outside_the_box_and_of_another_size_are_refused() -> None:
    drawn = convex(np.random.default_rng(1), 2)
    raised = replace(drawn, offset=Fraction(2) ** 10)
    with pytest.raises(InvalidProof, match="outside"):
        attempt(raised, [x + 2 * drawn.radius for x in drawn.centre])
    with pytest.raises(InvalidProof, match="coordinates"):
        attempt(raised, drawn.centre[:1])
    with pytest.raises(InvalidProof, match="bits"):
        attempt(raised, [x + Fraction(1, 3**400) for x in drawn.centre])
    for data in ({}, {"point": 3}, {"point": [1, 2]}, {"point": ["0", "0"], "more": 1}):
        with pytest.raises(UnreadableFile):
            prove(raised.instance(), Certificate("convex-tangent", data), Label.UNSAT, None)
