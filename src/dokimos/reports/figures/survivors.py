"""How many counterexamples stay hidden, by the CPU time of an attack."""

from __future__ import annotations

from collections.abc import Sequence

from dokimos.hiding.survivors import SurvivorCurve
from dokimos.reports.figures.frame import WIDE, Area, draw_axes, draw_keys, series_class, series_shape
from dokimos.reports.figures.scales import linear, logarithmic
from dokimos.reports.figures.svg import Figure, Sheet, at

#: The most curves that can be told apart.
MOST_CURVES = 6


def survivors(curves: Sequence[SurvivorCurve], *, width: int = WIDE) -> Figure | None:
    """Step curves of all attacks together and of the best attacks; None if there are none."""
    shown = strongest(curves)
    if not shown or not shown[0].total:
        return None
    sheet = Sheet()
    keys = [
        (f"{_name(one)} ({_left(one)} of {one.total} left)", series_shape(k), series_class(k), True)
        for k, one in enumerate(shown)
    ]
    end = draw_keys(sheet, keys, x=6, y=16, right=width - 6)
    area = Area(left=46, top=end + 34, right=width - 14, bottom=end + 34 + (260 if width > 500 else 220))
    times = sorted({t for one in shown for t in one.survivors})
    x = logarithmic([times[0] / 2, times[-1]], area.left, area.right)
    y = linear([0, max(4, *(one.total for one in shown))], area.bottom, area.top, steps=5)
    draw_axes(sheet, area, x.ticks, y.ticks, x_title="CPU-seconds of the attack", y_title="still hidden")
    for k, one in enumerate(shown):
        places = [(x(t), y(left)) for t, left in one.survivors.items()]
        stairs = f"M{at(area.left)} {at(y(one.total))}" + "".join(f"H{at(h)}V{at(v)}" for h, v in places)
        sheet.path(stairs, f"line {series_class(k)}")
        for (h, v), (t, left) in zip(places, one.survivors.items(), strict=True):
            tip = f"{_name(one)}: {left} of {one.total} hidden after {t:g} s"
            sheet.mark(h, v, series_shape(k), series_class(k), tip, size=4)
    words = "; ".join(f"{_name(one)} leaves {_left(one)} of {one.total}" for one in shown)
    return Figure(
        "survivors", "Counterexamples that survive", words + ".", width, int(area.bottom + 44), sheet.body
    )


def strongest(curves: Sequence[SurvivorCurve]) -> list[SurvivorCurve]:
    """The curve of all attacks together, then the attacks with the fewest survivors."""
    every = [one for one in curves if one.attack == "any"]
    others = sorted(
        (one for one in curves if one.attack != "any"), key=lambda one: (_left(one), one.attack)
    )
    return [*every, *others][:MOST_CURVES]


def _left(one: SurvivorCurve) -> int:
    return min(one.survivors.values(), default=one.total)


def _name(one: SurvivorCurve) -> str:
    return "all attacks" if one.attack == "any" else one.attack
