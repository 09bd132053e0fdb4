"""The action and the snippets of the documentation, run as far as that goes without a network."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def gate_script() -> str:
    """What the last step of the action has a shell run."""
    text = (ROOT / "action.yml").read_text()
    body = text.rpartition("      run: |\n")[2]
    return "".join(line.removeprefix("        ") for line in body.splitlines(keepends=True))


def run_step(folder: Path, **inputs: str) -> tuple[int, list[list[str]], str]:
    """Run the step with a `dokimos` that writes down what it is asked and leaves with CODE."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    fake = bin_folder / "dokimos"
    fake.write_text(
        f"#!{sys.executable}\nimport json, os, pathlib, sys\n"
        "pathlib.Path('gate').mkdir(exist_ok=True)\n"
        "pathlib.Path('gate/summary.md').write_text('## closed')\n"
        "print(json.dumps(sys.argv[1:]))\nsys.exit(int(os.environ['CODE']))\n"
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    summary = folder / "summary"
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(summary),
        **inputs,
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", gate_script()],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    import json

    calls = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, calls, summary.read_text() if summary.exists() else ""


@pytest.mark.parametrize("code", [0, 1])
def test_the_action_runs_the_gate_and_keeps_its_exit_code(tmp_path: Path, code: int) -> None:
    given = {"SUITES": "quick disjuncts", "VERIFIER": "mine=./my tool --fast", "JOBS": "2"}
    returned, calls, summary = run_step(
        tmp_path, **given, BASELINE="base line.json", BUDGET="10m", TIMEOUT="", CODE=str(code)
    )
    assert returned == code
    (words,) = calls
    assert words[:3] == ["gate", "quick", "disjuncts"]
    assert words[words.index("--verifier") + 1] == "mine=./my tool --fast"
    assert words[words.index("--baseline") + 1] == "base line.json"
    assert words[words.index("--budget") + 1] == "10m"
    assert "--timeout" not in words
    assert summary == "## closed"


def test_every_option_of_the_action_and_the_documentation_is_one_of_the_gate() -> None:
    from typer.main import get_command

    from dokimos.cli.app import app

    known = {
        option
        for parameter in get_command(app).commands["gate"].params  # type: ignore[attr-defined]
        for option in parameter.opts
    }
    page = (ROOT / "docs" / "gate.md").read_text()
    named = set(re.findall(r"(?<![\w'-])--[a-z][a-z-]+", page + gate_script())) - {"--fast"}
    assert named <= known
    assert named


def commands_of_the_page() -> list[str]:
    """Every whole command of the page on gates that runs one with files to write."""
    page = (ROOT / "docs" / "gate.md").read_text()
    return [line.strip(" -") for line in page.splitlines() if "dokimos gate " in line and "--junit" in line]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_action_and_the_commands_of_the_page_run_where_nothing_is_there_yet(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path, number: int
) -> None:
    """With the real `dokimos`, on a folder called quick and a tool that answers nothing: the gate closes,
    and all files are written."""
    copy_of_tiny(tmp_path / "quick")
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "run_instance.sh").write_text('echo unknown > "$5"\n')
    script = [gate_script(), *commands_of_the_page()][number]
    given = {"SUITES": "quick", "VERIFIER": "mine=./tool", "JOBS": "2"}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **given, "PATH": path, "GITHUB_STEP_SUMMARY": str(tmp_path / "shown")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "FAIL  answers nothing: mine decides none of its 4 runs" in done.stdout
    assert "answers nothing" in next(tmp_path.rglob("junit.xml")).read_text()
    assert next(tmp_path.rglob("report.html")).stat().st_size
    assert number != 0 or "Verifiers without any answer" in (tmp_path / "shown").read_text()
