"""The tables of the trained tier in studies/results/hidden.md.

    dokimos-studies soundness SOUNDNESS [CAMPAIGN ...]

SOUNDNESS is what `dokimos hide --tier trained --soundness --out SOUNDNESS` made; settings that are not
made yet are left out. A CAMPAIGN is what `dokimos run SOUNDNESS/* --verifier NAME --out CAMPAIGN` has made
so far. The first table has the hidden counterexamples, with filter and width: published counts are of
another filter and full widths, and stand nowhere beside them. The second has what verifiers said of how
many: of unverifiable instances, which have a hidden counterexample, `verified` is wrong; of regular ones
only what is proven is known. The last lines say how many answers are wrong, and in which way.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import dokimos
from dokimos.constructions.hiding.plants import HideSettings, soundness_settings
from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.files import read_whole
from dokimos.suites.answers import Answer
from dokimos.suites.folder import HIDE_REPORT


@dataclass(frozen=True)
class SettingResult:
    """What `hide` made of one setting: the outcome of its points, and which instances are unverifiable."""

    name: str
    filter: str
    scale: float
    planted: int
    proven: int
    hidden: int
    epochs: int
    unverifiable: frozenset[str]
    regular_labels: dict[str, str]


def read_results(folder: Path) -> list[SettingResult]:
    """The settings that are made, in the paper's order."""
    found = []
    for name in soundness_settings(HideSettings(tier="trained")):
        place = folder / name
        if not (place / "suite.json").exists():
            continue
        report = strict_json.parse(read_whole(place / HIDE_REPORT), file=place / HIDE_REPORT)
        if not report["filter"]:
            raise InputError(f"{place} was made with --filter none, so that nothing is known to be hidden.")
        unverifiable, regular = set(), {}
        for entry in dokimos.read_suite(place).entries:
            number = report["planted"]
            label = "no label"
            if entry.truth_path.exists():
                truth = strict_json.parse(read_whole(entry.truth_path), file=entry.truth_path)
                number, label = truth["origin"]["parameters"]["point"], truth["label"]
            if number < report["planted"]:
                unverifiable.add(entry.name)
            else:
                regular[entry.name] = label
        made = strict_json.parse(read_whole(place / "suite.json"), file=place / "suite.json")
        asked = made["recipe"]["hide"]
        found.append(
            SettingResult(
                name,
                asked["filter"],
                asked["scale"],
                planted=report["planted"],
                proven=report["proven"],
                hidden=report["hidden"],
                epochs=report["epochs"],
                unverifiable=frozenset(unverifiable),
                regular_labels=regular,
            )
        )
    if not found:
        raise InputError(
            f"{folder} holds no setting that is made; run dokimos hide --tier trained --soundness first."
        )
    return found


def print_hidden(results: list[SettingResult]) -> None:
    """The first table."""
    print(
        "| setting | filter | width | epochs | planted | proven | hidden | regular: unsat, sat, no label |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for one in results:
        labels = Counter(one.regular_labels.values())
        regular = ", ".join(str(labels[word]) for word in ("unsat", "sat", "no label"))
        print(
            f"| {one.name} | {one.filter} | {one.scale:g} | {one.epochs} | {one.planted} | "
            f"{one.proven} | {one.hidden} | {regular} |"
        )
    total = [sum(getattr(one, key) for one in results) for key in ("planted", "proven", "hidden")]
    print(f"| {len(results)} of 26 | | | | " + " | ".join(map(str, total)) + " | |")


def print_answers(results: list[SettingResult], campaigns: list[Path]) -> None:
    """The second table."""
    records = [one for campaign in campaigns for one in dokimos.judge(campaign).judgements]
    verifiers = list(dict.fromkeys(one.record.verifier for one in records))
    counts: Counter[tuple[str, str, bool, Answer]] = Counter()
    unverifiable = {one.name: one.unverifiable for one in results}
    for one in records:
        record = one.record
        if record.suite in unverifiable:
            hides = record.instance in unverifiable[record.suite]
            counts[record.suite, record.verifier, hides, record.answer] += 1
    heads = " | ".join(f"{name}: unverifiable | {name}: regular" for name in verifiers)
    print(f"| setting (verified, falsified, of) | {heads} |")
    print("|---|" + "---|---|" * len(verifiers))
    for setting in results:
        cells = []
        for verifier in verifiers:
            for hides in (True, False):
                key = (setting.name, verifier, hides)
                verified, falsified = counts[*key, Answer.UNSAT], counts[*key, Answer.SAT]
                tried = sum(n for (*first, _), n in counts.items() if tuple(first) == key)
                cells.append(f"{verified}, {falsified}, {tried}")
        print(f"| {setting.name} | " + " | ".join(cells) + " |")
    verdicts = Counter((one.record.verifier, one.verdict.value) for one in records if one.verdict.is_wrong)
    print(f"\n{len(records)} runs, of which wrong: {verdicts.total()}")
    for (verifier, verdict), count in sorted(verdicts.items()):
        print(f"- {verifier}: {verdict}, {count} times")


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("soundness", type=Path)
    parser.add_argument("campaign", type=Path, nargs="*")
    options = parser.parse_args()
    results = read_results(options.soundness)
    print_hidden(results)
    if options.campaign:
        print()
        print_answers(results, options.campaign)
