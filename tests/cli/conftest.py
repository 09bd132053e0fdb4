"""Runs the command line in this process, as a user would type it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dokimos.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Dokimos = Callable[..., Ran]


@pytest.fixture
def dokimos(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Dokimos:
    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["dokimos", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture(autouse=True)
def own_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, checked_labels: Path
) -> Path:
    """Nothing that a test installs or caches outlives it, except the labels that it has checked."""
    home = tmp_path_factory.mktemp("home")
    (home / "labels").symlink_to(checked_labels)
    monkeypatch.setenv("DOKIMOS_HOME", str(home))
    return home
