"""`dokimos gate` from the command line: files, exit codes, baselines, second tries."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.campaigns.campaign import read_campaign
from dokimos.suites.facts import in_order
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Label
from tests.cli.conftest import Dokimos
from tests.scripting import script as write_script

#: A solver whose attack knows every counterexample, and whose proofs prove everything.
FLAWED = """#!/usr/bin/env python3
import hashlib, pathlib, sys
network = pathlib.Path(sys.argv[sys.argv.index("--network") + 1].partition("=")[2])
known = pathlib.Path(__file__).with_name(hashlib.sha256(network.read_bytes()).hexdigest())
print(known.read_text() if known.exists() and "--quiet" not in sys.argv else "unsat")
"""


@pytest.fixture
def suite(copy_of_tiny: Callable[[Path], Path], tmp_path: Path) -> Path:
    return copy_of_tiny(tmp_path / "suite")


def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **content: object) -> None:
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(write_script(tmp_path / "script.json", **content)))


def behave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, behaviour: str) -> None:
    script(monkeypatch, tmp_path, default={"behaviour": behaviour})


def test_the_gate_opens_closes_and_says_what_has_changed(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: tmp_path / name for name in ("junit.xml", "summary.md", "report.html")}
    command = ("gate", suite, "--verifier", "mine=scripted", "--out", tmp_path / "gate")
    behave(monkeypatch, tmp_path, "right")
    written = (
        "--junit",
        files["junit.xml"],
        "--markdown",
        files["summary.md"],
        "--html",
        files["report.html"],
    )
    ran = dokimos(*command, *written)
    assert ran.code == 0
    power = "mine: 2 of 2 counterexamples found by its own attack: 0 instances tested its proofs; it "
    assert ran.out.startswith(f"power  {power}has no switch for its attack.\nThe gate is open")
    assert all(power in files[name].read_text() for name in ("summary.md", "report.html"))
    assert all(path.stat().st_size for path in files.values())
    behave(monkeypatch, tmp_path, "wrong")
    ran = dokimos(*command)
    assert ran.code == 1
    assert "FAIL  wrong: mine on suite/" in ran.out
    assert "new wrong" in ran.out
    behave(monkeypatch, tmp_path, "right")
    ran = dokimos(*command)
    assert ran.code == 0
    assert "mended" in ran.out


def test_a_tool_that_only_fails_does_not_pass(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave(monkeypatch, tmp_path, "crash")
    ran = dokimos("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate")
    assert ran.code == 1
    assert "answers nothing: scripted decides none of its" in ran.out


def test_a_baseline_holds_what_was_right(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline = tmp_path / "baseline.json"
    command = ("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate", "--baseline", baseline)
    behave(monkeypatch, tmp_path, "right")
    assert dokimos(*command).code == 2
    assert dokimos(*command, "--update-baseline").code == 0
    first, *_ = json.loads(baseline.read_text())["runs"]
    others = {name: {"behaviour": "right"} for name in _names(suite) if name != first["instance"]}
    script(monkeypatch, tmp_path, default={"behaviour": "garbage"}, instances=others)
    ran = dokimos(*command)
    assert ran.code == 1
    assert f"no longer right: scripted on suite/{first['instance']}" in ran.out


def test_what_was_near_its_limit_is_tried_twice(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline, executions = tmp_path / "baseline.json", tmp_path / "executions"
    command = ("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate", "--baseline", baseline)
    behave(monkeypatch, tmp_path, "right")
    assert dokimos(*command, "--update-baseline").code == 0
    held = json.loads(baseline.read_text())
    held["runs"][0]["seconds"] = held["runs"][0]["limit_seconds"]
    near = held["runs"][0]["instance"]
    baseline.write_text(json.dumps(held))
    others = {name: {"behaviour": "right"} for name in _names(suite) if name != near}
    script(
        monkeypatch,
        tmp_path,
        default={"behaviour": "garbage"},
        instances=others,
        executions=str(executions),
    )
    assert dokimos(*command).code == 1
    assert executions.read_text().split().count(near) == 2


def test_a_budget_takes_the_first_of_a_fixed_order_and_says_what_is_left_out(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that runs use counts: one that hangs uses its limit, quick ones leave room for all."""
    first, *_ = (entry.name for entry in in_order(read_suite(suite).entries))
    command = ("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate", "--timeout", "1")
    behave(monkeypatch, tmp_path, "hang")
    ran = dokimos(*command, "--budget", "1.9s")
    assert ran.code == 1
    assert "note  left out: 3 of 4 instances of suite: the budget is 1.9 s with 1 job" in ran.out
    assert [record.instance for record in read_campaign(tmp_path / "gate").records] == [first]
    judged = dokimos("judge", tmp_path / "gate")
    assert "missing" not in judged.err + judged.out
    behave(monkeypatch, tmp_path, "right")
    whole = dokimos(*command, "--budget", "10m")
    assert whole.code == 0
    assert "4 of 4 answers are right" in whole.out
    assert "left out" not in whole.out


def test_two_jobs_have_twice_the_budget(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave(monkeypatch, tmp_path, "right")
    words = ("--timeout", "10", "--budget", "20s", "--jobs", "2", "--out", tmp_path / "gate")
    ran = dokimos("gate", suite, "--verifier", "scripted", *words)
    assert ran.code == 0
    assert "4 of 4 answers are right" in ran.out
    assert "left out" not in ran.out


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("5s", "too small for the first instance"),
        ("soon", "is not an amount of time"),
        ("0m", "is not an amount of time"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_one_sentence(
    dokimos: Dokimos, suite: Path, tmp_path: Path, budget: str, words: str
) -> None:
    given = ("--timeout", "10", "--budget", budget, "--out", tmp_path / "gate")
    ran = dokimos("gate", suite, "--verifier", "scripted", *given)
    assert ran.code == 2
    assert words in ran.err
    assert not (tmp_path / "gate").exists()


def test_other_verifiers_in_the_same_folder_do_not_count(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("gate", suite, "--out", tmp_path / "gate", "--verifier")
    behave(monkeypatch, tmp_path, "wrong")
    assert dokimos(*command, "bad=scripted").code == 1
    behave(monkeypatch, tmp_path, "right")
    ran = dokimos(*command, "good=scripted")
    power, said = ran.out.splitlines()
    assert (ran.code, said) == (0, "The gate is open: 4 of 4 answers are right, 0 wrong.")
    assert power.startswith("power  good: ")
    behave(monkeypatch, tmp_path, "wrong")
    assert "new wrong" not in dokimos(*command, "bad=scripted").out, "what it did the last time is kept"


def test_a_baseline_that_is_to_be_updated_must_be_named(dokimos: Dokimos, suite: Path) -> None:
    ran = dokimos("gate", suite, "--verifier", "scripted", "--update-baseline")
    assert ran.code == 2
    assert "--baseline" in ran.err


def test_a_budget_that_leaves_a_suite_without_any_instance_is_too_small(
    dokimos: Dokimos, suite: Path, tmp_path: Path
) -> None:
    """Else the gate would be open over a suite of which nothing was run."""
    shutil.copytree(suite, tmp_path / "other")
    words = ("--verifier", "scripted", "--timeout", "10", "--budget", "15s", "--out", tmp_path / "gate")
    ran = dokimos("gate", suite, tmp_path / "other", *words)
    assert ran.code == 2
    assert "too small for the first instance of each suite (suite, other)" in ran.err


def tool_with_a_module(folder: Path, kind: str) -> str:
    """A command, or the folder of a tool, that takes its answers from a file beside it."""
    source = f'. "{folder}/module.sh"; say "$*"'
    if kind == "command":
        command = folder / "tool.sh"
        command.write_text(f"#!/bin/sh\n{source}\n")
        command.chmod(0o755)
        return str(command)
    (folder / "tool").mkdir()
    (folder / "tool" / "run_instance.sh").write_text(f'{source} > "$5"\n')
    return str(folder / "tool")


@pytest.mark.parametrize("kind", ["command", "folder"])
@pytest.mark.parametrize("version", ["", ",version=1"])
def test_what_a_tool_at_a_place_said_is_not_said_again_unless_its_version_is_given(
    dokimos: Dokimos, suite: Path, tmp_path: Path, kind: str, version: str
) -> None:
    """Its files do not show that a module, which they load, says `unsat` to everything now."""
    place = tool_with_a_module(tmp_path, kind)
    robust = next(name for name in _names(suite) if _label(suite, name) == "unsat")
    careful = f'say() {{ case "$1" in *{robust}*) echo unsat;; *) echo unknown;; esac; }}'
    (tmp_path / "module.sh").write_text(careful)
    command = ("gate", suite, "--verifier", f"mine={place}{version}", "--out", tmp_path / "gate")
    assert dokimos(*command).code == 0
    (tmp_path / "module.sh").write_text("say() { echo unsat; }")
    ran = dokimos(*command)
    assert ("4 reused" in ran.err, ran.code) == ((True, 0) if version else (False, 1))
    assert version or "2 new wrong" in ran.out


def test_a_verifier_that_is_called_by_other_words_is_run_again(
    dokimos: Dokimos, suite: Path, tmp_path: Path
) -> None:
    (tmp_path / "module.sh").write_text('say() { case "$1" in *--rash*) echo unsat;; *) echo sat;; esac; }')
    place = tool_with_a_module(tmp_path, "command")
    command = ("gate", suite, "--out", tmp_path / "gate", "--verifier")
    assert "wrong-unsat" not in dokimos(*command, f"mine={place},version=1").out
    assert "wrong-unsat" in dokimos(*command, f"mine={place} --rash,version=1").out


def test_an_answer_lost_to_a_timeout_is_tried_once_more(
    dokimos: Dokimos, suite: Path, tmp_path: Path
) -> None:
    """Though it took a fraction of its limit before: a busy machine is no regression."""
    robust = next(name for name in _names(suite) if _label(suite, name) == "unsat")
    place, module, tries = (
        tool_with_a_module(tmp_path, "command"),
        tmp_path / "module.sh",
        tmp_path / "tries",
    )
    baseline = tmp_path / "baseline.json"
    command = ("gate", suite, "--verifier", f"mine={place}", "--only", robust, "--baseline", baseline)
    command = (*command, "--timeout", "1000", "--trust", "--out", tmp_path / "gate")
    module.write_text("say() { echo unsat; }")
    assert dokimos(*command, "--update-baseline").code == 0
    module.write_text(
        f'say() {{ echo x >> {tries}; [ "$(wc -l < {tries})" -gt 1 ] && echo unsat || echo timeout; }}'
    )
    assert dokimos(*command).code == 0
    assert len(tries.read_text().split()) == 2
    module.write_text(f"say() {{ echo x >> {tries}; echo timeout; }}")
    ran = dokimos(*command)
    assert ran.code == 1
    assert "no longer right" in ran.out
    assert len(tries.read_text().split()) == 4


def test_a_label_that_fails_its_proof_closes_the_gate_though_the_tool_agrees_with_it(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    false, robust = (
        next(suite / "truth" / f"{n}.json" for n in _names(suite) if _label(suite, n) == label)
        for label in ("sat", "unsat")
    )
    proof = json.loads(robust.read_text())
    false.write_text(json.dumps({**proof, "sha256": json.loads(false.read_text())["sha256"]}))
    behave(monkeypatch, tmp_path, "right")  # it takes the label from the suite
    ran = dokimos("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate")
    assert ran.code == 2
    assert f"FAIL  label fails: the label of suite/{false.stem} fails" in ran.out
    kept = tmp_path / "gate" / "failures"
    assert f"the label of suite/{false.stem} fails" in (kept / "README.md").read_text()
    assert dokimos("check", kept / "suite").code == 1


def test_a_suite_without_labels_opens_no_gate(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(suite / "truth")
    script(monkeypatch, tmp_path, default={"behaviour": "says", "answer": "unsat"})
    ran = dokimos("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate")
    assert ran.code == 1
    assert "answers nothing: none of the 4 answers of scripted on suite can be judged" in ran.out


def test_a_gate_that_ends_early_leaves_no_earlier_summary(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CI shows the files whatever happened: a kept folder must not show the last green gate."""
    behave(monkeypatch, tmp_path, "right")
    files = tmp_path / "junit.xml", tmp_path / "summary.md"
    command = ("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate")
    command = (*command, "--junit", files[0], "--markdown", files[1])
    assert dokimos(*command).code == 0
    assert all(file.stat().st_size for file in files)
    assert dokimos(*command, "--baseline", tmp_path / "gone.json").code == 2
    assert not any(file.stat().st_size for file in files)


def test_what_is_kept_of_failures_shows_them_without_suite_cache_or_tool(
    dokimos: Dokimos, suite: Path, tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As CI does: the folder is taken elsewhere, and the commands are run there."""
    monkeypatch.chdir(tmp_path)
    violated = [name for name in _names(suite) if _label(suite, name) == "sat"]
    robust = [name for name in _names(suite) if _label(suite, name) == "unsat"]
    given = {
        violated[0]: {"behaviour": "wrong"},
        violated[1]: {"behaviour": "outside-witness"},
        robust[0]: {"behaviour": "outside-witness"},
    }
    script(monkeypatch, tmp_path, default={"behaviour": "right"}, instances=given)
    command = ("gate", "suite", "--verifier", "mine=scripted", "--markdown", "gate/summary.md")
    command = (*command, "--junit", "gate/junit.xml", "--html", "gate/report.html")
    ran = dokimos(*command)
    assert ran.code == 1
    shutil.copytree("gate", "elsewhere/gate")
    for gone in (suite, tmp_path / "gate", own_home, tmp_path / "script.json"):
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    monkeypatch.delenv("DOKIMOS_SCRIPT")
    monkeypatch.chdir("elsewhere")
    kept = Path("gate/failures")
    summary = re.findall(r"replay: `(.*)`", Path("gate/summary.md").read_text())
    junit = re.findall(r"^replay: (.*?)(?:</.*)?$", Path("gate/junit.xml").read_text(), re.MULTILINE)
    page = Path("gate/report.html").read_text()
    printed = re.findall(r"^ +(dokimos replay .*)", ran.out, re.MULTILINE)
    assert sorted(summary) == sorted(junit) == sorted(printed)
    assert [line for line in summary if line in page], "the page has that of the wrong unsat"
    assert set(re.findall(r"dokimos replay [^<\n]*", page)) <= set(summary)
    assert _replayed(dokimos, summary) == {
        violated[0]: (1, "exactly: it violates the property"),
        violated[1]: (0, "exactly: no violation, since it is outside the box"),
        robust[0]: (0, "exactly: no violation, since it is outside the box"),
    }
    monkeypatch.chdir(kept)
    commands = re.findall(r"^ +(dokimos .*)", Path("README.md").read_text(), re.MULTILINE)
    replays = [line for line in commands if line.startswith("dokimos replay")]
    assert _replayed(dokimos, replays).keys() == {*violated[:2], robust[0]}
    (check,) = (line for line in commands if line.startswith("dokimos check"))
    assert "3 of 3 labels proven" in dokimos(*shlex.split(check)[1:]).out
    (gate,) = (line for line in commands if line.startswith("dokimos gate"))
    again = shlex.split(gate.replace("NAME=PLACE", "scripted"))[1:]
    assert "3 of 3 answers are right" in dokimos(*again).out


def test_what_was_kept_of_failures_goes_when_they_are_mended(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate")
    behave(monkeypatch, tmp_path, "no-witness")
    assert dokimos(*command).code == 1
    names = {file.stem for file in (tmp_path / "gate" / "failures" / "suite" / "onnx").iterdir()}
    assert names == set(_names(suite))
    behave(monkeypatch, tmp_path, "right")
    assert dokimos(*command).code == 0
    assert not (tmp_path / "gate" / "failures").exists()


def _replayed(dokimos: Dokimos, commands: list[str]) -> dict[str, tuple[int, str]]:
    """What the replay of each instance says: its exit code, and the line about the exact value."""
    found = {}
    for line in commands:
        words = shlex.split(line)[1:]
        ran = dokimos(*words)
        exactly = next(each for each in ran.out.splitlines() if each.startswith("exactly"))
        found[Path(words[1]).stem] = (ran.code, exactly.partition(", margin")[0])
    return found


def _label(suite: Path, name: str) -> str:
    label: str = json.loads((suite / "truth" / f"{name}.json").read_text())["label"]
    return label


def _names(suite: Path) -> list[str]:
    return sorted(path.stem for path in (suite / "truth").glob("*.json"))


def test_a_tool_with_a_switch_is_asked_again_without_its_attack_where_it_answered_sat(
    dokimos: Dokimos, suite: Path, tmp_path: Path
) -> None:
    """Its attack hides that its proofs are wrong, until it is asked without it."""
    tool = tmp_path / "tool"
    tool.write_text(FLAWED, encoding="utf-8")
    tool.chmod(0o755)
    command = ("gate", suite, "--verifier", f"mine={tool},no_attack=--quiet", "--out", tmp_path / "gate")
    truths = {entry: entry.read_truth() for entry in read_suite(suite).entries}
    sat = {entry: truth for entry, truth in truths.items() if truth and truth.label is Label.SAT}
    for entry, truth in sat.items():
        values = "".join(f"(X_{k} {float(x)!r})" for k, x in enumerate(truth.witness or ()))
        (tmp_path / entry.network_sha256).write_text(f"sat\n({values})", encoding="utf-8")
    ran = dokimos(*command, "--json")
    assert ran.code == 1
    tables = json.loads(ran.out)["tables"]
    assert {row["verifier"] for row in tables["findings"] if row["kind"] == "wrong"} == {"mine:no-attack"}
    (power,) = tables["power"]
    assert (power["counterexamples"], power["found"], power["tested"]) == (len(sat), len(sat), 0)
    assert power["tested_without_attack"] == len(sat)
    records = read_campaign(tmp_path / "gate").records
    assert sorted(r.instance for r in records if r.verifier == "mine:no-attack") == sorted(
        e.name for e in sat
    )
    said = dokimos(*command)
    assert f"power  mine: {len(sat)} of {len(sat)} counterexamples found by its own attack" in said.out
