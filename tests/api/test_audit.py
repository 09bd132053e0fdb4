"""Published answers are judged: by exact witnesses, and by each rule set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import dokimos
from dokimos.api.results import Audit
from dokimos.core.files import home
from dokimos.judging.bulk import JUDGED, Kept
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.published_results import find_results
from dokimos.judging.rules import Standing
from dokimos.judging.verdicts import Verdict
from dokimos.judging.written_points import WitnessQuality, witness_quality
from dokimos.reports.findings import Findings
from dokimos.reports.sections.published import Penalties, penalty_rows
from tests.campaigns.published import CORNER, MIDDLE, OUTSIDE, Said, write_benchmark, write_results
from tests.judging import published
from tests.shared import SHARED

TOOLS: Mapping[str, Sequence[Said]] = {
    "right": [("one", "sat", CORNER)],
    "near": [("one", "sat", OUTSIDE)],
    "liar": [("one", "sat", MIDDLE)],
    "denier": [("one", "unsat", None), ("two", "unsat", None)],
    "guest": [("one", "unsat", None)],
}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    write_benchmark(tmp_path / "bench")
    return write_results(tmp_path / "results", "bench", TOOLS)


def audited(results: Path, seen: Callable[[str], None] = lambda _: None, jobs: int = 1) -> Audit:
    folder = results.parent
    return dokimos.audit(
        folder / "bench",
        results=results,
        out=folder / "campaign",
        not_scored=["guest"],
        jobs=jobs,
        progress=lambda update: seen(f"{update.stage} {update.done}/{update.total} {update.note}"),
    )


def judged_by(results: Path, seen: Callable[[str], None] = lambda _: None) -> JudgedCampaigns:
    found = audited(results, seen).judged
    assert found is not None
    return found


def test_an_unsat_is_confronted_with_the_exact_witnesses_of_others(results: Path) -> None:
    found = judged_by(results)
    verdicts = {(j.record.verifier, j.record.instance): j.verdict for j in found.judgements}
    assert verdicts == {
        ("right", "net__one"): Verdict.CORRECT,
        ("near", "net__one"): Verdict.CLIPPED,
        ("liar", "net__one"): Verdict.BAD_WITNESS,
        ("denier", "net__one"): Verdict.WRONG_UNSAT,
        ("denier", "net__two"): Verdict.CORRECT,
        ("guest", "net__one"): Verdict.WRONG_UNSAT,
    }
    assert found.is_wrong_somewhere and found.is_published
    assert all(j.reproduce == "" for j in found.judgements)


def test_each_rule_set_marks_those_that_were_scored(results: Path) -> None:
    found = judged_by(results).judgements
    marks = {
        (j.record.verifier, mark.rules): mark.standing
        for j in found
        if j.record.instance == "net__one"
        for mark in j.marks
    }
    assert not any(j.marks for j in found if j.record.verifier == "guest")
    # What the verifier states of its outputs is believed in 2025 up to 1e-3; the liar states nonsense.
    for rules in ("vnncomp2026", "vnncomp2025-small", "vnncomp2025-zero"):
        assert marks["liar", rules] is Standing.INCORRECT
        assert marks["denier", rules] is Standing.INCORRECT
        assert marks["near", rules] is Standing.CORRECT
    assert marks["near", "exact"] is Standing.CORRECT


def test_what_the_audit_proves_on_its_way_is_a_label(tmp_path: Path) -> None:
    bench = write_benchmark(tmp_path / "bench")
    tools = {"right": [("two", "unsat", None)], "wrong": [("one", "unsat", None), ("two", "sat", None)]}
    results = write_results(tmp_path / "results", "bench", tools)
    found = dokimos.audit(bench, results=results, out=tmp_path / "campaign", jobs=1)
    assert {"easy-sat", "easy-unsat"} <= {one.rule for one in found.findings}
    assert found.judged is not None
    verdicts = {(j.record.verifier, j.record.instance): j.verdict for j in found.judged.judgements}
    assert verdicts == {
        ("right", "net__two"): Verdict.CORRECT,
        ("wrong", "net__one"): Verdict.WRONG_UNSAT,
        ("wrong", "net__two"): Verdict.WRONG_SAT,
    }
    assert not (bench / "truth").exists()
    # A later look at the campaign finds the same labels.
    again = dokimos.judge(tmp_path / "campaign")
    assert [j.verdict for j in again.judgements] == [j.verdict for j in found.judged.judgements]


def test_rules_of_another_year_are_called_so(results: Path) -> None:
    rows = penalty_rows(Findings.of_campaigns(judged_by(results)))
    said = "Mind the year of the rules: vnncomp2026 has the rules of 2026, and these are results of 2025."
    assert rows.of_other_years == (said,)
    assert said in Penalties().html(rows)
    assert rows.rules == ("exact", "vnncomp2026", "vnncomp2025-small", "vnncomp2025-zero")


def test_an_empty_counterexample_is_no_bad_witness(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "bench")
    tools = {"mute": [("one", "sat", "")], "right": [("one", "sat", CORNER)]}
    found = judged_by(write_results(tmp_path / "results", "bench", {**tools, "guest": []}))
    (mute,) = (j for j in found.judgements if j.record.verifier == "mute")
    assert mute.verdict is Verdict.UNWITNESSED
    assert witness_quality(mute) is WitnessQuality.MISSING
    assert not found.is_wrong_somewhere


def test_a_witness_of_a_tool_that_is_not_scored_penalises_nobody(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "bench")
    tools = {"guest": [("one", "sat", CORNER)], "denier": [("one", "unsat", None)]}
    results = write_results(tmp_path / "results", "bench", tools)
    (denier,) = (j for j in judged_by(results).judgements if j.record.verifier == "denier")
    assert denier.verdict is Verdict.WRONG_UNSAT
    assert {mark.rules: mark.standing for mark in denier.marks} == {
        "exact": Standing.INCORRECT,
        "vnncomp2026": Standing.CORRECT,
        "vnncomp2025-small": Standing.CORRECT,
        "vnncomp2025-zero": Standing.CORRECT,
    }


def test_the_section_counts_witnesses_penalties_and_places(results: Path) -> None:
    rows = penalty_rows(Findings.of_campaigns(judged_by(results)))
    assert dict(zip((q.value for q in WitnessQuality), rows.all_witnesses, strict=True)) == {
        "exact": 1,
        "exact once clipped": 1,
        "in floats only": 0,
        "cannot be decided": 0,
        "nothing": 1,
        "none given": 0,
    }
    assert rows.rules[:2] == ("exact", "vnncomp2026")
    by_name = {row.verifier: row for row in rows.penalties}
    assert (by_name["denier"].wrong_unsat, by_name["denier"].penalised) == (1, (1, 1, 1, 1))
    assert not by_name["guest"].is_scored
    assert {row.verifier: row.places[0] for row in rows.ranking}["right"] == 1
    assert "guest" not in {row.verifier for row in rows.ranking}
    html = Penalties().html(rows)
    assert "not scored" in html and "1 of 1" in html


def test_a_campaign_of_ones_own_has_no_such_section(results: Path) -> None:
    own = replace(Findings.of_campaigns(judged_by(results)), is_published=False)
    assert Penalties().rows(own) is None


def test_what_was_judged_is_kept_also_where_the_last_line_is_torn(results: Path) -> None:
    first = judged_by(results)
    kept = Kept(JUDGED, results.parent / "campaign").path
    whole = kept.read_text()
    lines: list[str] = []
    assert judged_by(results, lines.append).judgements == first.judgements
    assert [line for line in lines if line.startswith("judging")] == ["judging 2/2 kept from before"]
    kept.write_text(whole[:-100])
    lines.clear()
    assert judged_by(results, lines.append).judgements == first.judgements
    assert len([line for line in lines if line.startswith("judging")]) == 2
    assert kept.read_text().endswith("\n")


def test_nothing_is_kept_where_others_may_have_written_it(results: Path) -> None:
    judged_by(results)
    assert home() in Kept(JUDGED, results.parent / "campaign").path.parents
    assert not list((results.parent / "campaign").glob("judged*"))


def test_kept_verdicts_do_not_outlive_what_they_depend_on(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dokimos.judging.audit.published_answers.SETTLING_RULES", frozenset())
    audited(results)
    (results.parent / "campaign" / "journal.jsonl").unlink()
    witness = results / "right" / "2025_bench" / "net_one.counterexample.gz"
    witness.unlink()
    (results / "near" / "2025_bench" / "net_one.counterexample.gz").unlink()
    found = {j.record.verifier: j.verdict for j in judged_by(results).judgements}
    assert found["guest"] is Verdict.UNLABELLED


def test_judge_and_report_work_on_it(results: Path) -> None:
    first = judged_by(results)
    campaign = results.parent / "campaign"
    again = dokimos.judge(campaign, rules=["exact"])
    assert [j.verdict for j in again.judgements] == [j.verdict for j in first.judgements]
    page = results.parent / "page.html"
    dokimos.report(first, html=page)
    assert "Published answers" in page.read_text()
    assert dokimos.explain(first, resamples=100).verifiers


needs_results = pytest.mark.skipif(not SHARED.exists(), reason="the published results are not here")


@needs_results
@pytest.mark.slow
def test_every_published_penalty_comes_out_again(tmp_path: Path) -> None:
    bench = [SHARED / "2025", SHARED / "2026/acasxu_2023/1.0", SHARED / "2026/sat_relu/1.0"]
    found = dokimos.audit(bench, results=SHARED / "results2025", out=tmp_path, not_scored=["rover"]).judged
    assert found is not None
    assert len(find_results(SHARED / "results2025")) > 37
    rows = {
        (j.record.suite, j.record.instance, j.record.verifier, j.record.repeat): j for j in found.judgements
    }
    places = published.campaign_places()
    differing = []
    for row in published.rows("penalties"):
        instance, repeat = places[row["category"], int(row["instance_index"])]
        judgement = rows[row["category"], instance, row["tool"], repeat]
        (mark,) = (m for m in judgement.marks if m.rules == f"vnncomp2025-{row['rule']}")
        if (mark.standing is Standing.INCORRECT) != (row["penalty"] == "1"):
            differing.append(row)
    assert differing == []
    assert sum(witness_quality(j) is not None for j in found.judgements) == 1018
