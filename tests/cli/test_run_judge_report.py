from __future__ import annotations

import io
import json
import logging
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dokimos.api.campaigns import campaign_suites
from dokimos.campaigns.journal import read_journal
from dokimos.constructions.generation import shipped_suite
from dokimos.core.errors import InputError
from dokimos.core.readable import parse_bytes
from tests.cli.conftest import Dokimos


@pytest.fixture
def suite(copy_of_tiny: Callable[[Path], Path], tmp_path: Path) -> Path:
    return copy_of_tiny(tmp_path / "suite")


def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **content: object) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(content))
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(path))


def labels(suite: Path) -> dict[str, str]:
    return {f.stem: json.loads(f.read_text())["label"] for f in (suite / "truth").iterdir()}


def test_a_right_verifier_passes(dokimos: Dokimos, suite: Path, tmp_path: Path) -> None:
    ran = dokimos("run", suite, "--verifier", "scripted", "--timeout", 20, "--out", tmp_path / "run")
    assert ran.code == 0, ran.err
    assert "4 of 4 planned runs recorded" in ran.out
    judged = dokimos("judge", tmp_path / "run")
    assert judged.code == 0
    assert "No wrong answers" in judged.out
    page = tmp_path / "page.html"
    assert dokimos("report", tmp_path / "run", "--html", page).code == 0
    assert "exclusive-pairs" in page.read_text()


def flip(truth: dict[str, Any]) -> None:
    truth["label"] = "sat"


def lose_the_proof(truth: dict[str, Any]) -> None:
    truth["certificate"]["data"] = {}


@pytest.mark.parametrize(
    ("behaviour", "damage", "blame"),
    [("right", flip, "wrong-unsat"), ("wrong", lose_the_proof, "wrong-sat")],
)
def test_a_label_that_fails_blames_nobody(
    dokimos: Dokimos,
    suite: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
    damage: Callable[[dict[str, Any]], None],
    blame: str,
) -> None:
    damaged = next(name for name, label in labels(suite).items() if label == "unsat")
    script(monkeypatch, tmp_path, default={"behaviour": behaviour})
    run = ("run", suite, "--verifier", "scripted", "--only", damaged, "--out", tmp_path / "run")
    assert dokimos(*run).code == 0
    path = suite / "truth" / f"{damaged}.json"
    truth = json.loads(path.read_text())
    damage(truth)
    path.write_text(json.dumps(truth))
    logged = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging.getLogger(), "handlers", [logged])
    judged = dokimos("judge", tmp_path / "run")
    assert judged.code == 2
    assert f"THE LABEL OF suite/{damaged} FAILS" in judged.err
    assert logged.stream.getvalue() == "", "a remark is made once"
    assert f"checking labels 1: {damaged}: failed" in judged.err
    assert blame not in judged.out
    page = tmp_path / "page.html"
    reported = dokimos("report", tmp_path / "run", "--html", page)
    assert reported.code == 2
    assert f"THE LABEL OF suite/{damaged} FAILS" in reported.err
    assert "checking labels" not in reported.err, "what came of it is remembered"
    assert f"THE LABEL OF suite/{damaged} FAILS" in page.read_text()


def test_a_wrong_verifier_is_caught(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, tmp_path, default={"behaviour": "wrong"})
    dokimos("run", suite, "--verifier", "scripted", "--out", tmp_path / "run")
    judged = dokimos("judge", tmp_path / "run")
    assert judged.code == 1
    assert judged.out.count("wrong-unsat  scripted answers unsat") == 2
    assert judged.out.count("wrong-sat  scripted answers sat") == 2
    assert "reproduce: dokimos run" in judged.out
    assert "Scores" not in judged.out
    scored = dokimos("judge", tmp_path / "run", "--rules", "exact,vnncomp2026")
    assert scored.code == 1
    assert "-600 (0.0)" in scored.out
    assert "The rule sets disagree on 2 runs" in scored.out
    assert scored.out.count("vnncomp2026: correct (+10): no witness refutes it") == 2
    assert dokimos("judge", tmp_path / "run", "--rules", "fair").code == 2
    reproduce = [line for line in judged.out.splitlines() if "reproduce: dokimos run" in line]
    assert len(reproduce) == 4
    assert all("&& dokimos judge reproduced/" in line for line in reproduce)


def test_the_second_run_does_nothing_twice(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, tmp_path, default={"behaviour": "right"}, executions=str(tmp_path / "executions"))
    for _ in range(2):
        assert dokimos("run", suite, "--verifier", "scripted", "--out", tmp_path / "run").code == 0
    assert sorted((tmp_path / "executions").read_text().split()) == sorted(labels(suite))


def test_what_was_recorded_before_is_counted(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs, then two more: the second process begins to count at two."""
    script(monkeypatch, tmp_path, default={"behaviour": "right"})
    command = ("run", suite, "--verifier", "scripted", "--out", tmp_path / "run")
    assert "running 1/4: scripted" in dokimos(*command).err
    journal = tmp_path / "run" / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:4]))
    lines = dokimos(*command).err.splitlines()
    assert re.fullmatch(r"running 2/4: 2 reused \(scripted 1-\w{8}\); continuing", lines[0])
    assert [line.partition(":")[0] for line in lines[1:]] == ["running 3/4", "running 4/4"]
    assert re.fullmatch(r"running 4/4: 4 reused \(scripted 1-\w{8}\)\n", dokimos(*command).err)


def test_a_verifier_that_has_changed_is_run_again(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, tmp_path, default={"behaviour": "crash"})
    command = ("run", suite, "--verifier", "scripted", "--out", tmp_path / "run")
    assert dokimos(*command).code == 0
    script(monkeypatch, tmp_path, default={"behaviour": "right"})
    refused = dokimos(*command)
    assert refused.code == 2
    assert "give --again if a verifier has changed" in refused.err
    assert dokimos(*command, "--again").code == 0
    records = read_journal(tmp_path / "run" / "journal.jsonl")
    assert len(records) == 4
    assert all(record.answer.decides for record in records)
    assert "4 reused" in dokimos(*command).err


def test_a_named_tool_is_called_that_everywhere(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, tmp_path, default={"behaviour": "wrong"})
    dokimos("run", suite, "--verifier", "mine=scripted", "--out", tmp_path / "run")
    judged = dokimos("judge", tmp_path / "run")
    assert "mine answers" in judged.out
    assert "--verifier mine=scripted" in judged.out


def test_ctrl_c_counts_once(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one comes while the first is still ending the runs, and changes nothing."""
    script(monkeypatch, tmp_path, default={"behaviour": "right"})

    def interrupted(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            (tmp_path / "cleaned up").touch()

    monkeypatch.setattr("dokimos.api.campaigns.run_campaign", interrupted)
    ran = dokimos("run", suite, "--verifier", "scripted", "--out", tmp_path / "run")
    assert ran.code == 130
    assert ran.err == "dokimos: interrupted; run the same command again to continue.\n"
    assert (tmp_path / "cleaned up").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_one_instance_can_be_run_alone(dokimos: Dokimos, suite: Path, tmp_path: Path) -> None:
    name = min(labels(suite))
    ran = dokimos("run", suite, "--verifier", "scripted", "--only", name, "--out", tmp_path / "run")
    assert "1 of 1 planned runs recorded" in ran.out
    missing = dokimos(
        "run", suite, "--verifier", "scripted", "--only", "nothing", "--out", tmp_path / "run2"
    )
    assert missing.code == 2
    assert "--only nothing: the suites have no instance of this name" in missing.err


def test_what_is_missing_of_a_campaign_is_said(dokimos: Dokimos, suite: Path, tmp_path: Path) -> None:
    run = tmp_path / "my run"
    ran = dokimos("run", suite, "--verifier", "scripted", "--out", run)
    assert f"dokimos judge '{run}'" in ran.out
    assert "missing" not in dokimos("judge", run).err
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    (run / "journal.jsonl").write_text("".join(lines[:-1]))
    assert "1 of 4 planned runs are missing" in dokimos("judge", run).err


def test_a_shipped_suite_is_reproduced_by_its_name(
    dokimos: Dokimos, tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, tmp_path, default={"behaviour": "wrong"})
    one = shipped_suite("scale").entries[0].name
    run = tmp_path / "run"
    assert dokimos("run", "scale", "--only", one, "--verifier", "scripted", "--out", run).code == 0
    judged = dokimos("judge", run, "--rules", "exact")
    assert judged.code == 1
    assert "reproduce: dokimos run scale --verifier scripted --timeout 10" in judged.out
    assert str(own_home) not in judged.out


def test_a_cache_that_cannot_be_written_is_named(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "file"))
    ran = dokimos("run", "scale", "--verifier", "scripted", "--out", tmp_path / "run")
    assert ran.code == 2
    assert "The suite scale cannot be made in" in ran.err
    assert "set DOKIMOS_HOME" in ran.err


def test_a_script_that_is_not_there_is_named(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(tmp_path / "absent.json"))
    ran = dokimos("run", suite, "--verifier", "scripted", "--out", tmp_path / "run")
    assert ran.code == 2
    assert "absent.json cannot" in ran.err


def test_a_suite_that_moved_is_asked_for(dokimos: Dokimos, suite: Path, tmp_path: Path) -> None:
    dokimos("run", suite, "--verifier", "scripted", "--out", tmp_path / "run")
    suite.rename(tmp_path / "moved")
    lost = dokimos("judge", tmp_path / "run")
    assert lost.code == 2
    assert "--suite" in lost.err
    assert dokimos("judge", tmp_path / "run", "--suite", tmp_path / "moved").code == 0


def test_answers_to_another_question_are_nobodys_fault(
    dokimos: Dokimos, suite: Path, tmp_path: Path
) -> None:
    """Two instances that exchange their names, proofs and all, after they were run."""
    assert dokimos("run", suite, "--verifier", "scripted", "--out", tmp_path / "run").code == 0
    one, other = (
        next(n for n, label in labels(suite).items() if label == kind) for kind in ("sat", "unsat")
    )
    for folder, ending in (("onnx", "onnx"), ("vnnlib", "vnnlib"), ("truth", "json")):
        first, second = (suite / folder / f"{name}.{ending}" for name in (one, other))
        contents = first.read_bytes(), second.read_bytes()
        second.write_bytes(contents[0])
        first.write_bytes(contents[1])
    judged = dokimos("judge", tmp_path / "run")
    assert judged.code == 2
    assert "it is not the file that was run; restore it" in judged.err
    assert "answers are not judged: " in dokimos("watch", tmp_path / "run", "--once").out.replace("\n", " ")


def test_two_suites_run_as_one_campaign_with_their_own_timeouts(
    dokimos: Dokimos, suite: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(suite, other)
    table = other / "instances.csv"
    table.write_text(
        "".join(f"{line.rpartition(',')[0]},{7 + k}\n" for k, line in enumerate(table.read_text().split()))
    )
    ran = dokimos("run", suite, other, "--verifier", "scripted", "--cpu", 30, "--out", tmp_path / "run")
    assert "8 of 8 planned runs recorded" in ran.out, ran.err
    judged = dokimos("judge", tmp_path / "run", "--rules", "exact")
    assert judged.code == 0, judged.err
    assert "all benchmarks" in judged.out
    page = tmp_path / "page.html"
    assert dokimos("report", tmp_path / "run", "--html", page).code == 0
    assert "the suite’s own, up to 10 s, 30 s of CPU time" in page.read_text()
    other.rename(tmp_path / "moved")
    assert "no suite 'moved'" in dokimos("judge", tmp_path / "run", "--suite", tmp_path / "moved").err
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "moved").rename(tmp_path / "elsewhere" / "other")
    moved = dokimos("judge", tmp_path / "run", "--suite", tmp_path / "elsewhere" / "other")
    assert moved.code == 0, moved.err


def test_probes_catch_who_says_unsat_to_everything(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, tmp_path, default={"behaviour": "says", "answer": "unsat"})
    options = ("--verifier", "scripted", "--probe", "--out", tmp_path / "run")
    only = min(name for name, label in labels(suite).items() if label == "unsat")
    for _ in range(2):
        ran = dokimos("run", suite, "--only", only, *options)
        assert "2 of 2 planned runs recorded" in ran.out, ran.err
    judged = dokimos("judge", tmp_path / "run")
    assert judged.code == 1
    assert judged.out.count("wrong-unsat  scripted answers unsat on suite-probe/probe-") == 1
    script(monkeypatch, tmp_path, default={"behaviour": "right"})
    dokimos("run", suite, "--verifier", "scripted", "--probe", "--out", tmp_path / "other")
    assert dokimos("judge", tmp_path / "other").code == 0


def test_probes_also_switch_a_verifiers_own_attack_off(
    dokimos: Dokimos, suite: Path, tmp_path: Path
) -> None:
    tool = tmp_path / "tool"
    tool.mkdir()
    (tool / "run_instance.sh").write_text('echo unknown > "$5"\n')
    (tool / "run_instance_without_attack.sh").write_text('echo unsat > "$5"\n')
    only = min(name for name, label in labels(suite).items() if label == "sat")
    given = ("--pass-env", "HOME", "--trust", "--only", only)
    options = (*given, "--probe", "--out", tmp_path / "run")
    assert (
        "4 of 4 planned runs recorded"
        in dokimos("run", suite, "--verifier", f"vnncomp={tool}", *options).out
    )
    judged = dokimos("judge", tmp_path / "run")
    assert judged.code == 1
    assert f"--verifier vnncomp={tool}:no-attack " in judged.out
    assert " ".join(given) in judged.out, "a command has every switch of the run"
    assert judged.out.count("reproduce: ") == 2
    assert f"--verifier vnncomp={tool} " not in judged.out


def test_verifiers_are_listed_with_how_to_get_them(dokimos: Dokimos) -> None:
    ran = dokimos("verifiers")
    assert ran.code == 0
    assert "marabou" in ran.out
    assert "dokimos verifiers install marabou" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--verifier", "maribou"], "did you mean 'marabou'"),
        (["--verifier", "marabou"], "not installed"),
        (["--verifier", "scripted", "--memory", "lots"], "write it like"),
        (["--verifier", "scripted", "--timeout", "nan"], "time limit nan is not a positive number"),
    ],
)
def test_bad_options_get_one_sentence(
    dokimos: Dokimos, suite: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    ran = dokimos("run", suite, "--out", tmp_path / "run", *words)
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "run").exists()


def test_what_is_no_campaign_is_refused(dokimos: Dokimos, tmp_path: Path) -> None:
    for command in (["judge", tmp_path], ["report", tmp_path, "--html", tmp_path / "page.html"]):
        ran = dokimos(*command)
        assert ran.code == 2
        assert str(tmp_path) in ran.err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("text", "count"), [("4GB", 4 * 10**9), ("512 MB", 512 * 10**6), ("1.5GiB", 3 * 2**29), ("100", 100)]
)
def test_amounts_of_memory(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "4PB", "four"])
def test_other_amounts_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_bytes(text)


def test_a_campaign_does_not_go_into_a_suite(dokimos: Dokimos, suite: Path) -> None:
    before = sorted(path.name for path in suite.iterdir())
    ran = dokimos("run", suite, "--verifier", "scripted", "--out", suite)
    assert ran.code == 2
    assert "is a suite" in ran.err
    assert sorted(path.name for path in suite.iterdir()) == before


def test_a_campaign_without_runs_is_not_judged(dokimos: Dokimos, suite: Path, tmp_path: Path) -> None:
    dokimos("run", suite, "--verifier", "scripted", "--out", tmp_path / "run")
    (tmp_path / "run" / "journal.jsonl").write_text("")
    judged = dokimos("judge", tmp_path / "run")
    assert judged.code == 2
    assert "it has no recorded runs yet" in judged.err


def test_only_takes_patterns_and_refuses_what_no_instance_is_named(
    dokimos: Dokimos, copy_of_tiny: Callable[[Path], Path], tmp_path: Path
) -> None:
    suite = copy_of_tiny(tmp_path / "suite")
    names = [path.stem for path in (suite / "vnnlib").iterdir()]
    start = names[0][:-1]
    wanted = [name for name in names if name.startswith(start)]
    command = ("run", suite, "--verifier", "scripted", "--out", tmp_path / "run", "--only")
    ran = dokimos(*command, f"{start}*")
    assert f"{len(wanted)} of {len(wanted)} planned runs recorded" in ran.out, ran.err
    assert "the suites have no instance of this name" in dokimos(*command, "nothing-*").err
    # Refused before a suite would be made.
    for nonsense in ("", "a/b", "a\nb"):
        ran = dokimos("run", "scale", "--verifier", "scripted", "--out", tmp_path / "x", "--only", nonsense)
        assert (ran.code, "is not the name of an instance" in ran.err) == (2, True)
    for pattern in ("nothing-*", "residual", "residuals-*", "exact-radius-*"):
        with pytest.raises(InputError, match="no instance of this name"):
            campaign_suites(["large"], [pattern], make_nothing)


def make_nothing(update: object) -> None:
    raise AssertionError(f"a suite is made: {update}")
