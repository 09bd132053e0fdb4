"""Our counts and rates of violations next to the paper's, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from dokimos_studies.laws.paper import (
    PAPER_TESTS,
    Published,
    difference,
    in_tables,
    published,
    task_difference,
)
from dokimos_studies.laws.runs import Quality, Run, Skipped
from dokimos_studies.laws.student import mean_interval

_HEAD = """# The laws of the case studies: our counts next to the paper's

`dokimos-studies law-study` made this page, and a JSON file with every run. The paper is Christakis, Eniser,
Hoffmann, Singla, Wüstholz: *Specifying and Testing k-Safety Properties for Machine-Learning Models*
(2022), Tables 1, 3, 4 and 5.

Our models and data are not the paper's: `dokimos-studies law-train` trains the models on public or
synthesised data; a note above each table says how the task differs. Do not expect equal numbers; their
magnitudes can be compared. The tables say how each law differs from the published one; *figure_1a* is
*felony_inc* as the paper prints it, and is included in every sum in its place.

A law is *violated* if any seed finds a violation. *Unique* violations differ in at least one draw; the
number is the mean over the test seeds, summed over the laws, as in the paper. *Per 1,000 tests* is the
same as a rate, so that different budgets can be compared. *Right* is the accuracy on the test set, with
that of always predicting the most frequent class in parentheses.

Training is random: *over the trainings* has the mean number of unique violations over networks that
were trained with different seeds, its 95 % interval (Student's t, which assumes a normal distribution;
five trainings cannot show that it is one), and the smallest and the largest number. Growing trees is
deterministic, so there is only one.
"""


@dataclass(frozen=True)
class LawRow:
    """One law on one model: means over the seeds, and the result of all draws if they were enumerated.

    `runs` are those of the first training; `trainings` has the mean number of unique violations of each
    training.
    """

    law: str
    runs: tuple[Run, ...]
    every: Run | None
    trainings: tuple[float, ...] = ()

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

    def share(self, what: str) -> float | None:
        """A count as a share of the tests, over all seeds; None if there were no tests."""
        tested = sum(run.tested for run in self.runs)
        return sum(getattr(run, what) for run in self.runs) / tested if tested else None


def law_rows(runs: Iterable[Run]) -> dict[tuple[str, str], list[LawRow]]:
    """The rows of each domain and model, from the runs with a law's largest budget."""
    ordered = sorted(runs, key=lambda run: (run.domain, run.model, run.law, run.training))
    rows: dict[tuple[str, str], list[LawRow]] = {}
    for (domain, model, law), group in groupby(ordered, key=lambda run: (run.domain, run.model, run.law)):
        of_law = list(group)
        sampled = [run for run in of_law if run.seed is not None]
        most = max((run.budget for run in sampled if run.training == 0), default=0)
        chosen = [run for run in sampled if run.budget == most]
        first = tuple(run for run in chosen if run.training == 0)
        means = [
            fmean(run.unique for run in each) for _, each in groupby(chosen, key=lambda run: run.training)
        ]
        every = next((run for run in of_law if run.seed is None), None)
        if first:
            rows.setdefault((domain, model), []).append(LawRow(law, first, every, tuple(means)))
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
    heads += ["per 1,000 tests, paper", "per 1,000 tests, ours", "unique over the trainings"]
    lines = [_row(heads), "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for key, every in tables.items():
        rows = _counted(key[0], every)
        said, quality = published(*key), qualities.get(key)
        right = f"{100 * quality.right:.1f} % ({100 * quality.usual:.1f} %)" if quality else "–"
        ours = f"{sum(row.is_violated for row in rows)} of {len(rows)}"
        unique = sum(row.unique for row in rows)
        effort = f"{max(len(row.runs) for row in rows)} × {rows[0].runs[0].budget:,}"
        theirs = ["–", "–", "–", "–"]
        if said:
            per_test = _thousandths(said.unique / (PAPER_TESTS * said.laws))
            theirs = [said.quality, f"{said.violated} of {said.laws}", f"{said.unique:,.1f}", per_test]
        tests = sum(row.mean("tested") for row in rows)
        rate = _thousandths(unique / tests) if tests else "–"
        line = [
            *key,
            theirs[0],
            right,
            effort,
            theirs[1],
            ours,
            theirs[2],
            f"{unique:,.1f}",
            theirs[3],
            rate,
        ]
        lines.append(_row([*line, _trainings(_summed(rows))]))
    lines += ["", *(f"- **{name}**: {why}" for name, why in _tasks(tables))]
    return lines


def _counted(domain: str, rows: Sequence[LawRow]) -> list[LawRow]:
    """The rows that sums are made of: of two forms of one law, the one that the paper prints."""
    printed = {in_tables(domain, row.law) for row in rows if in_tables(domain, row.law) != row.law}
    return [row for row in rows if row.law not in printed]


def _tasks(tables: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """How the tasks of the domains differ from the paper's."""
    names = dict.fromkeys(domain for domain, _ in tables)
    return [(name, task_difference(name)) for name in names if task_difference(name)]


def _summed(rows: Sequence[LawRow]) -> tuple[float, ...]:
    """Unique violations of all laws together, for each training that all laws have."""
    count = min(len(row.trainings) for row in rows)
    return tuple(sum(row.trainings[place] for row in rows) for place in range(count))


def _trainings(means: Sequence[float]) -> str:
    """The mean over the trainings, its interval, and the range; a dash for fewer than two."""
    found = mean_interval(means, level=0.95)
    if found is None:
        return "–"
    between = f"{max(0.0, found.low):,.1f} to {found.high:,.1f}"
    return f"{found.mean:,.1f} (95 %: {between}; {min(means):,.1f} to {max(means):,.1f} in {len(means)})"


def _thousandths(share: float) -> str:
    return f"{1000 * share:.3g}" if share else "0"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _details(domain: str, model: str, rows: list[LawRow]) -> list[str]:
    said = published(domain, model)
    why = task_difference(domain)
    heads = ["law", "passed", "precondition failed", "violated", "failed", "unique", "unique, paper"]
    heads += ["all draws", "violated, of the tests", "unique, of the tests", "unique, of the tests, paper"]
    lines = [
        f"\n## {domain}, {model}\n",
        *([f"Compared with the paper's task: {why}\n"] if why else []),
        "Means over the seeds; *all draws*: how many of all possible draws violate, if all were tested.\n",
        _row([*heads, "unique over the trainings", "difference from the published law"]),
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        counts = [row.mean(what) for what in ("passed", "precondition_failed", "violated", "failed")]
        cells = [f"{count:,.1f}" for count in (*counts, row.unique)]
        every = f"{row.every.violated:,} of {row.every.tested:,}" if row.every else "–"
        shares = [_percent(row.share(what)) for what in ("violated", "unique")]
        name = in_tables(domain, row.law)
        theirs = said.unique_by_law.get(name) if said else None
        shares.append(_percent(None if theirs is None else theirs / PAPER_TESTS))
        end = [_trainings(row.trainings), difference(domain, row.law)]
        lines.append(_row([row.law, *cells, _said(said, name), every, *shares, *end]))
    starved = [row.law for row in rows if any(run.is_starved for run in row.runs)]
    if starved:
        lines.append(f"\nThe precondition almost never holds: {', '.join(starved)}.")
    return lines


def _percent(share: float | None) -> str:
    """A share with two significant digits."""
    if share is None:
        return "–"
    return "0 %" if share == 0 else f"{float(f'{100 * share:.2g}'):g} %"


def _said(said: Published | None, law: str) -> str:
    return f"{said.unique_by_law[law]:,.1f}" if said and law in said.unique_by_law else "–"
