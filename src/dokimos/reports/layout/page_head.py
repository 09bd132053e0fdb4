"""The head of every page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
