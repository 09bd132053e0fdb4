from __future__ import annotations

import pytest

from dokimos.reports.figures import Dot, Tick, cactus_figure
from dokimos.reports.rows import CactusSeries


def test_a_cactus_is_a_staircase_on_a_logarithmic_axis() -> None:
    figure = cactus_figure([CactusSeries("m", (0.1, 1.0)), CactusSeries("n", ())], limit_wall_seconds=10)
    assert figure is not None
    assert figure.y_ticks == (Tick(100, "0.1"), Tick(50, "1"), Tick(0, "10"))
    assert figure.x_ticks == (Tick(0, "0"), Tick(50, "1"), Tick(100, "2"))
    assert figure.limit == Tick(0, "limit 10 s")
    first, second = figure.curves
    assert first.dots == (
        Dot(50, 100, "m: 1 solved, each within 0.100 s"),
        Dot(100, 50, "m: 2 solved, each within 1.00 s"),
    )
    assert first.path == "M0 100V100H50V50H100"
    assert (second.verifier, second.path, second.dots) == ("n", "", ())


def test_nothing_solved_gives_no_figure() -> None:
    assert cactus_figure([CactusSeries("m", ())], limit_wall_seconds=10) is None
    assert cactus_figure([]) is None


@pytest.mark.parametrize("limit", [None, 0.0, 1e-9, 5.0, 1e6])
def test_everything_stays_inside_the_frame(limit: float | None) -> None:
    figure = cactus_figure([CactusSeries("m", (0.0, 1e-9, 0.5, 0.5, 2.0))], limit_wall_seconds=limit)
    assert figure is not None
    assert all(0 <= dot.y <= 100 and 0 <= dot.x <= 100 for dot in figure.curves[0].dots)
    assert all(0 <= tick.at <= 100 for tick in (*figure.x_ticks, *figure.y_ticks))
    assert figure.limit is None or 0 <= figure.limit.at <= 100


@pytest.mark.parametrize(("solved", "labels"), [(8, 9), (9, 5), (100, 6), (1000, 6)])
def test_there_are_never_more_than_nine_labels_below(solved: int, labels: int) -> None:
    figure = cactus_figure([CactusSeries("m", (1.0,) * solved)])
    assert figure is not None
    assert len(figure.x_ticks) == labels
