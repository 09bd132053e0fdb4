"""What is refused before the grammar sees it: the grammar would take minutes for some texts."""

from __future__ import annotations

import re

from dokimos.laws.language.blocks import position
from dokimos.laws.language.problems import LawError

#: Brackets are nested no deeper than this.
MOST_NESTED = 300
#: Words, numbers and signs of a law, without those of its block.
MOST_WORDS = 20_000

_WORD = re.compile(
    r"""(?sx) (?P<skipped> \s+ | \#[^\n]* | //[^\n]* | /\*.*?\*/ )
    | (?P<open> [(\[] ) | (?P<close> [)\]] )
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | [A-Za-z_0-9.]+ | . """
)


def expect_modest(text: str, *, name: str) -> None:
    """Raise LawError if a text has more words, or nests brackets deeper, than anybody would write.

    Takes time in proportion to the text, and does not care whether it is a law.
    """
    words = depth = 0
    for match in _WORD.finditer(text):
        kind = match.lastgroup
        if kind == "skipped":
            continue
        words += 1
        depth = max(0, depth + (kind == "open") - (kind == "close"))
        if depth > MOST_NESTED:
            reason = f"this is nested in more than {MOST_NESTED} brackets; use variables."
        elif words > MOST_WORDS:
            reason = f"up to here there are more than {MOST_WORDS:,} words and signs; make several laws."
        else:
            continue
        raise LawError(name, text, position(text, match.start()), reason)
