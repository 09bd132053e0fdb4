"""The page of audited answers: what labels confirm, and a point of ours for each refuted one."""

from __future__ import annotations

import csv
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import dokimos
from dokimos_studies import published_answers
from tests.campaigns.published import write_benchmark, write_results
from tests.studies.running import studies


def long_table(place: Path, cross: str) -> None:
    """Both `unsat` of liar are right, if `cross` does not make the first one something else."""
    (place / "latex").mkdir(parents=True)
    (place / "settings.py").write_text(
        "class Settings:\n    TOOL_NAME_SUBS_LONGTABLE = [('right', 'R-t')]\n"
    )
    lines = [
        "\\textbf{Category} & \\textbf{Id} & \\textbf{Result} & \\textbf{liar} & \\textbf{R-t} \\\\",
        f"2025 Bench & 0 & ~\\textsc{{unsat}} & {cross} & 2 \\\\",
        "2025 Bench & 1 & ~\\textsc{unsat} & \\textcolor{darkgray}{1.0} & - \\\\",
    ]
    (place / "latex" / "longtable.tex").write_text("\n".join(lines))


def test_labels_confirm_and_refute_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(published_answers, "PAGE", tmp_path / "page" / "page.md")
    bench, labels = write_benchmark(tmp_path / "bench"), tmp_path / "labels.jsonl.gz"
    dokimos.label(bench, budget_seconds=5)
    assert len(dokimos.add_labels(bench, database=labels, year=2025).labels) == 2
    shutil.rmtree(bench / "truth")
    tools = {"liar": [("one", "unsat", None), ("two", "unsat", None)], "right": [("two", "unsat", None)]}
    results = write_results(tmp_path / "vnncomp2025_results", "bench", tools)
    for word, cross in (("SMALL", "-"), ("ZERO", "~~\\textbf{\\textcolor{red}{\\ding{55}}}")):
        long_table(results / f"SCORING-{word}-TOL", cross)
    out = tmp_path / "campaign"
    ran = studies("published-answers", bench, "--results", results, "--labels", labels, "--out", out)
    assert ran.code == 0
    page = (tmp_path / "page" / "page.md").read_text()
    assert "1 are refuted by an exact witness, 2 are confirmed by a label, and 0 are unchecked" in page
    assert "1 instances, 1 of them with a point that `dokimos label` found" in page
    assert "have 6 standings of these answers" in page and "4 of them come out again, 0 by" in page
    assert "(2 more are about other instances)" in page and "; 2 differ." in page
    assert all(f"- vnncomp2025-{word}, liar on bench/net__one" in page for word in ("small", "zero"))
    (row,) = csv.DictReader((tmp_path / "page" / published_answers.REFUTED).read_text().splitlines())
    assert (row["category"], row["instance"], row["tools"]) == ("bench", "net__one", "liar")
    x, y = map(Fraction, row["point"].split())
    assert 0 <= min(x, y) <= max(x, y) <= 1 and x + y >= Fraction(3, 2)
