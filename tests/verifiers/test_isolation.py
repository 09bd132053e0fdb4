"""Verifiers have no network, write only where they may, and see neither processes nor /tmp of others."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import dokimos
from dokimos.campaigns.campaign import run_campaign
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.suites.answers import Answer
from dokimos.verifiers import script_guard
from dokimos.verifiers.catalogue import find
from dokimos.verifiers.execution import process
from dokimos.verifiers.execution.limits import Limits, Outcome, Room, Termination
from dokimos.verifiers.execution.process import run_limited
from dokimos.verifiers.script_guard import why_not_isolated
from tests.scripting import at_least, instance

LIMITS = Limits(wall_seconds=30, memory_bytes=1 << 30)
needs_isolation = pytest.mark.skipif(why_not_isolated() is not None, reason="no isolation here")


def ask(folder: Path, *command: str, room: Room | None = None) -> tuple[Outcome, str]:
    """What became of a command in a room, and what it printed."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"]}
    log = folder / "log"
    outcome = run_limited(
        command, limits=LIMITS, log=log, cwd=run, environment=environment, room=room or Room()
    )
    return outcome, log.read_text()


def python(program: str, *words: str | Path) -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", program, *map(str, words))


@needs_isolation
class TestARoom:
    def test_has_no_network_but_its_own_loopback(self, tmp_path: Path) -> None:
        program = (
            "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
            "socket.create_connection(s.getsockname()); print('talks to itself');"
            "socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
        )
        with socket.socket() as ours:
            ours.bind(("127.0.0.1", 0))
            ours.listen()
            words = python(program, str(ours.getsockname()[1]))
            outcome, said = ask(tmp_path, *words)
            assert outcome.exit_code == 1 and "talks to itself" in said
            assert "ConnectionRefusedError" in said
            outcome, said = ask(tmp_path, *words, room=Room(network=True))
            assert outcome.exit_code == 0, said

    def test_can_write_in_its_folder_and_those_named_and_nowhere_else(self, tmp_path: Path) -> None:
        named, other = tmp_path / "named", tmp_path / "other"
        named.mkdir()
        other.mkdir()
        program = (
            "import sys, pathlib\n"
            "for place in sys.argv[1:]:\n"
            "    try: pathlib.Path(place, 'x').write_text('x'); print('can', place)\n"
            "    except OSError as error: print(error.strerror, place)"
        )
        places = (
            ".",
            named,
            "/tmp",
            "/var/tmp",
            "/dev/shm",
            other,
            Path.home(),
            "/etc",
            Path(__file__).parent,
        )
        outcome, said = ask(tmp_path, *python(program, *places), room=Room(writes=(named,)))
        assert outcome.exit_code == 0
        assert [line.split()[0] for line in said.splitlines()] == ["can"] * 5 + ["Read-only"] * 4
        assert (tmp_path / "run" / "x").is_file() and (named / "x").is_file()
        assert not any(Path(place, "x").exists() for place in places[2:])
        assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "named", "other", "run"]

    @pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/dev/shm"])
    def test_sees_of_common_folders_only_what_it_is_told_of(self, tmp_path: Path, place: str) -> None:
        with (
            tempfile.TemporaryDirectory(dir=place) as secret,
            tempfile.TemporaryDirectory(dir=place) as told,
        ):
            for folder in (secret, told):
                Path(folder, "file").write_text("seen")
            program = (
                "import os, sys; print(os.listdir(sys.argv[1])); print(open(sys.argv[2] + '/file').read())"
            )
            outcome, said = ask(tmp_path, *python(program, place, told))
            assert outcome.exit_code == 0, said
            assert Path(told).name in said and "seen" in said
            assert Path(secret).name not in said

    def test_has_a_folder_of_its_own_where_everything_is_in_a_common_one(self, tmp_path: Path) -> None:
        for place in ("/tmp", "/dev/shm"):
            with tempfile.TemporaryDirectory(dir=place) as base:
                outcome, _ = ask(Path(base), "touch", "made")
                assert outcome.exit_code == 0
                assert (Path(base) / "run" / "made").is_file()

    def test_reaches_no_other_processes_and_not_its_first(self, tmp_path: Path) -> None:
        program = (
            "import os, signal, sys\n"
            "try: os.kill(int(sys.argv[1]), 0)\n"
            "except ProcessLookupError: print('nobody')\n"
            "for number in (15, 2, 9): os.kill(1, number)\n"
            "print(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()))"
        )
        outcome, said = ask(tmp_path, *python(program, str(os.getpid())))
        assert outcome.exit_code == 0
        assert said.splitlines() == ["nobody", "[1, 2]"]

    @pytest.mark.parametrize(
        "undo",
        [
            "mount -o remount,rw,bind /",
            "unshare --user --map-root-user --mount mount -o remount,rw,bind /",
            "umount /proc",
            "nsenter --target 1 --mount touch /etc/dokimos-was-here",
            "chroot /proc/1/root true",
        ],
    )
    def test_cannot_be_left(self, tmp_path: Path, undo: str) -> None:
        outcome, said = ask(tmp_path, "sh", "-c", f"{undo}; touch {Path.home()}/dokimos-was-here")
        assert outcome.exit_code == 1, said
        assert "Read-only file system" in said
        assert not Path("/etc/dokimos-was-here").exists()

    def test_ends_with_its_command_and_says_how(self, tmp_path: Path) -> None:
        outcome, _ = ask(tmp_path, "sh", "-c", "sleep 1000 & exit 7")
        assert (outcome.termination, outcome.exit_code) == (Termination.EXITED, 7)
        outcome, _ = ask(tmp_path, "sh", "-c", "kill -SEGV $$")
        assert (outcome.termination, outcome.detail) == (Termination.SIGNALLED, "SIGSEGV")
        outcome, _ = ask(tmp_path, "/none-such")
        assert outcome.termination is Termination.NOT_STARTED and "No such file" in outcome.detail

    def test_its_first_process_is_not_counted(self, tmp_path: Path) -> None:
        """Otherwise each run would seem to take the memory of one more interpreter."""
        with_room, _ = ask(tmp_path, "sleep", "0.3")
        assert 0 < with_room.peak_memory_bytes < 30_000_000


def campaign(folder: Path, tool: str, **settings: bool) -> RunRecord:
    place = folder / "tool"
    place.mkdir()
    (place / "run_instance.sh").write_text(tool)
    suite = CampaignSuite(folder / "s", (instance(folder / "s", "i", asked=at_least("0.5")),))
    given = RunSettings(timeout_seconds=30, **settings)
    [record] = run_campaign([suite], [find(f"vnncomp={place}")], out=folder / "out", settings=given).records
    return record


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A file in the user's home."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="dokimos-test-") as name:
        yield Path(name) / "written"


@needs_isolation
@pytest.mark.parametrize("trust", [False, True])
def test_a_run_is_isolated_unless_the_tool_is_trusted(tmp_path: Path, elsewhere: Path, trust: bool) -> None:
    record = campaign(
        tmp_path, f'touch "{tmp_path}/tool/own"; touch {elsewhere}; echo unsat > "$5"\n', trust=trust
    )
    assert record.answer is Answer.UNSAT, record.detail
    assert (tmp_path / "tool" / "own").is_file()
    assert elsewhere.exists() is trust
    assert record.trust_scripts is trust
    assert record.guard.startswith("none: it is trusted" if trust else "isolated: no network")


def test_where_the_system_refuses_the_run_goes_on_and_the_doctor_says_so(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_guard, "why_not_isolated", lambda: "unshare is not permitted")
    record = campaign(tmp_path, f'touch {elsewhere}; echo unsat > "$5"\n')
    assert record.answer is Answer.UNSAT and elsewhere.exists()
    assert "isolated" not in record.guard
    found = [finding.what for finding in dokimos.diagnose_verifier("reference").findings]
    assert "it runs with your rights, not isolated: unshare is not permitted" in found


@needs_isolation
def test_the_doctor_says_what_a_verifier_is_kept_from() -> None:
    found = [finding.what for finding in dokimos.diagnose_verifier("reference").findings]
    said = "it runs isolated: no network; it writes to its folder; /tmp and processes of its own"
    assert said in found
    trusting = dokimos.diagnose_verifier("reference", settings=RunSettings(trust=True)).findings
    assert any("because it is trusted" in finding.what for finding in trusting)


@pytest.mark.parametrize("line", ["raise OSError(1, 'no')", "import os; os._exit(3)"])
def test_a_system_that_refuses_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    (tmp_path / "shepherd.py").write_bytes(process._SHEPHERD.read_bytes())
    (tmp_path / "namespaces.py").write_text(f"def enter(room):\n    {line}\n")
    monkeypatch.setattr(process, "_SHEPHERD", tmp_path / "shepherd.py")
    why_not_isolated.cache_clear()
    assert why_not_isolated()
    why_not_isolated.cache_clear()


@needs_isolation
def test_a_mount_that_another_covers_does_no_harm(tmp_path: Path) -> None:
    """As in the namespaces of `ip netns exec`, where a new /sys covers what was below the old one."""
    program = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]);"
        "from tests.verifiers.test_isolation import ask;"
        "print(*ask(pathlib.Path(sys.argv[2]), 'true', 'x'))"
    )
    covering = (
        'mkdir -p "$3/a/b" && mount -t tmpfs one "$3/a" && mkdir "$3/a/b" && mount -t tmpfs two "$3/a/b"'
    )
    covering += ' && mount -t tmpfs three "$3/a" && mkdir "$3/a/b" && exec "$0" -c "$1" "$2" "$3"'
    words = (sys.executable, program, str(Path(__file__).parents[2]), str(tmp_path))
    shut_in = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", covering, *words)
    done = subprocess.run(shut_in, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("there is no program that makes namespaces")
    assert "Termination.EXITED" in done.stdout, done.stdout + done.stderr
