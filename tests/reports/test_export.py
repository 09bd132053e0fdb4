from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from dokimos.core.tables import TableRows
from dokimos.reports.exports import report_tables, write_tables
from dokimos.reports.findings import Findings
from dokimos.reports.sections.families import Cactus, Families
from dokimos.reports.sections.instances import campaign_rows
from tests.reports.explanation_sample import explained, known_facts
from tests.reports.sample import sample_judgements
from tests.reports.sections.test_rule_scores import SAME_SET


def _findings() -> Findings:
    runs = sample_judgements()
    return Findings(runs, known=known_facts(runs), explanation=explained(runs))


def _read(table: TableRows) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.csv())))


def test_every_row_has_as_many_cells_as_there_are_columns() -> None:
    found = [
        *report_tables(_findings()),
        *report_tables(Findings(SAME_SET)),
        *report_tables(Findings([])),
    ]
    for table in found:
        assert len(table.columns) == len(set(table.columns))
        assert all(len(row) == len(table.columns) for row in table.rows), table.name


def test_the_rows_are_those_of_the_page() -> None:
    findings = _findings()
    found = {table.name: table for table in report_tables(findings)}
    everything = campaign_rows(findings)
    assert len(found["runs"].rows) == len(everything.runs)
    assert len(found["instances"].rows) == len(everything.instances)
    assert len(found["families"].rows) == len(Families().rows(findings).cells)
    assert len(found["cactus"].rows) == sum(
        len(series.wall_seconds) for series in Cactus().rows(findings).series
    )
    wrong = _read(found["wrong_answers"])
    assert [row["verdict"] for row in wrong] == ["wrong-unsat", "wrong-sat", "bad-witness"]
    assert wrong[1]["slack"].startswith("-0.000488281250000000000847")
    assert wrong[0]["in_box"] == ""
    instance = _read(found["instances"])[0]
    assert json.loads(instance["knobs"])["gamma"] == 0.001
    assert instance["gradient_dimension"] == ""
    assert "gradient_dimension: not applicable" in instance["notes"]


def test_the_figures_about_difficulty_have_tables_too() -> None:
    findings = _findings()
    assert findings.explanation is not None
    found = {table.name: table for table in report_tables(findings)}
    accounts = (*findings.explanation.verifiers, *findings.explanation.styles)
    assert len(found["separations"].rows) == sum(len(a.separations) for a in accounts)
    rungs = sum(len(c.points) for a in accounts for c in a.curves)
    assert len(found["breaking"].rows) == rungs > 0


def test_scores_stand_one_to_a_row() -> None:
    found = {table.name: _read(table) for table in report_tables(Findings(SAME_SET))}
    assert found["scores"][0] == {
        "benchmark": "quick", "verifier": "v", "rules": "exact", "points": "-140", "worth": "0.0",
    }  # fmt: skip
    assert {row["benchmark"] for row in found["scores"]} == {"quick", "twins", "all"}
    assert len(found["disagreements"]) == 2


def test_the_tables_are_files(tmp_path: Path) -> None:
    names = write_tables(_findings(), tmp_path / "new")
    assert sorted(names) == sorted(path.name for path in (tmp_path / "new").iterdir())
    assert (
        (tmp_path / "new" / "cactus.csv")
        .read_text(encoding="utf-8")
        .startswith("verifier,solved,seconds\n")
    )
