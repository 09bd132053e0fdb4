"""Published answers become a campaign: rows joined by their files, witnesses read, nothing twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import dokimos
from dokimos.campaigns.campaign import Campaign
from dokimos.campaigns.plan import CampaignSuite
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.judging.published_results import (
    ImportedResults,
    ResultsTable,
    find_results,
    import_results,
    results_year,
)
from dokimos.judging.rules import Standing
from dokimos.judging.verdicts import Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.folder import read_suite
from tests.campaigns.published import CORNER, Said, write_benchmark, write_results
from tests.difficulty.explain.sample import Made, record, write_campaign, write_suite

TOOLS: Mapping[str, Sequence[Said]] = {
    "right": [("one", "sat", CORNER), ("two", "unsat", None)],
    "late": [("one", "run_instance_timeout", None), ("two", "error_exit_code_1", None)],
    "mute": [("one", "sat", None), ("two", "sat", "((X_0 nan))")],
}


def imported(
    folder: Path, tools: Mapping[str, Sequence[Said]] = TOOLS, not_scored: Sequence[str] = ()
) -> ImportedResults:
    bench = folder / "bench"
    if not bench.exists():
        write_benchmark(bench)
    if not (folder / "results").exists():
        write_results(folder / "results", "bench", tools)
    suite = CampaignSuite(bench, read_suite(bench).entries)
    return import_results(folder / "results", [suite], folder / "campaign", not_scored=not_scored)


def answers(campaign: Campaign) -> dict[tuple[str, str, int], Answer]:
    return {(r.verifier, r.instance, r.repeat): r.answer for r in campaign.records}


def test_rows_become_records(tmp_path: Path) -> None:
    found = imported(tmp_path)
    assert found.strangers == ()
    assert answers(found.campaign) == {
        ("right", "net__one", 0): Answer.SAT,
        ("right", "net__two", 0): Answer.UNSAT,
        ("late", "net__one", 0): Answer.TIMEOUT,
        ("late", "net__two", 0): Answer.ERROR,
        ("mute", "net__one", 0): Answer.SAT,
        ("mute", "net__two", 0): Answer.SAT,
    }
    by_run = {(r.verifier, r.instance): r for r in found.campaign.records}
    right = by_run["right", "net__one"]
    assert (right.witness, right.outputs) == ((Fraction(1), Fraction(1)), (Fraction(2),))
    assert (right.wall_seconds, right.verifier_version) == (2.5, "2025")
    assert by_run["mute", "net__one"].witness is None
    assert by_run["mute", "net__two"].witness == ()
    assert found.campaign.planned == len(found.campaign.records)


@pytest.mark.parametrize("text", ["", "\n", "sat\n", "()"])
def test_an_empty_counterexample_is_none_given(tmp_path: Path, text: str) -> None:
    (run,) = imported(tmp_path, {"mute": [("one", "sat", text)]}).campaign.records
    assert (run.answer, run.witness, run.detail) == (Answer.SAT, None, "the counterexample is empty")


def test_a_file_without_a_byte_is_none_given(tmp_path: Path) -> None:
    write_results(tmp_path / "results", "bench", {"mute": [("one", "sat", "")]})
    (tmp_path / "results/mute/2025_bench/net_one.counterexample.gz").write_bytes(b"")
    (run,) = imported(tmp_path).campaign.records
    assert (run.answer, run.witness) == (Answer.SAT, None)


def test_2021_had_one_table_for_each_tool(tmp_path: Path) -> None:
    place = tmp_path / "results" / "results_csv" / "tool.csv"
    place.parent.mkdir(parents=True)
    place.write_text(
        "bench,./test/test_tiny.onnx,./test/test_tiny.vnnlib,.1,holds,.25\n"
        "bench,./bench/onnx/net.onnx,./bench/vnnlib/one.vnnlib,.1,SAT,2.5\n"
        "bench,./bench/onnx/net.onnx,./bench/vnnlib/two.vnnlib,-1,prepare_instance_error_1,-1\n"
        "other,./other/onnx/net.onnx,./other/vnnlib/one.vnnlib,.1,holds,9\n"
    )
    found = imported(tmp_path)
    assert found.strangers == ()
    assert answers(found.campaign) == {
        ("tool", "net__one", 0): Answer.SAT,
        ("tool", "net__two", 0): Answer.ERROR,
    }
    assert [run.wall_seconds for run in found.campaign.records] == [2.5, 0.0]
    source = found.campaign.manifest.published
    assert source is not None
    assert (source.year, source.overheads) == (2021, {"tool": 0.25})


def test_the_year_is_the_last_that_a_folder_names_or_that_of_the_results(tmp_path: Path) -> None:
    # In 2023 folders were named after the year of the benchmark, in 2022 after none.
    tables = [ResultsTable("t", year, "c", tmp_path) for year in ("2022", "2023")]
    assert results_year(tmp_path / "results", tables) == 2023
    nameless = [replace(tables[0], year="")]
    assert results_year(tmp_path / "vnncomp2022_results", nameless) == 2022
    assert results_year(tmp_path / "results", nameless) is None


def test_the_second_row_of_an_instance_is_its_second_run(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "bench", ["one", "two", "one"])
    found = imported(
        tmp_path, {"t": [("one", "timeout", None), ("two", "unsat", None), ("one", "sat", CORNER)]}
    )
    assert answers(found.campaign) == {
        ("t", "net__one", 0): Answer.TIMEOUT,
        ("t", "net__two", 0): Answer.UNSAT,
        ("t", "net__one", 1): Answer.SAT,
    }


def test_the_same_call_again_adds_nothing(tmp_path: Path) -> None:
    first = imported(tmp_path).campaign.records
    journal = tmp_path / "campaign" / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-2]))
    assert set(imported(tmp_path).campaign.records) == set(first)
    assert imported(tmp_path).campaign.records == imported(tmp_path).campaign.records


def test_rows_of_no_benchmark_are_named(tmp_path: Path) -> None:
    found = imported(tmp_path, {"t": [("one", "sat", CORNER), ("gone", "unsat", None)]})
    assert found.strangers == (f"{tmp_path}/results/t/2025_bench/results.csv:2",)
    assert len(found.campaign.records) == 1


def test_what_cannot_be_read_is_told_with_its_line_and_the_rest_goes_on(tmp_path: Path) -> None:
    tools: Mapping[str, Sequence[Said]] = {
        "t": [("one", "sat", CORNER), ("two", "unsat", None)],
        "cut": [("one", "sat", CORNER)],
        "odd": [("one", "unsat", None)],
    }
    write_results(tmp_path / "results", "bench", tools)
    table = tmp_path / "results" / "t" / "2025_bench" / "results.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0].replace(",2.5", ",soon"), "bench,a,b", *lines[1:]]))
    (tmp_path / "results" / "odd" / "2025_bench" / "results.csv").write_bytes(b"\xff\xfe")
    witness = tmp_path / "results" / "cut" / "2025_bench" / "net_one.counterexample.gz"
    witness.write_bytes(witness.read_bytes()[:-9])
    found = imported(tmp_path)
    assert answers(found.campaign) == {
        ("t", "net__two", 0): Answer.UNSAT,
        ("cut", "net__one", 0): Answer.SAT,
    }
    assert [str(error) for error in found.unread] == [
        f"{tmp_path}/results/odd/2025_bench/results.csv: it is not UTF-8 text",
        f"{table}:1: 'soon' is not a number of seconds",
        f"{table}:2: a row must be category,network,property,prepare seconds,answer,run seconds; "
        "this one has 3 columns",
        f"{witness}: the compressed file is truncated or damaged.",
    ]


def test_files_that_cannot_be_had_are_left_out_until_they_are_there(tmp_path: Path) -> None:
    bench = write_benchmark(tmp_path / "bench")
    write_results(tmp_path / "results", "bench", TOOLS)
    asked = bench / "vnnlib" / "two.vnnlib"
    kept = asked.read_bytes()
    asked.unlink()

    def read() -> ImportedResults:
        suite = CampaignSuite(bench, read_suite(bench, leniently=True).entries)
        return import_results(tmp_path / "results", [suite], tmp_path / "campaign")

    first = read()
    assert {run.instance for run in first.campaign.records} == {"net__one"}
    assert (first.not_judged, first.strangers) == ({"bench": 3}, ())
    asked.write_bytes(kept)
    assert answers(read().campaign) == answers(imported(tmp_path).campaign)
    assert len(read().campaign.records) == 6


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`not_scored` rover: .* has no results of this tool"):
        imported(tmp_path, not_scored=["rover"])
    (tmp_path / "empty").mkdir()
    bench = tmp_path / "bench"
    suite = CampaignSuite(bench, read_suite(bench).entries, "another")
    with pytest.raises(InputError, match="has results on bench, but none on another"):
        import_results(tmp_path / "results", [suite], tmp_path / "campaign")
    with pytest.raises(UnreadableFile, match="it holds no results"):
        import_results(tmp_path / "empty", [suite], tmp_path / "campaign")


def test_a_campaign_that_was_run_is_left_alone(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", [Made("i")])
    write_campaign(tmp_path / "campaign", suite, [record("i", Answer.UNSAT)], verifiers=["marabou"])
    with pytest.raises(
        InputError, match="holds a campaign that was run, not imported; choose another folder"
    ):
        imported(tmp_path)


def test_another_benchmark_joins_an_audit(tmp_path: Path) -> None:
    imported(tmp_path)
    other = write_benchmark(tmp_path / "other")
    rows = (other / "instances.csv").read_text()
    (other / "instances.csv").write_text(rows.replace(",60", ",90"))
    write_results(tmp_path / "results", "other", {"right": TOOLS["right"], "newcomer": TOOLS["late"]})
    suite = CampaignSuite(other, read_suite(other).entries)
    for _ in range(2):
        campaign = import_results(tmp_path / "results", [suite], tmp_path / "campaign").campaign
        counts = {(one.verifier, one.suite) for one in campaign.records}
        assert counts == {
            *((tool, "bench") for tool in TOOLS),
            ("right", "other"),
            ("newcomer", "other"),
        }
        assert len(campaign.records) == 2 * len(counts)
        assert {one.name for one in campaign.manifest.suites} == {"bench", "other"}
    assert answers(imported(tmp_path).campaign)["right", "net__one", 0] is Answer.SAT
    verdicts = {
        (one.record.suite, one.record.verifier, one.record.instance): one.verdict
        for one in dokimos.judge(tmp_path / "campaign").judgements
    }
    assert (
        verdicts["other", "right", "net__one"] is verdicts["bench", "right", "net__one"] is Verdict.CORRECT
    )


def test_cells_that_the_organisers_never_read_are_left_out(tmp_path: Path) -> None:
    table = write_results(tmp_path / "results", "bench", {"t": [("two", "unsat", None)]})
    path = table / "t" / "2025_bench" / "results.csv"
    path.write_text(path.read_text().replace(",unsat,2.5", ",unsat,2.5,7.25"))
    (run,) = imported(tmp_path).campaign.records
    assert (run.answer, run.wall_seconds) == (Answer.UNSAT, 2.5)


def test_the_folder_in_which_the_organisers_score_is_no_tool(tmp_path: Path) -> None:
    place = write_results(tmp_path / "results", "bench", {"t": [("two", "unsat", None)]})
    (place / "SCORING-ZERO-TOL" / "latex").mkdir(parents=True)
    (place / "SCORING-ZERO-TOL" / "latex" / "results.csv").write_text("")
    assert [table.tool for table in find_results(place)] == ["t"]


SIDE_BY_SIDE = (
    "(vnnlib-version <2.0>)\n"
    "(declare-network f (declare-input A real [1,2]) (declare-output Y real [1,1]))\n"
    "(declare-network g (equal-to f) (declare-input B real [1,2]) (declare-output Z real [1,1]))\n"
    "(assert (and (>= A[0,0] 0) (<= A[0,0] 1) (>= A[0,1] 0) (<= A[0,1] 1)))\n"
    "(assert (and (>= B[0,0] 0) (<= B[0,0] 1) (== A[0,1] B[0,1])))\n"
    "(assert (>= (- Y[0,0] Z[0,0]) 0.5))\n"
)


@pytest.mark.parametrize(
    ("values", "witness", "verdict"),
    [
        ("1 0.25 0 0.25", (1, Fraction(1, 4), 0), Verdict.CORRECT),
        ("1 0.25 0 0.2500001", (1, Fraction(1, 4), 0), Verdict.CORRECT),
        ("0 0.25 1 0.25", (0, Fraction(1, 4), 1), Verdict.BAD_WITNESS),
        ("1 0.25 0 0.5", (), Verdict.BAD_WITNESS),
        ("1 0.25 0", (), Verdict.BAD_WITNESS),
    ],
)
def test_answers_on_several_networks_are_judged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    values: str,
    witness: tuple[Fraction, ...],
    verdict: Verdict,
) -> None:
    """f and f again, whose second inputs are the same number."""
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    bench = write_benchmark(tmp_path / "bench")
    (bench / "vnnlib" / "pair.vnnlib").write_text(SIDE_BY_SIDE)
    networks = "\"[('f', '{0}/net.onnx'), ('g', '{0}/net.onnx')]\""
    (bench / "instances.csv").write_text(f"{networks.format('onnx')},vnnlib/pair.vnnlib,60\n")
    place = tmp_path / "results" / "t" / "2026_bench"
    place.mkdir(parents=True)
    root = "v/benchmarks/bench"
    row = f"bench,{networks.format(f'{root}/onnx')},{root}/vnnlib/pair.vnnlib,.1,sat,2.5\n"
    (place / "results.csv").write_text(row)
    a, b, *rest = values.split()
    said = "\n".join(["sat", "A real [1,2]", a, b, "Y real [1,1]", "0", "B real [1,2]", *rest])
    (place / "f_g_pair.counterexample").write_text(f"{said}\nZ real [1,1]\n0\n")
    found = imported(tmp_path)
    assert (found.strangers, found.not_judged, found.unread) == ((), {}, ())
    (run,) = found.campaign.records
    assert run.witness == witness
    (judgement,) = dokimos.judge(tmp_path / "campaign", rules=["vnncomp2026"]).judgements
    assert judgement.verdict is verdict
    assert (judgement.marks[0].standing is Standing.CORRECT) == (verdict is Verdict.CORRECT)
