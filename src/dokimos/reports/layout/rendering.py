"""One self-contained page from a template that extends the base template.

Everything from outside is escaped by the template engine, or by the code that draws figures and writes
data; only our own styles and scripts are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dokimos.core.readable import seconds
from dokimos.reports.figures.svg import Figure
from dokimos.reports.layout.page_head import PageHead


def _asset(name: str) -> str:
    return resources.files("dokimos.reports.layout").joinpath(name).read_text(encoding="utf-8")


PALETTE = _asset("palette.css")
"""The colours and fonts of all pages, in light and dark mode."""


def render(
    template: str,
    head: PageHead,
    *,
    styles: Iterable[str] = (),
    scripts: Iterable[str] = (),
    **content: Any,
) -> str:
    """The page that `template`, which extends `base.html.jinja`, makes of `head` and `content`.

    `styles` and `scripts` are added to those of all pages. Later styles win, and those for narrow windows
    and paper come last; scripts share one scope, which is not global.
    """
    style = [PALETTE, _asset("base.css"), *styles, _asset("media.css")]
    script = "\n".join(filter(None, [_asset("page.js"), *scripts]))
    return (
        environment()
        .from_string(template)
        .render(
            page=head,
            style=Markup("\n".join(filter(None, style))),
            script=Markup(f'"use strict";\n(() => {{\n{script}}})();'),
            **content,
        )
    )


@cache
def environment() -> Environment:
    """The template engine, with the templates that all pages share and our filters.

    `coded` formats `commands` in a sentence as code, `counted` highlights the numbers in our own text;
    `drawn` inserts a figure; `fragment` escapes a name for a URL; `seconds` formats a time.
    """
    made = Environment(
        loader=PackageLoader("dokimos.reports", "layout"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "coded": _coded,
        "counted": _counted,
        "drawn": _drawn,
        "fragment": lambda name: quote(name, safe=""),
        "seconds": seconds,
    }
    made.filters.update(filters)
    return made


def _coded(text: str) -> Markup:
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def _counted(text: str) -> Markup:
    return Markup(re.sub(r"(\d+)", r"<b>\1</b>", str(escape(text))))


def _drawn(figure: Figure, kind: str = "") -> Markup:
    return Markup(figure.inline(kind))
