"""Limits checked before parsing: some texts would take the parser minutes."""

from __future__ import annotations

import re

from dokimos.laws.language.blocks import position
from dokimos.laws.language.problems import LawError

#: Brackets are nested no deeper than this.
MOST_NESTED = 300
#: The most tokens that a law may have, without those of its block.
MOST_WORDS = 20_000

_WORD = re.compile(
    r"""(?sx) (?P<skipped> \s+ | \#[^\n]* | //[^\n]* | /\*.*?\*/ )
    | (?P<open> [(\[] ) | (?P<close> [)\]] )
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | [A-Za-z_0-9.]+ | . """
)


def expect_modest(text: str, *, name: str) -> None:
    """Raise LawError if a text has more tokens, or more deeply nested brackets, than anyone would write.

    Takes linear time, whether or not the text is a law.
    """
    words = depth = 0
    for match in _WORD.finditer(text):
        kind = match.lastgroup
        if kind == "skipped":
            continue
        words += 1
        depth = max(0, depth + (kind == "open") - (kind == "close"))
        if depth > MOST_NESTED:
            reason = f"this is nested in more than {MOST_NESTED} brackets; split it with variables."
        elif words > MOST_WORDS:
            reason = f"up to here there are more than {MOST_WORDS:,} tokens; split it into several laws."
        else:
            continue
        raise LawError(name, text, position(text, match.start()), reason)
