from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.difficulty.explain.bootstrap import Resampling
from dokimos.difficulty.explain.interaction import (
    BINS,
    PAIRS,
    balanced_cut,
    interaction,
    interactions,
    quantile_edges,
)
from dokimos.difficulty.explain.rows import Cell, Observation, Status
from tests.difficulty.explain.sample import seen

QUICK = Resampling(resamples=300)
floats = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30)


def quarters(both_low: int, only_second: int, only_first: int, both: int, of: int) -> list[Observation]:
    """So many timeouts of `of` in each quarter; values of the components are 0 and 1."""
    rows = []
    for (x, y), timeouts in zip(
        product((0.0, 1.0), repeat=2), (both_low, only_second, only_first, both), strict=True
    ):
        rows += [
            seen(
                f"{x}{y}{k}",
                Status.TIMEOUT if k < timeouts else Status.SOLVED,
                unstable=x,
                gradient_dimension=y,
            )
            for k in range(of)
        ]
    return rows


def pair(rows: list[Observation]) -> tuple[float | None, bool]:
    found = interaction("v", "unstable", "gradient_dimension", rows, QUICK)
    return found.effect, found.interacts


def test_rates_that_add_up_do_not_interact() -> None:
    effect, interacts = pair(quarters(2, 5, 8, 11, of=20))
    assert effect == pytest.approx(0.0)
    assert not interacts


def test_rates_that_rise_only_together_interact() -> None:
    effect, interacts = pair(quarters(0, 0, 0, 20, of=20))
    assert effect == 1.0
    assert interacts


def test_the_quarters_are_those_of_the_sentence() -> None:
    found = interaction("v", "unstable", "gradient_dimension", quarters(1, 2, 3, 4, of=6), QUICK)
    assert found.quarters == (Cell(1, 6), Cell(2, 6), Cell(3, 6), Cell(4, 6))
    assert found.cells == ((Cell(1, 6), Cell(2, 6)), (Cell(3, 6), Cell(4, 6))) or len(found.cells) == 1
    assert (found.first_cut, found.second_cut) == (0.0, 0.0)


def test_a_thin_quarter_is_not_enough_data() -> None:
    rows = [o for o in quarters(3, 3, 3, 3, of=10) if not o.instance.startswith("1.01.0")]
    found = interaction("v", "unstable", "gradient_dimension", rows, QUICK)
    assert found.effect is None
    assert "fewer than 5" in found.note


def test_a_component_that_never_varies_is_said_so() -> None:
    rows = [
        seen(f"{k}", Status.TIMEOUT if k % 2 else Status.SOLVED, unstable=0.5, gradient_dimension=float(k))
        for k in range(20)
    ]
    found = interaction("v", "unstable", "gradient_dimension", rows, QUICK)
    assert found.note == "unstable is the same everywhere"
    assert found.effect is None


def test_every_pair_has_a_row_even_without_data() -> None:
    rows = interactions("v", [seen("a", Status.SOLVED)], QUICK)
    assert [(row.first, row.second) for row in rows] == list(PAIRS)
    assert all(row.effect is None and row.cells == () and "no profiles" in row.note for row in rows)


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
    found = interaction("v", "margin", "unstable", rows, Resampling(resamples=100))
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
