"""Commands ask no other machine and write nothing outside their places, as a tracer sees it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from dokimos.networks.writing.builder import ModelBuilder
from tests.cli.test_law import DOMAIN, LAW

#: What asks another machine, or for its address: sockets of the internet, and servers of names here.
ATTEMPT = re.compile(r"AF_INET|nscd/socket|resolve/io\.systemd|resolv\.conf")
WRITTEN = re.compile(r'open(?:at)?\([^"\n]*"(?P<path>[^"\n]*)", [^)\n]*O_(?:CREAT|WRONLY|RDWR)')
TRACE = ("strace", "-f", "-qq", "--seccomp-bpf", "-s", "4096", "-e", "trace=%network,open,openat")
#: In a namespace that has no network, nothing leaves even if the test fails.
EMPTY = ("unshare", "--map-root-user", "--net")
COMMAND = (sys.executable, "-m", "dokimos")


@cache
def works(*command: str) -> bool:
    """Whether this machine allows a program to be started behind this command."""
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0


def trace(
    words: Sequence[object], folder: Path, **more: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a command with a home of its own in `folder`; return how it ended and what the tracer saw."""
    if not works(*TRACE):
        pytest.skip("no strace here, or the system lets it trace nothing")
    seen = folder / "trace"
    places = {name: str(folder / name.lower()) for name in ("HOME", "TMPDIR", "DOKIMOS_HOME")}
    for place in places.values():
        Path(place).mkdir(exist_ok=True)
    hidden = {"ORT_DISABLE_TELEMETRY", "CI", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [*TRACE, "-o", str(seen), *(EMPTY if works(*EMPTY) else ()), *map(str, words)],
        env=kept | places | {"PYTHONDONTWRITEBYTECODE": "1"} | more,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done, seen.read_text(encoding="utf-8", errors="replace")


def attempts(seen: str) -> list[str]:
    return [line for line in seen.splitlines() if ATTEMPT.search(line)]


def written_outside(seen: str, folder: Path) -> set[str]:
    """The files outside the folder that were opened to be written; those of the system do not count."""
    paths = {match["path"] for match in WRITTEN.finditer(seen)}
    absolute = {os.path.normpath(folder / path) for path in paths}
    ours = (str(folder), "/dev/", "/proc/", "/sys/fs/cgroup/")
    return {path for path in absolute if not path.startswith(ours)}


@pytest.fixture
def files(tmp_path: Path, copy_of_tiny: Callable[[Path], Path]) -> Path:
    copy_of_tiny(tmp_path / "suite")
    (tmp_path / "people.py").write_text(DOMAIN)
    (tmp_path / "income.law").write_text(LAW)
    (tmp_path / "fine.onnx").write_bytes(ModelBuilder([2]).affine([[0, 0], [0, 1]], [5, 0]).build(2))
    network, asked, _ = (tmp_path / "suite" / "instances.csv").read_text().splitlines()[0].split(",")
    shutil.copy(tmp_path / "suite" / network, tmp_path / "network.onnx")
    shutil.copy(tmp_path / "suite" / asked, tmp_path / "asked.vnnlib")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("check", "suite", "--jobs", "2"),
        ("audit", "suite"),
        ("replay", "network.onnx", "asked.vnnlib", "POINT"),
        ("law", "test", "income.law", "--model", "fine.onnx", "--budget", "200"),
        ("run", "suite", "--verifier", "scripted", "--timeout", "5", "--out", "campaign"),
        ("judge", "campaign"),
    ],
    ids=lambda words: " ".join(words[:2]) if words[0] == "law" else words[0],
)
def test_a_command_asks_no_other_machine_and_writes_nowhere_else(
    files: Path, words: tuple[str, ...]
) -> None:
    if "POINT" in words:
        size = (files / "asked.vnnlib").read_text().count("(declare-const X_")
        words = (*words[:-1], ",".join(["0"] * size))
    if words[0] == "judge":
        done, _ = trace(
            [*COMMAND, "run", "suite", "--verifier", "scripted", "--timeout", "5", "--out", "campaign"],
            files,
        )
        assert done.returncode == 0, done.stderr
    done, seen = trace([*COMMAND, *words], files)
    assert done.returncode in (0, 1), done.stderr
    assert "onnxruntime" in seen or words[0] == "run"
    assert attempts(seen) == []
    assert written_outside(seen, files) == set()
    assert list((files / "home").iterdir()) == []


def test_the_tracer_sees_an_attempt_and_a_file_written_elsewhere(tmp_path: Path) -> None:
    elsewhere, inside = tmp_path / "elsewhere", tmp_path / "inside"
    inside.mkdir()
    program = "import socket, sys; open(sys.argv[1], 'w'); socket.getaddrinfo('localhost.invalid', 443)"
    done, seen = trace([sys.executable, "-c", program, elsewhere], inside)
    assert "gaierror" in done.stderr
    assert attempts(seen) != []
    assert written_outside(seen, inside) == {str(elsewhere)}


def test_onnxruntime_is_told_before_it_is_loaded_and_so_are_verifiers() -> None:
    program = (
        "import os, dokimos; print(os.environ['ORT_DISABLE_TELEMETRY']);"
        "from dokimos.verifiers.script_guard import allowed_environment as given;"
        "os.environ.clear(); print(given()['ORT_DISABLE_TELEMETRY'])"
    )
    kept = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=kept, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1"]
