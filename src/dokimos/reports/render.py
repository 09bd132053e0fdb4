"""One self-contained page from a template that extends the base template.

Everything from outside is escaped by the template engine, or by the code that draws figures and writes
data; only our own styles and scripts are not.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dokimos.core.readable import seconds
from dokimos.reports.figures.frame import Figure

# The head of every page


class Tone(Enum):
    """Whether a page has good news: the CSS class of its headline."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


@dataclass(frozen=True)
class Tile:
    """One count, as text that includes the number; `kind` is an outcome, for the colour."""

    kind: str
    words: str
    glyph: str = ""


@dataclass(frozen=True, kw_only=True)
class PageHead:
    """The head of a page: everything above its content.

    `title` names the page, `headline` states the result in a sentence. `notices` are sentences about what
    is missing, in which `commands` are formatted as code; `facts` are the context by name; `links` lead to
    the sections, each with its anchor and its text.
    """

    title: str
    headline: str
    tone: Tone
    tiles: tuple[Tile, ...]
    facts: tuple[tuple[str, str], ...]
    generated_at: str
    dokimos_version: str
    notices: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


def _asset(name: str) -> str:
    return resources.files("dokimos.reports").joinpath("layout", name).read_text(encoding="utf-8")


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
    and paper come last; scripts share one scope, which is not global. The page states their hash, so that
    no browser runs another script in it.
    """
    style = [PALETTE, _asset("base.css"), *styles, _asset("media.css")]
    joined = "\n".join(filter(None, [_asset("page.js"), *scripts]))
    script = f'\n"use strict";\n(() => {{\n{joined}}})();\n'
    return (
        environment()
        .from_string(template)
        .render(
            page=head,
            style=Markup("\n".join(filter(None, style))),
            script=Markup(script),
            script_hash=b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii"),
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


# The style of figures: on a page, and in a file of their own


def figure_style() -> str:
    """The style sheet of figures on a page, which takes its colours from the page's style sheet."""
    return f"{_drawing_style_asset('figures.css')}\n{_drawing_style_asset('plots.css')}"


def drawing_style() -> str:
    """The style of a stand-alone drawing: that of the page in light mode, without CSS variables.

    Not all SVG renderers support variables.
    """
    day = PALETTE.partition("}")[0]
    colours = dict(re.findall(r"(--[a-z0-9-]+):\s*([^;]+);", day))
    return re.sub(
        r"var\((--[a-z0-9-]+)\)", lambda found: colours[found[1]], _drawing_style_asset("figures.css")
    )


def _drawing_style_asset(name: str) -> str:
    return resources.files("dokimos.reports.figures").joinpath(name).read_text(encoding="utf-8")
