from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from dokimos.core.errors import VerifierUnavailable
from dokimos.verifiers.catalogue import VERIFIERS
from dokimos.verifiers.environments import (
    PinnedEnvironment,
    PinnedVerifier,
    home,
    known_hashes,
    require_hashes,
)

#: That of an empty file.
HASH = f"--hash=sha256:{hashlib.sha256().hexdigest()}"


def test_home_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    assert home() == tmp_path
    monkeypatch.delenv("DOKIMOS_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert home() == tmp_path / "dokimos"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert home() == Path.home() / ".cache" / "dokimos"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert home() == Path.home() / "Library" / "Caches" / "dokimos"


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PinnedEnvironment:
    """An environment without packages whose pip does nothing, so that no network is needed."""
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))

    class WithoutPip:
        def __init__(self, **_: object) -> None:
            pass

        def create(self, folder: Path) -> None:
            (folder / "bin").mkdir(parents=True)
            interpreter = folder / "bin" / "python"
            make = f'touch "{folder}/wheels/$(echo $n | sed s/==/-/)-py3-none-any.whl"'
            pip = f"[ $5 = download ] && mkdir {folder}/wheels && for n; do :; done && {make}"
            interpreter.write_text(
                f'#!/bin/sh\n[ "$2" = pip ] && {{ {pip}; exit 0; }}\nexec {sys.executable} "$@"\n'
            )
            interpreter.chmod(0o755)

    monkeypatch.setattr("dokimos.verifiers.environments.venv.EnvBuilder", WithoutPip)
    return PinnedEnvironment("empty", "1.0", (f"nothing==1.0 {HASH}",))


def test_it_is_complete_only_after_its_smoke_test(empty: PinnedEnvironment) -> None:
    said: list[str] = []
    with pytest.raises(
        VerifierUnavailable, match="smoke test of the verifier empty failed with exit code 3"
    ):
        empty.build(("-c", "raise SystemExit(3)"), said.append)
    assert not empty.is_complete
    empty.build(("-c", "pass"), said.append)
    assert empty.is_complete
    count = len(said)
    empty.build(("-c", "raise SystemExit(3)"), said.append)
    assert len(said) == count


def test_what_installs_ends_when_we_are_killed(empty: PinnedEnvironment, tmp_path: Path) -> None:
    """Otherwise pip would go on in a folder in which the next attempt begins anew."""
    said: list[str] = []
    empty.build(("-c", "pass"), said.append)
    empty.python.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    program = (
        "from dokimos.verifiers.environments import PinnedEnvironment as P;"
        f"P('empty', '1.0', {empty.requirements!r})._run(('-m', 'pip'), 'pip install', seconds=600)"
    )
    ours = subprocess.Popen([sys.executable, "-c", program])
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
        time.sleep(0.02)
        assert ours.poll() is None
    pip = psutil.Process(int((tmp_path / "pid").read_text()))
    ours.kill()
    ours.wait()
    assert psutil.wait_procs([pip], timeout=30)[1] == []


def test_what_has_no_hash_is_not_installed() -> None:
    with pytest.raises(VerifierUnavailable, match=r"nothing==1\.0 is not installed, since the hash"):
        known_hashes(["nothing==1.0"])


def test_all_that_our_verifiers_install_has_hashes() -> None:
    for _, verifier in VERIFIERS.items():
        if isinstance(verifier, PinnedVerifier):
            requirements = verifier.environment.requirements
            known = known_hashes(requirements)
            assert list(known) == list(requirements) and all(known.values())


def test_a_wheel_that_was_exchanged_is_not_installed(tmp_path: Path) -> None:
    wheels = [tmp_path / "mine_too-1.0+cpu-py3-none-any.whl", tmp_path / "other-2-py3-none-any.whl"]
    for wheel in wheels:
        wheel.write_bytes(wheel.name.encode())
    known = {
        pin: frozenset([hashlib.sha256(wheel.name.encode()).hexdigest()])
        for pin, wheel in zip(("Mine.Too==1.0", "other==2"), wheels, strict=True)
    }
    require_hashes(wheels, known)
    with pytest.raises(VerifierUnavailable, match="2 wheels were asked for, and 1 came"):
        require_hashes(wheels[:1], known)
    wheels[1].write_bytes(b"another")
    with pytest.raises(VerifierUnavailable, match=r"other-2-py3-none-any\.whl has another hash"):
        require_hashes(wheels, known)
    wheels[1].unlink()
    sdist = tmp_path / "other-3-py3-none-any.whl"
    sdist.write_bytes(b"of a version that nobody asked for")
    with pytest.raises(VerifierUnavailable, match="another hash"):
        require_hashes([wheels[0], sdist], known)


@pytest.mark.slow
def test_what_an_index_has_is_held_against_the_hash(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A package that is on every index, with the hash of another."""
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    with pytest.raises(VerifierUnavailable, match=r"another hash|pip download"):
        PinnedEnvironment("mine", "1.0", (f"packaging==26.3 {HASH}",)).build(("-c", "pass"), print)
    assert not list((tmp_path / "home").glob("**/site-packages/packaging"))


def test_a_python_that_makes_no_environments(
    empty: PinnedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_ensurepip(*_: object) -> None:
        raise subprocess.CalledProcessError(1, "ensurepip")

    monkeypatch.setattr("dokimos.verifiers.environments.venv.EnvBuilder.create", without_ensurepip)
    with pytest.raises(VerifierUnavailable, match="No virtual environment with pip can be created"):
        empty.build(("-c", "pass"), lambda _: None)


def test_other_pins_are_another_environment(empty: PinnedEnvironment) -> None:
    assert empty.folder != PinnedEnvironment("empty", "1.0", (f"nothing==1.1 {HASH}",)).folder


def test_a_home_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "file"))
    with pytest.raises(VerifierUnavailable, match="set DOKIMOS_HOME"):
        PinnedEnvironment("empty", "1.0", ()).build((), lambda _: None)


def findings(environment: PinnedEnvironment, smoke: str = "pass") -> list[tuple[bool, str, str]]:
    return [(f.is_ok, f.what, f.remedy) for f in environment.diagnose(("-c", smoke))]


def test_a_missing_environment_is_diagnosed(empty: PinnedEnvironment) -> None:
    ((is_ok, what, remedy),) = findings(empty)
    assert not is_ok
    assert "there is no environment" in what
    assert remedy == "dokimos verifiers install empty"


def test_an_incomplete_environment_is_diagnosed(empty: PinnedEnvironment) -> None:
    with pytest.raises(VerifierUnavailable):
        empty.build(("-c", "raise SystemExit(3)"), lambda _: None)
    first, (is_ok, what, remedy) = findings(empty)
    assert first[0]
    assert not is_ok
    assert "interrupted" in what
    assert "install empty" in remedy


def test_a_lost_interpreter_is_diagnosed(empty: PinnedEnvironment) -> None:
    empty.build(("-c", "pass"), lambda _: None)
    empty.python.unlink()
    *_, (is_ok, what, remedy) = findings(empty)
    assert not is_ok
    assert "interpreter is gone" in what
    assert f"remove {empty.folder}" in remedy


def test_a_missing_package_is_diagnosed(empty: PinnedEnvironment) -> None:
    empty.build(("-c", "pass"), lambda _: None)
    *_, (is_ok, what, _) = findings(empty)
    assert not is_ok
    assert what == "it is missing nothing==1.0"


def test_a_list_of_packages_that_cannot_be_read_is_diagnosed(empty: PinnedEnvironment) -> None:
    empty.build(("-c", "pass"), lambda _: None)
    for printed in ("", "a warning", "[1]", "{}"):
        empty.python.write_text(f"#!/bin/sh\necho '{printed}'\n")
        *_, (is_ok, what, remedy) = findings(empty)
        assert not is_ok
        assert what.startswith("the list of its packages cannot be read: ")
        assert f"remove {empty.folder}" in remedy


def test_a_warning_before_the_list_of_packages_does_no_harm(empty: PinnedEnvironment) -> None:
    empty.build(("-c", "pass"), lambda _: None)
    empty.python.write_text("#!/bin/sh\necho 'a warning' >&2\necho '[\"nothing==1.0\"]'\n")
    assert [is_ok for is_ok, _, _ in findings(empty)] == [True, True, True]


@pytest.fixture
def with_pytest(empty: PinnedEnvironment) -> PinnedEnvironment:
    """As `empty`, pinned to what our own interpreter has, written differently."""
    full = PinnedEnvironment("empty", "1.0", (f"PyTest=={pytest.__version__}+cpu {HASH}",))
    full.build(("-c", "pass"), lambda _: None)
    return full


def test_a_smoke_test_that_fails_shows_its_tail(with_pytest: PinnedEnvironment) -> None:
    *_, (is_ok, what, _) = findings(with_pytest, "raise SystemExit('libfoo is missing')")
    assert not is_ok
    assert what == "its smoke test failed with exit code 1: libfoo is missing"


def test_a_smoke_test_that_does_not_end(
    with_pytest: PinnedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dokimos.verifiers.environments._SMOKE_SECONDS", 0.5)
    *_, (is_ok, what, _) = findings(with_pytest, "import time; time.sleep(60)")
    assert not is_ok
    assert "did not end in time" in what


def test_all_is_ok(with_pytest: PinnedEnvironment) -> None:
    found = findings(with_pytest)
    assert [is_ok for is_ok, _, _ in found] == [True, True, True]
    assert found[-1][1] == "its smoke test passes"


def test_the_packages_are_counted_as_pip_comes_to_them() -> None:
    said: list[str] = []
    heard = PinnedEnvironment("mine", "1.0", ("a==1", "b==2"))._counting(said.append)
    for line in (
        "Collecting a==1\n",
        "  Downloading a-1.whl\n",
        "\n",
        "Collecting a==1\n",
        "Collecting b==2\n",
    ):
        heard(line)
    assert said == ["  1 of 2: a==1", "  2 of 2: b==2"]
