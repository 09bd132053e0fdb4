"""Bad input to a script is one sentence and exit code 2."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("script", "words"), [("picture", ["nowhere.html"]), ("suite_orders", ["nowhere", "--check"])]
)
def test_bad_input_is_one_sentence(
    script: str,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{script}.py", *words])
    with pytest.raises(SystemExit) as ended:
        import_module("plainly").run(import_module(script).main)
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith(script)
    assert not any("Traceback" in line for line in said)
