from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dokimos.errors import VerifierUnavailable
from dokimos.verifiers.environments import PinnedEnvironment, home


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
            interpreter.write_text(f'#!/bin/sh\n[ "$2" = pip ] && exit 0\nexec {sys.executable} "$@"\n')
            interpreter.chmod(0o755)

    monkeypatch.setattr("dokimos.verifiers.environments.venv.EnvBuilder", WithoutPip)
    return PinnedEnvironment("empty", "1.0", ("nothing==1.0",))


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


def test_other_pins_are_another_environment(empty: PinnedEnvironment) -> None:
    assert empty.folder != PinnedEnvironment("empty", "1.0", ("nothing==1.1",)).folder


def test_a_home_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "file"))
    with pytest.raises(VerifierUnavailable, match="set DOKIMOS_HOME"):
        PinnedEnvironment("empty", "1.0", ()).build((), lambda _: None)
