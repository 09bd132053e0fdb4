"""Shells complete commands, options, and the names of suites, families and verifiers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Dokimos

SHELLS = ("bash", "zsh", "fish")
COMMAND = Path(sys.executable).with_name("dokimos")


def _question(shell: str, line: str) -> dict[str, str]:
    """How a shell asks the command what the last word of a line may become."""
    words = line.split(" ")
    return {
        "_DOKIMOS_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("dokimos ver", "verifiers"),
        ("dokimos check qui", "quick"),
        ("dokimos run quick sc", "scale"),
        ("dokimos generate --suite tw", "twins"),
        ("dokimos generate exclusive", "exclusive-pairs"),
        ("dokimos families par", "parity-lock"),
        ("dokimos run quick --verifier nnen", "nnenum"),
        ("dokimos gate quick --verifier mara", "marabou"),
        ("dokimos verifiers doctor never", "never2"),
        ("dokimos attack quick --attack pgd,uni", "pgd,units-leaky"),
        ("dokimos judge run --rules exact,vnncomp2026", "exact,vnncomp2026"),
        ("dokimos check my-", "my-suite"),
        ("dokimos run --tim", "--timeout"),
    ],
)
def test_names_are_completed(
    line: str, word: str, dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my-suite").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, value in _question("bash", line).items():
        monkeypatch.setenv(name, value)
    assert word in dokimos().out.splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_is_answered(shell: str, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "dokimos"],
        env=os.environ | _question(shell, "dokimos check qui"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert "quick" in found and "twins" not in found


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script_that_asks_the_command(shell: str, dokimos: Dokimos) -> None:
    ran = dokimos("completion", shell)
    assert ran.code == 0
    assert f"_DOKIMOS_COMPLETE=complete_{shell}" in ran.out
    if path := shutil.which(shell):
        words = [path, "--no-execute" if shell == "fish" else "-n"]
        assert subprocess.run(words, input=ran.out, text=True, check=False).returncode == 0


def test_other_shells_are_refused(dokimos: Dokimos) -> None:
    ran = dokimos("completion", "tcsh")
    assert ran.code == 2 and "'bash', 'zsh', 'fish'" in ran.err


@pytest.mark.skipif(not (shutil.which("bash") and COMMAND.exists()), reason="there is no bash")
def test_bash_completes_a_word(tmp_path: Path) -> None:
    script = """
eval "$(dokimos completion bash)"
COMP_WORDS=(dokimos check qui); COMP_CWORD=2
"$(complete -p dokimos | sed 's/.*-F \\([^ ]*\\).*/\\1/')" dokimos qui check
echo "${COMPREPLY[@]}"
"""
    ran = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.split() == ["quick"], ran.stderr
