"""The tables of studies/results/planted.md: `dokimos-studies planted [--sort SORT] SUITE...`.

Every planted bug runs on every suite, in one process, in the order in which `dokimos gate --budget` takes
the instances, up to the first that catches it: the verdict, its place in the order, and the CPU seconds of
the answers until then. Sound forms run on all instances. SORT is misreader, bounder, attacker or truster;
all of them unless given. An attacker has two columns: with its attack, and with its attack off; it is asked
only where there is a counterexample, since it replays what it says and can be wrong nowhere else. SUITE is
the name of a shipped suite, or a folder with the name of one.

What was answered is kept in --records FILE, a line each, so that an interrupted command continues where it
stopped. With --every, each bug runs on every instance that is labelled `sat` instead: on how many of them
it is caught, and which the others are; --bug chooses bugs by name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import dokimos
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.facts import in_order
from dokimos.verifiers.planted.attackers import Attacker
from dokimos.verifiers.planted.base import PlantedVerifier, Sort
from dokimos.verifiers.planted.catalogue import ATTACKERS, BOUNDERS, IDEAL, MISREADERS, PLANTED, TRUSTERS
from dokimos_studies.planted_catches import Hunt, Outcomes, attempts, hunt, labelled_sat

Suites = Mapping[str, tuple[SuiteEntry, ...]]
RECORDS = Path(__file__).resolve().parents[2] / "state-runs" / "planted.jsonl"


#: A gate with this budget, one job at a time, is to catch every bug.
BUDGET_SECONDS = 600
TABLES = {
    Sort.MISREADER: MISREADERS,
    Sort.BOUNDER: BOUNDERS,
    Sort.ATTACKER: ATTACKERS,
    Sort.TRUSTER: (IDEAL, *TRUSTERS),
}


def cell(found: Hunt) -> str:
    """What came of one bug on one suite."""
    if found.caught_by is not None:
        late = "" if found.seconds <= BUDGET_SECONDS else " (not within 10m)"
        return f"{found.caught_by.verdict.value}, no. {found.tried}, {found.seconds:.1f} s{late}"
    return f"({found.others} other answers)" if found.others else "–"


def rows(bugs: tuple[PlantedVerifier, ...], suites: Suites, outcomes: Outcomes) -> None:
    """Print one table, row by row; the first of a sort has no bug, and must not be wrong anywhere."""
    sound, *others = bugs
    decided = []
    for name, entries in suites.items():
        found = list(attempts(sound, entries, outcomes))
        if wrong := [attempt.instance for attempt in found if attempt.is_caught]:
            sys.exit(f"{sound.name} has no bug, and is wrong on {', '.join(wrong)} of {name}")
        decided.append(f"right in {sum(attempt.answer.decides for attempt in found)} of {len(found)}")
    print(f"| `planted=` | what it does | {' | '.join(suites)} |")
    print("|---|---|" + "---|" * len(suites))
    print(f"| `{sound.name}` | {sound.about} | {' | '.join(decided)} |", flush=True)
    for bug in others:
        cells = [cell(hunt(bug, entries, outcomes, sound)) for entries in suites.values()]
        nothing = "; **changes no answer**" if all(text == "–" for text in cells) else ""
        print(f"| `{bug.name}` | {bug.about}{nothing} | {' | '.join(cells)} |", flush=True)


def attacker_rows(bugs: tuple[PlantedVerifier, ...], suites: Suites, outcomes: Outcomes) -> None:
    """Print the table of the attackers, each with its attack on and off; the first has no bug."""
    columns = [(name, attacks) for name in suites for attacks in (True, False)]
    titles = [f"{name}, attack {'on' if attacks else 'off'}" for name, attacks in columns]
    print(f"| `planted=` | what it does | {' | '.join(titles)} |")
    print("|---|---|" + "---|" * len(columns))
    for bug in bugs:
        assert isinstance(bug, Attacker)
        cells = []
        for name, attacks in columns:
            asked = replace(bug, attacks=attacks)
            found = hunt(asked, suites[name], outcomes)
            if bug.is_sound and found.caught_by is not None:
                sys.exit(f"{bug.name} has no bug, and is wrong on {found.caught_by.instance} of {name}")
            cells.append(left(asked, suites[name], outcomes) if bug.is_sound else cell(found))
        print(f"| `{bug.name}` | {bug.about} | {' | '.join(cells)} |", flush=True)


def left(sound: Attacker, entries: tuple[SuiteEntry, ...], outcomes: Outcomes) -> str:
    """How many counterexamples it finds: with its attack, and without it by splits."""
    found = [attempt.answer.decides for attempt in attempts(sound, entries, outcomes)]
    return f"finds {sum(found)} of {len(found)}"


def every_catch(bugs: list[PlantedVerifier], suites: Suites, outcomes: Outcomes) -> None:
    """Print one table: on how many instances labelled `sat` each bug is caught, and where it is not."""
    print(f"| `planted=` | {' | '.join(f'caught in {name}' for name in suites)} | not caught |")
    print("|---|" + "---|" * len(suites) + "---|")
    for bug in bugs:
        cells, right = [], []
        for entries in suites.values():
            found = list(attempts(bug, [one for one in entries if labelled_sat(one)], outcomes))
            cells.append(f"{sum(attempt.is_caught for attempt in found)} of {len(found)}")
            right += [attempt.instance for attempt in found if not attempt.is_caught]
        print(f"| `{bug.name}` | {' | '.join(cells)} | {', '.join(right) or '–'} |", flush=True)


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suites", nargs="+", metavar="SUITE")
    parser.add_argument("--sort", choices=[sort.value for sort in Sort], action="append")
    parser.add_argument("--bug", choices=sorted(PLANTED), action="append", default=[])
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--records", type=Path, default=RECORDS)
    options = parser.parse_args()
    if options.bug and not options.every:
        parser.error("--bug needs --every.")
    options.records.parent.mkdir(parents=True, exist_ok=True)
    outcomes = Outcomes(options.records)
    suites = {
        (name := Path(given).name): in_order(dokimos.read_suite(given).entries, name=name)
        for given in options.suites
    }
    sorts = [Sort(text) for text in options.sort or ([] if options.bug else [sort.value for sort in Sort])]
    if options.every:
        wanted = [bug for sort in sorts for bug in TABLES[sort] if not bug.is_sound]
        every_catch([*(PLANTED[name] for name in options.bug), *wanted], suites, outcomes)
        return
    for sort in sorts:
        (attacker_rows if sort is Sort.ATTACKER else rows)(TABLES[sort], suites, outcomes)
        print()
