from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.check import prove
from dokimos.constructions.draft import float32_below
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.suites.instance import Certificate, Label
from tests.checker.small_networks import SmallPolynomial, SmallReluNetwork

WHOLE = {"unit": None, "cuts": [], "slopes": [], "halvings": [[-1]]}


def random_tree(rng: np.random.Generator, inputs: int, depth: int) -> list[int]:
    if depth == 0 or rng.random() < 0.3:
        return [-1]
    halves = (random_tree(rng, inputs, depth - 1) for _ in range(2))
    return [int(rng.integers(inputs)), *(step for half in halves for step in half)]


def random_plan(rng: np.random.Generator, drawn: SmallPolynomial, *, depth: int = 2) -> dict[str, Any]:
    inputs = len(drawn.centre)
    if rng.random() < 0.3:
        return {**WHOLE, "halvings": [random_tree(rng, inputs, depth)]}
    cuts = sorted({Fraction(int(k), 8) for k in rng.integers(-40, 41, size=rng.integers(0, 6))})
    return {
        "unit": int(rng.integers(len(drawn.rows))),
        "cuts": [str(c) for c in cuts],
        "slopes": [repr(float(s)) for s in rng.normal(scale=10, size=len(cuts) + 1)],
        "halvings": [random_tree(rng, inputs, depth) for _ in range(len(cuts) + 1)],
    }


def attempt(drawn: SmallPolynomial, plan: dict[str, Any]) -> Fraction:
    return prove(drawn.instance(), Certificate("pinning", plan), Label.UNSAT, None).real


@pytest.mark.no_cover
def test_whatever_is_chosen_the_margin_is_below_every_value_on_the_grid() -> None:
    accepted = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        drawn = SmallPolynomial.draw(rng, degree=int(rng.integers(1, 7)))
        raised = replace(drawn, offset=Fraction(2) ** int(rng.integers(4, 20)))
        try:
            margin = attempt(raised, random_plan(rng, raised))
        except InvalidProof:
            continue
        assert 0 < margin <= raised.grid_minimum()
        accepted += 1
    assert accepted >= 15


@pytest.mark.no_cover
@settings(deadline=None, max_examples=70)
@given(seed=st.integers(0, 2**32 - 1), degree=st.integers(1, 6), depth=st.integers(0, 3))
def test_no_plan_proves_a_false_label(seed: int, degree: int, depth: int) -> None:
    """The margin is not positive on the grid, so the label is false, whatever the certificate says."""
    rng = np.random.default_rng(seed)
    drawn = SmallPolynomial.draw(rng, degree=degree)
    false = replace(drawn, offset=float32_below(-drawn.grid_minimum()))
    assert false.grid_minimum() <= 0
    with pytest.raises(InvalidProof):
        attempt(false, random_plan(rng, false, depth=depth))


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 6])
def test_a_monotone_polynomial_is_pinned_to_its_lowest_corner(degree: int) -> None:
    """All of Σ (x_i + 2)^d grows with every coordinate where x >= 0, so the minimum is exact."""
    drawn = SmallPolynomial(
        rows=[[Fraction(1), Fraction(0)], [Fraction(1), Fraction(1)]],
        biases=[Fraction(2), Fraction(2)],
        coefficients=[Fraction(1), Fraction(1)],
        offset=Fraction(0),
        degree=degree,
        centre=[Fraction(1), Fraction(1)],
        radius=Fraction(1),
    )
    margin = attempt(drawn, WHOLE)
    lowest = drawn.value([Fraction(0), Fraction(0)])
    assert lowest * (1 - Fraction(1, 10**12)) <= margin <= lowest


def test_slices_prove_what_one_slice_cannot() -> None:
    """−2x³ dips at the right end, where (x + 3)³/8 is high."""
    drawn = SmallPolynomial(
        rows=[[Fraction(1)], [Fraction(1)]],
        biases=[Fraction(0), Fraction(3)],
        coefficients=[Fraction(-2), Fraction(1, 8)],
        offset=Fraction(0),
        degree=3,
        centre=[Fraction(0)],
        radius=Fraction(7, 8),
    )
    one = {"unit": 0, "cuts": [], "slopes": ["0"], "halvings": [[-1]]}
    with pytest.raises(InvalidProof):
        attempt(drawn, one)
    more = {"unit": 0, "cuts": ["0", "0.4"], "slopes": ["0", "0", "-2"], "halvings": [[-1]] * 3}
    assert 0 < attempt(drawn, more) <= drawn.grid_minimum()


def test_trees_must_fit() -> None:
    drawn = replace(SmallPolynomial.draw(np.random.default_rng(3), degree=2), offset=Fraction(2) ** 16)
    assert attempt(drawn, WHOLE) > 0
    for tree, message in (
        ([], "ends before"),
        ([0, -1], "ends before"),
        ([-1, -1], "continues"),
        ([7, -1, -1], "no coordinate"),
    ):
        with pytest.raises(InvalidProof, match=message):
            attempt(drawn, {**WHOLE, "halvings": [tree]})
    with pytest.raises(InvalidProof, match="no hidden unit"):
        attempt(drawn, {**WHOLE, "unit": 9, "slopes": ["0"]})
    with pytest.raises(InvalidProof, match="more than"):
        attempt(drawn, {**WHOLE, "halvings": [[0] * 30_000]})


@pytest.mark.parametrize(
    "change",
    [
        {"unit": "0"},
        {"unit": True},
        {"unit": -1},
        {"halvings": [[-2]]},
        {"halvings": [["0"]]},
        {"halvings": [[True]]},
        {"halvings": 3},
        {"cuts": ["0"], "halvings": [[-1], [-1]]},
        {"unit": 0, "cuts": ["1", "0"], "slopes": ["0"] * 3, "halvings": [[-1]] * 3},
        {"unit": 0, "slopes": []},
        {"unit": 0, "slopes": [0]},
        {"unit": 0, "slopes": ["1" + "0" * 400]},
        {"more": 1},
    ],
)
def test_data_of_the_wrong_shape_is_unreadable(change: dict[str, Any]) -> None:
    drawn = replace(SmallPolynomial.draw(np.random.default_rng(3), degree=2), offset=Fraction(2) ** 16)
    with pytest.raises(UnreadableFile):
        attempt(drawn, {**WHOLE, **change})


def test_other_networks_are_refused() -> None:
    small = SmallReluNetwork.draw(np.random.default_rng(0))
    with pytest.raises(InvalidProof, match="not an affine layer, a power"):
        prove(small.instance(), Certificate("pinning", WHOLE), Label.UNSAT, None)
