"""The figures as files for a paper: SVG, and PNG rendered by resvg.

resvg is one small wheel without dependencies (the extra `png`). Text is rendered in a font of
the system, so there must be one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dokimos.core.errors import InputError, packages_missing
from dokimos.core.files import write_whole
from dokimos.reports.figures.drawing_style import drawing_style
from dokimos.reports.figures.svg import Figure

ZOOM = 3
"""Pixels of a picture per unit of the drawing: about 300 dpi at the width of a page."""

#: Fonts for the generic names, the first one installed; resvg itself knows only Arial.
FONTS = ("DejaVu Sans", "Liberation Sans", "Noto Sans", "Roboto", "Arial", "Helvetica", "FreeSans")

_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    '<text x="2" y="16" font-family="sans-serif">M</text></svg>'
)
_BLANK = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"></svg>'


def require_renderer() -> None:
    """Check that pictures can be made. Raises InputError, which says what is missing."""
    if find_spec("resvg_py") is None:
        raise packages_missing("--png needs resvg-py", "png")
    if _render(_PROBE, font=_font()) == _render(_BLANK):
        raise InputError(
            "--png finds no font on this machine to write labels with; install one, such as fonts-dejavu."
        )


def write_pictures(figures: Iterable[Figure], folder: Path) -> tuple[str, ...]:
    """Write each figure to `folder` as SVG and as PNG; returns their names."""
    style, font = drawing_style(), _font()
    names = []
    for figure in figures:
        drawing = figure.standalone(style)
        picture = _render(drawing, font=font)
        write_whole(folder / f"{figure.name}.svg", drawing.encode("utf-8"), what="the drawing")
        write_whole(folder / f"{figure.name}.png", picture, what="the picture")
        names.append(figure.name)
    return tuple(names)


@cache
def _font() -> str:
    """A sans-serif font of this machine; an arbitrary name if it has none that we know."""
    blank = _render(_BLANK)
    return next((font for font in FONTS if _render(_PROBE, font=font) != blank), FONTS[0])


def _render(drawing: str, *, font: str | None = None) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=drawing, zoom=ZOOM, sans_serif_family=font))
