"""The action and the snippets of the documentation: read by a YAML parser, and run."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scripting import script

ROOT = Path(__file__).parents[2]
#: Stands for `python3`: writes down what was to be installed, which is installed here already.
_INSTALLS = """#!/bin/sh
[ "$1 $2 $3 $4 $5" = "-m pip install --quiet --no-deps" ] || exit 99
shift 5
case "$1 $2 $3 $4" in
"--require-hashes --only-binary :all: -r") [ -f "$5" ] && [ $# = 5 ] || exit 99 ;;
"--no-build-isolation "*) [ -f "$2/pyproject.toml" ] && [ $# = 2 ] || exit 99 ;;
*) exit 99 ;;
esac
for last; do :; done
echo "$last" >> "$INSTALLED"
"""
#: Stands for `dokimos`: writes down what it is asked, and leaves with CODE.
_ASKED = f"""#!{sys.executable}
import json, os, pathlib, sys
pathlib.Path('gate').mkdir(exist_ok=True)
pathlib.Path('gate/summary.md').write_text('## closed')
print(json.dumps(sys.argv[1:]))
sys.exit(int(os.environ['CODE']))
"""


def action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text())


def run_action(
    workspace: Path, given: Mapping[str, str], programs: Mapping[str, str], **variables: str
) -> tuple[int, str, str]:
    """Run all steps of the action as the runner does, in an empty folder, with these programs first on the
    path; returns the exit code, what was printed, and what the page of the job shows."""
    read = action()
    inputs = {name: given.get(name, declared.get("default")) for name, declared in read["inputs"].items()}
    assert not given.keys() - inputs.keys()
    workspace.mkdir()
    beside = workspace.parent / "runner"
    beside.mkdir(exist_ok=True)
    for name, text in programs.items():
        (beside / name).write_text(text)
        (beside / name).chmod(stat.S_IRWXU)
    shown = beside / "shown.md"
    shown.write_text("")
    environment = {
        **os.environ,
        "PATH": f"{beside}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(shown),
        "INSTALLED": str(beside / "installed"),
        **variables,
    }
    printed = ""
    for step in read["runs"]["steps"]:
        assert step["shell"] == "bash"
        own = {name: _substituted(value, inputs) for name, value in step.get("env", {}).items()}
        (beside / "step.sh").write_text(_substituted(step["run"], inputs))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(beside / "step.sh")],
            cwd=workspace,
            env=environment | own,
            capture_output=True,
            text=True,
            check=False,
        )
        printed += done.stdout
        if done.returncode:
            return done.returncode, printed, shown.read_text()
    return 0, printed, shown.read_text()


def _substituted(text: str, inputs: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ *inputs\.(\w+) *\}\}", lambda found: inputs[found[1]], text)


def test_the_action_is_one_that_the_runner_can_read() -> None:
    read = action()
    assert read["runs"]["using"] == "composite"
    assert all(isinstance(text, str) for text in (read["name"], read["description"]))
    for declared in read["inputs"].values():
        assert isinstance(declared["description"], str)
        assert isinstance(declared.get("default", ""), str)
        assert ("default" in declared) != (declared.get("required") is True)
    used = set(re.findall(r"\$\{\{(.*?)\}\}", (ROOT / "action.yml").read_text()))
    assert {each.strip() for each in used} == {f"inputs.{name}" for name in read["inputs"]}


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("suites", ["quick disjuncts", "quick\n  disjuncts\n"])
def test_the_action_asks_the_gate_and_keeps_its_exit_code(tmp_path: Path, code: int, suites: str) -> None:
    given = {"suites": suites, "verifier": "mine=./my tool --fast", "baseline": "base line.json"}
    returned, printed, shown = run_action(
        tmp_path / "workspace",
        {**given, "budget": "10m"},
        {"python3": _INSTALLS, "dokimos": _ASKED},
        CODE=str(code),
    )
    assert returned == code
    words = json.loads(printed)
    assert words[:4] == ["gate", "quick", "disjuncts", "--verifier"]
    assert words[words.index("--verifier") + 1] == "mine=./my tool --fast"
    assert words[words.index("--baseline") + 1] == "base line.json"
    assert words[words.index("--budget") + 1] == "10m"
    assert "--timeout" not in words
    assert shown == "## closed"
    assert (tmp_path / "runner" / "installed").read_text().split() == [
        f"{ROOT}/requirements/core.txt",
        str(ROOT),
    ]


@pytest.mark.parametrize(
    ("behaviour", "code", "words"),
    [
        ("right", 0, "✅ dokimos gate"),
        ("wrong", 1, "❌ dokimos gate"),
        ("crash", 1, "Verifiers without any answer"),
    ],
)
def test_the_steps_of_the_action_run_in_an_empty_folder(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path, behaviour: str, code: int, words: str
) -> None:
    """With the real `dokimos`: only its installation is left out, as it is installed here."""
    given = {"verifier": "mine=scripted", "suites": str(copy_of_tiny(tmp_path / "suite"))}
    follows = script(tmp_path / "script.json", default={"behaviour": behaviour})
    workspace = tmp_path / "workspace"
    returned, printed, shown = run_action(
        workspace, given, {"python3": _INSTALLS}, DOKIMOS_SCRIPT=str(follows), DOKIMOS_HOME=str(tmp_path)
    )
    assert returned == code, printed
    assert words in shown
    files = {"junit.xml", "report.html", "summary.md"}
    assert all((workspace / "gate" / name).stat().st_size for name in files)
    assert (workspace / "gate" / "failures" / "README.md").exists() == (behaviour == "wrong")


def test_the_action_shows_no_summary_of_an_earlier_gate(tmp_path: Path) -> None:
    ends_early = "#!/bin/sh\nexit 2\n"
    (step,) = (step for step in action()["runs"]["steps"] if "gate" in step["run"])
    step_alone = step["run"].replace("rm -f", "mkdir -p gate && echo green > gate/summary.md\nrm -f", 1)
    (tmp_path / "dokimos").write_text(ends_early)
    (tmp_path / "dokimos").chmod(stat.S_IRWXU)
    path, shown = f"{tmp_path}:{os.environ['PATH']}", tmp_path / "shown"
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step_alone],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "SUITES": "quick", "GITHUB_STEP_SUMMARY": str(shown)},
        check=False,
    )
    assert done.returncode == 2
    assert not shown.exists()


def snippets_of_the_page() -> list[Any]:
    page = (ROOT / "docs" / "gate.md").read_text()
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


def test_the_snippets_of_the_page_are_yaml_and_keep_the_folder_of_the_gate() -> None:
    github, gitlab = snippets_of_the_page()
    (own,) = (step for step in github["jobs"]["gate"]["steps"] if "dokimos" in step["uses"])
    declared = action()["inputs"]
    assert own["with"].keys() <= declared.keys()
    assert {name for name, one in declared.items() if one.get("required")} <= own["with"].keys()
    kept = github["jobs"]["gate"]["steps"][-1]
    assert kept["if"] == "always()"
    assert kept["with"]["path"] == "gate/"
    assert gitlab["gate"]["artifacts"]["paths"] == ["gate/"]


def test_every_option_of_the_action_and_the_documentation_is_one_of_the_gate() -> None:
    from dokimos.cli.app import command_line

    known = {option for parameter in command_line().commands["gate"].params for option in parameter.opts}
    page = (ROOT / "docs" / "gate.md").read_text()
    asked = action()["runs"]["steps"][-1]["run"]
    named = set(re.findall(r"(?<![\w'-])--[a-z][a-z-]+", page + asked)) - {"--fast", "--no-pgd"}
    named -= {"--from", "--known", "--slow"}  # of hunts, whose findings a gate asks again
    assert named <= known
    assert named


def commands_of_the_page() -> list[str]:
    """Every whole command of the page on gates that runs one with files to write."""
    page = (ROOT / "docs" / "gate.md").read_text()
    return [line.strip(" -") for line in page.splitlines() if "dokimos gate " in line and "--junit" in line]


@pytest.mark.parametrize("number", [0, 1])
def test_the_commands_of_the_page_run_where_nothing_is_there_yet(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path, number: int
) -> None:
    """With the real `dokimos`, on a folder called quick and a tool that answers nothing: the gate closes,
    and all files are written."""
    copy_of_tiny(tmp_path / "quick")
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "run_instance.sh").write_text('echo unknown > "$5"\n')
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", commands_of_the_page()[number]],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "FAIL  answers nothing: mine decides none of its 4 runs on quick" in done.stdout
    assert "answers nothing" in next(tmp_path.rglob("junit.xml")).read_text()
    assert next(tmp_path.rglob("report.html")).stat().st_size
