"""What stands at the top of every page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Tone(Enum):
    """Whether a page brings good news; the class of its headline."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


@dataclass(frozen=True)
class Tile:
    """One count, in words that have the number in them; `kind` is an outcome, for the colours."""

    kind: str
    words: str
    glyph: str = ""


@dataclass(frozen=True, kw_only=True)
class PageHead:
    """The head of a page: everything above its content.

    `title` names the page, `headline` says in a sentence what was found. `notices` are sentences about
    what is missing, in which `commands` are set as such; `facts` are the circumstances by name; `links`
    lead to the sections, each with its anchor and its words.
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
