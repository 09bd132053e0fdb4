"""The tables of docs/planted-bugs.md: `python scripts/planted_table.py SUITE...` (names or folders).

Every planted bug runs on every suite, in one process, in the order of instances.csv, up to the first
instance that catches it: its number, the verdict, and the seconds until then. Sound forms run on all.
"""

from __future__ import annotations

import sys

import dokimos
from dokimos.judging.planted_catches import Hunt, attempts, hunt
from dokimos.suites.answers import Answer
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import Suite
from dokimos.verifiers.planted.base import PlantedVerifier
from dokimos.verifiers.planted.catalogue import BOUNDERS, MISREADERS


def sound_answers(bug: PlantedVerifier, entries: tuple[SuiteEntry, ...]) -> dict[str, Answer]:
    """The answers of a form without a bug; it must not be wrong anywhere."""
    found = list(attempts(bug, entries))
    if wrong := [attempt.instance for attempt in found if attempt.is_caught]:
        sys.exit(f"{bug.name} has no bug, and is wrong on {', '.join(wrong)}")
    return {attempt.instance: attempt.answer for attempt in found}


def cell(found: Hunt) -> str:
    """What came of one bug on one suite."""
    if found.caught_by is not None:
        return f"{found.caught_by.verdict.value}, no. {found.tried}, {found.seconds:.1f} s"
    return f"({found.others} other answers)" if found.others else "–"


def rows(sort: tuple[PlantedVerifier, ...], suites: list[Suite]) -> None:
    """Print one table, row by row; the first of a sort has no bug."""
    sound = {suite.folder: sound_answers(sort[0], suite.entries) for suite in suites}
    decided = [
        f"right in {sum(a.decides for a in sound[suite.folder].values())} of {len(suite.entries)}"
        for suite in suites
    ]
    names = " | ".join(suite.folder.name.partition("-")[0] for suite in suites)
    print(f"| `planted=` | what it does | {names} |")
    print("|---|---|" + "---|" * len(suites))
    print(f"| `{sort[0].name}` | {sort[0].about} | {' | '.join(decided)} |", flush=True)
    for bug in sort[1:]:
        cells = [cell(hunt(bug, suite.entries, sound[suite.folder])) for suite in suites]
        nothing = "; **changes no answer**" if all(text == "–" for text in cells) else ""
        print(f"| `{bug.name}` | {bug.about}{nothing} | {' | '.join(cells)} |", flush=True)


def main(names: list[str]) -> None:
    """Print both tables in Markdown."""
    suites = [dokimos.read_suite(name) for name in names]
    for sort in (MISREADERS, BOUNDERS):
        rows(sort, suites)
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
