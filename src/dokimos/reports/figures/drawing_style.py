"""The style of figures: on a page, and in a file of their own."""

from __future__ import annotations

import re
from importlib import resources

from dokimos.reports.layout.rendering import PALETTE


def figure_style() -> str:
    """The style sheet of figures on a page, which takes its colours from the page's style sheet."""
    return f"{_asset('figures.css')}\n{_asset('plots.css')}"


def drawing_style() -> str:
    """The style of a stand-alone drawing: that of the page in light mode, without CSS variables.

    Not all SVG renderers support variables.
    """
    day = PALETTE.partition("}")[0]
    colours = dict(re.findall(r"(--[a-z0-9-]+):\s*([^;]+);", day))
    return re.sub(r"var\((--[a-z0-9-]+)\)", lambda found: colours[found[1]], _asset("figures.css"))


def _asset(name: str) -> str:
    return resources.files("dokimos.reports.figures").joinpath(name).read_text(encoding="utf-8")
