"""Scripts of tools do not reach the user's processes.

Only a process of a unique name is ever killed by name here: a copy of a program under a name of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import dokimos
from dokimos.campaigns.campaign import run_campaign
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import VerifierUnavailable
from dokimos.suites.answers import Answer
from dokimos.verifiers import script_guard
from dokimos.verifiers.base import Query
from dokimos.verifiers.catalogue import VERIFIERS, find
from dokimos.verifiers.placed import RepositoryTool
from dokimos.verifiers.script_guard import BY_STAND_INS, TRUSTED, refusal, why_not_isolated
from tests.scripting import at_least, instance

ANSWER = 'echo unsat > "$5"\n'
#: Ends what has this name in /proc, as pkill does, and needs no program for it.
BY_PROC = """for p in /proc/[0-9]*; do
  [ "$(cat $p/comm 2>/dev/null)" = {name} ] && kill -9 "${{p#/proc/}}"
done
exit 0
"""
needs_isolation = pytest.mark.skipif(why_not_isolated() is not None, reason="no isolation here")
needs_pkill = pytest.mark.skipif(shutil.which("pkill") is None, reason="there is no pkill")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of a name that nothing else has."""
    program = tmp_path / f"dk{uuid.uuid4().hex[:12]}"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([str(program), "600"]) as process:
        try:
            yield process
        finally:
            process.kill()


def name_of(process: subprocess.Popen[bytes]) -> str:
    """The name that the fixture made up, once the process has it."""
    assert isinstance(process.args, list)
    name = Path(process.args[0]).name
    assert name.startswith("dk") and len(name) == 14
    while Path(f"/proc/{process.pid}/comm").read_text().strip() != name:
        time.sleep(0.01)
    return name


def run(tmp_path: Path, prepare: str, *, kind: str = "vnncomp", trust: bool = False) -> RunRecord:
    tool = tmp_path / "tool"
    tool.mkdir()
    (tool / "run_instance.sh").write_text(ANSWER)
    (tool / "prepare_instance.sh").write_text(prepare)
    suite = CampaignSuite(tmp_path / "s", (instance(tmp_path / "s", "i", asked=at_least("0.5")),))
    [record] = run_campaign(
        [suite],
        [find(f"{kind}={tool}")],
        out=tmp_path / "out",
        settings=RunSettings(timeout_seconds=30, trust=trust),
    ).records
    return record


@needs_isolation
def test_a_script_that_kills_by_name_does_not_reach_outside(
    tmp_path: Path, outside: subprocess.Popen[bytes]
) -> None:
    record = run(tmp_path, BY_PROC.format(name=name_of(outside)))
    assert record.answer is Answer.UNSAT, record.detail
    assert record.guard.startswith("isolated: no network; it writes to its folder and ")
    assert outside.poll() is None


def test_a_trusted_script_does_reach_outside(tmp_path: Path, outside: subprocess.Popen[bytes]) -> None:
    record = run(tmp_path, BY_PROC.format(name=name_of(outside)), trust=True)
    assert (record.answer, record.guard) == (Answer.UNSAT, TRUSTED), record.detail
    assert outside.wait(20) == -9


@needs_pkill
@pytest.mark.parametrize("trust", [False, True])
def test_without_namespaces_the_first_on_the_path_is_harmless(
    tmp_path: Path, outside: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, trust: bool
) -> None:
    monkeypatch.setattr(script_guard, "why_not_isolated", lambda: "it may not")
    name = name_of(outside)
    record = run(tmp_path, f"pkill -9 -x {name} 2>/dev/null\nrmmod none-such-{name}; exit 0\n", trust=trust)
    log = (tmp_path / "out" / record.log).read_text()
    if trust:
        assert record.guard == TRUSTED and outside.wait(20) == -9
        return
    assert (record.answer, record.guard) == (Answer.UNSAT, BY_STAND_INS), log
    assert outside.poll() is None
    assert f"called `pkill -9 -x {name}`; nothing was done" in log
    assert f"called `rmmod none-such-{name}`; nothing was done" in log


@needs_isolation
def test_in_a_namespace_what_reaches_beyond_processes_is_harmless_too(tmp_path: Path) -> None:
    record = run(tmp_path, "rmmod none-such && modprobe none-such && sudo -n true && exit 0\nexit 9\n")
    assert record.answer is Answer.UNSAT
    log = (tmp_path / "out" / record.log).read_text()
    assert [line.split("`")[1] for line in log.splitlines()] == [
        "rmmod none-such", "modprobe none-such", "sudo -n true"
    ]  # fmt: skip


@needs_isolation
def test_process_1_of_the_namespace_outlives_what_its_scripts_kill(tmp_path: Path) -> None:
    """As what is meant by `killall python3` would otherwise end our own runner: here by its number."""
    record = run(tmp_path, "[ $PPID -eq 1 ] || exit 9\nkill -9 1; kill -TERM 1; kill -INT 1\nexit 0\n")
    assert record.answer is Answer.UNSAT, record.detail


@needs_isolation
def test_a_failing_script_fails_as_before(tmp_path: Path) -> None:
    record = run(tmp_path, "kill -SEGV $$\n")
    assert record.answer is Answer.ERROR
    assert "prepare_instance.sh exited with code 139" in record.detail


def test_what_prepares_known_tools_is_not_called(tmp_path: Path) -> None:
    record = run(tmp_path, f"touch {tmp_path}/prepared\n", kind="pyrat")
    assert record.answer is Answer.UNSAT
    assert not (tmp_path / "prepared").exists()


@pytest.mark.parametrize("kind", ["alpha-beta-crown", "nnenum"])
def test_of_tools_in_repositories_no_script_is_called(tmp_path: Path, kind: str) -> None:
    known = VERIFIERS[kind]
    assert isinstance(known, RepositoryTool)
    main = tmp_path / "tool" / known.main
    main.parent.mkdir(parents=True)
    main.touch()
    for script in ("run_instance.sh", "prepare_instance.sh"):
        (tmp_path / "tool" / script).write_text(f"touch {tmp_path}/called\n")
    files = {"network_file": tmp_path / "n", "property_file": tmp_path / "p", "folder": tmp_path}
    query = Query(name="i", wall_seconds=5, memory_bytes=1, **files)
    words = find(f"{kind}={tmp_path / 'tool'}").command(query).command
    assert not any("bash" in word or word.endswith(".sh") for word in words)


@pytest.mark.parametrize(
    ("line", "called"),
    [
        ("/usr/bin/killall -q x", "/usr/bin/killall"),
        ("true && /sbin/rmmod x", "/sbin/rmmod"),
        ("$(/usr/bin/sudo x)", "/usr/bin/sudo"),
        ("killall -q x", None),
        ("# /usr/bin/killall x", None),
        ("/opt/killall-not/run", None),
        ("/usr/bin/pkill.sh", None),
        ("$HERE/sudo x", None),
    ],
)
def test_absolute_paths_are_refused_without_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, called: str | None
) -> None:
    """The scripts are looked at, and not run."""
    monkeypatch.setattr(script_guard, "why_not_isolated", lambda: "it may not")
    script = tmp_path / "run_instance.sh"
    script.write_text(f"#!/bin/bash\n{line}\n")
    trouble = refusal([script])
    if called is None:
        assert trouble is None
        return
    assert trouble is not None and trouble.startswith(f"{script}:2: calls {called}, but this system has no")
    with pytest.raises(VerifierUnavailable, match="`trust`"):
        script_guard.guarded(("true",), scripts=[script], folder=tmp_path, trust=False)
    assert script_guard.guarded(("true",), scripts=[script], folder=tmp_path, trust=True) == (
        script_guard.Invocation(("true",), guard=TRUSTED)
    )
    found = dokimos.diagnose_verifier(f"vnncomp={tmp_path}")
    assert not found.can_be_run and called in found.findings[-1].what
