"""Run the verifiers on the suites and write studies/results/state-of-the-verifiers.md: `make state`.

    dokimos-studies state [--group GROUP] [--runs FOLDER] [--page FILE] [--jobs N]
                             [--only SUITE] [--verifier NAME] [--again] [--no-runs]

The page has one part for each group of verifiers: `installed`, those that Dokimos installs, `deep`, some of
these on deeper and deeper networks, `attack`, where their attacks are also switched off, `attack_quick`,
the same on the present `quick`, `study`, on the
ladder and the edge, and on the published grid, whose tables dokimos-studies again writes beside the
published ones, and `repositories` and `repositories_quick`, those that you install yourself (DOKIMOS_NNENUM
and DOKIMOS_ALPHA_BETA_CROWN say where they are: docs/verifiers.md). Only the part of GROUP is written; the
others stay as they are.

One campaign for each suite, in FOLDER/SUITE; interrupted, the same command continues where it stopped.
The part is written anew after every suite, from whatever is recorded by then; `--no-runs` only writes it.
With `--again`, runs that the clock stopped while they had less than half a processor are done again.
With `--verifier`, only those are run: the ones that a machine has, say.
What was done to the records otherwise belongs in FOLDER/notes.txt, a line each: the page says it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import dokimos
from dokimos.campaigns.campaign import set_runs_aside
from dokimos.core.files import write_whole
from dokimos.core.progress import ProgressUpdate
from dokimos.judging.rules import RULE_SETS
from dokimos.suites.folder import shipped_names
from dokimos_studies.state_page import is_starved, state_page

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Group:
    """Verifiers that are shown together, under limits of their own; `cpu_seconds` where time is theirs."""

    title: str
    verifiers: tuple[str, ...]
    wall_seconds: Mapping[str, float]
    cpu_seconds: float | None = None
    #: Suites that have a page of their own.
    apart: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The suites that this page shows."""
        return tuple(name for name in self.wall_seconds if name not in self.apart)


GROUPS = {
    "installed": Group(
        "Verifiers that Dokimos installs",
        ("marabou", "vibecheck", "neuralsat", "never2", "reference"),
        {"quick": 30, "twins": 30, "disjuncts": 30, "ops": 10, "scale": 10},
    ),
    "deep": Group(
        "Residual networks and transformers made deeper",
        ("marabou", "vibecheck", "neuralsat", "reference"),
        {"ladder-deep": 20},
    ),
    "attack": Group(
        "With and without the tools' own attacks",
        (
            *("marabou", "vibecheck", "vibecheck:no-attack", "neuralsat", "neuralsat:no-attack"),
            *("never2", "reference"),
        ),
        {"relaxations": 60, "splits": 60, "wrapped-ops": 60},
        cpu_seconds=10,
    ),
    "attack_quick": Group(
        "The present quick, with and without the tools' own attacks",
        (
            *("marabou", "vibecheck", "vibecheck:no-attack", "neuralsat", "neuralsat:no-attack"),
            *("never2", "reference"),
        ),
        {"quick": 100},
        cpu_seconds=10,
    ),
    "study": Group(
        "Ladder and edge",
        ("marabou", "vibecheck", "neuralsat", "never2", "reference"),
        {"veristress": 60, "ladder": 60, "edge": 60},
        cpu_seconds=10,
        apart=("veristress",),
    ),
    # These take up to ten seconds to start, on a machine that others use, too.
    "repositories": Group(
        "Tools that you install yourself",
        ("nnenum", "alpha-beta-crown"),
        {"scale": 90, "disjuncts": 90, "edge": 90, "ops": 90},
        cpu_seconds=20,
    ),
    # A part of its own, since it was run at another time, with another importer of α,β-CROWN.
    "repositories_quick": Group(
        "Tools that you install yourself, on quick",
        ("nnenum", "alpha-beta-crown"),
        {"quick": 90},
        cpu_seconds=20,
    ),
}
HEAD = """# The state of the verifiers

Written by `make state`, each part from the records of one group of runs; it says when these were made.
Older ones are in [the archive](../README.md#archive).

"""
#: What stands before each part of the page.
MARK = re.compile(r"^<!-- written from the records of the group (\w+) -->\n", re.MULTILINE)
MEMORY_BYTES = 4 * 10**9
RULES = tuple(RULE_SETS.shipped)


def run_suite(name: str, group: Group, out: Path, *, jobs: int) -> None:
    """Run what is not recorded yet."""

    def show(update: ProgressUpdate[object]) -> None:
        print(f"{name} {update.done}/{update.total}: {update.note}", file=sys.stderr, flush=True)

    dokimos.run(
        name,
        group.verifiers,
        out=out,
        settings=dokimos.RunSettings(
            timeout_seconds=group.wall_seconds[name],
            memory_bytes=MEMORY_BYTES,
            cpu_seconds=group.cpu_seconds,
            jobs=jobs,
        ),
        progress=show,
    )


def set_starved_aside(folder: Path) -> None:
    """Have the runs that had too little of a processor done again."""
    count = set_runs_aside(folder, is_starved, reason="it had too little of a processor")
    if count:
        print(f"{folder}: {count} starved runs are done again", file=sys.stderr)


def write_page(runs: Path, page: Path, name: str) -> None:
    """Judge what is recorded and write the part of a group."""
    group = GROUPS[name]
    present = [suite for suite in group.shown if (runs / suite / "journal.jsonl").exists()]
    absent = [suite for suite in group.shown if suite not in present]
    if not present:
        return
    judged = dokimos.judge([runs / suite for suite in present], rules=RULES)
    told = runs / "notes.txt"
    notes = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    script = f"dokimos-studies state --group {name}"
    command = "make state" if name == "installed" else script
    text = state_page(judged.campaigns, command=command, title=group.title, absent=absent, notes=notes)
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    write_whole(page, with_part(before, name, text), what="the page")
    print(f"{page}: {len(present)} of {len(group.shown)} suites", file=sys.stderr)


def with_part(page: str, name: str, text: str) -> str:
    """A page with one of its parts replaced, or added."""
    _, *found = MARK.split(page)
    parts = {**dict(zip(found[::2], found[1::2], strict=True)), name: text}
    return HEAD + "\n".join(
        f"<!-- written from the records of the group {each} -->\n{parts[each].strip()}\n"
        for each in GROUPS
        if each in parts
    )


def main() -> None:
    """Run, judge and write. Wrong answers are what this looks for: the exit code is 0 all the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--group", choices=list(GROUPS), default="installed")
    parser.add_argument("--runs", type=Path)
    parser.add_argument(
        "--page", type=Path, default=ROOT / "studies" / "results" / "state-of-the-verifiers.md"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", metavar="SUITE")
    parser.add_argument("--verifier", action="append", metavar="NAME")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--no-runs", action="store_true")
    options = parser.parse_args()
    group = GROUPS[options.group]
    if strange := set(options.verifier or ()) - set(group.verifiers):
        parser.error(f"{options.group} does not have {', '.join(sorted(strange))}")
    if options.verifier:
        group = replace(group, verifiers=tuple(options.verifier))
    runs = options.runs or ROOT / "state-runs" / options.group
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    if options.no_runs and not runs.is_dir():
        parser.error(f"there is no folder {runs}, so there is nothing to write the page from")
    if strange := set(options.only or ()) - set(group.wall_seconds):
        parser.error(f"{options.group} is not run on {', '.join(sorted(strange))}")
    for name in [] if options.no_runs else options.only or group.wall_seconds:
        if name in shipped_names():
            if options.again:
                set_starved_aside(runs / name)
            run_suite(name, group, runs / name, jobs=options.jobs)
            write_page(runs, options.page, options.group)
    write_page(runs, options.page, options.group)
