"""The page of trophies: `dokimos-studies trophies FOLDER... [--searched FILE]`.

FOLDERs are those of hunts (`dokimos hunt`) or of reductions (`dokimos reduce`). Prints every distinct cause
of a wrong answer with its smallest network in full, the versions, whether the tool's public tracker has it,
and how long the hunt took until then, in CPU-seconds of hunt and tool together; crashes come in a table of
their own. FILE has the searches of trackers: for each cause its query, its date and what was found.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.readable import markdown_text
from dokimos.hunting.write_up import FINDING, FORMULA, PROPERTY, FindingForm

SEARCHED = Path(__file__).parents[1] / "results" / "trophies" / "searched.json"
_ROUND = re.compile(r", round (\d+)$")


@dataclass(frozen=True)
class Trophy:
    """One finding, its folder, and the CPU time of its hunt until the end of the round that found it."""

    form: FindingForm
    folder: Path
    cpu_seconds: float | None

    @property
    def is_crash(self) -> bool:
        """Whether the tool ended in an error, and gave no answer."""
        return self.form.wrong.startswith("crash")

    def text(self, name: str) -> str:
        """The content of a file of the finding; empty if there is none."""
        path = self.folder / name
        return path.read_text(encoding="utf-8").rstrip() if path.exists() else ""


def trophies(folder: Path) -> list[Trophy]:
    """The findings of a hunt, or the one of a reduction."""
    journal = folder / "hunt.jsonl"
    used, total = [], 0.0
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ():
        total += float(json.loads(line)["cpu_seconds"])
        used.append(total)
    paths = (
        [folder / FINDING] if (folder / FINDING).exists() else sorted(folder.glob(f"findings/*/{FINDING}"))
    )
    found = []
    for path in paths:
        form = strict_json.read(path.read_bytes(), FindingForm, file=path, what="a finding")
        number = _ROUND.search(form.origin)
        at = int(number[1]) if number else len(used)
        found.append(Trophy(form, path.parent, used[at] if at < len(used) else None))
    return found


def distinct(found: list[Trophy]) -> dict[str, list[Trophy]]:
    """The findings of each cause, the smallest first."""
    groups: dict[str, list[Trophy]] = {}
    for one in sorted(found, key=lambda t: (t.is_crash, t.form.tool, t.form.numbers, t.form.name)):
        groups.setdefault(one.form.cause.key, []).append(one)
    return groups


def searched(path: Path) -> dict[str, dict[str, str]]:
    """What is known of trackers, by cause."""
    if not path.exists():
        return {}
    return {row["cause"]: row for row in json.loads(path.read_text(encoding="utf-8"))}


def tracker(row: dict[str, str] | None) -> str:
    """A sentence about a search."""
    if row is None:
        return "not searched for yet"
    where = f"[{row['found']}]({row['url']})" if row.get("url") else row["found"]
    return f"{where} (searched on {row['date']} for “{markdown_text(row['query'])}”)"


def hunted(folder: Path) -> str:
    """How long a hunt took, and how much it drew, as a row of a table; empty if the folder is none."""
    journal = folder / "hunt.jsonl"
    if not journal.exists():
        return ""
    rounds = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    minutes = sum(float(line["cpu_seconds"]) for line in rounds) / 60
    tallies = [values for line in rounds for values in line["kinds"].values()]
    drawn, told = (sum(each[name] for each in tallies) for name in ("instances", "told"))
    return f"| {folder.name} | {len(rounds)} | {minutes:.1f} | {drawn} | {told} |"


def page(found: list[Trophy], known: dict[str, dict[str, str]], hunts: Sequence[str] = ()) -> list[str]:
    """The page in Markdown; `hunts` are the rows of a table."""
    groups = distinct(found)
    wrong = {key: own for key, own in groups.items() if not own[0].is_crash}
    lines = [
        "# Trophies",
        "",
        "Wrong answers of verifiers, from hunts or suites, made small by `dokimos reduce`: one for",
        "each distinct cause, with its network in full. Each label is proven, and each answer was given",
        "again by a process started for this question alone. Written by `dokimos-studies trophies`.",
        "",
        f"Distinct causes of wrong answers: {len(wrong)}; distinct crashes: {len(groups) - len(wrong)}.",
        "",
    ]
    if hunts:
        lines += ["| hunt | rounds | CPU-minutes | instances drawn | tests that bit |"]
        lines += ["|---|---:|---:|---:|---:|", *hunts, ""]
    for own in wrong.values():
        lines += section(own, known.get(own[0].form.cause.key))
    crashes = [own for own in groups.values() if own[0].is_crash]
    if crashes:
        lines += ["## Crashes", "", "| tool | what it says | operators | tracker |", "|---|---|---|---|"]
    for own in crashes:
        form = own[0].form
        said = markdown_text(form.wrong.removeprefix("crash: "))
        searched_for = tracker(known.get(form.cause.key))
        lines.append(
            f"| {form.tool} {form.version} | {said} | {', '.join(form.operators)} | {searched_for} |"
        )
    return lines


def section(own: list[Trophy], row: dict[str, str] | None) -> list[str]:
    """One cause: its smallest question in full, the others counted."""
    first = own[0]
    form = first.form
    about = ", ".join(form.needed) or ", ".join(form.operators)
    took = "" if first.cpu_seconds is None else f" Found within {first.cpu_seconds:.0f} CPU-s of the hunt."
    more = "" if len(own) == 1 else f" {len(own) - 1} more like it."
    lines = [
        f"## {form.tool} {form.version}: {form.wrong} ({about})",
        "",
        f"{form.numbers} numbers, from {form.before}; margin {margin(form):.3g}; {form.asked} questions "
        f"and {form.cpu_seconds:.0f} CPU-s of the tool to make it small.{took}{more} "
        f"Tracker: {tracker(row)}.",
        "",
    ]
    if text := first.text(FORMULA):
        lines += ["```", text, "```", ""]
    if text := first.text(PROPERTY):
        asserts = [line for line in text.splitlines() if not line.startswith("(declare")]
        if len(asserts) <= 24:
            lines += ["```", *asserts, "```", ""]
    return lines


def margin(form: FindingForm) -> float:
    """The margin as a number."""
    top, _, bottom = form.margin.partition("/")
    return int(top) / int(bottom or 1)


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--searched", type=Path, default=SEARCHED, metavar="FILE")
    options = parser.parse_args()
    found = [one for folder in options.folders for one in trophies(folder)]
    if not found:
        raise InputError(f"{options.folders[0]}: has no findings of `dokimos hunt` or `dokimos reduce`.")
    hunts = [row for folder in options.folders if (row := hunted(folder))]
    print("\n".join(page(found, searched(options.searched), hunts)).rstrip())
