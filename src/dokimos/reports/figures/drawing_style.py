"""The style of figures: on a page, and of a drawing that stands alone."""

from __future__ import annotations

import re
from importlib import resources

from dokimos.reports.layout.rendering import PALETTE


def figure_style() -> str:
    """The style sheet of figures on a page, which takes its colours from that of the page."""
    return f"{_asset('figures.css')}\n{_asset('plots.css')}"


def drawing_style() -> str:
    """The style of a drawing that stands alone: that of the page by day, without variables.

    Not everything that draws SVG knows variables.
    """
    day = PALETTE.partition("}")[0]
    colours = dict(re.findall(r"(--[a-z0-9-]+):\s*([^;]+);", day))
    return re.sub(r"var\((--[a-z0-9-]+)\)", lambda found: colours[found[1]], _asset("figures.css"))


def _asset(name: str) -> str:
    return resources.files("dokimos.reports.figures").joinpath(name).read_text(encoding="utf-8")
