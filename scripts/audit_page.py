"""Write docs/audit.md: the audit of benchmarks and of the results that were published on them.

python scripts/audit_page.py BENCHMARK... --results RESULTS --not-scored TOOL --out CAMPAIGN
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dokimos
from dokimos.api.audits import Audit
from dokimos.auditing.registry import LINT_RULES
from dokimos.core.files import write_whole
from dokimos.reports.findings import Findings
from dokimos.reports.markdown import markdown_table
from dokimos.reports.sections.penalties import QUALITIES, penalty_rows

PAGE = Path(__file__).parents[1] / "docs" / "audit.md"
INTRODUCTION = """\
# Auditing a benchmark and its results

```
dokimos audit FOLDER… [--json findings.json] [--sarif findings.sarif]
dokimos audit FOLDER… --results RESULTS [--not-scored TOOL] [--out CAMPAIGN] [--html page.html]
```

The first command looks at every file that a benchmark lists. Each finding has a file, a line where there
is one, a reason and a remedy; an *error* means exit code 1, *warnings* and *notes* do not.

The second also reads what a competition published: `RESULTS/<tool>/<year>_<category>/results.csv`
(category, network, property, prepare seconds, answer, run seconds) and
`<network>_<property>.counterexample[.gz]` beside it. A category is joined with the benchmark of its name,
a row with the instance whose files it names; the second row of an instance is its second run. The answers
become a campaign in `--out`, which `judge`, `explain` and `report` take like any other. Every witness is
replayed exactly and by each rule set, every `unsat` is confronted with the exact witnesses of others and
with the labels that are there. `--not-scored` names tools that took part out of competition: they are
judged, but get no marks, and establish nothing by a rule set. Interrupted, the same command goes on where
it stopped. A wrong answer means exit code 1.
"""


def main() -> None:
    """Audit, and write the page."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("benchmarks", nargs="+", type=Path)
    words.add_argument("--results", required=True, type=Path)
    words.add_argument("--not-scored", action="append", default=[])
    words.add_argument("--out", required=True, type=Path)
    given = words.parse_args()
    found = dokimos.audit(
        given.benchmarks, results=given.results, not_scored=given.not_scored, out=given.out
    )
    write_whole(PAGE, "\n".join([INTRODUCTION, *rules(), *lint(found), *answers(found)]) + "\n")


def rules() -> Iterator[str]:
    """Every rule, and what it is for."""
    yield "## The rules\n"
    rows = [[rule.name, rule.severity.value, rule.about, rule.remedy] for rule in LINT_RULES]
    yield from markdown_table(["rule", "severity", "finds", "remedy"], rows, numbers=False)
    yield ""


def lint(found: Audit) -> Iterator[str]:
    """How often each rule found something in each benchmark."""
    assert found.judged is not None
    suites = {s.folder: s.name for one in found.judged.campaigns for s in one.campaign.manifest.suites}
    names = sorted(suites.values())
    counts = Counter(
        (finding.rule, name)
        for finding in found.findings
        for folder, name in suites.items()
        if Path(finding.file).absolute().is_relative_to(folder)
    )
    yield "## What was found on five categories of VNN-COMP 2025\n"
    yield "Made by `scripts/audit_page.py`. How often each rule found something in the files:\n"
    rows = [
        [rule.name, *(str(counts[rule.name, name]) for name in names)]
        for rule in LINT_RULES
        if any(counts[rule.name, name] for name in names)
    ]
    yield from markdown_table(["rule", *names], rows)
    yield ""


def answers(found: Audit) -> Iterator[str]:
    """What became of the published answers."""
    assert found.judged is not None
    rows = penalty_rows(Findings.of_campaigns(found.judged))
    count = sum(rows.all_witnesses)
    yield f"Of {len(found.judged.judgements)} published answers, {count} are `sat`. Their witnesses:\n"
    yield from markdown_table(list(QUALITIES), [list(map(str, rows.all_witnesses))])
    yield "\nAnswers that are wrong by proof, and how many of these each rule set penalises (+ others):\n"
    table = [
        [
            row.verifier,
            str(row.wrong_unsat),
            str(row.wrong_sat),
            str(row.bad_witness),
            *(
                "not scored" if not row.is_scored else f"{own}{f' + {more}' if more else ''}"
                for own, more in zip(row.penalised, row.others, strict=True)
            ),
        ]
        for row in rows.penalties
    ]
    yield from markdown_table(["tool", "wrong unsat", "wrong sat", "bad witness", *rows.rules], table)
    yield (
        "\nThe place of each tool on these categories, by rule set (an `unsat` that nothing confirms is "
        "worth nothing by `exact`):\n"
    )
    places = [[row.verifier, *map(str, row.places)] for row in rows.ranking]
    yield from markdown_table(["tool", *rows.rules], places)


if __name__ == "__main__":
    main()
