"""The tables of docs/planted-bugs.md: `dokimos-studies planted [--sort SORT] SUITE...`.

Every planted bug runs on every suite, in one process, in the order in which `dokimos gate --budget` takes
the instances, up to the first that catches it: the verdict, its number, and the seconds until then. Sound
forms run on all instances. SORT is misreader, bounder, attacker or truster; all of them unless given. An
attacker has two rows: with its attack, and with its attack off; the times are CPU seconds there. With
--every, each bug runs on every instance that is labelled `sat` instead: on how many of them it is caught,
and which the others are; --bug chooses bugs by name.
"""

from __future__ import annotations

import argparse
import sys

import dokimos
from dokimos.suites.budgets import in_order
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Answer, Label
from dokimos.verifiers.planted.attackers import Attacker
from dokimos.verifiers.planted.base import PlantedVerifier, Sort
from dokimos.verifiers.planted.catalogue import ATTACKERS, BOUNDERS, IDEAL, MISREADERS, PLANTED, TRUSTERS
from dokimos_studies.planted_catches import Hunt, attack_all, attempts, hunt, hunt_behind


def sound_answers(bug: PlantedVerifier, entries: tuple[SuiteEntry, ...]) -> dict[str, Answer]:
    """The answers of a form without a bug; it must not be wrong anywhere."""
    found = list(attempts(bug, entries))
    if wrong := [attempt.instance for attempt in found if attempt.is_caught]:
        sys.exit(f"{bug.name} has no bug, and is wrong on {', '.join(wrong)}")
    return {attempt.instance: attempt.answer for attempt in found}


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


def rows(sort: tuple[PlantedVerifier, ...], suites: dict[str, tuple[SuiteEntry, ...]]) -> None:
    """Print one table, row by row; the first of a sort has no bug."""
    sound = {name: sound_answers(sort[0], entries) for name, entries in suites.items()}
    decided = [
        f"right in {sum(a.decides for a in found.values())} of {len(found)}" for found in sound.values()
    ]
    print(f"| `planted=` | what it does | {' | '.join(suites)} |")
    print("|---|---|" + "---|" * len(suites))
    print(f"| `{sort[0].name}` | {sort[0].about} | {' | '.join(decided)} |", flush=True)
    for bug in sort[1:]:
        cells = [cell(hunt(bug, entries, sound[name])) for name, entries in suites.items()]
        nothing = "; **changes no answer**" if all(text == "–" for text in cells) else ""
        print(f"| `{bug.name}` | {bug.about}{nothing} | {' | '.join(cells)} |", flush=True)


def attacker_rows(suites: dict[str, tuple[SuiteEntry, ...]]) -> None:
    """Print the table of the attackers, each with its attack on and off."""
    sound, *bugs = (bug for bug in ATTACKERS if isinstance(bug, Attacker))
    known = {name: list(attack_all(entries)) for name, entries in suites.items()}
    for name, entries in known.items():
        for attacks in (True, False):
            if (found := hunt_behind(sound, entries, attacks=attacks)).caught_by is not None:
                sys.exit(f"{sound.name} has no bug, and is wrong on {name}/{found.caught_by.instance}")
    print(f"| `planted=` | what it does | attack | {' | '.join(suites)} |")
    print("|---|---|---|" + "---|" * len(suites))
    left = [f"misses {sum(not e.found and labelled_sat(e.entry) for e in own)}" for own in known.values()]
    print(f"| `{sound.name}` | {sound.about} | on | {' | '.join(left)} |", flush=True)
    for bug in bugs:
        cells = {
            attacks: [cell(hunt_behind(bug, entries, attacks=attacks)) for entries in known.values()]
            for attacks in (True, False)
        }
        print(f"| `{bug.name}` | {bug.about} | on | {' | '.join(cells[True])} |")
        print(f"| | | off | {' | '.join(cells[False])} |", flush=True)


def every_catch(bugs: list[PlantedVerifier], suites: dict[str, tuple[SuiteEntry, ...]]) -> None:
    """Print one table: on how many instances labelled `sat` each bug is caught, and where it is not."""
    print(f"| `planted=` | {' | '.join(f'caught in {name}' for name in suites)} | not caught |")
    print("|---|" + "---|" * len(suites) + "---|")
    for bug in bugs:
        cells, right = [], []
        for entries in suites.values():
            found = list(attempts(bug, [one for one in entries if labelled_sat(one)]))
            cells.append(f"{sum(attempt.is_caught for attempt in found)} of {len(found)}")
            right += [attempt.instance for attempt in found if not attempt.is_caught]
        print(f"| `{bug.name}` | {' | '.join(cells)} | {', '.join(right) or '–'} |", flush=True)


def labelled_sat(entry: SuiteEntry) -> bool:
    """Whether the suite says that there is a counterexample."""
    truth = entry.read_truth()
    return truth is not None and truth.label is Label.SAT


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suites", nargs="+", metavar="SUITE")
    parser.add_argument("--sort", choices=[sort.value for sort in Sort], action="append")
    parser.add_argument("--bug", choices=sorted(PLANTED), action="append", default=[])
    parser.add_argument("--every", action="store_true")
    options = parser.parse_args()
    if options.bug and not options.every:
        parser.error("--bug needs --every.")
    suites = {name: in_order(dokimos.read_suite(name).entries, name=name) for name in options.suites}
    sorts = [Sort(text) for text in options.sort or ([] if options.bug else [sort.value for sort in Sort])]
    if options.every:
        wanted = [bug for sort in sorts for bug in TABLES[sort] if not bug.is_sound]
        every_catch([*(PLANTED[name] for name in options.bug), *wanted], suites)
        return
    for sort in sorts:
        if sort is Sort.ATTACKER:
            attacker_rows(suites)
        else:
            rows(TABLES[sort], suites)
        print()
