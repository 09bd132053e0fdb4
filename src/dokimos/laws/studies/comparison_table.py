"""Our counts of violated laws and unique violations beside the paper's, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from dokimos.laws.studies.paper import Published, published
from dokimos.laws.studies.runs import Quality, Run, Skipped

_HEAD = """# The laws of the case studies: our counts beside the paper's

`dokimos law study` made this page, and a JSON file with every run. The paper is Christakis, Eniser,
Hoffmann, Singla, Wüstholz: *Specifying and Testing k-Safety Properties for Machine-Learning Models*
(2022), Tables 1, 3, 4 and 5.

Models and data are not the paper's: ours are trained by `dokimos law train`, on data that registries
carry or that is made. Some laws differ too: ours use the columns that they speak of, which not all
published ones did. Equal numbers are not to be expected; how large they are can be compared.

A law is *violated* where any seed finds a violation. *Unique* violations differ in something that was
drawn; the number is the mean over the seeds, summed over the laws, as in the paper. *Right* is the share
of the test set on which the model gives the label, beside that of always giving the most frequent one.
"""


@dataclass(frozen=True)
class LawRow:
    """One law on one model: means over the seeds, and all draws where they were gone through."""

    law: str
    runs: tuple[Run, ...]
    every: Run | None

    @property
    def is_violated(self) -> bool:
        """Whether any seed found a violation."""
        return any(run.is_violated for run in self.runs)

    @property
    def unique(self) -> float:
        """The mean number of unique violations."""
        return self.mean("unique")

    def mean(self, what: str) -> float:
        """The mean of a count over the seeds."""
        return fmean(getattr(run, what) for run in self.runs)


def law_rows(runs: Iterable[Run]) -> dict[tuple[str, str], list[LawRow]]:
    """The rows of each domain and model, from the runs of the largest budget that a law has."""
    found: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in runs:
        found.setdefault((run.domain, run.model), {}).setdefault(run.law, []).append(run)
    rows: dict[tuple[str, str], list[LawRow]] = {}
    for key, laws in sorted(found.items()):
        for law, of_law in sorted(laws.items()):
            sampled = [run for run in of_law if run.seed is not None]
            most = max((run.budget for run in sampled), default=0)
            chosen = tuple(run for run in sampled if run.budget == most)
            every = next((run for run in of_law if run.seed is None), None)
            if chosen:
                rows.setdefault(key, []).append(LawRow(law, chosen, every))
    return rows


def markdown(
    runs: Iterable[Run], qualities: Mapping[tuple[str, str], Quality], skipped: Sequence[Skipped] = ()
) -> str:
    """The page."""
    tables = law_rows(runs)
    parts = [_HEAD, *_overview(tables, qualities)]
    for (domain, model), rows in tables.items():
        parts += _details(domain, model, rows)
    if skipped:
        parts.append("\n## Left out\n")
        parts += [f"- {each.domain}: {each.reason}" for each in skipped]
    return "\n".join(parts) + "\n"


def _overview(
    tables: dict[tuple[str, str], list[LawRow]], qualities: Mapping[tuple[str, str], Quality]
) -> list[str]:
    heads = ["domain", "model", "right, paper", "right, ours", "seeds × tests"]
    heads += ["violated, paper", "violated, ours", "unique, paper", "unique, ours"]
    lines = [_row(heads), "|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    for key, rows in tables.items():
        said, quality = published(*key), qualities.get(key)
        right = f"{100 * quality.right:.1f} % ({100 * quality.usual:.1f} %)" if quality else "–"
        ours = f"{sum(row.is_violated for row in rows)} of {len(rows)}"
        unique = f"{sum(row.unique for row in rows):,.1f}"
        effort = f"{max(len(row.runs) for row in rows)} × {rows[0].runs[0].budget:,}"
        theirs = ["–", "–", "–"]
        if said:
            theirs = [said.quality, f"{said.violated} of {said.laws}", f"{said.unique:,.1f}"]
        lines.append(_row([*key, theirs[0], right, effort, theirs[1], ours, theirs[2], unique]))
    return lines


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _details(domain: str, model: str, rows: list[LawRow]) -> list[str]:
    said = published(domain, model)
    lines = [
        f"\n## {domain}, {model}\n",
        "Means over the seeds; *all draws*: how many of all violate, where they were gone through.\n",
        "| law | passed | precondition failed | violated | failed | unique | unique, paper | all draws |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        counts = [row.mean(what) for what in ("passed", "precondition_failed", "violated", "failed")]
        cells = " | ".join(f"{count:,.1f}" for count in counts)
        every = f"{row.every.violated:,} of {row.every.tested:,}" if row.every else "–"
        lines.append(f"| {row.law} | {cells} | {row.unique:,.1f} | {_said(said, row.law)} | {every} |")
    starved = [row.law for row in rows if any(run.is_starved for run in row.runs)]
    if starved:
        lines.append(f"\nThe precondition almost never holds: {', '.join(starved)}.")
    return lines


def _said(said: Published | None, law: str) -> str:
    return f"{said.unique_by_law[law]:,.1f}" if said and law in said.unique_by_law else "–"
