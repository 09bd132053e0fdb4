"""An edition of a competition: its file, drawn instances, runs, marks set by hand, proofs, and results."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import dokimos
from dokimos.campaigns.plan import CampaignSuite
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.judging.edition import Category, EditionTool, edition_text, handed_in, read_edition
from dokimos.judging.published_results import find_results, import_results
from dokimos.judging.rules import Standing
from dokimos.judging.verdicts import Verdict
from dokimos.reports.edition_page import as_latex
from dokimos.suites.instance import Answer
from tests.campaigns.published import CORNER, write_benchmark

RUN = f"""echo "running $2 for $6"
case "$4" in
  *one*) printf 'sat\\n{CORNER}\\n' > "$5" ;;
  *) echo unsat > "$5" ;;
esac
"""


def script_tool(folder: Path, *, prepare: str = "", run: str = RUN) -> Path:
    """A tool with the scripts of VNN-COMP."""
    folder.mkdir(parents=True)
    (folder / "run_instance.sh").write_text(run)
    if prepare:
        (folder / "prepare_instance.sh").write_text(prepare)
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    write_benchmark(tmp_path / "bench")
    return tmp_path


def cup(place: Path, *tools: str, limits: str = "", **options: int) -> Path:
    dokimos.init_edition(place / "cup", [place / "bench"], tools, year=2026, seed=1, **options)
    path = place / "cup" / "edition.toml"
    text = path.read_text().replace(
        'memory = "16GB"\nthreads = 4', f'memory = "1GB"\n{limits}\nthreads = 1'
    )
    path.write_text(text)
    return place / "cup"


def test_a_tool_is_prepared_apart_told_its_category_and_read_back(place: Path) -> None:
    tool = script_tool(place / "tool", prepare='sleep 0.4; echo "preparing $2" > prepared\n')
    wrong = script_tool(place / "wrong", run='echo unsat > "$5"')
    folder = cup(place, f"mine={tool}", f"wrong={wrong}", limits='timeout = "30s"')
    (campaign,) = dokimos.run_edition(folder)
    by_run = {(r.verifier, r.instance): r for r in campaign.records}
    mine = by_run["mine", "net__one"]
    assert (mine.answer, mine.limits and mine.limits.wall_seconds) == (Answer.SAT, 30.0)
    assert mine.prepare_seconds > 0.4
    assert "running bench for 30" in (folder / "runs" / "bench" / mine.log).read_text()
    assert by_run["wrong", "net__one"].prepare_seconds == 0
    # The competition's layout, read by the audit: the same answers, verdicts and marks.
    scored = dokimos.score_edition(folder, jobs=1)
    suite = CampaignSuite(place / "bench", dokimos.read_suite(place / "bench").entries)
    import_results(folder / "results", [suite], place / "again")
    read_back = dokimos.judge(place / "again")

    def said(judged: dokimos.JudgedCampaigns) -> set[tuple[object, ...]]:
        return {
            (j.record.verifier, j.record.instance, j.record.answer, j.record.witness, j.verdict)
            for j in judged.judgements
        }

    assert said(scored.judged) == said(read_back)
    verdicts = {(j.record.verifier, j.record.instance): j.verdict for j in scored.judged.judgements}
    assert verdicts["wrong", "net__one"] is Verdict.WRONG_UNSAT
    assert scored.to_records()[0] == {
        "track": "regular",
        "rules": "vnncomp2026",
        "place": 1,
        "tool": "mine",
        "score": "100.0",
        "points": 20,
    }
    (table,) = [one for one in find_results(folder / "results") if one.tool == "mine"]
    rows = table.path.read_text().splitlines()
    assert [[*row.split(",")[1:3], row.split(",")[4]] for row in rows] == [
        ["benchmarks/bench/onnx/net.onnx", "benchmarks/bench/vnnlib/one.vnnlib", "sat"],
        ["benchmarks/bench/onnx/net.onnx", "benchmarks/bench/vnnlib/two.vnnlib", "unsat"],
    ]
    witness = gzip.decompress((table.path.parent / "net_one.counterexample.gz").read_bytes()).decode()
    assert witness == "sat\n((X_0 1.0)\n(X_1 1.0)\n(Y_0 2.0))\n"


def test_preparing_has_a_limit_of_its_own_and_a_run_has_grace(place: Path) -> None:
    slow = script_tool(place / "slow", prepare="sleep 30")
    broken = script_tool(place / "broken", prepare="exit 3")
    late = script_tool(place / "late", run='sleep 1.5; echo unsat > "$5"')
    folder = cup(place, f"slow={slow}", f"broken={broken}", f"late={late}", limits='timeout = "1s"', pick=1)
    path = folder / "edition.toml"
    path.write_text(path.read_text().replace('"600s"', '"1s"').replace('"60s"', '"20s"'))
    (campaign,) = dokimos.run_edition(folder)
    found = {r.verifier: r for r in campaign.records}
    assert found["slow"].answer is Answer.ERROR and "its preparation was ended" in found["slow"].detail
    assert found["broken"].detail == "its preparation exited with code 1"
    assert (found["late"].answer, found["late"].wall_seconds > 1) == (Answer.UNSAT, True)
    # An answer after the limit is none under the rules of 2026.
    scored = dokimos.score_edition(folder, jobs=1)
    (late_one,) = [j for j in scored.judged.judgements if j.record.verifier == "late"]
    assert {mark.standing for mark in late_one.marks} == {Standing.NONE}
    path.write_text(path.read_text().replace('"20s"', '"30s"'))
    with pytest.raises(InputError, match="grace_seconds was 20 and is 30"):
        dokimos.run_edition(folder)


def test_marks_are_set_by_hand_with_a_reason(place: Path) -> None:
    wrong = script_tool(place / "wrong", run='echo unsat > "$5"')
    mine = script_tool(place / "mine")
    folder = cup(place, f"mine={mine}", f"wrong={wrong}")
    dokimos.run_edition(folder)
    before = dokimos.score_edition(folder, jobs=1)
    (folder / "overrides.toml").write_text(
        '[[overrides]]\ntool = "wrong"\ncategory = "bench"\ninstance = "net__one"\n'
        'rules = "vnncomp2026"\nstanding = "nothing"\nreason = "the benchmark was withdrawn"\n'
    )
    after = dokimos.score_edition(folder, jobs=1)
    points = [{(row[1], row[3]): row[5] for row in scored.tables[0].rows} for scored in (before, after)]
    assert points[0]["vnncomp2026", "wrong"] == -140 and points[1]["vnncomp2026", "wrong"] == 10
    assert points[0]["exact", "wrong"] == points[1]["exact", "wrong"]
    (shown,) = after.tables[-1].rows
    assert shown == (
        "wrong",
        "bench",
        "net__one",
        "vnncomp2026",
        "nothing",
        1,
        "the benchmark was withdrawn",
    )
    dokimos.publish_edition(folder, out=place / "site", jobs=1)
    assert "the benchmark was withdrawn" in (place / "site" / "index.html").read_text()
    (folder / "overrides.toml").write_text('[[overrides]]\ntool = "nobody"\nstanding = "nothing"\n')
    with pytest.raises(UnreadableFile, match=r"overrides.toml:2: there is no tool 'nobody' here"):
        read_edition(folder)


def test_a_certificate_confirms_an_unsat_and_a_false_one_does_not(
    copy_of_tiny: Callable[[Path], Path], place: Path
) -> None:
    suite = copy_of_tiny(place / "tiny")
    entries = [e for e in dokimos.read_suite(suite) if e.read_truth().label.value == "unsat"]  # type: ignore[union-attr]
    proof, other = (json.loads(e.truth_path.read_text()) for e in entries[:2])
    both = {"good": proof, "false": {**proof, "certificate": other["certificate"]}}
    tools = []
    for name, truth in both.items():
        text = json.dumps(truth)
        run = f"echo unsat > \"$5\"\ncat > certificate.json <<'END'\n{text}\nEND\n"
        tools.append(f"{name}={script_tool(place / name, run=run)}")
    dokimos.init_edition(place / "cup", [suite], tools, year=2026, seed=1)
    edition = read_edition(place / "cup")
    dokimos.run(
        suite,
        [t.replace("=", "=vnncomp=", 1) for t in tools],
        out=edition.runs(edition.categories[0]),
        only=[entries[0].name],
        settings=dokimos.RunSettings(timeout_seconds=20),
    )
    judged = dokimos.judge(edition.runs(edition.categories[0])).campaigns[0]
    found = {one.record.verifier: one for one in handed_in(judged)}
    assert (found["good"].problem, found["good"].kind) == ("", proof["certificate"]["kind"])
    assert found["false"].problem


def test_instances_are_drawn_by_the_seed(place: Path) -> None:
    names = ("one", "two")
    write_benchmark(place / "more", names)
    drawn = set()
    for seed in range(12):
        made = dokimos.init_edition(place / f"e{seed}", [place / "bench"], ["reference"], seed=seed, pick=1)
        (category,) = made.categories
        first, again = (made.suite(category).instances for _ in range(2))
        assert [one.name for one in first] == [one.name for one in again]
        drawn |= {one.name for one in first}
    assert drawn == {"net__one", "net__two"}
    whole = read_edition(place / "e0").suite(Category("bench", str(place / "bench"), pick=5))
    assert len(whole.instances) == 2


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('name = "mine"', 'name = "../mine"', "must consist of letters"),
        ("year = 2026", 'year = "soon"', "`year` must be a whole number"),
        ("seed = 1", "", "`seed` must be given"),
        ('"vnncomp2026"', '"vnncomp1999"', "vnncomp1999"),
        ("[[tools]]", "[[tool]]", "tool"),
        ('track = "regular"', "pick = 0", "at least 1"),
        ('grace = "60s"', 'grace = "soon"', "grace"),
    ],
)
def test_what_is_wrong_in_its_file_is_said(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = edition_text("cup", 2026, 1, [Category("bench", "./bench")], [EditionTool("mine", "reference")])
    assert old in text
    (tmp_path / "edition.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=reason):
        read_edition(tmp_path)
    (tmp_path / "edition.toml").write_text(text)
    assert read_edition(tmp_path).categories[0].folder == str(tmp_path / "bench")
    with pytest.raises(InputError, match="already exists"):
        dokimos.init_edition(tmp_path, [tmp_path], ["reference"])
    with pytest.raises(InputError, match="nothing has been run yet"):
        dokimos.score_edition(tmp_path)


def test_tables_are_written_for_papers(place: Path) -> None:
    mine = script_tool(place / "mine")
    folder = cup(place, f"my_tool={mine}", pick=1)
    dokimos.run_edition(folder)
    scored = dokimos.publish_edition(folder, out=place / "site", jobs=1)
    text = as_latex(scored.tables[0])
    assert r"regular & vnncomp2026 & 1 & my\_tool & 100.0 & 10 \\" in text
    assert text.startswith(r"\begin{tabular}{llrlrr}")
    names = {path.name for path in (place / "site").rglob("*")}
    assert {"index.html", "category-bench.html", "tool-my_tool.html", "ranking.tex", "my_tool.md"} <= names
    assert {"cactus-all.svg", "cactus-bench.svg", "results.csv", "edition.toml"} <= names
    with pytest.raises(InputError, match="is not empty"):
        dokimos.publish_edition(folder, out=place / "site")
