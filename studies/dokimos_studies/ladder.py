"""The table of studies/results/ladder.md: `dokimos-studies ladder RUN`.

RUN is a run of `ladder` or `ladder-deep`.

For each family, the knob that is raised, its values, and what each verifier answered in how many seconds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import dokimos
from dokimos.campaigns.journal import RunRecord


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    judged = dokimos.judge(parser.parse_args().run)
    steps: dict[str, list[tuple[Mapping[str, object], RunRecord]]] = defaultdict(list)
    for record in (judgement.record for judgement in judged.judgements):
        steps[record.family].append((judged.facts[record.suite, record.instance].made_by, record))
    print("| family | knob | verifier | value: answer in seconds |")
    print("|---|---|---|---|")
    for family, rows in sorted(steps.items()):
        knobs = [k for k in rows[0][0] if len({str(p[k]) for p, _ in rows}) > 1]
        for verifier in sorted({record.verifier for _, record in rows}):
            mine = [(p, r) for p, r in rows if r.verifier == verifier]
            mine.sort(key=lambda row: [float(str(row[0][k])) for k in knobs])
            cells = []
            for parameters, record in mine:
                value = "/".join(str(parameters[k]) for k in knobs)
                cells.append(f"{value}: {record.answer.value} {record.wall_seconds:.1f}")
            print(f"| {family} | {', '.join(knobs)} | {verifier} | {'; '.join(cells)} |")
