from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.difficulty.explain.rows import Observation, Status
from dokimos.difficulty.explain.strata import Resampling
from dokimos_studies.veristress.interaction import (
    BINS,
    PAIRS,
    Cell,
    Interaction,
    balanced_cut,
    fit,
    interactions,
    quantile_edges,
)
from tests.difficulty.explain.sample import seen

QUICK = Resampling(resamples=300)
floats = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30)


def interaction(
    rows: list[Observation],
    first: str = "unstable",
    second: str = "gradient_dimension",
    resampling: Resampling = QUICK,
) -> Interaction:
    every = interactions("v", rows, resampling)
    (found,) = (row for row in every if (row.first, row.second) == (first, second))
    return found


def quarters(
    both_low: int, only_second: int, only_first: int, both: int, of: int, families: int = 3, copies: int = 1
) -> list[Observation]:
    """So many timeouts of `of` in each quarter of each family; values of the components are 0 and 1."""
    rows = []
    for family in range(families):
        for (x, y), timeouts in zip(
            product((0.0, 1.0), repeat=2), (both_low, only_second, only_first, both), strict=True
        ):
            rows += [
                seen(
                    f"{x}{y}{k}/{copy}",
                    Status.TIMEOUT if k < timeouts else Status.SOLVED,
                    family=f"f{family}",
                    network=f"{x}{y}{k}",
                    unstable=x,
                    gradient_dimension=y,
                )
                for k in range(of)
                for copy in range(copies)
            ]
    return rows


def test_effects_that_add_up_do_not_interact() -> None:
    """The odds are multiplied by 3 by either, and by 9 by both."""
    found = interaction(quarters(4, 8, 8, 12, of=16))
    assert found.product == pytest.approx(0.0, abs=1e-6)
    assert not found.interacts


def test_rates_that_rise_only_together_interact() -> None:
    found = interaction(quarters(0, 0, 0, 20, of=20))
    assert found.product is not None and found.product > 1
    assert found.interacts
    opposite = interaction(quarters(20, 0, 0, 20, of=20))
    assert opposite.interacts


def test_an_effect_that_turns_around_has_a_negative_product() -> None:
    found = interaction(quarters(0, 20, 20, 0, of=20))
    assert found.product is not None and found.product < -1
    assert found.interacts


def test_properties_of_one_network_count_once() -> None:
    """What is not enough with one property for each network is not enough with ten."""
    once = interaction(quarters(2, 2, 2, 4, of=6))
    ten = interaction(quarters(2, 2, 2, 4, of=6, copies=10))
    assert once.p_value is not None and ten.p_value is not None
    assert ten.p_value > 0.5 * once.p_value > 0.05
    assert once.product == pytest.approx(ten.product, rel=0.1), "but for the ranks of ties"


def test_a_family_without_both_outcomes_says_nothing() -> None:
    rows = quarters(2, 4, 4, 9, of=12)
    silent = [
        seen(f"s{k}", Status.SOLVED, family="silent", unstable=float(k), gradient_dimension=float(-k))
        for k in range(40)
    ]
    a, b = interaction(rows), interaction(rows + silent)
    assert (a.product, a.p_value, a.families) == (b.product, b.p_value, 3)


def test_the_quarters_are_those_of_the_sentence() -> None:
    found = interaction(quarters(1, 2, 3, 4, of=6, families=1))
    assert found.quarters == (Cell(1, 6), Cell(2, 6), Cell(3, 6), Cell(4, 6))
    assert found.cells == ((Cell(1, 6), Cell(2, 6)), (Cell(3, 6), Cell(4, 6))) or len(found.cells) == 1
    assert (found.first_cut, found.second_cut) == (0.0, 0.0)


def test_too_few_families_are_not_enough_data_and_the_picture_stays() -> None:
    found = interaction(quarters(1, 5, 5, 9, of=10, families=2))
    assert (found.product, found.p_value, found.families) == (None, None, 2)
    assert "2 families have both" in found.note
    assert found.cells and found.quarters


def test_a_component_that_never_varies_is_said_so() -> None:
    rows = [
        seen(
            f"{k}",
            Status.TIMEOUT if k % 2 else Status.SOLVED,
            family=f"f{k % 3}",
            unstable=0.5,
            gradient_dimension=float(k),
        )
        for k in range(30)
    ]
    found = interaction(rows)
    assert "the product adds nothing" in found.note
    assert found.p_value is None


def test_every_pair_has_a_row_even_without_data() -> None:
    rows = interactions("v", [seen("a", Status.SOLVED)], QUICK)
    assert [(row.first, row.second) for row in rows] == list(PAIRS)
    assert all(row.p_value is None and row.cells == () and "no profiles" in row.note for row in rows)


def test_infinite_values_have_a_place_in_the_picture() -> None:
    rows = [
        seen(
            f"{k}",
            Status.TIMEOUT if k > 8 else Status.SOLVED,
            ibp_gap=math.inf if k > 8 else float(k),
            unstable=float(k),
        )
        for k in range(16)
    ]
    found = interaction(rows, "ibp_gap", "unstable")
    assert found.first_edges[-1] == math.inf
    assert sum(cell.total for row in found.cells for cell in row) == 16
    assert found.cells[-1][-1].rate == 1.0


def test_the_fit_has_no_slope_left() -> None:
    """At the penalised maximum the gradient is 0, also where a column separates completely."""
    rng = np.random.default_rng(1)
    columns = np.column_stack([np.ones(40), rng.normal(size=(40, 3))])
    late = (columns[:, 1] > 0).astype(float)
    weight, penalty = rng.random(40) + 0.5, np.array([1e-6, 0.5, 0.5, 0.5])
    found = fit(columns, late, weight, penalty)
    chance = 1 / (1 + np.exp(-columns @ found))
    np.testing.assert_allclose(columns.T @ (weight * (late - chance)), penalty * found, atol=1e-7)


@given(floats)
def test_a_cut_has_something_on_both_sides_and_is_the_fairest(values: list[float]) -> None:
    cut = balanced_cut(np.array(values))
    if len(set(values)) == 1:
        assert cut is None
        return
    assert cut in values

    def unfairness(at: float) -> float:
        return abs(sum(v <= at for v in values) - len(values) / 2)

    assert unfairness(cut) == min(unfairness(at) for at in sorted(set(values))[:-1])
    assert any(v > cut for v in values)


@given(floats, st.data())
def test_the_cells_hold_everything_once(values: list[float], data: st.DataObject) -> None:
    others = data.draw(st.lists(st.floats(-1, 1), min_size=len(values), max_size=len(values)))
    late = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    rows = [
        seen(f"{k}", Status.TIMEOUT if is_late else Status.SOLVED, margin=x, unstable=y)
        for k, (x, y, is_late) in enumerate(zip(values, others, late, strict=True))
    ]
    found = interaction(rows, "margin", "unstable", Resampling(resamples=100))
    cells = [cell for row in found.cells for cell in row]
    assert sum(cell.total for cell in cells) == len(values)
    assert sum(cell.timeouts for cell in cells) == sum(late)
    assert len(found.cells) == len(found.first_edges) - 1 <= BINS
    for i, row in enumerate(found.cells):
        low, high = found.first_edges[i : i + 2]
        last = i == len(found.cells) - 1
        assert sum(c.total for c in row) == sum(low <= v < high or (last and v == high) for v in values)


def test_edges_are_quantiles_without_repeats() -> None:
    assert quantile_edges(np.arange(9.0)) == (0.0, 2.0, 4.0, 6.0, 8.0)
    assert quantile_edges(np.array([3.0, 3.0])) == (3.0, 3.0)
    assert quantile_edges(np.array([])) == ()
