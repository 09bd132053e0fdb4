"""A fault of ours is 3, never 1; closed and full streams and poor encodings bring no traceback."""

from __future__ import annotations

import errno
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dokimos as library
from dokimos.cli import main
from dokimos.core.errors import InvalidProof
from tests.cli.conftest import Dokimos

#: Of every command, a form that does little; the first words of a fault in its library call.
COMMANDS = {
    "generate": ["generate", "exclusive-pairs", "--out", "x"],
    "check": ["check", "x"],
    "label": ["label", "x"],
    "run": ["run", "x", "--verifier", "scripted", "--out", "y"],
    "watch": ["watch", "x", "--once"],
    "judge": ["judge", "x"],
    "gate": ["gate", "x", "--verifier", "scripted"],
    "audit": ["audit", "x", "--results", "y", "--out", "z"],
    "replay": ["replay", "x.onnx", "y.vnnlib", "0"],
    "show": ["show", "x.onnx", "y.vnnlib"],
    "release": ["release", "x", "--out", "y", "--author", "z"],
    "train_model": ["train", "digits-fc", "--out", "x"],
    "make_properties": ["properties", "oval", "--model", "x", "--data", "digits", "--out", "y"],
    "report": ["report", "x", "--html", "y.html"],
    "profile": ["profile", "x"],
    "explain": ["explain", "x"],
    "list_families": ["families"],
    "list_suites": ["suites"],
    "list_verifiers": ["verifiers"],
    "install_verifier": ["verifiers", "install", "reference"],
    "diagnose_verifier": ["verifiers", "doctor", "reference"],
    "lint_law": ["law", "lint", "x.law"],
    "format_law": ["law", "fmt", "x.law"],
    "test_law": ["law", "test", "x.law"],
    "replay_law": ["law", "replay", "x.json"],
    "verify_law": ["law", "verify", "x.law"],
    "verify_law_rows": ["law", "verify", "x.law", "--rows", "3"],
    "repair_law": ["law", "repair", "x.law", "--model", "x.onnx", "--out", "y.onnx"],
    "export_law": ["law", "export", "x.law", "--out", "y"],
    "ask_law": ["law", "verify", "x.law", "--verifier", "reference"],
    "add_labels": ["db", "add", "x"],
    "find_labels": ["db", "find"],
    "export_labels": ["db", "export", "x", "--suite", "y"],
    "init_edition": ["edition", "init", "x", "--category", "y", "--tool", "z=scripted"],
    "run_edition": ["edition", "run", "x"],
    "score_edition": ["edition", "score", "x"],
    "publish_edition": ["edition", "publish", "x", "--out", "y"],
    "hunt": ["hunt", "--verifier", "scripted", "--out", "x"],
    "reduce": ["reduce", "x/y", "--verifier", "scripted", "--out", "z"],
    "check_proofs": ["check", "x.json"],
    "init_config": ["init", "--out", "x.toml"],
    "init_laws": ["law", "init", "x.csv", "--target", "y"],
    "new_law": ["law", "new", "monotone", "--feature", "age"],
    "convert_model": ["law", "convert", "x.pkl", "--out", "x.json"],
    "monotone": ["monotone", "x.pkl", "--data", "x.csv"],
    "fuzz_domain": ["law", "fuzz", "x.py", "--out", "x.npy"],
    "attack": ["attack", "x", "--attack", "pgd"],
    "hide": ["hide", "--out", "x"],
    "assess_hiding": ["hide", "--assess", "x"],
    "hide_soundness": ["hide", "--soundness", "--out", "x"],
    "list_data": ["data"],
    "get_data": ["data", "get", "digits"],
}
SHOWING = [["suites"], ["families"], ["families", "ops"], ["verifiers"], ["--version"], ["--help"]]


@pytest.mark.parametrize("function", COMMANDS)
def test_a_crash_is_a_fault_of_ours_in_every_command(
    dokimos: Dokimos, function: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise KeyError("a secret of the file")

    monkeypatch.chdir(tmp_path)
    if function in ("judge", "report", "explain"):  # they look for a campaign first
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "manifest.json").touch()
    for name in {function, "judge" if function == "explain" else function}:
        monkeypatch.setattr(library, name, crash, raising=False)
    ran = dokimos(*COMMANDS[function])
    assert ran.code == 3, ran.err
    [line] = ran.err.splitlines()
    assert line.startswith("dokimos: a bug in Dokimos itself (KeyError); its traceback is in ")
    assert "secret" not in line
    [kept] = re.findall(r"traceback is in (\S+);", line)
    text = Path(kept).read_text()
    assert "Traceback" in text and "dokimos " + " ".join(COMMANDS[function]) in text


def test_every_public_function_of_a_command_is_gone_through() -> None:
    others = {"evaluate", "find_family", "write_gate"}
    others |= {
        f"read_{what}" for what in ("campaign", "config", "edition", "law", "network", "property", "suite")
    }
    functions = {name for name in library.__all__ if name.islower() and not name.startswith("_")}
    assert functions - others == set(COMMANDS)


def test_a_trace_that_cannot_be_kept_is_said_so(
    dokimos: Dokimos, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def crash() -> None:
        raise RuntimeError

    (tmp_path / "file").touch()
    monkeypatch.setattr(library, "list_suites", crash, raising=False)
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    ran = dokimos("suites")
    assert ran.code == 3 and f"traceback is in {tmp_path}/temporary/" in ran.err
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file" / "x"))
    ran = dokimos("suites")
    assert ran.code == 3 and "its traceback could not be written to any file" in ran.err


def test_a_label_that_is_not_proven_is_still_1(dokimos: Dokimos, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> None:
        raise InvalidProof("no")

    monkeypatch.setattr(library, "list_suites", wrong, raising=False)
    assert dokimos("suites").code == 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("words", SHOWING, ids=" ".join)
def test_what_an_encoding_lacks_is_escaped(
    encoding: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["dokimos", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert len(out.buffer.getvalue().decode(encoding)) > 10  # type: ignore[attr-defined]


def test_text_that_is_in_no_encoding_can_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "no-\udcff.law"
    path.write_text("import people;")
    for encoding in ("utf-8", "ascii"):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "argv", ["dokimos", "law", "lint", str(path)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 1
        assert re.search(rb"no-(\\udcff|\?|\xef\xbf\xbd)\.law:1", out.buffer.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        (">&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
        (">/dev/full", 2, "standard output cannot be written (No space left on device)"),
        (">/dev/full 2>/dev/full", 2, ""),
    ],
)
def test_closed_and_full_streams(redirected: str, code: int, said: str) -> None:
    command = f'"{sys.executable}" -m dokimos suites {redirected}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert said in done.stderr


def test_a_closed_output_is_not_taken_by_the_next_file(tmp_path: Path) -> None:
    script = (
        "from dokimos.cli import prepare; prepare(); "
        f"f = open({str(tmp_path / 'journal')!r}, 'w'); print('lost'); import os; os.write(1, b'lost')"
    )
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "$1" >&- 2>&- <&-', "-", script], check=False
    )
    assert done.returncode == 0
    assert (tmp_path / "journal").read_text() == ""


def test_progress_that_cannot_be_shown_does_not_end_the_work(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    ran = dokimos("generate", "exclusive-pairs", "--inputs", 20, "--pairs", 2, "--out", tmp_path / "suite")
    assert ran.code == 0
    assert (tmp_path / "suite" / "instances.csv").is_file()
