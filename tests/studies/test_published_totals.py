"""Scores of past competitions, added up again from what the organisers published."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dokimos_studies import published_totals
from dokimos_studies.published_totals import again, compared, scorings
from tests.campaigns.published import CORNER, write_benchmark, write_results
from tests.shared import SHARED
from tests.studies.running import studies

#: Where repositories of results may lie, in folders such as vnncomp2022_results.
REPOSITORIES = sorted(Path(os.environ.get("VNNCOMP_RESULTS", SHARED)).glob("vnncomp20??_results"))
SETTINGS = """
class Settings:
    EXTENDED = ['left_out']
    UNSCORED_CATEGORIES = EXTENDED
    SKIP_BENCHMARK_TUPLES = [('slow', 'skipped')]
    TOOL_NAME_SUBS_LATEX = [('alpha_beta_crown', '$\\\\alpha$,$\\\\beta$ Crown')]
    NEVER_RUN = print('this is not run')
"""
LOG = """
Category bench:
were violated counterexamples valid?: {'alpha_beta_crown': 'correct', 'slow': 'no_ce'}
Row: ['net-one', '1.0 (v)', '*multiple results*']
0: alpha_beta_crown score: 12, is_ver: False
0: slow score: 11, is_ver: False
"""


def table(category: str, rows: list[tuple[str, int]], penalties: int = 0) -> str:
    head = f"% Category {category} (single_overhead=True):\n\\caption{{Benchmark \\texttt{{{category}}}}}\n"
    columns = ("\\# ~", "Tool", "Verified", "Falsified", "Fastest", "Penalty", "Score", "Percent")
    head += " & ".join(f"\\textbf{{{name}}}" for name in columns) + "\\\\\n"
    return head + "".join(
        f"{k} & {tool} & 0 & 0 & 0 & {penalties * (points < 0)} & {points} & 9.9\\% \\\\\n"
        for k, (tool, points) in enumerate(rows, 1)
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Rules of 2022. Overheads are 1 s, 3 s and 0 s, so net times are 5, 4 and 9 s, then 1 s (at least)."""
    place = tmp_path / "vnncomp2022_results"
    for tool, first, second in (
        ("alpha_beta_crown", "sat,6", "unsat,1"),
        ("slow", "sat,7", "unknown,3"),
        ("liar", "unsat,9", "unsat,0"),
    ):
        for category in ("bench", "left_out", "skipped"):
            root = place / tool / category
            root.mkdir(parents=True)
            rows = [f"{category},onnx/net.onnx,vnnlib/one.vnnlib,0,{first}"]
            rows.append(f"{category},onnx/net.onnx,vnnlib/two.vnnlib,0,{second}")
            (root / "results.csv").write_text("\n".join([*rows, f"{category},test_nano.onnx,p,0,unsat,3"]))
    latex = place / "SCORING" / "latex"
    latex.mkdir(parents=True)
    (place / "SCORING" / "settings.py").write_text(SETTINGS)
    (place / "SCORING" / "results.txt").write_text(LOG)
    # `one`: the witness makes both `sat` right, 2 points for the faster, 1 for the other; `two`: both 1 s.
    shown = [("$\\alpha$,$\\beta$ Crown", 11 + 12), ("slow", 12), ("liar", -100 + 12)]
    (latex / "scored.tex").write_text(table("bench", shown))
    (latex / "unscored.tex").write_text(table("left_out", []))
    total = "\\caption{Overall Score}\n1 & $\\alpha$,$\\beta$ Crown & 100.0 \\\\\n2 & slow & 52.2 \\\\\n"
    (latex / "total.tex").write_text(total)
    return place


def test_scores_and_totals_come_out_again(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_totals, "PAGE", tmp_path / "page.md")
    (repository / "liar" / "skipped" / "results.csv").unlink()
    for tool in ("alpha_beta_crown", "slow"):
        (repository / tool / "skipped" / "results.csv").unlink()
    (scoring,) = scorings(repository)
    assert (scoring.unscored, scoring.skipped) == (("left_out",), (("slow", "skipped"),))
    assert studies("published-totals", repository).code == 0
    page = (tmp_path / "page.md").read_text()
    assert "| vnncomp2022 | by the log | 1 | 3 | 3 | 2 | 2 |" in page and "Nothing differs." in page
    scored = repository / "SCORING" / "latex" / "scored.tex"
    scored.write_text(scored.read_text().replace("& -88 &", "& 12 &"))
    (repository / "SCORING" / "results.txt").write_text(LOG.replace("'correct'", "'no_ce'"))
    studies("published-totals", repository)
    page = (tmp_path / "page.md").read_text()
    assert "| vnncomp2022 | by the log | 1 | 3 | 0 | 2 | 0 |" in page
    assert "- vnncomp2022, by the log, liar on bench: 24, published 12." in page


def test_an_audit_replays_the_witnesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(published_totals, "PAGE", tmp_path / "page.md")
    bench = write_benchmark(tmp_path / "bench")
    place = tmp_path / "vnncomp2025_results"
    tools = {"right": [("one", "sat", CORNER), ("two", "unsat", None)], "liar": [("one", "unsat", None)]}
    write_results(place, "bench", tools)
    for name in ("SCORING-SMALL-TOL", "SCORING-ZERO-TOL"):
        latex = place / name / "latex"
        latex.mkdir(parents=True)
        (place / name / "settings.py").write_text(SETTINGS)
        (latex / "unscored.tex").write_text("")
        (latex / "total.tex").write_text(
            "\\caption{Overall Score}\n1 & right & 100.0 \\\\\n2 & liar & 0 \\\\\n"
        )
        (latex / "scored.tex").write_text(table("2025_bench", [("right", 20), ("liar", -150)], 1))
    import dokimos

    dokimos.audit(bench, results=place, out=tmp_path / "campaign", jobs=1)
    studies("published-totals", place, "--audit", tmp_path / "campaign")
    page = (tmp_path / "page.md").read_text()
    for rules in ("small", "zero"):
        assert f"| vnncomp2025-{rules} | by penalties | 1 | 2 | 2 | 2 | 2 |" in page
        assert f"| vnncomp2025-{rules} | by replay | 1 | 2 | 2 | 2 | 2 |" in page
    assert "Nothing differs." in page
    # Part of a category is no category.
    results = place / "right" / "2025_bench" / "results.csv"
    results.write_text("\n".join(["bench,onnx/other.onnx,vnnlib/p.vnnlib,0,sat,1", results.read_text()]))
    studies("published-totals", place, "--audit", tmp_path / "campaign")
    assert "| vnncomp2025-zero | by replay | 0 | 0 | 0 | 2 | 2 |" in (tmp_path / "page.md").read_text()
    # Another number of penalties than there were is another score, by penalties only.
    scored = place / "SCORING-ZERO-TOL" / "latex" / "scored.tex"
    scored.write_text(scored.read_text().replace("& 1 & -150 &", "& 0 & -150 &"))
    results.write_text("\n".join(results.read_text().splitlines()[1:]))
    studies("published-totals", place, "--audit", tmp_path / "campaign")
    page = (tmp_path / "page.md").read_text()
    assert "- vnncomp2025-zero, by penalties, liar on 2025bench: 10, published -150." in page
    assert "- vnncomp2025-zero, by replay" not in page


@pytest.mark.parametrize("place", REPOSITORIES, ids=lambda path: path.name)
def test_what_was_published_comes_out_again(place: Path) -> None:
    for scoring in scorings(place):
        for how, found, totals in again(place, scoring, {}):
            row, differing = compared(scoring, how, found, totals)
            assert differing == [], row
