"""Each drawing shows its rows: every mark where it belongs, and in words for those who cannot see it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from dokimos.difficulty.explain.rows import Status
from dokimos.reports.figures.curves import CactusSeries, breaking, cactus, separation
from dokimos.reports.figures.frame import NARROW, WIDE, Figure, Shape, Sheet, outline
from dokimos.reports.render import drawing_style
from tests.reports.explanation_sample import curve, separation_row

NASTY = "<b>&\"'</svg>"
WIDTHS = pytest.mark.parametrize("width", [WIDE, NARROW])


def _tree(figure: Figure | None) -> ET.Element:
    assert figure is not None
    return ET.fromstring(figure.standalone(drawing_style()))


def _tips(figure: Figure | None) -> list[str]:
    return [tip for e in _tree(figure).iter() if (tip := e.get("data-tip")) is not None]


def _texts(figure: Figure | None) -> list[str]:
    return [e.text or "" for e in _tree(figure).iter("{http://www.w3.org/2000/svg}text")]


def _places(figure: Figure) -> list[tuple[float, float]]:
    """Where every line and mark begins, and every text stands."""
    moves = re.findall(r"M(-?[\d.]+) (-?[\d.]+)", figure.body)
    texts = re.findall(r'<text class="[^"]*" x="(-?[\d.]+)" y="(-?[\d.]+)"', figure.body)
    return [(float(x), float(y)) for x, y in (*moves, *texts)]


def _inside(figure: Figure | None) -> None:
    assert figure is not None
    for x, y in _places(figure):
        assert -0.5 <= x <= figure.width + 0.5
        assert -0.5 <= y <= figure.height + 0.5


@WIDTHS
def test_a_cactus_has_a_mark_for_each_solved_run(width: int) -> None:
    series = [CactusSeries("m", (0.1, 1.0)), CactusSeries("n", ())]
    figure = cactus(series, limit_wall_seconds=10, width=width)
    assert _tips(figure) == ["m: 1 solved, each within 0.100 s", "m: 2 solved, each within 1.00 s"]
    assert "limit 10 s" in _texts(figure)
    assert figure is not None
    assert figure.description == "m solves 2 runs; n solves 0 runs."
    _inside(figure)


def test_nothing_solved_gives_no_cactus() -> None:
    assert cactus([CactusSeries("m", ())], limit_wall_seconds=10) is None
    assert cactus([]) is None


@pytest.mark.parametrize("limit", [None, 0.0, 1e-9, 5.0, 1e6])
def test_a_cactus_stays_inside_its_frame(limit: float | None) -> None:
    _inside(cactus([CactusSeries("m", (0.0, 1e-9, 0.5, 0.5, 2.0))], limit_wall_seconds=limit))


def test_a_cactus_of_thousands_stays_small() -> None:
    figure = cactus([CactusSeries(f"v{k}", tuple(0.01 * n for n in range(5000))) for k in range(5)])
    assert figure is not None
    assert len(figure.body) < 600_000


@WIDTHS
def test_a_separation_has_a_mark_with_its_numbers_or_says_why_not(width: int) -> None:
    rows = [separation_row("m", "unstable", 0.8), separation_row("n", "unstable", None)]
    figure = separation(rows, width=width)
    assert _tips(figure) == [
        "m, U, share of unstable units: AUC 0.80 [0.70, 0.90] within 3 families (p = 0.01: separates), "
        "8 timeouts, 9 solved"
    ]
    assert "n: not enough data" in _texts(figure)
    _inside(figure)
    assert separation(rows[1:], width=width) is None
    assert separation([]) is None


def test_curves_show_each_step_and_where_they_break() -> None:
    one = curve("m", (1, Status.SOLVED, 0.5), (2, Status.TIMEOUT, 5.0), breaks_at=2)
    other = curve("n", (1, Status.SOLVED, 0.1), (2, Status.SOLVED, 0.2))
    figure = breaking([one, other], subjects=["m", "n"])
    assert _tips(figure)[1] == "m, pairs = 2: timeout; 0 of 1 solved, 5.00 s"
    assert figure is not None
    assert figure.caption == (
        "m breaks at pairs = 2 (timeout); the last value solved is 1. n: it solves every step."
    )
    assert figure.body.count('class="break ') == 1
    assert breaking([], subjects=[]) is None
    _inside(figure)


def test_knobs_far_apart_or_close_together_each_have_their_step() -> None:
    rungs = [(value, Status.SOLVED, 1.0) for value in (0.5, 0.99, 0.9999, 1e9)]
    figure = breaking([curve("m", *rungs)], subjects=["m"])
    assert {"0.5", "0.99", "0.9999", "1e+09"} <= set(_texts(figure))
    _inside(figure)


def test_everything_from_outside_is_escaped() -> None:
    figures = [
        cactus([CactusSeries(NASTY, (1.0,))]),
        separation([separation_row(NASTY, "unstable", 0.5)]),
        breaking([curve(NASTY, (1, Status.SOLVED, 1.0))], subjects=[NASTY]),
    ]
    for figure in figures:
        assert NASTY in " ".join(_texts(figure))
        assert figure is not None
        assert NASTY not in figure.inline("wide")


@pytest.mark.parametrize("shape", list(Shape))
def test_every_mark_has_its_own_outline(shape: Shape) -> None:
    others = [outline(other, 5, 5, 3) for other in Shape if other not in (shape, Shape.RING, Shape.CIRCLE)]
    assert outline(shape, 5, 5, 3) not in others


def test_what_is_not_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        Sheet().line(0, 0, float("nan"), 1, "grid")
