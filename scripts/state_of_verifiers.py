"""Run the verifiers on the suites and write docs/state-of-the-verifiers.md: `make state`.

    python scripts/state_of_verifiers.py [--runs FOLDER] [--page FILE] [--jobs N] [--only SUITE] [--again]
                                         [--no-runs]

One campaign for each suite, in FOLDER/SUITE; interrupted, the same command goes on where it stopped.
The page is written anew after every suite, from whatever is recorded by then; `--no-runs` only writes it.
With `--again`, runs that the clock stopped while they had less than half a processor are done again.
What was done to the records otherwise belongs in FOLDER/notes.txt, a line each: the page says it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import dokimos
from dokimos.api.progress import ProgressUpdate
from dokimos.campaigns.campaign import set_runs_aside
from dokimos.core.errors import DokimosError
from dokimos.judging.rules import RULE_SETS
from dokimos.reports.state import is_starved, state_page
from dokimos.suites.finding import shipped_names

ROOT = Path(__file__).resolve().parents[1]
VERIFIERS = ("marabou", "vibecheck", "neuralsat", "never2", "reference")
WALL_SECONDS = {"quick": 30, "twins": 30, "disjuncts": 30, "ops": 10, "scale": 10}
MEMORY_BYTES = 4 * 10**9
RULES = tuple(RULE_SETS.shipped)


def run_suite(name: str, out: Path, *, jobs: int) -> None:
    """Run what is not recorded yet."""

    def show(update: ProgressUpdate[object]) -> None:
        print(f"{name} {update.done}/{update.total}: {update.note}", file=sys.stderr, flush=True)

    dokimos.run(
        name,
        VERIFIERS,
        out,
        timeout_seconds=WALL_SECONDS[name],
        memory_bytes=MEMORY_BYTES,
        jobs=jobs,
        progress=show,
    )


def set_starved_aside(folder: Path) -> None:
    """Have the runs that had too little of a processor done again."""
    count = set_runs_aside(folder, is_starved, reason="it had too little of a processor")
    if count:
        print(f"{folder}: {count} starved runs are done again", file=sys.stderr)


def write_page(runs: Path, page: Path, suites: Sequence[str]) -> None:
    """Judge what is recorded and write the page."""
    present = [name for name in suites if (runs / name / "journal.jsonl").exists()]
    absent = [name for name in suites if name not in present]
    if present:
        judged = dokimos.judge([runs / name for name in present], rules=RULES)
        told = runs / "notes.txt"
        notes = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
        text = state_page(judged.campaigns, command="make state", absent=absent, notes=notes)
        page.write_text(text, encoding="utf-8")
        print(f"{page}: {len(present)} of {len(suites)} suites", file=sys.stderr)


def main() -> int:
    """Run, judge and write. Wrong answers are what this looks for: the exit code is 0 all the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=Path, default=ROOT / "state-runs")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "state-of-the-verifiers.md")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(WALL_SECONDS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--no-runs", action="store_true")
    options = parser.parse_args()
    try:
        for name in [] if options.no_runs else options.only or WALL_SECONDS:
            if name in shipped_names():
                if options.again:
                    set_starved_aside(options.runs / name)
                run_suite(name, options.runs / name, jobs=options.jobs)
                write_page(options.runs, options.page, list(WALL_SECONDS))
        write_page(options.runs, options.page, list(WALL_SECONDS))
    except DokimosError as error:
        print(f"state_of_verifiers: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("state_of_verifiers: interrupted; the same command goes on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
