"""The tables of studies/results/profiles.md: `dokimos-studies profiles SUITE PROFILES`.

The suite has to be profiled first.

For each network of the suite, or each family with `--by family`, the least and the largest value of each
component over its instances; then,
for the component given with `--above COMPONENT VALUE`, which rows of the suite's table exceed the value.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from pathlib import Path

from dokimos.core.readable import unknown_name
from dokimos.difficulty.components import symbol
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.facts import COMPONENTS, FOLDER, Profile, load_profile
from dokimos.suites.folder import read_suite

SHOWN = (*COMPONENTS, "crown_gap")


def spread(profiles: list[Profile], name: str) -> str:
    """The least and the largest value, and how many have none or are only a bound."""
    found = [{**profile.components, **profile.extras}[name] for profile in profiles]
    values = [m.value for m in found if m.value is not None]
    if not values:
        return "n/a"
    low, high = (f"{end:.3g}" for end in (min(values), max(values)))
    text = low if low == high else f"{low} – {high}"
    missing = len(found) - len(values)
    return f"{text} ({missing} n/a)" if missing else text


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("profiles", type=Path, nargs="?")
    parser.add_argument("--above", nargs=2, metavar=("COMPONENT", "VALUE"))
    parser.add_argument("--by", choices=("network", "family"), default="network")
    given = parser.parse_args()
    if given.above and not _is_number(given.above[1]):
        parser.error(f"--above: {given.above[1]!r} is not a number")
    suite = read_suite(given.suite)
    folder = given.profiles or given.suite / FOLDER
    networks: dict[str, list[Profile]] = defaultdict(list)
    rows: list[tuple[int, SuiteEntry, Profile]] = []
    for number, entry in enumerate(suite.entries, start=1):
        profile = load_profile(folder / f"{entry.name}.json")
        network = entry.network_path.name.removesuffix(".gz").removesuffix(".onnx")
        networks[entry.family if given.by == "family" else network].append(profile)
        rows.append((number, entry, profile))
    print(f"| {given.by} | instances | {' | '.join(map(symbol, SHOWN))} |")
    print("|---|" + "---:|" * (1 + len(SHOWN)))
    for name, profiles in sorted(networks.items()) if given.by == "family" else networks.items():
        cells = " | ".join(spread(profiles, component) for component in SHOWN)
        print(f"| {name} | {len(profiles)} | {cells} |")
    if given.above:
        component, least = given.above[0], float(given.above[1])
        if strange := [p for _, _, p in rows if component not in {**p.components, **p.extras}]:
            raise unknown_name("component", component, [*strange[0].components, *strange[0].extras])
        found = [
            f"{number} ({entry.network_path.stem}, {value:.4g})"
            for number, entry, profile in rows
            if (value := {**profile.components, **profile.extras}[component].value) is not None
            and value > least
        ]
        above = f"have {symbol(component)} > {least:g}"
        print(f"\n{len(found)} of {len(rows)} instances {above}: {', '.join(found)}")
