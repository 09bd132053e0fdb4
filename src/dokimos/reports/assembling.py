"""The style sheet and the script of the page, put together from their parts; and the style of a drawing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

_STYLES = ("palette", "base", "wrong", "tables", "figures", "plots", "instances", "media")
_SCRIPTS = ("data", "table", "instance", "page")


def style() -> str:
    """Everything about looks; what comes later wins."""
    return "\n".join(_asset("styles", f"{name}.css") for name in _STYLES)


def script() -> str:
    """One program: its parts share their names, and none of them with other scripts."""
    parts = "\n".join(_asset("scripts", f"{name}.js") for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();'


def drawing_style() -> str:
    """The style of a drawing that stands alone: that of the page by day, without variables.

    Not everything that draws SVG knows variables.
    """
    palette = _palette()
    return re.sub(
        r"var\((--[a-z0-9-]+)\)", lambda found: palette[found[1]], _asset("styles", "figures.css")
    )


def _palette() -> Mapping[str, str]:
    """The variables of the first block, which is the one for the day."""
    day = _asset("styles", "palette.css").partition("}")[0]
    return dict(re.findall(r"(--[a-z0-9-]+):\s*([^;]+);", day))


def _asset(*place: str) -> str:
    return resources.files("dokimos.reports").joinpath("assets", *place).read_text(encoding="utf-8")
